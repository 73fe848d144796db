// SPDX-License-Identifier: BSL-1.0
#include "hdf5/registered_decoders.hpp"

#include "hdf5/filter_table.hpp"
#include "hdf5/zarrbits_filters.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

namespace {

// The size of the chunk is unknown here. The limit is the size that a small chunk may reach anyway, or a size that is not a bomb.
std::size_t largest_output(std::span<const std::byte> in) { return std::max<std::size_t>(64U << 20, 1000 * in.size()); }

// LZF does not announce its length. The filter gets that of the chunk as a parameter, but programs change the shape of chunks and
// leave the parameter as it was.
compressors::buffer undo_lzf(const known_filter& entry, const filter& f, const compressors::buffer& in) {
  const std::size_t chunk = f.values.size() > 2 && f.values[2] ? f.values[2] : 65536;
  // filters before it may have made the chunk a bit longer
  for (std::size_t capacity = chunk + chunk / 8 + 4096;; capacity *= 2) {
    try {
      return entry.undo(f, in, {capacity, false});
    } catch (const compressors::corrupt_chunk&) {
      if (capacity >= largest_output(in)) throw;
    }
  }
}

// Output size.
std::size_t output_capacity(const known_filter& entry, const filter& f, std::span<const std::byte> in) {
  const std::size_t max_size = largest_output(in);
  if (!entry.declared_size) return max_size;
  const std::size_t size = entry.declared_size(f, in);
  if (size > max_size) throw compressors::corrupt_chunk("a length that no chunk can have");
  return size;
}

compressors::buffer undo(const known_filter& entry, const filter& f, compressors::buffer in) {
  if (f.id == lzf_filter) return undo_lzf(entry, f, in);
  if (!entry.undo_typed) {
    const std::size_t capacity = output_capacity(entry, f, in);
    return entry.undo(f, std::move(in), {capacity, entry.declared_size != nullptr});
  }
  if (!was_resolved(f)) return in;
  const auto chunks = resolved_chunks_of(f);
  if (!chunks) throw compressors::corrupt_chunk("parameters that this version does not know");
  if (chunks->size.values > largest_output(in)) throw compressors::corrupt_chunk("a length that no chunk can have");
  return entry.undo_typed(f, std::move(in), chunks->size, chunks->number);
}

// libhdf5 does not pass a filter its own id: there is a function for each row of the table.
template <std::size_t Row>
std::size_t decode(unsigned flags, std::size_t n, const unsigned values[], std::size_t nbytes, std::size_t* buf_size,
                   void** buf) noexcept {
  if (!(flags & H5Z_FLAG_REVERSE)) return 0;  // this only decodes
  try {
    const auto* bytes = static_cast<const std::byte*>(*buf);
    filter f;
    const known_filter& entry = known_filters()[Row];
    f.id = entry.id;
    f.values.assign(values, values + n);
    compressors::buffer in(bytes, bytes + nbytes);
    const compressors::buffer out = undo(entry, f, std::move(in));
    void* memory = H5allocate_memory(out.empty() ? 1 : out.size(), 0);
    if (!memory) return 0;
    std::copy(out.begin(), out.end(), static_cast<std::byte*>(memory));
    H5free_memory(*buf);
    *buf = memory;
    *buf_size = out.size();
    return out.size();
  } catch (...) {  // libhdf5 is C: a length of 0 reports a failure
    return 0;
  }
}

template <std::size_t... Rows>
std::vector<H5Z_class2_t> classes_of(std::index_sequence<Rows...>) {
  constexpr H5Z_func_t functions[] = {decode<Rows>...};
  std::vector<H5Z_class2_t> result;
  for (std::size_t i = 0; i < known_filters().size(); ++i) {
    const known_filter& entry = known_filters()[i];
    if (entry.registered_name)
      result.push_back({H5Z_CLASS_T_VERS, entry.id, 0, 1, entry.registered_name, nullptr, nullptr, functions[i]});
  }
  return result;
}

const std::vector<H5Z_class2_t>& classes() {
  static const std::vector<H5Z_class2_t> result = classes_of(std::make_index_sequence<max_known_filters>());
  return result;
}

}  // namespace

namespace {

// False also for one that only holds the place of a filter.
bool can_decode(H5Z_filter_t id) {
  unsigned config = 0;
  return H5Zfilter_avail(id) > 0 && H5Zget_filter_info(id, &config) >= 0 && (config & H5Z_FILTER_CONFIG_DECODE_ENABLED) != 0;
}

}  // namespace

void register_decoders(hid_t creation_properties, missing_encoder encoders) {
  // a virtual dataset has the filters of its sources
  const bool register_all =
      H5Pisa_class(creation_properties, H5P_DATASET_CREATE) > 0 && H5Pget_layout(creation_properties) == H5D_VIRTUAL;
  if (!register_all && H5Pget_nfilters(creation_properties) <= 0) return;
  for (const H5Z_class2_t& c : classes()) {
    unsigned flags = 0;
    std::size_t no_values = 0;
    const bool is_used =
        register_all || H5Pget_filter_by_id2(creation_properties, c.id, &flags, &no_values, nullptr, 0, nullptr, nullptr) >= 0;
    if (!is_used || can_decode(c.id)) continue;  // a plugin of the user has priority
    H5Z_class2_t own = c;
    // libhdf5 asks it to encode, which fails, and stores the chunk without it
    own.encoder_present = encoders == missing_encoder::leave_out ? 1 : 0;
    H5Zregister(&own);
  }
  H5Eclear2(H5E_DEFAULT);
}

}  // namespace zarrbits::hdf5
