// SPDX-License-Identifier: BSL-1.0
//
// The parts that files have of one dimension: a block of its coordinates each, or blocks with numbers.
//
//   coordinate_blocks x("/x");
//   x.add({0, 1, 2}, "west.nc");
//   const auto* block = x.add({3, 4}, "east.nc");
//   x.arrange();
//   block->first;   // 3
//
#ifndef ZARRBITS_REPACK_COORDINATE_BLOCKS_HPP
#define ZARRBITS_REPACK_COORDINATE_BLOCKS_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

class coordinate_blocks {
 public:
  using values = std::vector<long double>;
  struct block {
    std::string file;  // the first that has it
    std::uint64_t length = 0;
    values coordinates = {};  // of a block with a number
    std::uint64_t first = 0;  // its first index, after arrange()
  };

  // `path`: of the coordinate variable, for sentences.
  explicit coordinate_blocks(std::string path) : path_(std::move(path)) {}

  // Returns the block, which stays where it is. Throws zarrbits::error if the file's own values are neither rising nor falling.
  const block* add(values coordinates, const std::string& file);
  // The block with this number. The coordinates are empty if the dimension has none. Throws zarrbits::error if another file has a
  // block of this number with another length, or with other coordinates.
  const block* add(std::uint64_t number, std::uint64_t length, values coordinates, const std::string& file);

  // Puts the blocks in order, of their numbers, or rising or falling. Throws zarrbits::error if a number is missing, or if values
  // overlap, or are not all of one direction.
  void arrange();
  std::uint64_t length() const { return length_; }
  // How many blocks have values.
  std::size_t count() const;

 private:
  void require_numbers() const;
  bool is_falling() const;

  std::string path_;
  std::map<values, block> blocks_;  // in the order of their first values, or of their numbers
  bool has_numbers_ = false;
  std::uint64_t length_ = 0;
};

}  // namespace zarrbits::repacking

#endif
