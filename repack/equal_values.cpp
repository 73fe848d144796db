// SPDX-License-Identifier: BSL-1.0
#include "repack/equal_values.hpp"

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "hdf5/external_files.hpp"
#include "repack/dataset_pair.hpp"
#include "repack/reference_map.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/error.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t compared_bytes = 16U << 20;  // of a dataset, at a time

}  // namespace

bool have_equal_values(const opened_file& a, const opened_file& b, const std::string& path) {
  const tree_object &in_a = *a.tree.find(path), &in_b = *b.tree.find(path);
  const hdf5::handle x = open_object(a.file.file(), in_a), y = open_object(b.file.file(), in_b);
  const hdf5::handle type(H5Dget_type(x), "get the datatype");
  if (reference_map::has_references(type)) return true;  // they lead to objects of their own files
  const array::extents dims = a.contents.datasets.at(in_a.address).dims;
  if (H5Sget_simple_extent_type(hdf5::handle(H5Dget_space(x), "get the dataspace")) == H5S_NULL) return true;
  a.file.require_values(x);
  b.file.require_values(y);
  const std::size_t size = H5Tget_size(type);
  const bool linked = reference_map::has_linked_values(type);
  const auto same = [&](hid_t memory, hid_t space_x, hid_t space_y, std::uint64_t n) {
    std::vector<std::byte> p(static_cast<std::size_t>(n) * size), q(p.size());
    hdf5::check_read(H5Dread(x, type, memory, space_x, H5P_DEFAULT, p.data()), x, "read values");
    hdf5::check_read(H5Dread(y, type, memory, space_y, H5P_DEFAULT, q.data()), y, "read values");
    const bool equal = reference_map::are_equal(type, p.data(), q.data(), n);
    if (linked) {
      const hdf5::handle all = space_of({n});
      H5Dvlen_reclaim(type, all, H5P_DEFAULT, p.data());
      H5Dvlen_reclaim(type, all, H5P_DEFAULT, q.data());
    }
    return equal;
  };
  if (dims.empty()) return same(H5S_ALL, H5S_ALL, H5S_ALL, 1);
  const std::uint64_t stored =
      a.contents.datasets.at(in_a.address).stored_bytes + b.contents.datasets.at(in_b.address).stored_bytes;
  const std::uint64_t bytes = array::saturating_mul(array::product(dims), size);
  if (bytes == 0 || stored == 0) return true;
  if (is_mostly_unwritten(bytes, stored))
    throw error(errc::not_joinable,
                "\"" + text::escape_name(path) + "\" of \"" + b.file.path() +
                    "\" is far larger than what the file has of it, and other files have it, too; leave it out of them",
                {b.file.path(), path});
  const array::chunk_grid pieces{dims, array::chunk_shape_for(dims, size, compared_bytes)};
  for (std::uint64_t i = 0; i < pieces.chunks(); ++i) {
    const array::box piece = pieces.box_of(pieces.chunk_at(i));
    const std::uint64_t n = piece.elements();
    if (!same(space_of({n}), selected_space(x, piece), selected_space(y, piece), n)) return false;
  }
  return true;
}

}  // namespace zarrbits::repacking
