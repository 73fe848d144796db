// SPDX-License-Identifier: BSL-1.0
#include "convert/array_writer.hpp"

#include "convert/attributes.hpp"
#include "convert/decompressors.hpp"
#include "convert/names.hpp"

#include <zarrbits/bytes.hpp>
#include <zarrbits/chunk.hpp>
#include <zarrbits/packbits.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t largest_chunk = std::uint64_t{2} << 30;  // bytes in memory; a chunk of HDF5 has less than 4 GiB
constexpr std::uint64_t most_chunks = 50'000'000;                // that are written without being stored one by one in the source

std::string place(const std::vector<hsize_t>& at) {
  std::string s = "[";
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (i) s += ", ";
    s += std::to_string(at[i]);
  }
  return s + "]";
}

bool is_packable(const type_tree& t) {
  return t.kind == type_class::boolean || t.kind == type_class::integer || t.kind == type_class::enumeration;
}

// Compounds may mix byte orders; a Zarr struct does not.
bool uniform_order(const type_tree& t, bool big) {
  if (t.kind == type_class::compound) {
    return std::all_of(t.parts.begin(), t.parts.end(), [&](const type_tree& m) { return uniform_order(m, big); });
  }
  return t.kind == type_class::array || !has_byte_order(t) || t.big_endian == big;
}

constexpr unsigned blosc_snappy = 3;  // Zarr readers are built without it

int zstd_level(const std::vector<unsigned>& values) { return values.empty() || values[0] > 22 ? 3 : static_cast<int>(values[0]); }

json zstd_codec(const std::vector<unsigned>& values) {
  return {{"name", "zstd"}, {"configuration", {{"level", zstd_level(values)}, {"checksum", false}}}};
}

// The header of each buffer rules when it is decoded; these values are for readers that want them all.
json blosc_codec(const std::vector<unsigned>& values) {
  constexpr const char* names[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
  constexpr const char* shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
  const auto at = [&](std::size_t i, unsigned other) { return i < values.size() ? values[i] : other; };
  const unsigned name = at(6, 0), shuffle = at(5, 1);
  return {{"name", "blosc"},
          {"configuration",
           {{"typesize", std::clamp(at(2, 1), 1U, 255U)},
            {"cname", names[name < 6 ? name : 0]},
            {"clevel", std::min(at(4, 5), 9U)},
            {"shuffle", shuffles[shuffle < 3 ? shuffle : 1]},
            {"blocksize", 0}}}};
}

}  // namespace

dataset_job::array_writer::array_writer(conversion_context& context, dataset_job& job, const value_view& view, std::string store_path,
                                        json attributes)
    : context_(context), job_(job), view_(view), leaf_(*view.leaf), store_path_(std::move(store_path)) {
  meta_.attributes = std::move(attributes);
}

void dataset_job::array_writer::run() {
  for (;;) {
    counts_ = {};
    worst_ = outcome::raw;
    const std::uint64_t written_before = job_.entry_->store_bytes;
    plan();
    try {
      write_chunks();
      break;
    } catch (const attempt a) {
      // what was written is written over: the chunks have the same keys in every attempt
      job_.entry_->store_bytes = written_before;
      job_.entry_->lost_chunks.clear();
      if (a == attempt::text_is_not_utf8) utf8_ = false;
      if (a == attempt::bool_is_not_0_or_1) bool_as_integer_ = true;
      if (a == attempt::raw_chunk_does_not_fit) packing_refused_ = true;
    }
  }
  write_metadata();
  converted_object& e = *job_.entry_;
  if (view_.whole) {
    e.chunks = counts_;
    e.outcome = leaf_.kind == type_class::object_reference || leaf_.kind == type_class::region_reference ? outcome::mapped : worst_;
  } else {
    e.chunks.recoded += counts_.recoded;
    e.chunks.lost += counts_.lost;
  }
}

void dataset_job::array_writer::plan_fill() {
  fill_.assign(view_.size, std::byte{0});
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  H5Pfill_value_defined(job_.dcpl_, &status);
  if (status == H5D_FILL_VALUE_USER_DEFINED && H5Pget_fill_value(job_.dcpl_, view_.memory, fill_.data()) < 0) {
    std::fill(fill_.begin(), fill_.end(), std::byte{0});
    job_.entry_->reason = "the fill value cannot be read: " + h5::last_error();
    job_.entry_->lossy = true;
  }
  H5Eclear2(H5E_DEFAULT);
  const std::size_t n = static_cast<std::size_t>(view_.per_element());
  for (std::size_t i = 1; i < n; ++i) {
    if (std::memcmp(fill_.data(), fill_.data() + i * leaf_.size, leaf_.size) != 0) materialize_ = true;
  }
  if (opaque_) {
    materialize_ = std::any_of(fill_.begin(), fill_.end(), [&](std::byte b) { return b != fill_[0]; });
    meta_.fill_value = std::to_integer<int>(fill_[0]);
  } else if (text_) {
    std::string text;
    if (leaf_.kind == type_class::text) text = text_of(leaf_, fill_.data());
    if (!is_utf8(text)) utf8_ = false;
    meta_.fill_value = utf8_ ? json(text) : json(base64(text));
  } else {
    meta_.fill_value = bool_as_integer_ ? json(std::to_integer<int>(fill_[0])) : fill_json(leaf_, fill_.data());
  }
  if (holds_references(leaf_)) {  // HDF5 allocated the strings; what was never written is not read back through them
    release(fill_);
    std::fill(fill_.begin(), fill_.end(), std::byte{0});
  }
}

void dataset_job::array_writer::plan_packbits() {
  packbits_.reset();
  if (context_.options.codec == "bytes" || text_ || opaque_ || bool_as_integer_ || packing_refused_) return;
  const pipeline& p = job_.pipeline_;
  const data_type type(meta_.data_type.is_string() ? meta_.data_type.get<std::string>() : meta_.data_type.dump());
  // chunks of our own filter are such chunks already
  if (p.filters.size() == 1 && p.filters[0].id == packbits_filter && view_.whole && job_.layout_ == H5D_CHUNKED) {
    const auto layout = packbits_of(p.filters[0], leaf_);
    const bool asked_otherwise = context_.options.bits && leaf_.kind != type_class::boolean && layout && *context_.options.bits != layout->bits;
    if (layout && !layout->msb_first && !asked_otherwise) {
      packbits_ = packbits(type, {.padding_encoding = static_cast<padding>(layout->padding), .first_bit = layout->first_bit,
                                  .last_bit = layout->first_bit + layout->bits - 1});
      strategy_ = strategy::packed;
      return;
    }
  }
  if (context_.options.codec != "packbits" || !is_packable(leaf_)) return;
  const unsigned width = type.component_bits();
  unsigned bits = width;
  if (leaf_.kind != type_class::boolean) {
    if (context_.options.bits) bits = std::min(*context_.options.bits, width);
    else if (leaf_.precision) bits = leaf_.precision;
    else return;  // every bit is needed: that is what `bytes` writes
  }
  packbits_ = packbits(type, {.last_bit = bits - 1});
}

void dataset_job::array_writer::plan() {
  opaque_ = leaf_.kind == type_class::opaque;
  text_ = leaf_.kind == type_class::text || leaf_.kind == type_class::object_reference || leaf_.kind == type_class::region_reference;
  big_endian_ = stored_big_endian(leaf_);
  materialize_ = false;
  const pipeline& p = job_.pipeline_;
  const bool chunked = job_.layout_ == H5D_CHUNKED;

  meta_.shape = job_.grid_.shape;
  meta_.chunk = job_.grid_.chunk;
  meta_.shape.insert(meta_.shape.end(), view_.extra.begin(), view_.extra.end());
  meta_.chunk.insert(meta_.chunk.end(), view_.extra.begin(), view_.extra.end());
  if (opaque_) {
    meta_.shape.push_back(leaf_.size);
    meta_.chunk.push_back(leaf_.size);
  }
  trailing_ = meta_.shape.size() - job_.grid_.rank();
  plan_fill();
  if (text_) meta_.data_type = utf8_ ? "string" : "variable_length_bytes";
  else if (opaque_) meta_.data_type = "uint8";
  else if (bool_as_integer_) meta_.data_type = leaf_.is_signed ? "int8" : "uint8";
  else meta_.data_type = zarr_data_type(leaf_);
  if (text_) {  // plan_fill() may have found that the fill value is no UTF-8
    meta_.data_type = utf8_ ? "string" : "variable_length_bytes";
  }

  const std::uint64_t elements = job_.grid_.chunk_elements();
  if (elements > largest_chunk / std::max<std::size_t>(1, view_.size)) {
    throw skip_dataset("its chunks have more than " + human_bytes(largest_chunk) + " each");
  }

  // the cheapest way that is right for every chunk; single chunks may need a costlier one
  const bool bytes_are_bytes = view_.whole && !text_ && job_.type_.as_stored && uniform_order(leaf_, big_endian_);
  gzip_level_ = 0;
  strategy_ = strategy::read;
  if (chunked) {
    const bool only_deflate = std::all_of(p.filters.begin(), p.filters.end(), [](const filter& f) {
      return f.id == H5Z_FILTER_DEFLATE || f.id == H5Z_FILTER_FLETCHER32;
    });
    const auto deflates = std::count_if(p.filters.begin(), p.filters.end(), [](const filter& f) { return f.id == H5Z_FILTER_DEFLATE; });
    if (p.compresses()) gzip_level_ = p.gzip_level();
    if (bytes_are_bytes && p.empty()) {
      strategy_ = strategy::copy;
    } else if (bytes_are_bytes && p.filters.size() == 1 && p.filters[0].id == bytes_filter && p.undoable(job_.type_)) {
      strategy_ = strategy::copy;
      big_endian_ = !p.filters[0].values.empty() && p.filters[0].values[0] == 1;
    } else if (bytes_are_bytes && p.filters.size() == 1 && p.filters[0].id == zstd_filter && has_zstd()) {
      strategy_ = strategy::copy_zstd;
      gzip_level_ = 0;
    } else if (bytes_are_bytes && p.filters.size() == 1 && p.filters[0].id == blosc_filter && p.filters[0].values.size() >= 4 &&
               !(p.filters[0].values.size() > 6 && p.filters[0].values[6] == blosc_snappy)) {
      strategy_ = strategy::copy_blosc;
      gzip_level_ = 0;
    } else if (bytes_are_bytes && p.checks_only()) {
      strategy_ = strategy::rewrap;
    } else if (bytes_are_bytes && only_deflate && deflates == 1) {
      strategy_ = strategy::rewrap;
    } else if (view_.whole && !holds_references(job_.type_) && p.undoable(job_.type_)) {
      strategy_ = strategy::decode;
    }
  } else if (bytes_are_bytes && job_.layout_ == H5D_CONTIGUOUS) {
    strategy_ = strategy::copy;
  }
  plan_packbits();
  if (packbits_ && strategy_ != strategy::packed && p.compresses()) gzip_level_ = p.gzip_level();
  if (packbits_ && strategy_ != strategy::packed) strategy_ = strategy::read;

  if (packbits_) {
    meta_.codecs = json::array({json::parse(packbits_->json())});
    if (gzip_level_) meta_.codecs.push_back({{"name", "gzip"}, {"configuration", {{"level", gzip_level_}}}});
  } else if (text_) {
    meta_.codecs = text_codecs(utf8_, gzip_level_);
  } else {
    meta_.codecs = bytes_codecs(meta_.data_type, !opaque_ && has_byte_order(leaf_), big_endian_, gzip_level_);
    if (strategy_ == strategy::copy_zstd) meta_.codecs.push_back(zstd_codec(p.filters[0].values));
    if (strategy_ == strategy::copy_blosc) meta_.codecs.push_back(blosc_codec(p.filters[0].values));
  }
}

void dataset_job::array_writer::write_chunks() {
  const chunk_grid& grid = job_.grid_;
  const std::uint64_t all = grid.chunks();
  if (all == 0) return;
  if (job_.layout_ == H5D_CHUNKED && !materialize_) {
    std::uint64_t stored = 0;
    for_each_stored_chunk(job_.dataset_, grid, [&](const std::vector<hsize_t>& at, hsize_t size) {
      if (stored++ == 0) {
        const std::string missing = strategy_ == strategy::copy_blosc ? "" : job_.pipeline_.missing(job_.type_);
        if (!missing.empty()) throw skip_dataset("it needs HDF5 filter " + missing + ", which is not installed (HDF5_PLUGIN_PATH names the folder of plugins)");
      }
      write_stored_chunk(at, size);
      context_.advance(size);
    });
    counts_.absent = all - stored;
    return;
  }
  if (job_.nothing_stored() && !materialize_) {
    counts_.absent = all;
    return;
  }
  if (all > most_chunks) throw skip_dataset("it would take " + std::to_string(all) + " chunks");
  const auto mapped = job_.mapped_test();
  std::vector<hsize_t> at(grid.rank(), 0);
  const std::uint64_t total = H5Dget_storage_size(job_.dataset_);
  std::uint64_t done = 0;
  do {
    if (mapped && !mapped(grid.start(at), grid.inside(at))) ++counts_.absent;
    else write_read_chunk(at, job_.layout_ == H5D_VIRTUAL && !materialize_);
    const std::uint64_t now = total / all * ++done;
    context_.advance(now - total / all * (done - 1));
  } while (grid.next(at));
}

buffer dataset_job::array_writer::read_stored(const std::vector<hsize_t>& at, hsize_t size, unsigned& mask) const {
  if (size > largest_chunk * 2) throw damaged_chunk("a stored size of " + human_bytes(size));
  buffer stored(static_cast<std::size_t>(size));
  const std::vector<hsize_t> first = job_.grid_.start(at);
  if (H5Dread_chunk(job_.dataset_, H5P_DEFAULT, first.data(), &mask, stored.data()) < 0) throw damaged_chunk(h5::last_error());
  // such chunks are stored without filters, and the mask does not say so
  if (job_.pipeline_.partial_unfiltered && job_.grid_.partial(at)) mask = 0xFFFFFFFFU;
  return stored;
}

buffer dataset_job::array_writer::to_memory(buffer stored) const {
  if (job_.type_.as_stored) return stored;
  const std::size_t from = H5Tget_size(job_.stored_type_), n = stored.size() / from;
  stored.resize(n * std::max(from, view_.size));
  buffer background(stored.size());
  h5::check(H5Tconvert(job_.stored_type_, view_.memory, n, stored.data(), background.data(), H5P_DEFAULT), "convert the values");
  stored.resize(n * view_.size);
  return stored;
}

void dataset_job::array_writer::write_stored_chunk(const std::vector<hsize_t>& at, hsize_t stored_size) {
  const std::size_t elements = static_cast<std::size_t>(job_.grid_.chunk_elements());
  const std::size_t stored_bytes = elements * H5Tget_size(job_.stored_type_);
  if (strategy_ == strategy::read) return write_read_chunk(at, false);
  std::string why;
  try {
    unsigned mask = 0;
    buffer stored = read_stored(at, stored_size, mask);
    const pipeline& p = job_.pipeline_;
    const auto applied = [&](std::size_t i) { return !(i < 32 && (mask >> i & 1)); };
    if (strategy_ == strategy::packed && applied(0)) {
      const std::uint64_t values = elements * view_.per_element();
      if (stored.size() != packbits_->encoded_size(values)) {
        throw damaged_chunk("packbits: it holds " + counted(stored.size(), "byte") + " instead of " + std::to_string(packbits_->encoded_size(values)));
      }
      return put(at, stored, outcome::raw);
    }
    if (strategy_ == strategy::copy && (p.empty() || applied(0))) {
      if (stored.size() != stored_bytes) throw damaged_chunk("it holds " + counted(stored.size(), "byte") + " instead of " + std::to_string(stored_bytes));
      check_bools(stored);
      return put(at, stored, outcome::raw);
    }
    if (strategy_ == strategy::copy_zstd && applied(0)) {
      buffer plain = undo_zstd(stored, stored_bytes);
      check_bools(plain);
      return put(at, stored, outcome::raw);
    }
    if (strategy_ == strategy::copy_blosc && applied(0)) {
      check_blosc(stored, stored_bytes);
      return put(at, stored, outcome::raw);
    }
    if (strategy_ == strategy::copy_blosc) {
      if (stored.size() != stored_bytes) throw damaged_chunk("it has another length than the chunk");
      return put(at, encode(std::move(stored), at), outcome::recoded);
    }
    if (strategy_ == strategy::rewrap) {
      // outermost filters first, until the deflate stream itself is the payload
      for (std::size_t i = p.filters.size(); i-- > 0;) {
        if (!applied(i)) continue;
        if (p.filters[i].id == H5Z_FILTER_FLETCHER32) {
          drop_fletcher32(stored);
        } else {
          bool inner = false;
          for (std::size_t j = 0; j < i; ++j) inner = inner || applied(j);
          if (inner) {  // a checksum under the compression
            mask |= ~((2U << i) - 1);
            for (std::size_t j = i + 1; j < p.filters.size(); ++j) mask |= 1U << j;
            buffer values = undo(p, mask, std::move(stored), stored_bytes, job_.type_);
            return put(at, encode(std::move(values), at), outcome::recoded);
          }
          buffer plain;
          const buffer chunk = zlib_to_gzip(stored, stored_bytes, plain);
          check_bools(plain);
          return put(at, chunk, outcome::rewrapped);
        }
      }
      if (stored.size() != stored_bytes) throw damaged_chunk("it holds " + counted(stored.size(), "byte") + " instead of " + std::to_string(stored_bytes));
      check_bools(stored);
      if (gzip_level_ == 0) return put(at, stored, mask == 0 ? outcome::rewrapped : outcome::raw);
      return put(at, encode(std::move(stored), at), outcome::recoded);
    }
    if (p.undoable(job_.type_)) {
      buffer values = to_memory(undo(p, mask, std::move(stored), stored_bytes, job_.type_));
      if (strategy_ == strategy::copy && has_byte_order(leaf_) && big_endian_ != leaf_.big_endian) {
        // the bytes filter was left out for this chunk: it has the other order
        const std::size_t unit = leaf_.kind == type_class::complex ? leaf_.size / 2 : leaf_.size;
        for (std::size_t i = 0; i + unit <= values.size(); i += unit) {
          std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i), values.begin() + static_cast<std::ptrdiff_t>(i + unit));
        }
      }
      note_loss(at);
      return put(at, encode(std::move(values), at), outcome::recoded);
    }
  } catch (const damaged_chunk& e) {
    why = e.what();
  } catch (const h5::failure& e) {
    why = e.what();
  }
  // libhdf5 may know better; if it does not either, the chunk is lost
  try {
    write_read_chunk(at, false);
  } catch (const damaged_chunk& e) {
    lose(at, why.empty() ? e.what() : why);
  }
}

buffer dataset_job::array_writer::read_values(const std::vector<hsize_t>& at) const {
  const chunk_grid& grid = job_.grid_;
  const std::size_t elements = static_cast<std::size_t>(grid.chunk_elements());
  buffer values(elements * view_.size);
  // what lies over the edge reads as fill value; packed, it must fit, so it is 0 there
  if (!holds_references(leaf_) && !packbits_) {
    for (std::size_t i = 0; i < elements; ++i) std::memcpy(values.data() + i * view_.size, fill_.data(), view_.size);
  }
  job_.read_block(view_.memory, view_.size, grid.start(at), grid.inside(at), grid.chunk, values);
  return values;
}

void dataset_job::array_writer::write_read_chunk(const std::vector<hsize_t>& at, bool drop_if_fill) {
  buffer values;
  try {
    values = read_values(at);
  } catch (const h5::failure& e) {
    if (job_.external_) throw skip_dataset(std::string("its external files cannot be read: ") + e.what());
    return lose(at, e.what());
  }
  if (drop_if_fill && !holds_references(leaf_)) {
    bool fill = true;
    for (std::size_t i = 0; fill && i < values.size(); i += view_.size) fill = std::memcmp(values.data() + i, fill_.data(), view_.size) == 0;
    if (fill) {
      ++counts_.absent;
      return;
    }
  }
  note_loss(at);
  const bool copied = strategy_ == strategy::copy && !packbits_;
  put(at, encode(std::move(values), at), copied ? outcome::raw : outcome::recoded);
}

void dataset_job::array_writer::note_loss(const std::vector<hsize_t>& at) {
  if (!leaf_.maybe_lossy || job_.entry_->lossy) return;
  if (view_.whole && leaf_.kind == type_class::floating && !job_.chunk_loses(at)) return;
  job_.entry_->lossy = true;
  job_.entry_->reason = "a " + leaf_.stored + " does not fit in Zarr's floats; values are rounded to float64";
}

void dataset_job::array_writer::release(buffer& values) const {
  if (!holds_references(leaf_) || values.empty()) return;
  const hsize_t n = values.size() / view_.size;
  const h5::handle space(H5Screate_simple(1, &n, nullptr));
  H5Dvlen_reclaim(view_.memory, space, H5P_DEFAULT, values.data());
}

buffer dataset_job::array_writer::encode_text(const buffer& values) const {
  text_chunk chunk;
  for (std::size_t i = 0; i + leaf_.size <= values.size(); i += leaf_.size) {
    const std::byte* p = values.data() + i;
    if (leaf_.kind == type_class::text) {
      const std::string_view s = text_of(leaf_, p);
      if (utf8_ && !is_utf8(s)) throw attempt::text_is_not_utf8;
      chunk.add(s);
    } else {
      const json target = leaf_.kind == type_class::object_reference ? context_.source.object(p) : context_.source.region(p);
      if (target.is_null()) {
        job_.entry_->lossy = true;
        job_.entry_->reason = "a reference that points nowhere";
        chunk.add("");
      } else {
        chunk.add(target.is_string() ? target.get<std::string>() : target.dump());
      }
    }
  }
  return chunk.take();
}

std::vector<hsize_t> dataset_job::array_writer::index_in_chunk(std::uint64_t element, const std::vector<hsize_t>& at) const {
  std::vector<hsize_t> index(meta_.shape.size(), 0);
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = element % meta_.chunk[d] + (d < at.size() ? at[d] * meta_.chunk[d] : 0);
    element /= meta_.chunk[d];
  }
  return index;
}

void dataset_job::array_writer::check_bools(buffer& values) const {
  if (leaf_.kind != type_class::boolean || bool_as_integer_) return;
  if (!decode_chunk(bytes("bool"), values, values)) throw attempt::bool_is_not_0_or_1;
}

buffer dataset_job::array_writer::encode(buffer values, const std::vector<hsize_t>& at) {
  if (text_) {
    struct guard {  // HDF5 allocated the strings
      const array_writer& w;
      buffer& v;
      ~guard() { w.release(v); }
    } free_strings{*this, values};
    buffer chunk = encode_text(values);
    return gzip_level_ ? gzip(chunk, gzip_level_) : chunk;
  }
  if (leaf_.kind == type_class::compound && !(strategy_ == strategy::copy)) {
    unify_byte_order(leaf_, values.data(), values.size() / leaf_.size, big_endian_);
  }
  check_bools(values);
  if (packbits_) {
    const data_type& type = packbits_->type();
    if (leaf_.big_endian && type.component_size() > 1) decode_chunk(bytes(type, {.endian = endian::big}), values, values);
    buffer packed(static_cast<std::size_t>(packbits_->encoded_size(values.size() / type.element_size())));
    if (const auto r = encode_chunk(*packbits_, values, packed); !r) {
      if (strategy_ == strategy::packed) throw attempt::raw_chunk_does_not_fit;
      const std::string sentence = packbits_->explain(r.failure);
      throw convert_error("dataset \"" + job_.entry_->path + "\", index " + place(index_in_chunk(r.failure.element, at)) + ": " +
                          sentence.substr(0, sentence.find("; ")) + "; give more --bits, or leave --codec packbits out");
    }
    values = std::move(packed);
  }
  return compress(std::move(values));
}

buffer dataset_job::array_writer::compress(buffer bytes) const {
  if (!packbits_ && strategy_ == strategy::copy_zstd) return zstd(bytes, zstd_level(job_.pipeline_.filters[0].values));
  if (!packbits_ && strategy_ == strategy::copy_blosc) return blosc_stored(bytes, leaf_.size);
  return gzip_level_ ? gzip(bytes, gzip_level_) : bytes;
}

void dataset_job::array_writer::put(const std::vector<hsize_t>& at, const buffer& bytes, outcome how) {
  context_.out.put(chunk_key(store_path_, at, trailing_), bytes);
  job_.entry_->store_bytes += bytes.size();
  (how == outcome::raw ? counts_.raw : how == outcome::rewrapped ? counts_.rewrapped : counts_.recoded) += 1;
  worst_ = std::max(worst_, how);
}

void dataset_job::array_writer::lose(const std::vector<hsize_t>& at, const std::string& why) {
  if (!context_.options.keep_going) {
    throw convert_error("chunk " + place(at) + " of dataset \"" + job_.entry_->path + "\" cannot be read: " + why +
                        "; --keep-going leaves such chunks out and names them");
  }
  ++counts_.lost;
  worst_ = std::max(worst_, outcome::recoded);
  job_.entry_->lossy = true;
  job_.entry_->lost_chunks.emplace_back(at.begin(), at.end());
  job_.entry_->reason = counted(counts_.lost, "chunk") + " cannot be read: " + why;
}

void dataset_job::array_writer::write_metadata() {
  const bool own_dimensions = view_.whole;
  if (!meta_.shape.empty()) {
    meta_.dimension_names = own_dimensions
        ? context_.dimensions.names(job_.object_, job_.dataset_, meta_.shape, job_.dims_.size())
        : context_.dimensions.phony(store_path_.substr(0, store_path_.rfind('/')), meta_.shape);
  }
  H5D_fill_time_t fill_time = H5D_FILL_TIME_IFSET;
  if (H5Pget_fill_time(job_.dcpl_, &fill_time) >= 0 && fill_time == H5D_FILL_TIME_NEVER && counts_.absent > 0 && job_.entry_->reason.empty()) {
    job_.entry_->reason = "HDF5 leaves the elements undefined that were never written (fill time \"never\"); here they read as the fill value";
  }
  if (bool_as_integer_) job_.entry_->reason = "booleans other than 0 and 1: stored as integers";
  if (bool_as_integer_) meta_.attributes[own_key]["enum"] = enumeration_members(leaf_);
  context_.out.put(metadata_key(store_path_), array_text(meta_));
}

bool dataset_job::chunk_loses(const std::vector<hsize_t>& at) const {
  const std::size_t size = H5Tget_size(stored_type_);
  buffer raw(static_cast<std::size_t>(grid_.chunk_elements()) * size);
  try {
    read_block(stored_type_, size, grid_.start(at), grid_.inside(at), grid_.chunk, raw);
  } catch (const h5::failure&) {
    return true;
  }
  const h5::handle base = [&] {
    h5::handle t(H5Tcopy(stored_type_));
    while (H5Tget_class(t) == H5T_ARRAY) t = h5::handle(H5Tget_super(t));
    return t;
  }();
  const type_tree* leaf = &type_;
  while (leaf->kind == type_class::array) leaf = &leaf->element();
  return conversion_loses(base, leaf->memory, raw, raw.size() / H5Tget_size(base));
}

}  // namespace zarrbits::conversion
