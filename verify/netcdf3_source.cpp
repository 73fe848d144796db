// SPDX-License-Identifier: BSL-1.0
#include "verify/netcdf3_source.hpp"

#include "remote/remote_file.hpp"

#include "metadata/array_metadata.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "metadata/missing_value.hpp"
#include "metadata/named_configuration.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace zarrbits::verification {

namespace {

constexpr metadata::chunk_key_encoding dotted{.v2 = false, .separator = '.'};

struct external_type {
  const char* name;  // in Zarr
  unsigned size;
  text::json fill;  // netCDF's own fill value
};

// By the number in the file.
const external_type& type_of(std::uint64_t number) {
  static const std::vector<external_type> types{
      {"", 0, nullptr},
      {"int8", 1, -127},
      {"", 1, "AA=="},
      {"int16", 2, -32767},
      {"int32", 4, -2147483647},
      {"float32", 4, 9.969209968386869e+36},
      {"float64", 8, 9.969209968386869e+36},
      {"uint8", 1, 255U},
      {"uint16", 2, 65535U},
      {"uint32", 4, 4294967295U},
      {"int64", 8, std::int64_t{-9223372036854775806}},
      {"uint64", 8, std::uint64_t{18446744073709551614U}},
  };
  if (number < 1 || number >= types.size()) throw zarr::store_error("the netCDF-3 file has a data type that does not exist");
  return types[static_cast<std::size_t>(number)];
}
constexpr std::uint64_t char_type = 2;

struct attribute {
  std::string name;
  std::uint64_t type = 0;
  std::string values = {};
};

struct variable {
  std::string name;
  std::vector<std::string> dimensions = {};
  std::vector<std::uint64_t> shape = {};
  bool has_records = false;
  std::vector<attribute> attributes = {};
  std::uint64_t type = 0, begin = 0;

  std::uint64_t size() const { return type_of(type).size; }
  // Bytes of one index of dimension `d`, without those of other records.
  std::uint64_t bytes_below(std::size_t d) const {
    std::uint64_t bytes = size();
    for (std::size_t i = d + 1; i < shape.size(); ++i) {
      if (__builtin_mul_overflow(bytes, shape[i], &bytes))
        throw zarr::store_error("a variable of the netCDF-3 file is too large");
    }
    return bytes;
  }
};

// The numbers and names of the header, one after the other.
class header_text {
 public:
  header_text(const io::byte_source& file, std::uint64_t memory)
      : file_(file), size_(file.state().size), limit_(std::min(memory, size_)) {}

  std::string take(std::uint64_t n) {
    while (n > text_.size() - position_) {
      if (text_.size() == limit_)
        throw zarr::store_error("the header of the netCDF-3 file ends beyond the file, or beyond the memory that is allowed");
      const std::size_t have = text_.size();
      text_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(limit_, have + std::max<std::uint64_t>(have, 8192))));
      file_.read(have, std::as_writable_bytes(std::span(text_)).subspan(have));
    }
    position_ += static_cast<std::size_t>(n);
    return text_.substr(position_ - static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  }
  std::uint64_t number(unsigned bytes) {
    std::uint64_t v = 0;
    for (const char c : take(bytes)) v = v * 256 + static_cast<unsigned char>(c);
    return v;
  }
  std::uint64_t count() { return number(is_64_bit ? 8 : 4); }
  std::string padded(std::uint64_t n) {
    if (n > size_) throw zarr::store_error("the header of the netCDF-3 file has a text longer than the file");
    std::string text = take(n);
    take((4 - n % 4) % 4);
    return text;
  }
  std::string name() { return padded(count()); }
  // Calls `each` for every element of a list.
  template <class Each>
  void list(const Each& each) {
    number(4);
    const std::uint64_t n = count();
    if (n > size_) throw zarr::store_error("a list in the header of the netCDF-3 file is longer than the file");
    for (std::uint64_t i = 0; i < n; ++i) each();
  }

  bool is_64_bit = false;  // CDF-5

 private:
  const io::byte_source& file_;
  const std::uint64_t size_, limit_;
  std::string text_;
  std::size_t position_ = 0;
};

struct netcdf3_file {
  std::shared_ptr<const io::byte_source> bytes;
  std::uint64_t records = 0, stride = 0;
  std::vector<std::pair<std::string, std::uint64_t>> dimensions = {};
  std::vector<attribute> attributes = {};
  std::vector<variable> variables = {};
};

std::vector<attribute> attributes_of(header_text& in) {
  std::vector<attribute> attributes;
  in.list([&] {
    attribute a{in.name(), in.number(4)};
    const std::uint64_t n = in.count();
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(n, std::uint64_t{type_of(a.type).size}, &bytes))
      throw zarr::store_error("an attribute of the netCDF-3 file is too large");
    a.values = in.padded(bytes);
    attributes.push_back(std::move(a));
  });
  return attributes;
}

netcdf3_file parse(std::shared_ptr<const io::byte_source> bytes, std::uint64_t memory) {
  netcdf3_file f{std::move(bytes)};
  header_text in(*f.bytes, memory);
  const std::string magic = in.take(4);
  in.is_64_bit = magic[3] == 5;
  f.records = in.count();
  const bool is_streaming = f.records == (in.is_64_bit ? UINT64_MAX : UINT32_MAX);
  in.list([&] {
    std::string name = in.name();
    f.dimensions.emplace_back(std::move(name), in.count());
  });
  f.attributes = attributes_of(in);
  in.list([&] {
    variable v{in.name()};
    const std::uint64_t rank = in.count();
    for (std::uint64_t d = 0; d < rank; ++d) {
      const std::uint64_t id = in.count();
      if (id >= f.dimensions.size())
        throw zarr::store_error("a variable of the netCDF-3 file has a dimension that does not exist");
      const auto& [name, length] = f.dimensions[static_cast<std::size_t>(id)];
      v.dimensions.push_back(name);
      v.shape.push_back(length);
    }
    v.attributes = attributes_of(in);
    v.type = in.number(4);
    in.count();  // vsize
    v.begin = in.number(magic[3] == 1 ? 4 : 8);
    v.has_records = !v.shape.empty() && v.shape[0] == 0;
    f.variables.push_back(std::move(v));
  });
  std::uint64_t first = UINT64_MAX, n = 0, unpadded = 0, last = 0;
  for (const variable& v : f.variables) {
    if (!v.has_records) continue;
    unpadded = v.bytes_below(0);
    f.stride += (unpadded + 3) / 4 * 4;
    first = std::min(first, v.begin);
    last = std::max(last, v.begin + unpadded);
    ++n;
  }
  if (n == 1) f.stride = unpadded;
  if (is_streaming) {
    const std::uint64_t size = f.bytes->state().size;
    f.records = n > 0 && f.stride > 0 && size >= last ? 1 + (size - last) / f.stride : 0;
  }
  for (auto& [name, length] : f.dimensions) {
    if (length == 0) length = f.records;
  }
  for (variable& v : f.variables) {
    if (v.has_records) v.shape[0] = f.records;
  }
  return f;
}

// The value of an attribute as xarray sees it.
text::json value_of(const attribute& a) {
  if (a.type == char_type) {
    std::string text = a.values;
    std::erase(text, '\0');
    return text::replace_invalid_utf8(text);
  }
  const external_type& type = type_of(a.type);
  text::json values = text::json::array();
  for (std::size_t i = 0; i < a.values.size(); i += type.size) {
    std::uint64_t bits = 0;
    for (const char c : a.values.substr(i, type.size)) bits = bits * 256 + static_cast<unsigned char>(c);
    const std::string name = type.name;
    if (name == "float32") {
      const auto word = static_cast<std::uint32_t>(bits);
      float v = 0;
      std::memcpy(&v, &word, sizeof v);
      values.push_back(static_cast<double>(v));
    } else if (name == "float64") {
      double v = 0;
      std::memcpy(&v, &bits, sizeof v);
      values.push_back(v);
    } else if (name.starts_with("u") || bits >> (8 * type.size - 1) == 0) {
      values.push_back(bits);
    } else {
      const auto value = static_cast<std::int64_t>(bits);
      values.push_back(type.size == 8 ? value : value - (std::int64_t{1} << (8 * type.size)));
    }
  }
  return values.size() == 1 ? text::json(values[0]) : values;
}

text::json attributes_json(const std::vector<attribute>& attributes, const variable* array, const text::json& data_type) {
  text::object_builder result;
  for (const attribute& a : attributes) {
    std::string key = text::escape_name(a.name);
    text::json value = value_of(a);
    if (array && (a.name == "CLASS" || a.name == "NAME")) continue;  // xarray refuses them
    if (array && a.name == "_FillValue") {
      const bool is_number = a.type != char_type && !value.is_array() && array->type != char_type;
      value = is_number ? metadata::missing_value_of(data_type, text::nonfinite_to_strings(value)) : text::json(nullptr);
      if (value.is_null()) continue;  // it is in the notes
    }
    while (!result.add(key, value)) key += "_";
  }
  return result.take();
}

text::json fill_of(const variable& v) {
  for (const attribute& a : v.attributes) {
    if (a.name != "_FillValue" || a.type != v.type || a.values.size() != v.size()) continue;
    return v.type == char_type ? text::json(text::base64(a.values)) : text::nonfinite_to_strings(value_of(a));
  }
  return type_of(v.type).fill;
}

constexpr std::uint64_t max_part_bytes = 8U << 20;

// A part of a variable with 1 index along its first dimensions, some along the next, and all along the others, so that it is one
// range of the file.
std::vector<std::uint64_t> part_shape(const variable& v) {
  std::vector<std::uint64_t> part = v.shape;
  for (std::size_t d = 0; d < part.size(); ++d) {
    const bool is_records = v.has_records && d == 0;
    const std::uint64_t fitting = max_part_bytes / std::max<std::uint64_t>(v.bytes_below(d), 1);
    if (!is_records && fitting >= part[d]) break;
    part[d] = is_records ? 1 : std::max<std::uint64_t>(fitting, 1);
    if (part[d] > 1) break;
  }
  return part;
}

class part_object final : public zarr::stored_object {
 public:
  // `within`: the bytes of those of the part that are in the variable. The others, after its end, are zeros that nobody compares.
  // `is_alone`: the next part is not close to it in the file.
  part_object(std::shared_ptr<const netcdf3_file> file, std::uint64_t offset, std::uint64_t size, std::uint64_t within,
              bool is_alone)
      : file_(std::move(file)), offset_(offset), size_(size), within_(within), is_alone_(is_alone) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto n = static_cast<std::size_t>(std::clamp<std::uint64_t>(within_ - std::min(offset, within_), 0, out.size()));
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), std::byte{});
    if (n == 0) return;
    const remote::remote_file* remote = is_alone_ ? file_->bytes->remote() : nullptr;
    try {
      if (remote) remote->read_alone(offset_ + offset, out.first(n));
      else file_->bytes->read(offset_ + offset, out.first(n));
    } catch (const io::read_error& e) {
      throw zarr::store_error(std::string("the netCDF-3 file cannot be read: ") + e.what());
    }
  }

 private:
  std::shared_ptr<const netcdf3_file> file_;
  std::uint64_t offset_, size_, within_;
  bool is_alone_;
};

class netcdf3_source final : public zarr::store_reader {
 public:
  netcdf3_source(netcdf3_file file, std::uint64_t cache)
      : file_(std::make_shared<const netcdf3_file>(std::move(file))), cache_(cache) {
    std::vector<std::string_view> names;
    for (const variable& v : file_->variables) names.push_back(v.name);
    const std::vector<std::string> nodes = text::node_names(names);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      variables_.emplace(text::with_reserved_prefix(names[i], nodes[i]), &file_->variables[i]);
  }

  std::unique_ptr<zarr::stored_object> open(const std::string& key) const override {
    if (key == "zarr.json")
      return std::make_unique<zarr::text_object>(metadata::group_text(attributes_json(file_->attributes, nullptr, nullptr)));
    const std::size_t slash = std::min(key.find('/'), key.size());
    const auto entry = variables_.find(key.substr(0, slash));
    if (entry == variables_.end() || slash == key.size()) return nullptr;
    const variable& v = *entry->second;
    const std::string rest = key.substr(slash + 1);
    if (rest == "zarr.json") return std::make_unique<zarr::text_object>(metadata_of(v));
    const auto index = dotted.index(rest, v.shape.size());
    if (!index) return nullptr;
    const std::vector<std::uint64_t> part = part_shape(v);
    std::uint64_t offset = v.begin, size = v.size(), within = size;
    for (std::size_t d = 0; d < part.size(); ++d) {
      const std::uint64_t first = (*index)[d] * part[d];
      if (first >= v.shape[d]) return nullptr;
      offset += first * (v.has_records && d == 0 ? file_->stride : v.bytes_below(d));
      size *= part[d];
      within *= std::min(part[d], v.shape[d] - first);
    }
    const bool is_alone = v.has_records && !remote::is_small_gap(file_->stride - std::min(file_->stride, v.bytes_below(0))) &&
                          file_->bytes->state().size > cache_;
    return std::make_unique<part_object>(file_, offset, size, within, is_alone);
  }

  void list(const std::string& folder, const std::function<bool(const zarr::store_entry&)>& visit) const override {
    if (!visit({.name = "zarr.json"}) || !folder.empty()) return;
    for (const auto& [name, v] : variables_) {
      if (!visit({.name = name, .is_folder = true})) return;
    }
  }

 private:
  static std::string metadata_of(const variable& v) {
    metadata::array_metadata m;
    m.shape = v.shape;
    for (const std::uint64_t extent : part_shape(v)) m.chunk.push_back(std::max<std::uint64_t>(extent, 1));
    m.data_type = v.type == char_type ? metadata::sized_type("null_terminated_bytes", 1) : text::json(type_of(v.type).name);
    m.fill_value = fill_of(v);
    m.codecs = metadata::bytes_codecs(v.size() > 1, true);
    m.keys = dotted;
    for (const std::string& name : v.dimensions) m.dimension_names.push_back(text::escape_name(name));
    m.attributes = attributes_json(v.attributes, &v, m.data_type);
    return metadata::array_text(m);
  }

  std::shared_ptr<const netcdf3_file> file_;
  std::uint64_t cache_;
  std::map<std::string, const variable*> variables_;
};

}  // namespace

zarr::store_folder read_netcdf3_source(const std::string& name, std::shared_ptr<const io::byte_source> file,
                                       std::uint64_t memory) {
  try {
    return {std::make_shared<netcdf3_source>(parse(std::move(file), memory), memory), name};
  } catch (const io::read_error& e) {
    throw zarr::store_error("\"" + name + "\" cannot be read: " + e.what());
  }
}

}  // namespace zarrbits::verification
