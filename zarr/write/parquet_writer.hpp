// SPDX-License-Identifier: BSL-1.0
//
// Makes Parquet files of few columns: numbers of 64 bits, and texts that may be missing. One row group, compressed by Zstandard.
//
//   parquet_writer file(rows);
//   file.add("path", texts, parquet_writer::text_kind::dictionary_utf8);
//   file.add("offset", offsets);
//   write(file.finish());
//
#ifndef ZARRBITS_ZARR_WRITE_PARQUET_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_PARQUET_WRITER_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::zarr {

class parquet_writer {
 public:
  enum class text_kind {
    dictionary_utf8,  // texts that occur again and again: in a dictionary
    bytes,            // anything
  };
  explicit parquet_writer(std::size_t rows) : rows_(rows) {}

  // A value for each row.
  void add(const std::string& name, std::span<const std::int64_t> numbers);
  void add(const std::string& name, std::span<const std::optional<std::string_view>> texts, text_kind kind);
  // The complete file.
  std::string finish();

 private:
  struct column {
    std::string name;
    bool text = false, utf8 = false;
    std::vector<int> encodings = {};
    std::size_t missing = 0;                // values
    std::size_t first = 0, dictionary = 0;  // where its pages begin; 0: it has no dictionary
    std::size_t plain_size = 0, size = 0;   // bytes with the pages' headers
  };
  void add_page(column& target, int kind, int encoding, std::size_t values, const std::string& content);

  std::size_t rows_;
  std::string bytes_ = "PAR1";
  std::vector<column> columns_;
};

}  // namespace zarrbits::zarr

#endif
