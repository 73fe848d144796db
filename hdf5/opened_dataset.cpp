// SPDX-License-Identifier: BSL-1.0
#include "hdf5/opened_dataset.hpp"

#include "array/chunk_grid.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/registered_decoders.hpp"
#include "hdf5/type_override.hpp"
#include "text/format.hpp"

#include <algorithm>

namespace zarrbits::hdf5 {

namespace {

// Size of an element in the file. For variable length, libhdf5 returns the size in memory; the file has a length, an address and
// an index.
std::int64_t size_in_file(hid_t type, std::size_t address) {
  const H5T_class_t c = H5Tget_class(type);
  const auto size = static_cast<std::int64_t>(H5Tget_size(type));
  if (c == H5T_VLEN || (c == H5T_STRING && H5Tis_variable_str(type) > 0)) return static_cast<std::int64_t>(4 + address + 4);
  if (c == H5T_ARRAY) {
    const handle base(H5Tget_super(type), "tell the base of an array type");
    const auto base_size = static_cast<std::int64_t>(H5Tget_size(base));
    return base_size > 0 ? size / base_size * size_in_file(base, address) : 0;
  }
  if (c != H5T_COMPOUND) return size;
  std::int64_t total = size;
  const int n = H5Tget_nmembers(type);
  for (int i = 0; i < n; ++i) {
    const handle member(H5Tget_member_type(type, static_cast<unsigned>(i)), "tell the type of a member");
    total += size_in_file(member, address) - static_cast<std::int64_t>(H5Tget_size(member));
  }
  return total;
}

}  // namespace

opened_dataset::opened_dataset(source_file& source, const source_object& o) : file(source), object(o) {
  const handle opened = file.open(object);
  dataset = handle(H5Dopen2(opened, ".", H5P_DEFAULT));
  if (!dataset) {  // an object id of a dataset is a dataset id
    H5Eclear2(H5E_DEFAULT);
    H5Iinc_ref(opened);
    dataset = handle(opened.get());
  }
  bytes = object.place.file == 0
              ? file.bytes()
              : std::make_shared<const file_bytes>(chunk_locator(handle(H5Iget_file_id(dataset), "tell the file of a dataset")));
  // libhdf5 may open the sources of a virtual dataset to find its extent
  dependencies = file.find_external_dependencies(dataset);
  if (dependencies->is_cyclic) throw failure(dependencies->obstacle);
  stored_type = handle(H5Dget_type(dataset), "tell the datatype");
  space = handle(H5Dget_space(dataset), "tell the dataspace");
  dcpl = handle(H5Dget_create_plist(dataset), "tell the properties");
  element_size = H5Tget_size(stored_type);
  type = describe_type(stored_type);
  apply_type_override(type, object.overrides);
  layout = H5Pget_layout(dcpl);
  filters = read_pipeline(dcpl);
  if (layout == H5D_VIRTUAL && dependencies->chunked) source_filters = read_pipeline(dependencies->chunked->properties);
  register_decoders(dcpl);
  external = H5Pget_external_count(dcpl) > 0;
  stored_bytes = H5Dget_storage_size(dataset);
  null = H5Sget_simple_extent_type(space) == H5S_NULL;
  if (!null) {
    dims = extent(space);
    max_dims = maximum_extent(space);
  }
  if (layout == H5D_CHUNKED) chunk_in_file = chunk_extent(dcpl);
  if (chunk_in_file.size() != dims.size()) chunk_in_file.clear();
  if (!unsupported_reason(type).empty()) return;
  std::size_t address = 8, length = 8;
  const handle creation(H5Fget_create_plist(handle(H5Iget_file_id(dataset), "tell the file")), "tell the properties");
  H5Pget_sizes(creation, &address, &length);
  element_in_file = static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_in_file(stored_type, address)));
  const bool one_piece = layout == H5D_COMPACT || (layout == H5D_CONTIGUOUS && !external && stored_bytes > 0);
  if (!null && one_piece && stored_bytes / element_in_file < array::product(dims)) {
    throw failure("its values take " + text::format_bytes(stored_bytes) + " in the file, which is too few for its extent",
                  reason_code::damaged);
  }
}

const type_description& opened_dataset::leaf() const {
  const type_description* t = &type;
  while (t->kind == type_class::array) t = &t->element();
  return *t;
}

void opened_dataset::require_plausible_size(std::uint64_t stored) const {
  constexpr std::uint64_t max_ratio = 1000;
  const std::uint64_t plain = array::saturating_mul(array::product(chunk_in_file), element_in_file);
  if (plain <= file.largest_expansion() || plain / max_ratio <= stored) return;
  throw compressors::corrupt_chunk(
      text::format_bytes(stored) + " would become " + text::format_bytes(plain) +
      ", more than 1,000 times as much, and more than `memory` allows; set `allow_expansion` if the file can be trusted");
}

}  // namespace zarrbits::hdf5
