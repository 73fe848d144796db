// SPDX-License-Identifier: BSL-1.0
#include "append/existing_zarr_array.hpp"

#include "array/chunk_grid.hpp"
#include "compressors/crc32c.hpp"
#include "hdf5/type_json.hpp"
#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace zarrbits::append {

namespace {

using zarr::element_buffer;
using zarr::zarr_kind;
constexpr std::size_t index_entry = 16, index_checksum = 4;

// The HDF5 type of a number in this machine's byte order; none if values are not numbers.
hid_t native_number(const zarr::zarr_type& t) {
  const bool is_integer = t.kind == zarr_kind::signed_integer || t.kind == zarr_kind::unsigned_integer;
  const bool is_signed = t.kind == zarr_kind::signed_integer;
  if (t.kind == zarr_kind::floating && t.size == 4) return H5T_NATIVE_FLOAT;
  if (t.kind == zarr_kind::floating && t.size == 8) return H5T_NATIVE_DOUBLE;
  if (!is_integer || !t.unit.empty() || t.bits != 8 * t.size) return H5I_INVALID_HID;
  switch (t.size) {
    case 1: return is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2: return is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4: return is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    case 8: return is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
    default: return H5I_INVALID_HID;
  }
}

text::json codecs_of_chunks(const text::json& codecs, const std::function<void(const std::string&)>& refuse) {
  if (!codecs.is_array() || codecs.empty()) refuse("it has no codecs");
  const text::json& inner = metadata::inner_codecs(codecs);
  if (&inner != &codecs && !metadata::is_extensible_sharding(codecs))
    refuse("its shards have a form that zarrbits reads but cannot extend: the index must be at the end, with a crc32c");
  return inner;
}

// One value in this machine's byte order, from the JSON of an attribute.
std::optional<compressors::buffer> number_from(const text::json& value, const zarr::zarr_type& t) {
  const text::json& v = value.is_array() && value.size() == 1 ? value[0] : value;
  compressors::buffer out(t.size);
  const auto put_float = [&](double d) {
    const auto single = static_cast<float>(d);
    if (t.size == 4) std::memcpy(out.data(), &single, 4);
    else std::memcpy(out.data(), &d, 8);
  };
  if (t.kind == zarr_kind::floating) {
    if (v.is_number()) return put_float(v.get<double>()), out;
    if (!v.is_string()) return {};
    const auto bytes = text::decode_base64(v.get<std::string>());  // xarray's encoding
    if (!bytes || bytes->size() != 8) return {};
    std::uint64_t bits = 0;
    for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
    return put_float(std::bit_cast<double>(bits)), out;
  }
  if (!v.is_number_integer()) return {};
  const std::uint64_t bits = v.is_number_unsigned() ? v.get<std::uint64_t>() : static_cast<std::uint64_t>(v.get<std::int64_t>());
  for (std::size_t i = 0; i < t.size; ++i) {
    const std::size_t place = std::endian::native == std::endian::little ? i : t.size - 1 - i;
    out[place] = static_cast<std::byte>(bits >> (8 * i));
  }
  return out;
}

}  // namespace

existing_zarr_array::existing_zarr_array(zarr::store_folder folder, zarr::zarr_array array, std::size_t axis)
    : folder_(std::move(folder)), array_(std::move(array)), axis_(axis) {}

std::shared_ptr<const existing_array> existing_zarr_array::make(const std::string& store, const std::string& path,
                                                                const text::json& node, const zarr::store_folder& folder,
                                                                zarr::zarr_array array, std::size_t axis) {
  const auto refuse = [&](const std::string& reason) {
    throw zarrbits::error(errc::unsupported, "array \"" + path + "\" of \"" + store + "\" cannot grow: " + reason, {store, path});
  };
  if (axis >= array.shape().size()) refuse("it has no such dimension");
  if (array.keys() != metadata::chunk_key_encoding()) refuse("its chunk keys do not have the form \"c/0/0\"");
  std::shared_ptr<existing_zarr_array> a(new existing_zarr_array(folder, std::move(array), axis));
  a->shape = a->array_.shape();
  a->count = a->shape[axis];
  a->chunk = a->array_.chunk_shape();
  a->per_shard.assign(a->array_.chunks_per_shard().begin(), a->array_.chunks_per_shard().end());
  a->data_type = metadata::data_type_of(node);
  a->fill_value = text::nonfinite_to_strings(metadata::fill_value_of(node));
  a->codecs = codecs_of_chunks(metadata::codecs_of(node), refuse);
  a->take_grid(refuse);
  a->find_missing(node);
  return a;
}

void existing_zarr_array::take_grid(const std::function<void(const std::string&)>& refuse) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d != axis_ && array_.grid(d).runs().size() > 1) refuse("its chunks differ in their length along another dimension");
  }
  const metadata::dimension_grid& edges = array_.grid(axis_);
  whole_chunks = edges.chunks();
  const bool over = whole_chunks > 0 && edges.length(whole_chunks - 1) > count - edges.start(whole_chunks - 1);
  if (over) --whole_chunks;
  if (edges.is_regular()) return;
  if (count == 0) refuse("it is empty, and the chunks of its rectilinear grid have no length yet");
  for (const auto& run : edges.runs()) {
    const bool last = over && &run == &edges.runs().back();
    if (run.count > (last ? 1U : 0U)) chunks_along_axis.emplace_back(run.length, run.count - (last ? 1 : 0));
  }
  if (over) chunks_along_axis.emplace_back(count - edges.start(whole_chunks), 1);
}

void existing_zarr_array::find_missing(const text::json& node) {
  const hid_t native = native_number(array_.type());
  if (native < 0) return;
  const bool big = metadata::is_big_endian(codecs);
  number = hdf5::handle(H5Tcopy(native), "copy a type");
  hdf5::check(H5Tset_order(number, big ? H5T_ORDER_BE : H5T_ORDER_LE), "set a byte order");
  const text::json& attributes = metadata::attributes_of(node);
  compressors::buffer value(array_.fill().data.begin(), array_.fill().data.end());
  if (attributes.contains("_FillValue")) {
    if (auto declared = number_from(attributes["_FillValue"], array_.type())) value = std::move(*declared);
  }
  missing.emplace(hdf5::handle(H5Tcopy(native), "copy a type"), std::move(value));
}

namespace {

// Reads a block of an array chunk by chunk. Calls `use` for each run: `n` elements of the chunk, starting at `source_index`, go
// to `target_index` of the block.
template <class Use>
void for_each_run(const zarr::zarr_array& array, const array::extents& first, const array::extents& count,
                  const array::extents& out_shape, const Use& use) {
  array::box chunks;  // their indexes
  for (std::size_t d = 0; d < first.size(); ++d) {
    chunks.first.push_back(array.grid(d).chunk_of(first[d]));
    chunks.shape.push_back(array.grid(d).chunk_of(first[d] + count[d] - 1) - chunks.first[d] + 1);
  }
  array::for_each_index(chunks, [&](const array::extents& index) {
    array::box chunk{{}, array.shape_of(index)};
    for (std::size_t d = 0; d < index.size(); ++d) chunk.first.push_back(array.grid(d).start(index[d]));
    element_buffer values;
    if (!array.read_chunk(index, values)) {
      const auto n = static_cast<std::size_t>(array::product(chunk.shape));
      const element_buffer one = array.fill();
      values = {};
      if (!one.strings.empty()) values.strings.assign(n, one.strings[0]);
      values.data.resize(n * one.data.size());
      array::fill_elements(values.data, one.data);
    }
    array::for_each_run(chunk, {first, out_shape}, array::intersect(chunk, {first, count}),
                        [&](std::uint64_t source_index, std::uint64_t target_index, std::uint64_t n) {
      use(values, static_cast<std::size_t>(source_index), static_cast<std::size_t>(target_index), static_cast<std::size_t>(n));
    });
  });
}

void put_strings(const element_buffer& values, std::size_t source_index, std::size_t n, hid_t memory, std::size_t size,
                 std::byte* out, hdf5::vlen_allocator* strings) {
  const bool variable = H5Tis_variable_str(memory) > 0;
  const char padding = !variable && H5Tget_strpad(memory) == H5T_STR_SPACEPAD ? ' ' : '\0';
  for (std::size_t i = 0; i < n; ++i) {
    const std::string& text = values.strings[source_index + i];
    if (variable) {
      if (!strings) throw hdf5::unsupported_dataset(reason_code::unreadable, "its strings in the store cannot be read");
      char* const copied = strings->copy(text);
      std::memcpy(out + i * size, &copied, sizeof copied);
      continue;
    }
    if (text.size() > size)
      throw hdf5::unsupported_dataset(reason_code::not_joinable, "a string in the store is longer than those of these files");
    std::memset(out + i * size, padding, size);
    std::memcpy(out + i * size, text.data(), text.size());
  }
}

}  // namespace

void existing_zarr_array::read_block(hid_t memory, std::size_t size, const array::extents& first,
                                     const array::extents& block_shape, const array::extents& out_shape, compressors::buffer& out,
                                     hdf5::vlen_allocator* strings) const {
  const zarr::zarr_type& t = array_.type();
  const H5T_class_t kind = H5Tget_class(memory);
  const hid_t native = native_number(t);
  const hdf5::handle base(kind == H5T_ENUM ? H5Tget_super(memory) : H5Tcopy(memory), "get a type");
  const bool text = t.kind == zarr_kind::text && kind == H5T_STRING, truth = t.kind == zarr_kind::boolean && size == 1;
  if (first.size() != array_.shape().size() || !(text || truth || native >= 0)) {
    throw hdf5::unsupported_dataset(
        reason_code::unsupported_type,
        "the last chunk of its array in the store is not full, and chunks of this data type cannot be completed");
  }
  if (array::product(block_shape) == 0) return;
  try {
    for_each_run(array_, first, block_shape, out_shape,
                 [&](const element_buffer& values, std::size_t source_index, std::size_t target_index, std::size_t n) {
      std::byte* const place = out.data() + target_index * size;
      if (text) return put_strings(values, source_index, n, memory, size, place, strings);
      if (truth) return void(std::memcpy(place, values.data.data() + source_index, n));
      compressors::buffer row(n * std::max(size, t.size));
      std::memcpy(row.data(), values.data.data() + source_index * t.size, n * t.size);
      hdf5::check(H5Tconvert(native, base, n, row.data(), nullptr, H5P_DEFAULT), "convert the values");
      std::memcpy(place, row.data(), n * size);
    });
  } catch (const zarr::store_error& e) {
    throw zarrbits::error(errc::damaged_store, "\"" + folder_.name() + "\" cannot be completed: " + e.what(), {folder_.name()});
  } catch (const zarr::not_supported& e) {
    throw zarrbits::error(errc::unsupported,
                          "\"" + folder_.name() + "\" cannot be completed: zarrbits does not support " + e.what(),
                          {folder_.name()});
  }
}

namespace {

// An object of the store, as a file.
class object_bytes final : public io::byte_source {
 public:
  object_bytes(std::unique_ptr<zarr::stored_object> object, std::string name)
      : object_(std::move(object)), name_(std::move(name)) {}
  io::file_state state() const override { return {true, object_->size()}; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    try {
      object_->read(offset, out);
    } catch (const zarr::store_error& e) {
      throw zarrbits::error(e.code, "\"" + name_ + "\" cannot be completed: " + e.what(), {name_});
    }
  }
  int descriptor() const noexcept override { return object_->descriptor(); }

 private:
  const std::unique_ptr<zarr::stored_object> object_;
  const std::string name_;
};

}  // namespace

std::optional<stored_shard> existing_zarr_array::shard(const array::extents& index) const {
  const std::uint64_t chunks = array::product(per_shard);
  if (chunks <= 1) return {};
  std::string key = "c";
  for (const std::uint64_t n : index) key += "/" + std::to_string(n);
  for (std::size_t d = index.size(); d < shape.size(); ++d) key += "/0";
  const std::string name = folder_.name() + "/" + key;
  const auto fail = [&](const std::string& reason) {
    throw zarrbits::error(errc::damaged_store, "\"" + name + "\" is not a shard that can grow: " + reason, {name});
  };
  stored_shard result;
  try {
    auto object = folder_.open(key);
    if (!object) return {};
    const std::uint64_t size = object->size(), index_size = chunks * index_entry + index_checksum;
    if (size < index_size) fail("it is shorter than its index");
    result.size = size - index_size;
    result.index.resize(static_cast<std::size_t>(index_size));
    object->read(result.size, result.index);
    result.bytes = std::make_shared<const object_bytes>(std::move(object), name);
  } catch (const zarr::store_error& e) {
    fail(e.what());
  }
  compressors::buffer expected_index(result.index.begin(), result.index.end() - index_checksum);
  compressors::append_crc32c(expected_index);
  if (!std::equal(expected_index.begin(), expected_index.end(), result.index.begin(), result.index.end()))
    fail("the checksum of its index does not match");
  result.index.resize(result.index.size() - index_checksum);
  drop_chunks_to_make(result, index);
  return result;
}

void existing_zarr_array::drop_chunks_to_make(stored_shard& existing, const array::extents& index) const {
  const auto load = [&](std::size_t offset) {
    std::uint64_t n = 0;
    for (std::size_t i = 8; i-- > 0;) n = n << 8 | std::to_integer<std::uint64_t>(existing.index[offset + i]);
    return n;
  };
  const array::chunk_grid inside{per_shard, array::extents(per_shard.size(), 1)};
  for (std::uint64_t i = 0; i < existing.index.size() / index_entry; ++i) {
    const std::size_t entry = static_cast<std::size_t>(i) * index_entry;
    const std::uint64_t end = (index[axis_] * per_shard[axis_] + inside.chunk_at(i)[axis_] + 1) * chunk[axis_];
    if (end > count) std::fill_n(existing.index.begin() + static_cast<std::ptrdiff_t>(entry), index_entry, std::byte{0xFF});
    const std::uint64_t offset = load(entry), size = load(entry + 8);
    if (offset == ~std::uint64_t{0} && size == offset) continue;
    if (offset > existing.size || size > existing.size - offset)
      throw zarrbits::error(errc::damaged_store, "\"" + folder_.name() + "\" has a shard with a false index; it cannot grow",
                            {folder_.name()});
  }
}

namespace {

// Whether the bytes of a value in memory, in this machine's byte order, are those of the array's.
bool has_layout(const zarr::zarr_type& t, const hdf5::type_description& s) {
  if (t.size != s.size) return false;
  switch (s.kind) {
    case hdf5::type_class::boolean: return t.kind == zarr_kind::boolean;
    case hdf5::type_class::integer:
    case hdf5::type_class::enumeration:
      return t.kind == (s.is_signed ? zarr_kind::signed_integer : zarr_kind::unsigned_integer) && t.unit.empty() &&
             t.bits == 8 * t.size;
    case hdf5::type_class::floating: return t.kind == zarr_kind::floating && t.name == "float" + std::to_string(8 * t.size);
    case hdf5::type_class::complex: return t.kind == zarr_kind::complex && t.bits == 4 * t.size;
    case hdf5::type_class::text: return t.kind == zarr_kind::terminated && !s.variable;
    case hdf5::type_class::opaque: {
      const text::json time = hdf5::numpy_time(s);
      if (time.is_null()) return t.kind == zarr_kind::raw;
      const zarr::zarr_type expected = zarr::parse_type(time);
      return t.name == expected.name && t.unit == expected.unit;
    }
    case hdf5::type_class::compound:
      return t.kind == zarr_kind::record && std::equal(t.fields.begin(), t.fields.end(), s.parts.begin(), s.parts.end(),
                                                       [](const auto& field, const auto& part) {
        return field.name == part.name && field.offset == part.offset && has_layout(field.type, part);
             });
    case hdf5::type_class::array: return t.kind == zarr_kind::raw && !hdf5::has_byte_order(s);
    default: return false;
  }
}

// An array in the store with the values of a dataset, whose array types and opaque types are dimensions of the array, or whose
// last dimension is one of characters, which xarray has as texts.
struct value_layout {
  array::extents outer, inner;  // dimensions of both, and those in a value
  std::size_t size = 0;         // bytes of a value, with its inner dimensions
  bool text = false, as_bytes = false;
};

std::optional<value_layout> layout_in(const zarr::zarr_array& array, const hdf5::chunk_source& data) {
  value_layout l{data.dims, {}, data.type.size};
  const hdf5::type_description* leaf = &data.type;
  for (; leaf->kind == hdf5::type_class::array; leaf = &leaf->element())
    l.inner.insert(l.inner.end(), leaf->dims.begin(), leaf->dims.end());
  const zarr::zarr_type& t = array.type();
  const std::size_t rank = array.shape().size();
  l.text = (t.kind == zarr_kind::text || t.kind == zarr_kind::text32) && leaf->kind == hdf5::type_class::text;
  if (leaf->kind == hdf5::type_class::opaque && t.name == "uint8" && rank == l.outer.size() + l.inner.size() + 1) {
    l.as_bytes = true;
    l.inner.push_back(leaf->size);
  } else if (data.type.kind == hdf5::type_class::text && !data.type.variable && data.type.size == 1 &&
             t.kind == zarr_kind::terminated && rank + 1 == l.outer.size() && l.outer.back() == t.size) {
    l.as_bytes = true;
    l.size = t.size;
    l.outer.pop_back();
  }
  return l.text || l.as_bytes || has_layout(t, *leaf) ? std::optional(l) : std::nullopt;
}

bool has_text(const zarr::zarr_type& t, const element_buffer& values, std::size_t index, std::string_view text) {
  if (t.kind == zarr_kind::text) return values.strings.at(index) == text;
  try {
    return std::memcmp(values.data.data() + index * t.size, zarr::parse_fill(t, text::json(std::string(text))).data.data(),
                       t.size) == 0;
  } catch (const zarr::store_error&) {  // it is longer, or not UTF-8
    return false;
  }
}

}  // namespace

std::string compare_values(const zarr::zarr_array& array, const hdf5::chunk_source& data) {
  if (data.null) return "their extents differ";
  const std::optional<value_layout> layout = layout_in(array, data);
  array::extents dims = layout ? layout->outer : data.dims;
  if (layout) dims.insert(dims.end(), layout->inner.begin(), layout->inner.end());
  if (layout && !std::equal(dims.begin(), dims.end(), array.shape().begin(), array.shape().end())) return "their extents differ";
  if (!layout) return "their datatypes differ, or cannot be compared with the store's";
  if (array::product(data.dims) == 0) return "";
  const hdf5::type_description& leaf = data.leaf();
  const std::size_t size = layout->size / static_cast<std::size_t>(array::product(layout->inner));
  const auto read = [&](array::extents first, array::extents n, hdf5::vlen_allocator& strings) {
    compressors::buffer bytes(static_cast<std::size_t>(array::product(n)) * layout->size);
    first.resize(data.dims.size(), 0);  // of the characters
    if (n.size() < first.size()) n.push_back(data.dims.back());
    data.read_block(data.type.memory, data.type.size, first, n, n, bytes, layout->text ? &strings : nullptr);
    if (!layout->text && !layout->as_bytes)
      hdf5::unify_byte_order(leaf, bytes.data(), bytes.size() / leaf.size, std::endian::native == std::endian::big);
    return bytes;
  };
  bool is_equal = true;
  const auto compare = [&](const element_buffer& values, std::size_t source_index, const std::byte* bytes, std::size_t count) {
    if (!layout->text) is_equal = is_equal && std::memcmp(values.data.data() + source_index * size, bytes, count * size) == 0;
    for (std::size_t i = 0; layout->text && i < count; ++i)
      is_equal = is_equal && has_text(array.type(), values, source_index + i, hdf5::text_of(leaf, bytes + i * size));
  };
  if (dims.empty()) {
    element_buffer values;
    hdf5::vlen_allocator strings(64U << 20);
    const compressors::buffer bytes = read({}, {}, strings);
    if (!array.read_chunk({}, values)) values = array.fill();
    compare(values, 0, bytes.data(), 1);
    return is_equal ? "" : "their values differ";
  }
  const array::chunk_grid blocks{layout->outer,
                                 array::chunk_shape_for(layout->outer, std::max<std::size_t>(1, layout->size), 4U << 20)};
  array::extents index(layout->outer.size(), 0);
  do {
    array::extents first = blocks.start(index), n = blocks.inside(index);
    hdf5::vlen_allocator strings(256U << 20);
    const compressors::buffer bytes = read(first, n, strings);
    first.resize(dims.size(), 0);
    n.insert(n.end(), layout->inner.begin(), layout->inner.end());
    for_each_run(array, first, n, n,
                 [&](const element_buffer& values, std::size_t source_index, std::size_t target_index, std::size_t row) {
      compare(values, source_index, bytes.data() + target_index * size, row);
    });
  } while (is_equal && !layout->outer.empty() && blocks.next(index));
  return is_equal ? "" : "their values differ";
}

std::vector<double> last_numbers(const zarr::zarr_array& array) {
  const hid_t native = native_number(array.type());
  if (array.shape().size() != 1 || array.shape()[0] == 0 || native < 0) return {};
  const std::uint64_t n = std::min<std::uint64_t>(2, array.shape()[0]);
  const std::size_t size = array.type().size;
  std::vector<double> out(static_cast<std::size_t>(n));
  for_each_run(array, {array.shape()[0] - n}, {n}, {n},
               [&](const element_buffer& values, std::size_t source_index, std::size_t target_index, std::size_t row) {
    compressors::buffer bytes(row * std::max(size, sizeof(double)));
    std::memcpy(bytes.data(), values.data.data() + source_index * size, row * size);
    hdf5::check(H5Tconvert(native, H5T_NATIVE_DOUBLE, row, bytes.data(), nullptr, H5P_DEFAULT), "convert the values");
    std::memcpy(out.data() + target_index, bytes.data(), row * sizeof(double));
  });
  return out;
}

}  // namespace zarrbits::append
