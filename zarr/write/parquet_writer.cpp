// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/parquet_writer.hpp"

#include "io/parquet_file.hpp"
#include "io/thrift_compact.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/version.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <zstd.h>

namespace zarrbits::zarr {

namespace {

void append_little_endian(std::string& out, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void append_text(std::string& out, std::string_view text) {
  append_little_endian(out, text.size(), 4);
  out += text;
}

// As runs of one number each: neighbours are mostly equal.
std::string encode_runs(std::span<const std::uint32_t> numbers, unsigned width) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    io::append_varint(out, std::uint64_t{end - i} << 1);
    append_little_endian(out, numbers[i], (width + 7) / 8);
    i = end;
  }
  return out;
}

std::string compressed(const std::string& content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  const std::size_t n = ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 3);
  if (ZSTD_isError(n))
    throw zarrbits::error(errc::io_failed, std::string("Zstandard cannot compress references: ") + ZSTD_getErrorName(n));
  out.resize(n);
  return out;
}

}  // namespace

void parquet_writer::add_page(column& target, int kind, int encoding, std::size_t values, const std::string& content) {
  if (content.size() > INT32_MAX)
    throw zarrbits::error(errc::unsupported, "a Parquet file of references would have a column of more than 2 GiB");
  const std::string stored = compressed(content);
  io::thrift_writer header;
  header.number(1, kind);
  header.number(2, static_cast<std::int32_t>(content.size()));
  header.number(3, static_cast<std::int32_t>(stored.size()));
  header.begin(kind == io::parquet::dictionary_page ? 7 : 5);
  header.number(1, static_cast<std::int32_t>(values));
  header.number(2, encoding);
  if (kind == io::parquet::data_page) {
    header.number(3, io::parquet::rle);  // of the definition levels
    header.number(4, io::parquet::rle);
  }
  header.end();
  header.end();
  (kind == io::parquet::dictionary_page ? target.dictionary : target.first) = bytes_.size();
  target.plain_size += header.bytes().size() + content.size();
  target.size += header.bytes().size() + stored.size();
  bytes_ += header.bytes();
  bytes_ += stored;
}

void parquet_writer::add(const std::string& name, std::span<const std::int64_t> numbers) {
  column c{.name = name};
  c.encodings = {io::parquet::plain};
  std::string content;
  content.reserve(8 * numbers.size());
  for (const std::int64_t n : numbers) append_little_endian(content, static_cast<std::uint64_t>(n), 8);
  add_page(c, io::parquet::data_page, io::parquet::plain, numbers.size(), content);
  columns_.push_back(std::move(c));
}

void parquet_writer::add(const std::string& name, std::span<const std::optional<std::string_view>> texts, text_kind kind) {
  const bool has_dictionary = kind == text_kind::dictionary_utf8;
  column c{.name = name, .text = true, .utf8 = has_dictionary};
  c.encodings = {io::parquet::plain, io::parquet::rle};
  std::vector<std::uint32_t> presence, numbers;
  std::unordered_map<std::string_view, std::uint32_t> dictionary_index;
  std::string dictionary, plain;
  for (const auto& text : texts) {
    presence.push_back(text ? 1 : 0);
    if (!text) {
      ++c.missing;
      continue;
    }
    if (!has_dictionary) {
      append_text(plain, *text);
      continue;
    }
    const auto [entry, is_new] = dictionary_index.emplace(*text, static_cast<std::uint32_t>(dictionary_index.size()));
    if (is_new) append_text(dictionary, *text);
    numbers.push_back(entry->second);
  }
  const std::string levels = encode_runs(presence, 1);
  std::string content;
  append_text(content, levels);
  if (has_dictionary) {
    c.encodings.push_back(io::parquet::rle_dictionary);
    add_page(c, io::parquet::dictionary_page, io::parquet::plain, dictionary_index.size(), dictionary);
    const auto width = static_cast<unsigned>(std::max(1, static_cast<int>(std::bit_width(dictionary_index.size()))));
    content += static_cast<char>(width);
    content += encode_runs(numbers, width);
  } else {
    content += plain;
  }
  add_page(c, io::parquet::data_page, has_dictionary ? io::parquet::rle_dictionary : io::parquet::plain, texts.size(), content);
  columns_.push_back(std::move(c));
}

std::string parquet_writer::finish() {
  using type = io::thrift_writer::type;
  io::thrift_writer w;
  w.number(1, 1);  // the version
  w.begin_list(2, type::structure, columns_.size() + 1);
  w.begin_element();
  w.text(4, "schema");
  w.number(5, static_cast<std::int32_t>(columns_.size()));
  w.end();
  for (const column& c : columns_) {
    w.begin_element();
    w.number(1, c.text ? io::parquet::byte_array : io::parquet::int64);
    w.number(3, c.text ? io::parquet::optional : io::parquet::required);
    w.text(4, c.name);
    if (c.utf8) w.number(6, io::parquet::utf8);
    w.end();
  }
  std::size_t plain_size = 0;
  for (const column& c : columns_) plain_size += c.plain_size;
  w.large_number(3, static_cast<std::int64_t>(rows_));
  w.begin_list(4, type::structure, 1);
  w.begin_element();
  w.begin_list(1, type::structure, columns_.size());
  for (const column& c : columns_) {
    w.begin_element();
    w.large_number(2, static_cast<std::int64_t>(c.dictionary ? c.dictionary : c.first));
    w.begin(3);
    w.number(1, c.text ? io::parquet::byte_array : io::parquet::int64);
    w.begin_list(2, type::i32, c.encodings.size());
    for (const int encoding : c.encodings) w.element(encoding);
    w.begin_list(3, type::binary, 1);
    w.element(std::string_view(c.name));
    w.number(4, io::parquet::zstd);
    w.large_number(5, static_cast<std::int64_t>(rows_));
    w.large_number(6, static_cast<std::int64_t>(c.plain_size));
    w.large_number(7, static_cast<std::int64_t>(c.size));
    w.large_number(9, static_cast<std::int64_t>(c.first));
    if (c.dictionary) w.large_number(11, static_cast<std::int64_t>(c.dictionary));
    w.begin(12);  // without this, fastparquet assumes that numbers may be missing, and converts them to floats
    w.large_number(3, static_cast<std::int64_t>(c.missing));
    w.end();
    w.end();
    w.end();
  }
  w.large_number(2, static_cast<std::int64_t>(plain_size));
  w.large_number(3, static_cast<std::int64_t>(rows_));
  w.end();
  w.text(6, std::string("zarrbits ") + ZARRBITS_VERSION_STRING);
  w.end();
  std::string file = std::move(bytes_);
  file += w.bytes();
  append_little_endian(file, w.bytes().size(), 4);
  file += io::parquet::magic;
  return file;
}

}  // namespace zarrbits::zarr
