// SPDX-License-Identifier: BSL-1.0
#include "filter/creation.hpp"

namespace zarrbits::filter {

namespace {

// Those of the usual filters that never fail on writing.
bool is_steady(int id) noexcept {
  // deflate, shuffle, fletcher32, bzip2, lz4, zstd
  return (id >= 1 && id <= filter_fletcher32) || id == 307 || id == 32004 || id == 32015;
}

bool check_pipeline(const library& h5, hid dcpl, int filter_id, const char* codec, creation& out, sentence& reason) noexcept {
  const int filters = h5.call.plist_nfilters(dcpl);
  bool has_filter = false;
  for (int i = 0; i < filters; ++i) {
    char name[80] = "";
    unsigned flags = 0;
    const int id = h5.call.plist_filter(dcpl, static_cast<unsigned>(i), &flags, nullptr, nullptr, sizeof name, name, nullptr);
    if (id == filter_id && has_filter)
      return reason.set(minor::bad_value, "zarrbits: %s: the filter is in the pipeline twice; remove one", codec);
    if (id == filter_id) {
      has_filter = true;
    } else if (has_filter) {
      out.unsteady_after = out.unsteady_after || ((flags & flag_optional) && !is_steady(id));
    } else if (id == filter_fletcher32 && !out.checksum_before) {
      out.checksum_before = true;
    } else {
      name[sizeof name - 1] = '\0';
      return reason.set(
          minor::bad_value,
          "zarrbits: %s: filter %d (%s) comes before %s in the pipeline, but %s must see the elements themselves; put it "
          "after, or leave it out (h5py: shuffle=False, scaleoffset=None)",
          codec, id, *name ? name : "unnamed", codec, codec);
    }
  }
  if (!has_filter) return reason.set(minor::bad_value, "zarrbits: %s: the filter is not in the dataset's pipeline", codec);
  return true;
}

bool chunk_elements(const library& h5, hid space, const char* codec, std::uint64_t& elements, sentence& reason) noexcept {
  std::uint64_t dims[max_rank] = {};
  const int rank = h5.call.space_class(space) == space_simple ? h5.call.space_rank(space) : -1;
  if (rank < 1 || static_cast<unsigned>(rank) > max_rank || h5.call.space_dims(space, dims, nullptr) != rank)
    return reason.set(minor::bad_value, "zarrbits: %s: only chunked datasets with at least one dimension can be encoded", codec);
  elements = 1;
  for (int i = 0; i < rank; ++i)
    if (dims[i] == 0 || __builtin_mul_overflow(elements, dims[i], &elements))
      return reason.set(minor::bad_value, "zarrbits: %s: the chunk's shape is empty or too large; choose another", codec);
  return true;
}

}  // namespace

bool examine(const library& h5, hid dcpl, hid type, hid space, int filter_id, const char* codec, creation& out,
             sentence& reason) noexcept {
  out.h5 = &h5;
  dcpl = h5.id(dcpl);
  type = h5.id(type);
  space = h5.id(space);
  out.dcpl = dcpl;
  if (dcpl < 0 || type < 0 || space < 0)
    return reason.set(minor::bad_value, "zarrbits: %s: only datasets can be encoded, not the heaps of groups and attributes",
                      codec);
  if (!check_pipeline(h5, dcpl, filter_id, codec, out, reason)) return false;
  out.cd_nelmts = sizeof out.cd_values / sizeof out.cd_values[0];
  if (h5.call.plist_filter_by_id(dcpl, filter_id, &out.flags, &out.cd_nelmts, out.cd_values, 0, nullptr, nullptr) < 0)
    return reason.set(minor::bad_value, "zarrbits: %s: HDF5 does not return the filter's parameters", codec);
  return describe(h5, type, codec, out.element_type, reason) && chunk_elements(h5, space, codec, out.elements, reason);
}

bool fits_a_file(std::uint64_t size, const char* codec, sentence& reason) noexcept {
  return size + 2 * checksum_size <= UINT32_MAX ||
         reason.set(minor::bad_value,
                    "zarrbits: %s: a chunk may take %llu bytes in the file, but HDF5 has "
                    "room for less than 4 GiB; choose a smaller chunk",
                    codec, static_cast<unsigned long long>(size));
}

}  // namespace zarrbits::filter
