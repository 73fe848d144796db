// SPDX-License-Identifier: BSL-1.0
#include "convention/flatten.hpp"

#include "hdf5/file_references.hpp"
#include "hdf5/flat_struct.hpp"
#include "hdf5/source_dataset.hpp"

#include <algorithm>

namespace zarrbits::conversion {

namespace {

bool is_compound(const source_file& file, const source_object& object) {
  try {
    const h5::handle dataset = file.open(object), type(H5Dget_type(dataset));
    return type && H5Tget_class(type) == H5T_COMPOUND;
  } catch (const h5::failure&) {  // reported when it is converted
    return false;
  }
}

void flatten(source_file& file, source_object& object) {
  constexpr std::uint64_t most = 64U << 20;  // bytes of values, and of strings
  std::vector<std::size_t> lengths;
  const auto why_not = reason_to_skip([&] {
    const source_dataset data(file, object);
    if (data.null || !can_be_flat(data.type) || !data.beside->obstacle.empty()) return;
    const std::uint64_t elements = product(data.dims);
    if (elements > most / data.type.size) return;
    std::vector<std::size_t> found(leaves_of_text(data.type), 1);
    variable_memory strings(most);
    buffer values(static_cast<std::size_t>(elements) * data.type.size, std::byte{0});
    if (elements > 0) {
      data.read_block(data.type.memory, data.type.size, std::vector<hsize_t>(data.dims.size(), 0), data.dims, data.dims, values,
                      &strings);
    }
    file_references references(file, data.dataset);
    for (std::size_t i = 0; i < values.size(); i += data.type.size) {
      if (!measure(data.type, values.data() + i, references, found)) return;
    }
    lengths = std::move(found);
  });
  H5Eclear2(H5E_DEFAULT);
  if (!why_not) object.arranged.text_lengths = std::move(lengths);
}

}  // namespace

void flatten_compounds(source_file& file) {
  for (source_object& o : file.objects()) {
    if (o.kind == source_object::kind_type::dataset && is_compound(file, o)) flatten(file, o);
  }
  H5Eclear2(H5E_DEFAULT);
}

}  // namespace zarrbits::conversion
