// SPDX-License-Identifier: BSL-1.0
//
// A Parquet file of few columns, as references are stored in: numbers of 64 bits and texts, not nested, not compressed or by
// Zstandard, in pages of version 1. https://parquet.apache.org/docs/file-format/
//
//   parquet_file file(bytes, 1'000'000);
//   for (const std::int64_t offset : file.numbers("offset")) ...
//
#ifndef ZARRBITS_IO_PARQUET_FILE_HPP
#define ZARRBITS_IO_PARQUET_FILE_HPP

#include "io/thrift_compact.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::io {

// The file is damaged, or has a feature that this reader does not support. what() is a reason, not a sentence.
struct parquet_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace zarrbits::io

// The numbers of the format.
namespace zarrbits::io::parquet {

enum type { int64 = 2, byte_array = 6 };
enum repetition { required = 0, optional = 1 };
enum encoding { plain = 0, plain_dictionary = 2, rle = 3, rle_dictionary = 8 };
enum compression { uncompressed = 0, zstd = 6 };
enum page { data_page = 0, dictionary_page = 2 };
constexpr int utf8 = 0;  // a converted type
constexpr std::string_view magic = "PAR1";

}  // namespace zarrbits::io::parquet

namespace zarrbits::io {

class parquet_file {
 public:
  // All of a file, and how many rows it may have. Throws parquet_error.
  parquet_file(std::vector<std::byte> bytes, std::uint64_t max_rows);

  std::uint64_t rows() const { return rows_; }
  bool has_column(std::string_view column) const;
  // One for each row. Throws parquet_error if there is no such column, or it has a different type.
  std::vector<std::int64_t> numbers(std::string_view column);
  // In the memory of this object.
  std::vector<std::optional<std::string_view>> texts(std::string_view column);

 private:
  struct column_type {
    std::string_view name;
    int type = 0;
    bool optional = false;
  };
  struct page {
    thrift_value header;
    std::span<const std::byte> bytes;  // decompressed
  };
  struct cursor {
    std::uint64_t offset = 0, remaining = 0;  // in the file; values
    int compression = 0;
  };
  void read_schema();
  std::size_t index_of(std::string_view column, int type) const;
  page next_page(cursor& position);
  std::span<const std::byte> decompressed(std::span<const std::byte> stored, std::uint64_t size, int compression);
  // Calls `take` for each row: with the reader of a page where its value comes next, with a text of a dictionary, or with
  // neither.
  template <class Take>
  void each_row(std::string_view column, int type, const Take& take);

  std::vector<std::byte> bytes_;
  thrift_value footer_;
  std::vector<column_type> columns_;
  std::uint64_t rows_ = 0;
  std::uint64_t decoded_ = 0;  // bytes
  std::deque<std::vector<std::byte>> pages_;
};

}  // namespace zarrbits::io

#endif
