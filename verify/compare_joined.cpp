// SPDX-License-Identifier: BSL-1.0
//
// A dataset of one of several files: its place in the array, and its numbers if they were converted to other terms.
//
#include "verify/compare_dataset.hpp"
#include "verify/value_format.hpp"

#include <nlohmann/json.hpp>

#include <bit>

namespace zarrbits::verification {

dataset_comparison::index dataset_comparison::source_index_of(const index& in_store) const {
  index in_source(in_store.begin(), in_store.begin() + static_cast<std::ptrdiff_t>(dims_.size()));
  if (place_) in_source[place_->axis] -= place_->first;
  return in_source;
}

// Numbers of several files may have been converted to other terms. If the store has the source's terms, they are compared as they
// are.
void dataset_comparison::find_meaning(const zarr::zarr_array& a, const zarr::store_folder& folder) {
  source_meaning_ = meaning_in_source(dataset_, place_->inherited_in_source);
  store_meaning_ = meaning_in_store(zarr::read_node(folder), a, place_->inherited_in_store);
  const hdf5::handle type = checked(H5Dget_type(dataset_), "cannot read the datatype");
  const bool same_size = H5Tget_size(type.get()) == a.type().size;
  if (source_meaning_ && store_meaning_ && !(same_size && *source_meaning_ == *store_meaning_)) return;
  source_meaning_.reset();
  store_meaning_.reset();
}

likeness dataset_comparison::compare_meaning(const source_type& t, const std::byte* source, const zarr::zarr_type& type,
                                             const zarr_element& store, difference& d) const {
  const std::uint64_t bits = load_source(t, source);
  const long double source_number =
      t.kind == source_kind::floating
          ? (t.size == 4 ? static_cast<long double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                         : static_cast<long double>(std::bit_cast<double>(bits)))
      : t.is_signed ? static_cast<long double>(load_source_signed(t, source))
                    : static_cast<long double>(bits);
  const long double stored_number = store_number(type, store.bytes);
  if (same_value(*source_meaning_, source_number, *store_meaning_, stored_number)) return likeness::equal;
  d.source = format_source(t, source);
  d.store = std::to_string(stored_number) + " in a different encoding";
  return likeness::different;
}

}  // namespace zarrbits::verification
