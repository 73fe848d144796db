// SPDX-License-Identifier: BSL-1.0
//
// References of HDF5 for the paths that a store has, in a file whose objects exist already.
//
#ifndef ZARRBITS_EXPORT_PATH_REFERENCES_HPP
#define ZARRBITS_EXPORT_PATH_REFERENCES_HPP

#include "export/value_writer.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace zarrbits::exporting {

class path_references final : public reference_maker {
 public:
  // `top`: the source's object that is the root of the store, where paths begin ("" for all of it).
  path_references(hid_t file, std::string top) : file_(file), top_(std::move(top)) {}

  void object(const std::string& path, std::byte* out) override;
  void region(const text::json& path_and_selection, std::byte* out) override;

  // The group of the object whose attributes follow: a path that does not begin with "/" begins there.
  void begin_at(std::string group) { group_ = std::move(group); }

  // How many led to nothing since the last call; they became null.
  std::uint64_t take_dangling();

 private:
  std::string path_in_file(const std::string& path) const;
  hid_t file_;
  std::string top_, group_ = "/";
  std::uint64_t dangling_ = 0;
};

// A name of HDF5: not empty, without "/" and NUL, not ".".
bool is_link_name(const std::string& name);

}  // namespace zarrbits::exporting

#endif
