// SPDX-License-Identifier: BSL-1.0
#include "conventions/flatten.hpp"

#include "hdf5/file_references.hpp"
#include "hdf5/flat_struct.hpp"
#include "hdf5/source_dataset.hpp"

#include <algorithm>

namespace zarrbits::conventions {

namespace {

bool is_compound(const hdf5::source_file& file, const hdf5::source_object& object) {
  try {
    const hdf5::handle dataset = file.open(object), type(H5Dget_type(dataset));
    return type && H5Tget_class(type) == H5T_COMPOUND;
  } catch (const hdf5::failure&) {  // reported when it is converted
    return false;
  }
}

void flatten(hdf5::source_file& file, hdf5::source_object& object) {
  constexpr std::uint64_t max_bytes = 64U << 20;  // bytes of values, and of strings
  std::vector<std::size_t> lengths;
  const auto why_not = hdf5::skip_reason([&] {
    const hdf5::source_dataset data(file, object);
    if (data.null || !hdf5::can_be_flat(data.type) || !data.dependencies->obstacle.empty()) return;
    const std::uint64_t elements = array::product(data.dims);
    if (elements > max_bytes / data.type.size) return;
    std::vector<std::size_t> measured(hdf5::leaves_of_text(data.type), 1);
    hdf5::vlen_allocator strings(max_bytes);
    compressors::buffer values(static_cast<std::size_t>(elements) * data.type.size, std::byte{0});
    if (elements > 0) {
      data.read_block(data.type.memory, data.type.size, array::extents(data.dims.size(), 0), data.dims, data.dims, values,
                      &strings);
    }
    hdf5::file_references references(file, data.dataset);
    for (std::size_t i = 0; i < values.size(); i += data.type.size) {
      if (!hdf5::measure(data.type, values.data() + i, references, measured)) return;
    }
    lengths = std::move(measured);
  });
  H5Eclear2(H5E_DEFAULT);
  if (!why_not) object.overrides.text_lengths = std::move(lengths);
}

}  // namespace

void flatten_compounds(hdf5::source_file& file) {
  for (hdf5::source_object& o : file.objects()) {
    if (o.kind == hdf5::source_object::kind_type::dataset && is_compound(file, o)) flatten(file, o);
  }
  H5Eclear2(H5E_DEFAULT);
}

}  // namespace zarrbits::conventions
