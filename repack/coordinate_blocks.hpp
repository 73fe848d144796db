// SPDX-License-Identifier: BSL-1.0
//
// The values of a coordinate variable in several files: each file has a block of them, and the blocks are in order.
//
//   coordinate_blocks x("/x");
//   x.add({0, 1, 2}, "west.nc");
//   x.add({3, 4}, "east.nc");
//   x.arrange();
//   x.first({3, 4});   // 3
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

  // `path`: of the variable, for sentences.
  explicit coordinate_blocks(std::string path) : path_(std::move(path)) {}

  // Returns the block, which stays where it is. Throws zarrbits::error if the file's own values are neither rising nor falling.
  const values* add(values block, const std::string& file);
  // Puts the blocks in order, rising or falling. Throws zarrbits::error if they overlap, or are not all of one direction.
  void arrange();
  // After arrange(): the index of the first value of a block.
  std::uint64_t first(const values& block) const { return blocks_.at(block).first; }
  std::uint64_t length() const { return length_; }
  // How many blocks have values.
  std::size_t count() const { return blocks_.size() - blocks_.count({}); }

 private:
  struct block_place {
    std::string file;  // the first that has it
    std::uint64_t first = 0;
  };
  std::string path_;
  std::map<values, block_place> blocks_;  // in the order of their first values
  std::uint64_t length_ = 0;
};

}  // namespace zarrbits::repacking

#endif
