// SPDX-License-Identifier: BSL-1.0
#include "io/netcdf3_header.hpp"

#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <fcntl.h>
#include <limits>
#include <set>
#include <span>
#include <utility>

namespace zarrbits::io {

namespace {

constexpr std::uint64_t max_rank = 1024;  // netCDF-C's
// Tags of the lists.
constexpr std::uint32_t dimension_tag = 10, variable_tag = 11, attribute_tag = 12;

[[noreturn]] void throw_damaged(const std::string& problem) {
  throw netcdf3_error("its header is damaged: " + problem + "; get or write the file again");
}

std::string quoted_name(const std::string& name) { return "\"" + text::escape_name(name.substr(0, 200)) + "\""; }

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

// Reads the header from its beginning to its end.
class cursor {
 public:
  cursor(const byte_source& file, std::uint64_t memory) : file_(file), size_(file.state().size), memory_(memory) {}

  std::uint64_t position() const noexcept { return window_begin_ + index_; }
  std::uint64_t file_size() const noexcept { return size_; }
  void set_version(unsigned version) noexcept { version_ = version; }
  unsigned version() const noexcept { return version_; }

  // Counts bytes of memory that something of the header takes.
  void take_memory(std::uint64_t bytes) {
    if (bytes > memory_ - used_)
      throw netcdf3_error("its header takes more than the " + text::format_bytes(memory_) +
                          " of memory that are allowed for it; increase `memory`");
    used_ += bytes;
  }

  std::string bytes(std::uint64_t count) {
    if (count > size_ - position()) throw_damaged("it ends beyond the end of the file");
    take_memory(count);
    std::string out;
    while (out.size() < count) {
      if (index_ == window_.size()) fill();
      const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(count - out.size(), window_.size() - index_));
      out.append(window_, index_, n);
      index_ += n;
    }
    return out;
  }

  std::uint64_t number(unsigned size) {
    std::uint64_t value = 0;
    for (const char byte : bytes(size)) value = value << 8 | static_cast<unsigned char>(byte);
    used_ -= size;
    return value;
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(4)); }

  // A number of things: 4 bytes, or 8 in CDF-5; never negative.
  std::uint64_t count(const char* of) {
    const unsigned size = version_ == 5 ? 8 : 4;
    const std::uint64_t value = number(size);
    if (value >> (8 * size - 1)) throw_damaged(std::string("the number of ") + of + " is negative");
    return value;
  }

  void skip_padding(std::uint64_t bytes_before) {
    const std::uint64_t padding = padded(bytes_before) - bytes_before;
    used_ -= bytes(padding).size();
  }

  std::string name() {
    const std::uint64_t length = count("bytes of a name");
    std::string text = bytes(length);
    if (text.empty() || text.find('\0') != text.npos) throw_damaged("a name is empty, or has a NUL");
    skip_padding(length);
    return text;
  }

  // The number of elements of a list, each of which takes at least `min_bytes` of the file.
  std::uint64_t list(std::uint32_t tag, const char* of, std::uint64_t min_bytes) {
    const std::uint32_t found_tag = number32();
    const std::uint64_t n = count(of);
    if (found_tag == 0 && n == 0) return 0;
    if (found_tag != tag) throw_damaged(std::string("the list of ") + of + " begins with the tag " + std::to_string(found_tag));
    if (n > (size_ - position()) / min_bytes) throw_damaged(std::string("it has more ") + of + " than fit in the file");
    return n;
  }

 private:
  void fill() {
    constexpr std::uint64_t window_bytes = 64U << 10;
    window_begin_ += window_.size();
    window_.resize(static_cast<std::size_t>(std::min(size_ - window_begin_, window_bytes)));
    index_ = 0;
    file_.read(window_begin_, std::as_writable_bytes(std::span(window_)));
  }

  const byte_source& file_;
  const std::uint64_t size_;
  const std::uint64_t memory_;
  std::uint64_t used_ = 0;
  std::string window_;
  std::uint64_t window_begin_ = 0;
  std::size_t index_ = 0;
  unsigned version_ = 1;
};

netcdf3_type read_type(cursor& in) {
  const std::uint32_t number = in.number32();
  const auto last = in.version() == 5 ? netcdf3_type::uint64 : netcdf3_type::float64;
  if (number < 1 || number > static_cast<std::uint32_t>(last))
    throw_damaged(std::to_string(number) + " is not a data type of CDF-" + std::to_string(in.version()));
  return static_cast<netcdf3_type>(number);
}

template <class Item>
void require_different_names(const std::vector<Item>& items, const char* kind) {
  std::set<std::string_view> names;
  for (const Item& item : items) {
    if (!names.insert(item.name).second) throw_damaged(std::string("two ") + kind + " have the name " + quoted_name(item.name));
  }
}

std::vector<netcdf3_attribute> read_attributes(cursor& in) {
  std::vector<netcdf3_attribute> attributes;
  const std::uint64_t n = in.list(attribute_tag, "attributes", 16);
  for (std::uint64_t i = 0; i < n; ++i) {
    in.take_memory(sizeof(netcdf3_attribute));
    netcdf3_attribute a{in.name(), read_type(in)};
    a.count = in.count("values");
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(a.count, std::uint64_t{size_of(a.type)}, &size))
      throw_damaged("the attribute " + quoted_name(a.name) + " has more bytes than fit in a file");
    a.bytes = in.bytes(size);
    in.skip_padding(size);
    attributes.push_back(std::move(a));
  }
  require_different_names(attributes, "attributes");
  return attributes;
}

std::vector<netcdf3_dimension> read_dimensions(cursor& in) {
  std::vector<netcdf3_dimension> dimensions;
  const std::uint64_t n = in.list(dimension_tag, "dimensions", 12);
  bool has_record = false;
  for (std::uint64_t i = 0; i < n; ++i) {
    in.take_memory(sizeof(netcdf3_dimension));
    netcdf3_dimension d{in.name()};
    d.length = in.count("elements of a dimension");
    d.is_record = d.length == 0;
    if (d.is_record && has_record) throw_damaged("it has two record dimensions");
    has_record = has_record || d.is_record;
    dimensions.push_back(std::move(d));
  }
  require_different_names(dimensions, "dimensions");
  return dimensions;
}

netcdf3_variable read_variable(cursor& in, const netcdf3_header& header) {
  netcdf3_variable v{in.name()};
  const std::uint64_t rank = in.count("dimensions of a variable");
  if (rank > max_rank) throw_damaged("the variable " + quoted_name(v.name) + " has " + std::to_string(rank) + " dimensions");
  in.take_memory(sizeof(netcdf3_variable) + 16 * rank);
  for (std::uint64_t i = 0; i < rank; ++i) {
    const std::uint64_t id = in.count("a dimension");
    if (id >= header.dimensions.size()) throw_damaged("a dimension of the variable " + quoted_name(v.name) + " does not exist");
    const netcdf3_dimension& d = header.dimensions[static_cast<std::size_t>(id)];
    if (d.is_record && i > 0) throw_damaged("the record dimension of the variable " + quoted_name(v.name) + " is not its first");
    v.is_record = v.is_record || d.is_record;
    v.dimensions.push_back(static_cast<std::size_t>(id));
    v.shape.push_back(d.length);  // 0 for the record dimension, until the number of records is known
  }
  v.attributes = read_attributes(in);
  v.type = read_type(in);
  in.count("bytes of a variable");  // redundant, and wrong for large variables
  v.begin = in.number(in.version() == 1 ? 4 : 8);
  v.bytes = size_of(v.type);
  for (std::size_t i = v.is_record ? 1 : 0; i < v.shape.size(); ++i) {
    if (__builtin_mul_overflow(v.bytes, v.shape[i], &v.bytes))
      throw_damaged("the variable " + quoted_name(v.name) + " has more bytes than fit in a file");
  }
  return v;
}

// As netCDF-C computes it: the parts of a record are padded to multiples of 4 bytes, unless it has only one.
std::uint64_t record_stride(const std::vector<netcdf3_variable>& variables) {
  std::uint64_t stride = 0;
  const netcdf3_variable* first = nullptr;
  for (const netcdf3_variable& v : variables) {
    if (!v.is_record) continue;
    if (!first) first = &v;
    if (v.bytes > std::numeric_limits<std::uint64_t>::max() - 3 || __builtin_add_overflow(stride, padded(v.bytes), &stride))
      throw_damaged("a record has more bytes than fit in a file");
  }
  return first && stride == padded(first->bytes) ? first->bytes : stride;
}

// Bytes of the file that belong to one variable, or to all records.
struct extent {
  std::uint64_t begin, end;
  std::string name;
};

// The end of `bytes` bytes from `begin` on.
std::uint64_t end_of(const netcdf3_variable& v) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(v.begin, v.bytes, &end))
    throw_damaged("the variable " + quoted_name(v.name) + " ends beyond 2^64 bytes");
  return end;
}

void require_disjoint(std::vector<extent> extents) {
  std::sort(extents.begin(), extents.end(), [](const extent& a, const extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end)
      throw_damaged(extents[i - 1].name + " and " + extents[i].name + " share bytes of the file");
  }
}

// The extent of all records; nothing if there are no record variables.
std::optional<extent> extent_of_record(const netcdf3_header& header) {
  std::vector<extent> parts;
  extent record{std::numeric_limits<std::uint64_t>::max(), 0, "the records"};
  for (const netcdf3_variable& v : header.variables) {
    if (!v.is_record) continue;
    parts.push_back({v.begin, end_of(v), "the variable " + quoted_name(v.name)});
    record.begin = std::min(record.begin, v.begin);
    record.end = std::max(record.end, parts.back().end);
  }
  if (parts.empty()) return {};
  if (header.records == 0) return record;  // then the file has none of these bytes
  if (record.end - record.begin > header.record_stride)
    throw_damaged("the variables of a record are further apart than the records");
  require_disjoint(std::move(parts));
  return record;
}

void require_within_file(const netcdf3_header& header, const std::optional<extent>& record, std::uint64_t header_end,
                         std::uint64_t file_size) {
  std::vector<extent> extents;
  for (const netcdf3_variable& v : header.variables) {
    if (!v.is_record) extents.push_back({v.begin, end_of(v), "the variable " + quoted_name(v.name)});
  }
  if (record && header.records > 0) {
    std::uint64_t before = 0, end = 0;
    if (__builtin_mul_overflow(header.records - 1, header.record_stride, &before) ||
        __builtin_add_overflow(record->end, before, &end))
      throw_damaged("its records have more bytes than fit in a file");
    extents.push_back({record->begin, end, record->name});
  }
  for (const extent& e : extents) {
    if (e.begin < header_end) throw_damaged(e.name + " begins within the header");
    if (e.end > file_size)
      throw netcdf3_error("it is truncated: " + e.name + " ends at byte " + std::to_string(e.end) + ", and the file has " +
                          std::to_string(file_size) + "; get or write the file again");
  }
  require_disjoint(std::move(extents));
}

std::string default_fill(netcdf3_type type) {
  using namespace std::string_literals;
  switch (type) {
    case netcdf3_type::int8: return "\x81"s;  // -127
    case netcdf3_type::character: return "\0"s;
    case netcdf3_type::int16: return "\x80\x01"s;                // -32767
    case netcdf3_type::int32: return "\x80\0\0\x01"s;            // -2147483647
    case netcdf3_type::float32: return "\x7C\xF0\0\0"s;          // 9.969209968386869e+36
    case netcdf3_type::float64: return "\x47\x9E\0\0\0\0\0\0"s;  // the same
    case netcdf3_type::uint8: return "\xFF"s;
    case netcdf3_type::uint16: return "\xFF\xFF"s;
    case netcdf3_type::uint32: return "\xFF\xFF\xFF\xFF"s;
    case netcdf3_type::int64: return "\x80\0\0\0\0\0\0\x02"s;               // -9223372036854775806
    case netcdf3_type::uint64: return "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFE"s;  // 18446744073709551614
  }
  return "";
}

}  // namespace

std::size_t size_of(netcdf3_type type) {
  switch (type) {
    case netcdf3_type::int8:
    case netcdf3_type::character:
    case netcdf3_type::uint8: return 1;
    case netcdf3_type::int16:
    case netcdf3_type::uint16: return 2;
    case netcdf3_type::int32:
    case netcdf3_type::float32:
    case netcdf3_type::uint32: return 4;
    default: return 8;
  }
}

std::string fill_value(const netcdf3_variable& variable) {
  for (const netcdf3_attribute& a : variable.attributes) {
    if (a.name == "_FillValue" && a.type == variable.type && a.count == 1) return a.bytes;
  }
  return default_fill(variable.type);
}

bool is_netcdf3(std::string_view head) noexcept {
  return head.size() >= netcdf3_magic_bytes && head.starts_with("CDF") && (head[3] == 1 || head[3] == 2 || head[3] == 5);
}

netcdf3_header read_netcdf3_header(const byte_source& file, std::uint64_t memory) {
  cursor in(file, memory);
  netcdf3_header header;
  const std::string magic = in.bytes(netcdf3_magic_bytes);
  if (!is_netcdf3(magic)) throw netcdf3_error("it does not begin as a netCDF-3 file, with \"CDF\" and 1, 2 or 5");
  header.version = static_cast<unsigned>(magic[3]);
  in.set_version(header.version);
  const unsigned size = header.version == 5 ? 8 : 4;
  header.records = in.number(size);
  // the writer streamed the file, and did not know the number of records
  const bool is_streamed = header.records == std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * size);
  if (!is_streamed && header.records >> (8 * size - 1)) throw_damaged("the number of records is negative");
  header.dimensions = read_dimensions(in);
  header.attributes = read_attributes(in);
  const std::uint64_t n = in.list(variable_tag, "variables", 28);
  for (std::uint64_t i = 0; i < n; ++i) header.variables.push_back(read_variable(in, header));
  require_different_names(header.variables, "variables");

  header.record_stride = record_stride(header.variables);
  const std::optional<extent> record = extent_of_record(header);
  if (is_streamed) {
    header.records = 0;
    if (record && header.record_stride > 0 && in.file_size() >= record->end)
      header.records = (in.file_size() - record->end) / header.record_stride + 1;
  }
  for (netcdf3_dimension& d : header.dimensions) {
    if (d.is_record) d.length = header.records;
  }
  for (netcdf3_variable& v : header.variables) {
    if (v.is_record) v.shape[0] = header.records;
  }
  require_within_file(header, record, in.position(), in.file_size());
  return header;
}

}  // namespace zarrbits::io
