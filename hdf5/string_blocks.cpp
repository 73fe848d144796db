// SPDX-License-Identifier: BSL-1.0
#include "hdf5/string_blocks.hpp"

#include "hdf5/chunk_index.hpp"

#include <vector>

namespace zarrbits::hdf5 {

string_blocks::string_blocks(hid_t dataset) : dataset_(dataset) {
  const handle properties(H5Dget_create_plist(dataset), "get the properties"), type(H5Dget_type(dataset), "get the datatype"),
      space(H5Dget_space(dataset), "get the dataspace");
  if (H5Pget_layout(properties) != H5D_CHUNKED || H5Tis_variable_str(type) <= 0) return;
  grid_ = {extent(space), chunk_extent(properties)};
  H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;
  check(H5Pfill_value_defined(properties, &state), "get the fill value");
  if (state != H5D_FILL_VALUE_USER_DEFINED || grid_.shape.size() != grid_.chunk.size()) return;
  char* text = nullptr;
  check(H5Pget_fill_value(properties, type, &text), "get the fill value");
  if (text) fill_text_ = text;
  H5free_memory(text);
}

void string_blocks::read(hid_t memory, const array::box& b, const array::extents& out_shape, const array::extents& out_first,
                         std::span<char*> out, vlen_allocator& strings) const {
  const handle file_space(H5Dget_space(dataset_), "get the dataspace"),
      memory_space(H5Screate_simple(static_cast<int>(out_shape.size()), to_hsize(out_shape).data(), nullptr),
                   "create a dataspace");
  const auto select = [](hid_t space, const array::extents& first, const array::extents& shape) {
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, to_hsize(first).data(), nullptr, to_hsize(shape).data(), nullptr),
          "select a block");
  };
  const auto out_box = [&](const array::box& part) {
    array::box result{out_first, part.shape};
    for (std::size_t i = 0; i < out_first.size(); ++i) result.first[i] += part.first[i] - b.first[i];
    return result;
  };
  const auto read_stored = [&](const array::box& part) {
    select(file_space, part.first, part.shape);
    select(memory_space, out_box(part).first, part.shape);
    check(H5Dread(dataset_, memory, memory_space, file_space, strings.transfer(), out.data()), "read the values");
  };
  std::vector<array::extents> stored;
  const array::box chunks = grid_.chunks_over(b);
  const array::box whole{array::extents(out_shape.size(), 0), out_shape};
  array::for_each_index(chunks, [&](const array::extents& index) {
    if (stored_size(dataset_, grid_.start(index)) > 0) return stored.push_back(index);
    array::for_each_run(whole, whole, out_box(array::intersect(grid_.box_of(index), b)),
                        [&](std::uint64_t at, std::uint64_t, std::uint64_t n) {
      for (std::uint64_t i = at; i < at + n; ++i) out[static_cast<std::size_t>(i)] = strings.copy(*fill_text_);
    });
  });
  if (stored.size() == chunks.elements()) return read_stored(b);  // at once
  for (const array::extents& index : stored) read_stored(array::intersect(grid_.box_of(index), b));
}

}  // namespace zarrbits::hdf5
