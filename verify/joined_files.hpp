// SPDX-License-Identifier: BSL-1.0
//
// Compares a store of several joined files, file by file: the place of each file's datasets in their arrays and, at the end,
// whether the arrays are as long as all files together.
//
#ifndef ZARRBITS_VERIFY_JOINED_FILES_HPP
#define ZARRBITS_VERIFY_JOINED_FILES_HPP

#include "text/selection.hpp"
#include "verify/cf_meaning.hpp"
#include "verify/convention.hpp"
#include "verify/implied_units.hpp"
#include "verify/source_tree.hpp"

#include <zarrbits/verify.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::verification {

// "PATTERN:N" in place of the name of a dimension; empty if the text has another form.
struct axis_pattern {
  text::selection paths;
  std::size_t axis = 0;
};
std::optional<axis_pattern> axis_pattern_of(const std::string& dimension);

// The place of a dataset in one file: the dimension along which it was joined, and its start in the array.
struct joined_place {
  std::size_t axis = 0;
  std::uint64_t first = 0;
  bool added = false;  // only the array has the dimension
  inherited_units inherited_in_source = {}, inherited_in_store = {};
};

class joined_arrays {
 public:
  explicit joined_arrays(const concatenation& concat)
      : dimension_(concat.dimension),
        is_new_(concat.is_new),
        all_equal_(concat.different == concatenation::different_type::refuse) {}

  // A dataset of the current file; empty if it does not have the dimension. Throws source_error.
  std::optional<joined_place> place(hid_t dataset, haddr_t address, const std::string& path, const std::string& store_path,
                                    const source_tree& tree, const convention& rules);
  // What a variable of the current file, and its array, inherit from the variable that names it. Throws source_error,
  // store_error.
  void find_units(joined_place& place, haddr_t address, const zarr::store_folder& store, const std::string& store_path,
                  const source_tree& tree);
  // Notes the length of such a dataset's array.
  void note_length(const std::string& store_path, std::uint64_t length) { arrays_[store_path].length = length; }
  // True if datasets without the dimension must be equal in every file.
  bool all_equal() const { return all_equal_; }
  // The dimension that every dataset with a place gets.
  std::string added_dimension() const { return is_new_ ? dimension_ : ""; }
  bool is_dimension(const std::string& name) const { return name == dimension_; }
  // The coordinate variables of the current file that the store must have: the first file has them, too.
  std::vector<std::string> common_coordinates(std::vector<std::string> coordinates);
  // Call before a file whose position is known, without those before it.
  void begin_at(std::uint64_t first) { start_ = first; }
  // Call at the end of the current file.
  void next_file();
  // Reports arrays that are longer than all files together.
  std::vector<finding> longer_arrays() const;

 private:
  struct array {
    std::string path, dimension;
    std::uint64_t length = 0;
  };
  std::uint64_t begin_of(const std::string& dimension) { return start_ ? *start_ : ends_[dimension]; }

  std::string dimension_;
  std::optional<std::uint64_t> start_;
  bool is_new_;
  bool all_equal_;
  std::optional<std::set<std::string>> coordinates_;     // of the first file
  std::map<std::string, std::uint64_t> ends_, lengths_;  // of each dimension: end of the files before, and length in this one
  std::map<std::string, array> arrays_;                  // by path in the store
  std::optional<source_inherited_units> source_units_;   // of this file
  store_inherited_units store_units_;
};

}  // namespace zarrbits::verification

#endif
