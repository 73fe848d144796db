// SPDX-License-Identifier: BSL-1.0
//
// Writes the metadata of nodes to the store.
//
#ifndef ZARRBITS_ZARR_WRITE_NODE_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_NODE_WRITER_HPP

#include "metadata/array_metadata.hpp"
#include "zarr/write/store_writer.hpp"

#include <string_view>

namespace zarrbits::zarr {

class node_writer {
 public:
  // `notes_apart`: see metadata::array_text(); the same for all nodes.
  node_writer(store_writer& out, bool notes_apart) : out_(out), notes_apart_(notes_apart) {}

  // "/a/b" is the node's path.
  void array(std::string_view path, const metadata::array_metadata& m) {
    out_.put(metadata::metadata_key(path), metadata::array_text(m, notes_apart_));
  }
  void group(std::string_view path, const text::json& attributes) {
    out_.put(metadata::metadata_key(path), metadata::group_text(attributes, notes_apart_));
  }

 private:
  store_writer& out_;
  bool notes_apart_;
};

}  // namespace zarrbits::zarr

#endif
