// SPDX-License-Identifier: BSL-1.0
//
// A store that several files were joined to, compared file by file: where each dataset of a file lies in its array, and, when all
// are through, whether the arrays are as long as all files together.
//
#ifndef ZARRBITS_VERIFY_JOINED_FILES_HPP
#define ZARRBITS_VERIFY_JOINED_FILES_HPP

#include "verify/convention.hpp"
#include "verify/source_tree.hpp"

#include <zarrbits/verify.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::verification {

// Of a dataset in one file: along which of its dimensions it was joined, and where it begins in the array.
struct joined_place {
  std::size_t axis = 0;
  std::uint64_t first = 0;
  bool added = false;  // the dimension is the array's alone
};

class joined_arrays {
 public:
  explicit joined_arrays(const concatenation& how)
      : dimension_(how.dimension), is_new_(how.is_new), all_equal_(how.different == concatenation::different_type::refuse) {}

  // A dataset of the file at hand; nothing where it does not have the dimension. Throws source_error.
  std::optional<joined_place> place(hid_t dataset, haddr_t address, const std::string& path, const std::string& store_path,
                                    const source_tree& tree, const convention& rules);
  // The array of such a dataset: how long it is.
  void note_length(const std::string& store_path, std::uint64_t length) { arrays_[store_path].length = length; }
  // Datasets without the dimension have to be those of every file.
  bool all_equal() const { return all_equal_; }
  // That every dataset gets which has a place.
  std::string added_dimension() const { return is_new_ ? dimension_ : ""; }
  bool is_dimension(const std::string& name) const { return name == dimension_; }
  // The file at hand is through.
  void next_file();
  // Arrays that are longer than all files together.
  std::vector<finding> longer() const;

 private:
  struct array {
    std::string path, dimension;
    std::uint64_t length = 0;
  };
  std::string dimension_;
  bool is_new_;
  bool all_equal_;
  std::map<std::string, std::uint64_t> ends_, lengths_;  // of each dimension: of the files before, and of this one
  std::map<std::string, array> arrays_;                  // by path in the store
};

}  // namespace zarrbits::verification

#endif
