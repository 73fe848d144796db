// SPDX-License-Identifier: BSL-1.0
//
// A variable of several files, while their metadata are read: the ways in which it is stored, its parts, and what becomes of
// them.
//
#ifndef ZARRBITS_CONVERT_CONCAT_VARIABLE_HPP
#define ZARRBITS_CONVERT_CONCAT_VARIABLE_HPP

#include "convert/concat/cf_terms.hpp"
#include "convert/hdf5/joined_parts.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// The files can be read, and do not belong together.
struct unjoinable : convert_error {
  using convert_error::convert_error;
};

// One of the ways in which a variable is stored, in any file.
struct variant {
  cf_terms terms;
  h5::handle type;
  std::vector<hsize_t> chunk;  // empty: not in chunks
  std::string layout;          // filters and fill value
  std::string file;            // the first that has it
  std::uint64_t parts = 0;
};

struct draft_part {
  std::size_t file = 0, variant = 0;
  haddr_t address = 0;
  hsize_t first = 0, count = 0;
};

struct variable {
  std::size_t object = 0, axis = 0;
  std::string dimension;  // by which the length of a file is told: path of its scale, or the variable's own
  std::vector<hsize_t> dims;
  std::vector<variant> variants;
  std::vector<draft_part> parts;
  std::uint64_t stored = 0;
  std::shared_ptr<const stored_values> before = {};  // of a store that grows; else null
  const json* node = nullptr;                        // its zarr.json

  // The variant of a file's dataset, which may be new.
  std::size_t variant_of(const source_dataset& data, const std::string& name);
  // Makes `o`, the first file's object, stand for all parts, `length` long along the axis; notes at the files whose values are
  // put in other terms. `store`: the one that grows. `added`: as joined_parts has it. Throws unjoinable, convert_error.
  void finish(source_object& o, hsize_t length, const std::shared_ptr<const joined_files>& files,
              std::vector<joined_source>& sources, const std::string& store, const std::string& added) const;
};

}  // namespace zarrbits::conversion

#endif
