// SPDX-License-Identifier: BSL-1.0
//
// Variable-length sequences, which Zarr does not have, become a group: `values` has all elements of all sequences, in C order of
// the dataset; `offsets` has the start of each sequence, and the end of the last one. For sequences of sequences, `offsets`
// counts inner sequences, whose own bounds are in `offsets_1`, and so on; `values` has the innermost elements.
//
#include "convert/from_hdf5/ragged_arrays.hpp"

#include "array/chunk_grid.hpp"
#include "codecs/vlen_encoder.hpp"
#include "compressors/crc32c.hpp"
#include "convert/from_hdf5/chunk_transcoder.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/file_references.hpp"
#include "hdf5/type_json.hpp"
#include "metadata/array_metadata.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t chunk_bytes = 512U << 10;  // to read one sequence should not take megabytes

// The common part of all appenders of one array: count, cut into chunks, write metadata at the end.
class array_appender : public value_appender {
 public:
  array_appender(const append_context& context, std::string store_path) : context_(context), store_path_(std::move(store_path)) {}

 protected:
  void put_chunk(compressors::buffer bytes, std::uint64_t per_chunk) {
    if (chunks_ == 0 && context_.array_begins) {
      if (meta_.shape.empty()) meta_.shape = meta_.chunk = {0};
      meta_.chunk[0] = per_chunk;
      context_.array_begins(store_path_, meta_);
    }
    if (context_.checksum) compressors::append_crc32c(bytes);
    const std::uint64_t index[] = {chunks_++};
    context_.out.put(metadata::chunk_key(store_path_, index, meta_.shape.empty() ? 0 : meta_.shape.size() - 1), bytes);
    context_.result.store_bytes += bytes.size();
  }
  // shape[0] is the number of values, with `per_chunk` in a chunk; a single chunk is as long as the array
  void put_metadata(std::uint64_t count, std::uint64_t per_chunk) {
    if (meta_.shape.empty()) meta_.shape = meta_.chunk = {0};
    meta_.shape[0] = count;
    meta_.chunk[0] = std::max<std::uint64_t>(1, chunks_ <= 1 ? count : per_chunk);
    if (context_.checksum) metadata::append_crc32c_codec(meta_.codecs);
    context_.derived_arrays.push_back({store_path_, meta_});
  }

  const append_context& context_;
  std::string store_path_;
  metadata::array_metadata meta_;
  std::uint64_t chunks_ = 0;
};

class fixed_appender final : public array_appender {
 public:
  fixed_appender(const append_context& context, const hdf5::type_description& type, std::string store_path)
      : array_appender(context, std::move(store_path)), type_(type), leaf_(&type) {
    meta_.shape = {0};
    for (; leaf_->kind == hdf5::type_class::array; leaf_ = &leaf_->element()) {
      meta_.shape.insert(meta_.shape.end(), leaf_->dims.begin(), leaf_->dims.end());
    }
    const bool opaque = leaf_->kind == hdf5::type_class::opaque;
    if (opaque) meta_.shape.push_back(leaf_->size);
    meta_.chunk = meta_.shape;
    big_ = hdf5::stored_big_endian(*leaf_);
    const compressors::buffer zeros(leaf_->size, std::byte{0});
    meta_.data_type = opaque ? text::json("uint8") : hdf5::zarr_data_type(*leaf_);
    meta_.fill_value = opaque ? text::json(0) : hdf5::fill_json(*leaf_, zeros.data());
    meta_.codecs = metadata::bytes_codecs(!opaque && hdf5::has_byte_order(*leaf_), big_);
    if (leaf_->kind == hdf5::type_class::enumeration)
      meta_.attributes[text::annotation_key] = {{"enum", hdf5::enumeration_members(*leaf_)}};
    per_chunk_ = std::max<std::uint64_t>(1, chunk_bytes / type.size);
  }

  void append(const std::byte* values, std::size_t count) override {
    for (std::size_t appended = 0; appended < count;) {
      const std::size_t capacity = static_cast<std::size_t>(per_chunk_) - pending_.size() / type_.size;
      const std::size_t n = std::min(capacity, count - appended);
      pending_.insert(pending_.end(), values + appended * type_.size, values + (appended + n) * type_.size);
      appended += n;
      count_ += n;
      if (pending_.size() / type_.size == per_chunk_) flush();
    }
  }

  void finish() override {
    if (!pending_.empty()) {
      if (chunks_ > 0) pending_.resize(static_cast<std::size_t>(per_chunk_) * type_.size, std::byte{0});
      flush();
    }
    put_metadata(count_, per_chunk_);
  }

 private:
  void flush() {
    if (leaf_->kind == hdf5::type_class::compound)
      hdf5::unify_byte_order(*leaf_, pending_.data(), pending_.size() / leaf_->size, big_);
    put_chunk(pending_, per_chunk_);
    pending_.clear();
  }

  const hdf5::type_description& type_;
  const hdf5::type_description* leaf_;
  bool big_ = false;
  std::uint64_t per_chunk_ = 1, count_ = 0;
  compressors::buffer pending_;
};

class text_appender final : public array_appender {
 public:
  text_appender(const append_context& context, const hdf5::type_description& type, std::string store_path)
      : array_appender(context, std::move(store_path)), type_(type) {}

  // Strings wait in memory until all are known: only then is it clear whether all are text.
  void append(const std::byte* values, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) add(values + i * type_.size);
  }

  void finish() override {
    meta_.data_type = utf8_ ? "string" : "variable_length_bytes";
    meta_.fill_value = "";
    meta_.codecs = metadata::text_codecs(utf8_);
    codecs::vlen_encoder chunk;
    for (std::size_t i = 0; i < strings_.size(); ++i) {
      chunk.add(strings_[i]);
      if (chunk.count() == per_chunk) put_chunk(chunk.take(), per_chunk);
    }
    if (chunk.count() > 0) {
      while (chunks_ > 0 && chunk.count() < per_chunk) chunk.add("");
      put_chunk(chunk.take(), per_chunk);
    }
    put_metadata(strings_.size(), per_chunk);
  }

 private:
  static constexpr std::size_t per_chunk = 65536;

  void add_string(std::string text) {
    string_bytes_ += text.size() + sizeof text;
    if (string_bytes_ > context_.memory / 2)
      throw hdf5::unsupported_dataset(reason_code::too_large, "its sequences of strings take more than " +
                                                                  text::format_bytes(context_.memory / 2) + ", half of `memory`");
    strings_.push_back(std::move(text));
  }
  void add(const std::byte* p) {
    if (type_.kind == hdf5::type_class::text) {
      add_string(std::string(hdf5::text_of(type_, p)));
      utf8_ = utf8_ && text::is_utf8(strings_.back());
      return;
    }
    hdf5::file_references references(context_.data.file, context_.data.dataset);
    const text::json target = type_.kind == hdf5::type_class::object_reference ? references.object(p) : references.region(p);
    if (target.is_null()) {
      context_.result.dangling = true;
    }
    add_string(target.is_string() ? target.get<std::string>() : target.is_null() ? "" : text::strict_json_text(target));
  }

  const hdf5::type_description& type_;
  bool utf8_ = true;
  std::vector<std::string> strings_;
  std::uint64_t string_bytes_ = 0;
};

class sequence_appender final : public value_appender {
 public:
  // `level`: the number of sequences around this one in the same group.
  sequence_appender(const append_context& context, const hdf5::type_description& type, std::string store_path, unsigned level = 0)
      : context_(context),
        store_path_(std::move(store_path)),
        offset_type_(hdf5::describe_type(H5T_STD_I64LE)),
        offsets_(context, offset_type_,
                 text::join_path(store_path_, level == 0 ? "offsets" : "offsets_" + std::to_string(level))) {
    if (type.element().kind == hdf5::type_class::sequence) {
      values_ = std::make_unique<sequence_appender>(context, type.element(), store_path_, level + 1);
    } else {
      values_ = make(context, type.element(), text::join_path(store_path_, "values"));
    }
    own_group_ = level == 0;
    put_offset();
  }

  void append(const std::byte* rows, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      hvl_t row;
      std::memcpy(&row, rows + i * sizeof row, sizeof row);
      if (row.p && row.len > 0) {
        values_->append(static_cast<const std::byte*>(row.p), row.len);
        total_ += static_cast<std::int64_t>(row.len);
      }
      put_offset();
    }
  }

  void finish() override {
    values_->finish();
    offsets_.finish();
    if (own_group_) context_.derived_arrays.push_back({store_path_, {}});
  }

 private:
  void put_offset() {
    std::byte little[8];
    for (unsigned i = 0; i < 8; ++i) little[i] = static_cast<std::byte>(total_ >> (8 * i));
    offsets_.append(little, 1);
  }

  const append_context& context_;
  std::string store_path_;
  hdf5::type_description offset_type_;
  fixed_appender offsets_;
  std::unique_ptr<value_appender> values_;
  bool own_group_ = true;
  std::int64_t total_ = 0;
};

// Compounds that Zarr's struct cannot hold: a group with one array for each member.
class members_appender final : public value_appender {
 public:
  members_appender(const append_context& context, const hdf5::type_description& type, std::string store_path)
      : context_(context), type_(type), store_path_(std::move(store_path)) {
    const std::vector<std::string> names = hdf5::member_nodes(type);
    for (std::size_t i = 0; i < names.size(); ++i)
      members_.push_back(make(context, type.parts[i], text::join_path(store_path_, names[i])));
  }
  void append(const std::byte* values, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t m = 0; m < members_.size(); ++m) members_[m]->append(values + i * type_.size + type_.parts[m].offset, 1);
    }
  }
  void finish() override {
    for (const auto& m : members_) m->finish();
    context_.derived_arrays.push_back({store_path_, {}});
  }

 private:
  const append_context& context_;
  const hdf5::type_description& type_;
  std::string store_path_;
  std::vector<std::unique_ptr<value_appender>> members_;
};

}  // namespace

std::unique_ptr<value_appender> value_appender::make(const append_context& context, const hdf5::type_description& type,
                                                     const std::string& store_path) {
  const hdf5::type_description* leaf = &type;
  while (leaf->kind == hdf5::type_class::array) leaf = &leaf->element();
  const bool array = leaf != &type;
  switch (leaf->kind) {
    case hdf5::type_class::sequence:
      if (array)
        throw hdf5::unsupported_dataset(reason_code::unsupported_type, "sequences of arrays of sequences are not supported");
      return std::make_unique<sequence_appender>(context, type, store_path);
    case hdf5::type_class::text:
    case hdf5::type_class::object_reference:
    case hdf5::type_class::region_reference:
      if (array)
        throw hdf5::unsupported_dataset(reason_code::unsupported_type,
                                        "sequences of arrays of strings or references are not supported");
      return std::make_unique<text_appender>(context, type, store_path);
    case hdf5::type_class::compound:
      if (hdf5::zarr_data_type(*leaf).is_null()) {
        if (array)
          throw hdf5::unsupported_dataset(reason_code::unsupported_type,
                                          "sequences of arrays of compounds that a Zarr struct cannot hold are not supported");
        return std::make_unique<members_appender>(context, type, store_path);
      }
      break;
    default: break;
  }
  return std::make_unique<fixed_appender>(context, type, store_path);
}

namespace {

// Appends rows in C order. Splits them in halves if libhdf5 would allocate too much for all.
void append_rows(const hdf5::chunk_source& data, const field_view& view, const array::extents& first, const array::extents& count,
                 const append_context& context, sequence_appender& appender) {
  const std::uint64_t max_bytes = context.memory / 4;
  {
    hdf5::vlen_allocator strings(max_bytes);
    compressors::buffer rows(static_cast<std::size_t>(array::product(count)) * view.size, std::byte{0});
    bool read = false;
    try {
      data.read_block(view.memory, view.size, first, count, count, rows, &strings);
      read = true;
    } catch (const hdf5::failure&) {
      if (!strings.exceeded()) throw;
    }
    if (read) {
      data.count_variable(strings.used());
      return appender.append(rows.data(), rows.size() / view.leaf->size);
    }
  }
  const auto longer = std::find_if(count.begin(), count.end(), [](std::uint64_t n) { return n > 1; });
  if (longer == count.end())
    throw hdf5::unsupported_dataset(reason_code::too_large, "the sequence at " + format_index(first) + " takes more than " +
                                                                text::format_bytes(max_bytes) + ", a quarter of `memory`");
  const auto d = static_cast<std::size_t>(longer - count.begin());
  array::extents half = count, second = first;
  half[d] = count[d] / 2;
  append_rows(data, view, first, half, context, appender);
  second[d] += half[d];
  half[d] = count[d] - half[d];
  append_rows(data, view, second, half, context, appender);
}

}  // namespace

void write_ragged_arrays(const hdf5::chunk_source& data, const field_view& view, const std::string& store_path,
                         const append_context& context) {
  sequence_appender sequences(context, *view.leaf, store_path);

  // rows in C order: blocks that are whole runs of the dataset
  array::chunk_grid blocks{data.dims,
                           array::chunk_shape_for(data.dims, 64 * std::max<std::uint64_t>(1, view.per_element()), 4U << 20)};
  const std::string missing = data.stored_bytes > 0 ? data.filters.unavailable_filters(data.type) : "";
  if (!missing.empty()) throw hdf5::missing_filter(missing);
  if (blocks.chunks() > 0) {
    array::extents block_index(data.dims.size(), 0);
    do {
      const array::extents first = blocks.start(block_index), count = blocks.inside(block_index);
      append_rows(data, view, first, count, context, sequences);
    } while (blocks.next(block_index));
  }
  sequences.finish();
}

}  // namespace zarrbits::conversion
