// SPDX-License-Identifier: BSL-1.0
#include "io/parquet_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <zstd.h>

namespace zarrbits::io {

namespace {

constexpr std::uint64_t max_footer_bytes = 1U << 20, max_decoded_bytes = 1U << 30;
// A file may become this many times larger, or as large as this: no file of some bytes takes a gigabyte.
constexpr std::uint64_t max_expansion = 1000, always_allowed = 16U << 20;

// Bytes that are taken from the front.
class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::size_t remaining() const { return bytes_.size(); }
  std::span<const std::byte> take(std::uint64_t n) {
    if (n > bytes_.size()) throw parquet_error("a page ends too early");
    const auto result = bytes_.first(static_cast<std::size_t>(n));
    bytes_ = bytes_.subspan(static_cast<std::size_t>(n));
    return result;
  }
  std::uint64_t little(unsigned size) {
    std::uint64_t value = 0;
    const auto bytes = take(size);
    for (unsigned i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
  }
  std::uint64_t varint() { return take_varint(bytes_); }

 private:
  std::span<const std::byte> bytes_;
};

// Numbers in runs of one number, or packed in groups of eight.
std::vector<std::uint32_t> read_runs(byte_reader& in, unsigned width, std::size_t count) {
  if (width > 32) throw parquet_error("numbers of " + std::to_string(width) + " bits");
  std::vector<std::uint32_t> out;
  out.reserve(count);
  while (out.size() < count) {
    const std::uint64_t head = in.varint(), n = head >> 1;
    if (n == 0) throw parquet_error("an empty run");
    if (head & 1) {
      if (width > 0 && n > in.remaining() / width) throw parquet_error("a page ends too early");  // n may be any number
      const auto bytes = in.take(n * width);
      for (std::uint64_t i = 0; i < 8 * n && out.size() < count; ++i) {
        std::uint64_t value = 0;
        for (unsigned b = 0; b < width; ++b) {
          const std::uint64_t bit = i * width + b;
          value |= std::to_integer<std::uint64_t>(bytes[static_cast<std::size_t>(bit / 8)] >> (bit % 8) & std::byte{1}) << b;
        }
        out.push_back(static_cast<std::uint32_t>(value));
      }
    } else {
      const auto value = static_cast<std::uint32_t>(in.little((width + 7) / 8));
      out.resize(out.size() + static_cast<std::size_t>(std::min<std::uint64_t>(n, count - out.size())), value);
    }
  }
  return out;
}

std::uint64_t count_in(const thrift_value& v, std::uint64_t limit) {
  if (v.number < 0 || static_cast<std::uint64_t>(v.number) > limit) throw parquet_error("a count or an offset is too large");
  return static_cast<std::uint64_t>(v.number);
}

}  // namespace

parquet_file::parquet_file(std::vector<std::byte> bytes, std::uint64_t max_rows) try : bytes_(std::move(bytes)) {
  const auto is_magic = [&](std::size_t offset) { return std::memcmp(bytes_.data() + offset, "PAR1", 4) == 0; };
  if (bytes_.size() < 12 || !is_magic(0) || !is_magic(bytes_.size() - 4)) throw parquet_error("it is not a Parquet file");
  const std::uint64_t size = byte_reader(std::span(bytes_).last(8)).little(4);
  if (size > std::min<std::uint64_t>(bytes_.size() - 12, max_footer_bytes)) throw parquet_error("its footer is too large");
  footer_ = read_thrift(std::span(bytes_).subspan(bytes_.size() - 8 - static_cast<std::size_t>(size))).first;
  rows_ = count_in(footer_.at(3), max_rows);
  read_schema();
} catch (const thrift_error& e) {
  throw parquet_error(e.what());
}

void parquet_file::read_schema() {
  for (const auto& entry : footer_.at(2).fields) {
    const thrift_value& element = entry.second;
    if (element.find(5)) {  // with children: the root
      if (!columns_.empty()) throw parquet_error("its columns are nested");
      continue;
    }
    const std::int64_t repetition = element.at(3).number;
    if (repetition != parquet::required && repetition != parquet::optional) throw parquet_error("a column has lists");
    columns_.push_back({element.at(4).text, static_cast<int>(element.at(1).number), repetition == parquet::optional});
  }
  for (const auto& group : footer_.at(4).fields) {
    if (group.second.at(1).fields.size() != columns_.size()) throw parquet_error("columns are missing");
  }
}

bool parquet_file::has_column(std::string_view column) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const column_type& c) { return c.name == column; });
}

std::size_t parquet_file::index_of(std::string_view column, int type) const {
  const auto it = std::find_if(columns_.begin(), columns_.end(), [&](const column_type& c) { return c.name == column; });
  if (it == columns_.end() || it->type != type)
    throw parquet_error("it has no column \"" + std::string(column) + "\" of the type that it should have");
  return static_cast<std::size_t>(it - columns_.begin());
}

std::span<const std::byte> parquet_file::decompressed(std::span<const std::byte> stored, std::uint64_t size, int compression) {
  if (compression == parquet::uncompressed) {
    if (stored.size() != size) throw parquet_error("a page does not have the size that it declares");
    return stored;
  }
  if (compression != parquet::zstd) throw parquet_error("compression " + std::to_string(compression) + " is not known");
  decoded_ += size;
  if (decoded_ > std::min(max_decoded_bytes, std::max(always_allowed, max_expansion * bytes_.size())))
    throw parquet_error("a page is too large");
  std::vector<std::byte> plain(static_cast<std::size_t>(size));
  const std::size_t n = ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size());
  if (ZSTD_isError(n) || n != plain.size()) throw parquet_error("a page cannot be decompressed");
  return pages_.emplace_back(std::move(plain));
}

parquet_file::page parquet_file::next_page(cursor& position) {
  if (position.offset > bytes_.size()) throw parquet_error("a page lies beyond its end");
  const auto remaining = std::span<const std::byte>(bytes_).subspan(static_cast<std::size_t>(position.offset));
  auto [header, used] = read_thrift(remaining.first(std::min<std::size_t>(remaining.size(), 1U << 16)));
  const std::uint64_t stored = count_in(header.at(3), remaining.size() - used), size = count_in(header.at(2), max_decoded_bytes);
  position.offset += used + stored;
  const auto bytes = decompressed(remaining.subspan(used, static_cast<std::size_t>(stored)), size, position.compression);
  return {std::move(header), bytes};
}

template <class Take>
void parquet_file::each_row(std::string_view column, int type, const Take& take) try {
  const std::size_t index = index_of(column, type);
  std::uint64_t rows = 0;
  for (const auto& group : footer_.at(4).fields) {
    const thrift_value& meta = group.second.at(1).fields[index].second.at(3);
    cursor position{count_in(meta.at(9), bytes_.size()), count_in(meta.at(5), rows_ - rows), static_cast<int>(meta.at(4).number)};
    const std::uint64_t in_group = position.remaining;
    if (const thrift_value* first = meta.find(11); first && first->number > 0)
      position.offset = std::min(position.offset, count_in(*first, bytes_.size()));
    std::vector<std::string_view> dictionary;
    while (position.remaining > 0) {
      const page p = next_page(position);
      byte_reader in(p.bytes);
      if (p.header.at(1).number == parquet::dictionary_page) {
        if (type != parquet::byte_array) throw parquet_error("numbers are in a dictionary");
        for (std::uint64_t n = count_in(p.header.at(7).at(1), p.bytes.size()); n > 0; --n) {
          const auto text = in.take(in.little(4));
          dictionary.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
        }
        continue;
      }
      if (p.header.at(1).number != parquet::data_page) throw parquet_error("a page is of a kind that is not known");
      const thrift_value& data = p.header.at(5);
      const std::uint64_t n = count_in(data.at(1), position.remaining);
      if (n == 0) throw parquet_error("a page is empty");
      std::vector<std::uint32_t> defined;
      if (columns_[index].optional) {
        byte_reader levels(in.take(in.little(4)));
        defined = read_runs(levels, 1, static_cast<std::size_t>(n));
      }
      const auto is_present = [&](std::uint64_t i) { return defined.empty() || defined[static_cast<std::size_t>(i)] == 1; };
      const std::int64_t encoding = data.at(2).number;
      std::vector<std::uint32_t> numbers;
      if (encoding == parquet::plain_dictionary || encoding == parquet::rle_dictionary) {
        const auto width = static_cast<unsigned>(in.little(1));
        std::uint64_t values = n;
        if (!defined.empty()) values = static_cast<std::uint64_t>(std::count(defined.begin(), defined.end(), 1U));
        if (values > 0) numbers = read_runs(in, width, static_cast<std::size_t>(values));
      } else if (encoding != parquet::plain) {
        throw parquet_error("encoding " + std::to_string(encoding) + " is not known");
      }
      std::size_t value_index = 0;
      for (std::uint64_t i = 0; i < n; ++i) {
        if (!is_present(i)) {
          take(nullptr, nullptr);
        } else if (encoding != parquet::plain) {
          const std::uint32_t number = numbers[value_index++];
          if (number >= dictionary.size()) throw parquet_error("an index points beyond the end of a dictionary");
          take(nullptr, &dictionary[number]);
        } else {
          take(&in, nullptr);
        }
      }
      position.remaining -= n;
    }
    rows += in_group;
  }
  if (rows != rows_) throw parquet_error("a column has a different number of rows than the file");
} catch (const thrift_error& e) {
  throw parquet_error(e.what());
}

std::vector<std::int64_t> parquet_file::numbers(std::string_view column) {
  std::vector<std::int64_t> out;
  each_row(column, parquet::int64,
           [&](byte_reader* in, const std::string_view*) { out.push_back(in ? static_cast<std::int64_t>(in->little(8)) : 0); });
  return out;
}

std::vector<std::optional<std::string_view>> parquet_file::texts(std::string_view column) {
  std::vector<std::optional<std::string_view>> out;
  each_row(column, parquet::byte_array, [&](byte_reader* in, const std::string_view* dictionary_text) {
    if (dictionary_text) {
      out.emplace_back(*dictionary_text);
    } else if (in) {
      const auto text = in->take(in->little(4));
      out.emplace_back(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()));
    } else {
      out.emplace_back();
    }
  });
  return out;
}

}  // namespace zarrbits::io
