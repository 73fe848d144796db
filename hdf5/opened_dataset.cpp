// SPDX-License-Identifier: BSL-1.0
#include "hdf5/opened_dataset.hpp"

#include "hdf5/arranged_type.hpp"
#include "hdf5/chunk_grid.hpp"
#include "hdf5/lent_decoders.hpp"
#include "hdf5/other_files.hpp"
#include "text/words.hpp"

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
    const auto each = static_cast<std::int64_t>(H5Tget_size(base));
    return each > 0 ? size / each * size_in_file(base, address) : 0;
  }
  if (c != H5T_COMPOUND) return size;
  std::int64_t all = size;
  const int n = H5Tget_nmembers(type);
  for (int i = 0; i < n; ++i) {
    const handle member(H5Tget_member_type(type, static_cast<unsigned>(i)), "tell the type of a member");
    all += size_in_file(member, address) - static_cast<std::int64_t>(H5Tget_size(member));
  }
  return all;
}

}  // namespace

opened_dataset::opened_dataset(source_file& from, const source_object& o) : file(from), object(o) {
  const handle opened = file.open(object);
  dataset = handle(H5Dopen2(opened, ".", H5P_DEFAULT));
  if (!dataset) {  // an object id of a dataset is a dataset id
    H5Eclear2(H5E_DEFAULT);
    H5Iinc_ref(opened);
    dataset = handle(opened.get());
  }
  bytes =
      object.place.file == 0
          ? file.bytes()
          : std::make_shared<const file_bytes>(chunk_locator(handle(H5Iget_file_id(dataset), "tell the file of a dataset")));
  // libhdf5 may open the sources of a virtual dataset to find its extent
  beside = file.find_external_data(dataset);
  if (beside->endless) throw failure(beside->obstacle);
  stored_type = handle(H5Dget_type(dataset), "tell the datatype");
  space = handle(H5Dget_space(dataset), "tell the dataspace");
  dcpl = handle(H5Dget_create_plist(dataset), "tell the properties");
  element_size = H5Tget_size(stored_type);
  type = describe_type(stored_type);
  arrange_type(type, object.arranged);
  layout = H5Pget_layout(dcpl);
  filters = read_pipeline(dcpl);
  if (layout == H5D_VIRTUAL && beside->chunked) source_filters = read_pipeline(beside->chunked->properties);
  register_decoders(dcpl);
  external = H5Pget_external_count(dcpl) > 0;
  stored_bytes = H5Dget_storage_size(dataset);
  null = H5Sget_simple_extent_type(space) == H5S_NULL;
  if (!null) {
    dims = extent(space);
    max_dims = maximum_extent(space);
  }
  chunk_in_file.resize(layout == H5D_CHUNKED ? dims.size() : 0);
  if (!chunk_in_file.empty() &&
      H5Pget_chunk(dcpl, static_cast<int>(dims.size()), chunk_in_file.data()) != static_cast<int>(dims.size())) {
    chunk_in_file.clear();
  }
  if (!unsupported_reason(type).empty()) return;
  std::size_t address = 8, length = 8;
  const handle creation(H5Fget_create_plist(handle(H5Iget_file_id(dataset), "tell the file")), "tell the properties");
  H5Pget_sizes(creation, &address, &length);
  element_in_file = static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_in_file(stored_type, address)));
  const bool one_piece = layout == H5D_COMPACT || (layout == H5D_CONTIGUOUS && !external && stored_bytes > 0);
  if (!null && one_piece && stored_bytes / element_in_file < product(dims)) {
    throw failure("its values take " + text::human_bytes(stored_bytes) + " in the file, which is too few for its extent");
  }
}

const type_tree& opened_dataset::leaf() const {
  const type_tree* t = &type;
  while (t->kind == type_class::array) t = &t->element();
  return *t;
}

void opened_dataset::require_sensible(std::uint64_t stored) const {
  constexpr std::uint64_t most_times = 1000;
  const std::uint64_t plain = product(std::vector<hsize_t>{product(chunk_in_file), element_in_file});
  if (plain <= file.largest_expansion() || plain / most_times <= stored) return;
  throw compressors::damaged_chunk(
      text::human_bytes(stored) + " would become " + text::human_bytes(plain) +
      ", more than 1,000 times as much, and more than `memory` allows; set `allow_expansion` if the file can be trusted");
}

}  // namespace zarrbits::hdf5
