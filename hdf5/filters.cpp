// SPDX-License-Identifier: BSL-1.0
#include "hdf5/filters.hpp"

#include "hdf5/filter_table.hpp"
#include "hdf5/plugin_filters.hpp"
#include "hdf5/zarrbits_filters.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

bool can_decode(const filter& f, const type_description& stored) {
  const known_filter* entry = find_filter(f.id);
  return entry && (entry->undo || entry->undo_typed) && (!entry->supports || entry->supports(f, stored));
}

}  // namespace

bool pipeline::compresses() const { return std::any_of(filters.begin(), filters.end(), is_compression); }

bool pipeline::checks_only() const {
  return std::all_of(filters.begin(), filters.end(), [](const filter& f) { return f.id == H5Z_FILTER_FLETCHER32; });
}

bool pipeline::can_decode(const type_description& stored) const {
  const lock one_thread;
  return std::all_of(filters.begin(), filters.end(),
                     [&](const filter& f) { return hdf5::can_decode(f, stored) || plugin_filter(f.id); });
}

std::string pipeline::unavailable_filters(const type_description& stored, unsigned mask) const {
  const lock one_thread;
  std::string names;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const filter& f = filters[i];
    if (!applied(mask, i)) continue;
    if (hdf5::can_decode(f, stored) || libhdf5_decodes(f.id)) continue;
    names += (names.empty() ? "" : ", ") + filter_name(f);
  }
  return names;
}

std::string pipeline::text() const {
  std::string names;
  for (const filter& f : filters) names += (names.empty() ? "" : ", ") + filter_name(f);
  return names;
}

int pipeline::shuffles() const {
  for (const filter& f : filters) {
    if (f.id == bitshuffle_filter) return 2;
    if (f.id == blosc_filter) return f.values.size() > 5 ? static_cast<int>(std::min(f.values[5], 2U)) : 1;
    if (f.id == H5Z_FILTER_SHUFFLE && f.values.size() == 1 && f.values[0] > 1) return 1;
  }
  return 0;
}

int pipeline::gzip_level() const {
  for (const filter& f : filters) {
    if (f.id == H5Z_FILTER_DEFLATE && !f.values.empty() && f.values[0] >= 1 && f.values[0] <= 9)
      return static_cast<int>(f.values[0]);
  }
  return 6;  // zlib's default
}

namespace {

constexpr std::size_t max_filter_values = 65535;  // that a file can hold

}  // namespace

pipeline read_pipeline(hid_t dcpl) {
  pipeline p;
  const int n = H5Pget_nfilters(dcpl);
  check(n, "count the filters");
  for (int i = 0; i < n; ++i) {
    filter f;
    unsigned flags = 0, config = 0;
    std::size_t count = 64;
    char name[256] = "";
    // a file may claim any number of values; libhdf5 fills the room that it gets, and returns the number
    for (std::size_t capacity = 0; capacity < count && capacity < max_filter_values;) {
      capacity = std::min(count, max_filter_values);
      f.values.resize(capacity);
      count = capacity;
      f.id = H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &count, f.values.data(), sizeof name - 1, name, &config);
      if (f.id < 0) fail("get a filter");
    }
    f.values.resize(std::min(count, max_filter_values));
    f.name = name;
    f.is_optional = (flags & H5Z_FLAG_OPTIONAL) != 0;
    p.filters.push_back(std::move(f));
  }
  H5Eclear2(H5E_DEFAULT);
  if (H5Pget_layout(dcpl) == H5D_CHUNKED) {
    unsigned options = 0;
    if (H5Pget_chunk_opts(dcpl, &options) >= 0) p.partial_unfiltered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
  }
  return p;
}

namespace {

// Checksums that come before our filters, which follow the values through them.
values_size size_of_values(size_before expected, std::size_t size) {
  return {size, expected.exact && expected.bytes > size ? expected.bytes - size : 0};
}

// Size of a chunk at the input of filter `i`, if it had `size` bytes at first. Checksums and our packbits change the length by a
// known amount. After a compression only the compressor knows: then the size is an upper limit.
size_before size_at(const pipeline& p, std::size_t i, unsigned mask, std::size_t size, const type_description& type) {
  size_before expected{size, true};
  for (std::size_t j = 0; j < i; ++j) {
    if (!applied(mask, j)) continue;
    if (p.filters[j].id == H5Z_FILTER_FLETCHER32) expected.bytes += 4;
    if (is_compression(p.filters[j])) {
      expected.exact = false;
      expected.bytes += expected.bytes / 8 + 4096;  // no useful compressor expands incompressible data more than this
    }
    if (p.filters[j].id == packbits_filter) {
      const std::size_t trailing = size_of_values(expected, size).trailing;
      expected.bytes = packed_size(p.filters[j], expected.bytes - trailing, type) + trailing;
    }
  }
  return expected;
}

compressors::buffer undo_one(const filter& f, compressors::buffer chunk, size_before expected, std::size_t size,
                             const type_description& type) {
  const known_filter* entry = find_filter(f.id);
  if (entry && entry->supports && !entry->supports(f, type)) entry = nullptr;
  if (entry && entry->undo_typed) return entry->undo_typed(f, std::move(chunk), size_of_values(expected, size), type);
  if (!entry || !entry->undo) return decode_plugin_filter(f, chunk, expected.bytes);
  // the declared size in a header, or else the upper limit
  if (!expected.exact && entry->declared_size) expected.bytes = std::min(expected.bytes, entry->declared_size(f, chunk));
  return entry->undo(f, std::move(chunk), expected);
}

// Undoes the filters from number `end` - 1 down to `first`.
compressors::buffer undo_some(const pipeline& p, std::size_t first, std::size_t end, unsigned mask, compressors::buffer chunk,
                              std::size_t size, const type_description& type) {
  for (std::size_t i = end; i-- > first;) {
    if (!applied(mask, i)) continue;
    const size_before expected = size_at(p, i, mask, size, type);
    chunk = undo_one(p.filters[i], std::move(chunk), expected, size, type);
    if (expected.exact ? chunk.size() != expected.bytes && is_compression(p.filters[i]) : chunk.size() > expected.bytes) {
      throw compressors::corrupt_chunk("filter " + filter_name(p.filters[i]) + ": it holds " +
                                       text::pluralize(chunk.size(), "byte") + " instead of " + std::to_string(expected.bytes));
    }
  }
  return chunk;
}

}  // namespace

compressors::buffer undo_after_packbits(const pipeline& p, std::size_t packs, unsigned mask, compressors::buffer chunk,
                                        std::size_t size, const type_description& type) {
  const std::size_t first = packs + 1, end = p.filters.size();
  const bool compressed = std::any_of(p.filters.begin() + static_cast<std::ptrdiff_t>(first), p.filters.end(),
                                      [](const filter& f) { return is_compression(f); });
  if (!compressed) return undo_some(p, first, end, mask, std::move(chunk), size, type);
  // decoders need the length in advance: there are two
  try {
    return undo_some(p, first, end, mask, chunk, size, type);
  } catch (const compressors::corrupt_chunk& e) {
    const compressors::corrupt_chunk packed = e;
    try {
      return undo_some(p, first, end, mask | (packs < 32 ? 1U << packs : 0), std::move(chunk), size, type);
    } catch (const compressors::corrupt_chunk&) {
      throw packed;
    }
  }
}

compressors::buffer undo(const pipeline& p, unsigned mask, compressors::buffer chunk, std::size_t size,
                         const type_description& type) {
  const auto position = std::find_if(p.filters.begin(), p.filters.end(), [](const filter& f) { return f.id == packbits_filter; });
  std::size_t end = p.filters.size();
  if (position != p.filters.end()) {
    const auto packs = static_cast<std::size_t>(position - p.filters.begin());
    if (applied(mask, packs)) {
      chunk = undo_after_packbits(p, packs, mask, std::move(chunk), size, type);
      end = packs + 1;
    }
  }
  chunk = undo_some(p, 0, end, mask, std::move(chunk), size, type);
  if (chunk.size() != size) {
    throw compressors::corrupt_chunk("it holds " + text::pluralize(chunk.size(), "byte") + " instead of " + std::to_string(size));
  }
  return chunk;
}

compressors::buffer apply(const pipeline& p, compressors::buffer values) {
  for (const filter& f : p.filters) {
    const known_filter* entry = find_filter(f.id);
    values = entry && entry->apply ? entry->apply(f, std::move(values)) : encode_plugin_filter(f, values);
  }
  return values;
}

bool set_chunk_bytes(filter& f, std::uint64_t bytes) {
  const std::size_t position = f.id == lzf_filter ? 2 : 3;
  if ((f.id != lzf_filter && f.id != blosc_filter) || f.values.size() <= position || f.values[position] == bytes) return false;
  f.values[position] = static_cast<unsigned>(bytes);
  return true;
}

bool can_apply(const filter& f) {
  const known_filter* entry = find_filter(f.id);
  if (entry && entry->apply) return true;
  const H5Z_class2_t* const plugin = plugin_filter(f.id);
  return plugin && plugin->encoder_present;
}

bool can_apply(const pipeline& p) {
  return std::all_of(p.filters.begin(), p.filters.end(), [](const filter& f) { return can_apply(f); });
}

}  // namespace zarrbits::hdf5
