// SPDX-License-Identifier: BSL-1.0
#include "convert/source_dataset.hpp"

#include "convert/attributes.hpp"
#include "convert/hdf5/decompressors.hpp"
#include "convert/store/node.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <new>
#include <unistd.h>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t largest_file = std::numeric_limits<std::int64_t>::max();

}  // namespace

skip_dataset missing_filter(const std::string& names) {
  return skip_dataset("it needs HDF5 filter " + names + ", which is not installed (HDF5_PLUGIN_PATH names the folder of plugins)");
}

std::optional<std::string> reason_to_skip(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const skip_dataset& e) {
    return e.what();
  } catch (const damaged_chunk& e) {
    return e.what();
  } catch (const h5::failure& e) {
    return e.what();
  } catch (const zarrbits::error& e) {
    return e.what();
  } catch (const std::bad_alloc&) {
    return "it needs more memory than there is";
  } catch (const std::length_error&) {
    return "it needs more memory than there is";
  }
}

source_dataset::source_dataset(source_file& from, const source_object& o) : file(from), object(o) {
  const h5::handle opened = file.open(object);
  dataset = h5::handle(H5Dopen2(opened, ".", H5P_DEFAULT));
  if (!dataset) {  // an object id of a dataset is a dataset id
    H5Eclear2(H5E_DEFAULT);
    H5Iinc_ref(opened);
    dataset = h5::handle(opened.get());
  }
  stored_type = h5::handle(H5Dget_type(dataset), "tell the datatype");
  space = h5::handle(H5Dget_space(dataset), "tell the dataspace");
  dcpl = h5::handle(H5Dget_create_plist(dataset), "tell the properties");
  element_size = H5Tget_size(stored_type);
  type = describe_type(stored_type);
  layout = H5Pget_layout(dcpl);
  filters = read_pipeline(dcpl);
  register_decoders(dcpl);
  external = H5Pget_external_count(dcpl) > 0;
  stored_bytes = H5Dget_storage_size(dataset);
  null = H5Sget_simple_extent_type(space) == H5S_NULL;
  if (!null) {
    dims = h5::extent(space);
    max_dims = h5::maximum_extent(space);
  }
}

const type_tree& source_dataset::leaf() const {
  const type_tree* t = &type;
  while (t->kind == type_class::array) t = &t->element();
  return *t;
}

void source_dataset::choose_grid(const grid_request& chunk, const grid_request& shard) {
  grid.shape = dims;
  if (layout == H5D_CHUNKED) {
    grid.chunk.resize(dims.size());
    if (H5Pget_chunk(dcpl, static_cast<int>(dims.size()), grid.chunk.data()) != static_cast<int>(dims.size())) {
      throw skip_dataset("the chunk shape does not fit the dataspace");
    }
    for (const hsize_t c : grid.chunk) {
      if (c == 0) throw skip_dataset("a chunk length is 0");
    }
  } else {
    const std::size_t element = holds_references(type) ? std::max<std::size_t>(type.size, 64) : std::max<std::size_t>(type.size, 1);
    grid.chunk = chunk_shape_for(dims, element);
  }
  if (!dims.empty() && chunk.shape.size() == dims.size()) {
    std::vector<hsize_t> asked = chunk.shape;
    for (std::size_t d = 0; d < dims.size(); ++d) asked[d] = std::min(asked[d], std::max<hsize_t>(1, dims[d]));
    rechunked_ = asked != grid.chunk && chunk.shape != grid.chunk;
    if (chunk.shape == grid.chunk) asked = grid.chunk;  // as the source has them, over the edge
    grid.chunk = std::move(asked);
  }
  shards = shards_of(grid, chunks_per_shard(shard, grid, type.size));
}

void source_dataset::read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                             const std::vector<hsize_t>& room, buffer& out) const {
  if (out.size() < product(room) * size) throw skip_dataset("a block that does not fit in memory");
  const h5::lock one_thread;
  if (dims.empty()) {
    h5::check(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()), "read the values");
    return;
  }
  const h5::handle file_space(H5Scopy(space), "copy a dataspace");
  h5::check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), "select a block");
  const h5::handle memory_space(H5Screate_simple(static_cast<int>(room.size()), room.data(), nullptr), "make a dataspace");
  const std::vector<hsize_t> zero(room.size(), 0);
  h5::check(H5Sselect_hyperslab(memory_space, H5S_SELECT_SET, zero.data(), nullptr, count.data(), nullptr), "select a block");
  h5::check(H5Dread(dataset, memory, memory_space, file_space, H5P_DEFAULT, out.data()), "read the values");
}

// libhdf5 tells where the values are; that it is so is tried on the first and the last element.
std::optional<std::uint64_t> source_dataset::contiguous_address() const {
  if (layout != H5D_CONTIGUOUS || external || file.descriptor() < 0 || !type.as_stored || holds_references(type)) return {};
  const haddr_t address = H5Dget_offset(dataset);
  const std::uint64_t elements = product(dims);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || elements == 0 || stored_bytes / element_size < elements || address > largest_file - stored_bytes) return {};
  for (const bool last : {false, true}) {
    std::vector<hsize_t> at(dims.size(), 0);
    const std::vector<hsize_t> one(dims.size(), 1);
    for (std::size_t d = 0; last && d < dims.size(); ++d) at[d] = dims[d] - 1;
    buffer read(element_size), there(element_size);
    try {
      read_block(stored_type, element_size, at, one, one, read);
    } catch (const h5::failure&) {
      return {};
    }
    const std::uint64_t offset = address + (last ? (elements - 1) * element_size : 0);
    if (::pread(file.descriptor(), there.data(), there.size(), static_cast<off_t>(offset)) != static_cast<ssize_t>(there.size())) return {};
    if (read != there) return {};
  }
  return address;
}

bool source_dataset::chunk_loses(const std::vector<hsize_t>& at) const {
  const h5::lock one_thread;
  const std::size_t size = element_size;
  buffer raw(static_cast<std::size_t>(grid.chunk_elements()) * size);
  try {
    read_block(stored_type, size, grid.start(at), grid.inside(at), grid.chunk, raw);
  } catch (const h5::failure&) {
    return true;
  }
  const h5::handle base = [&] {
    h5::handle t(H5Tcopy(stored_type));
    while (H5Tget_class(t) == H5T_ARRAY) t = h5::handle(H5Tget_super(t));
    return t;
  }();
  return conversion_loses(base, leaf().memory, raw, raw.size() / H5Tget_size(base));
}

bool source_dataset::nothing_stored() const {
  return (layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) && !external && stored_bytes == 0;
}

// Where libhdf5 looks: the name as it is, beside the source, and below the prefix that the environment names.
bool source_dataset::virtual_source_exists(std::size_t index) const {
  const ssize_t length = H5Pget_virtual_filename(dcpl, index, nullptr, 0);
  if (length <= 0 || length > 65536) return true;
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  if (H5Pget_virtual_filename(dcpl, index, name.data(), name.size()) < 0) return true;
  name.resize(static_cast<std::size_t>(length));
  if (name == ".") {  // this file; the dataset may lie behind an external link
    const ssize_t n = H5Pget_virtual_dsetname(dcpl, index, nullptr, 0);
    if (n <= 0 || n > 65536) return true;
    std::string name_there(static_cast<std::size_t>(n) + 1, '\0');
    if (H5Pget_virtual_dsetname(dcpl, index, name_there.data(), name_there.size()) < 0 || name_there.find('%') != std::string::npos) return true;
    const h5::handle there(H5Dopen2(file.file(), name_there.c_str(), H5P_DEFAULT));
    H5Eclear2(H5E_DEFAULT);
    return static_cast<bool>(there);
  }
  if (name.find('%') != std::string::npos) return true;  // names that are made while reading
  namespace fs = std::filesystem;
  const fs::path beside = fs::path(file.path()).parent_path();
  std::error_code e;
  if (fs::exists(name, e) || fs::exists(beside / name, e) || fs::exists(beside / fs::path(name).filename(), e)) return true;
  const char* prefix = std::getenv("HDF5_VDS_PREFIX");
  if (!prefix) return false;
  std::string folder = prefix;
  if (folder.starts_with("${ORIGIN}")) folder = beside.string() + folder.substr(9);
  return fs::exists(fs::path(folder) / name, e);
}

source_dataset::mapping source_dataset::virtual_mapping() const {
  struct box {
    std::vector<hsize_t> low, high;
  };
  std::vector<box> boxes;
  std::size_t n = 0;
  if (layout != H5D_VIRTUAL || H5Pget_virtual_count(dcpl, &n) < 0 || n > 100000) return {};
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!virtual_source_exists(i)) {
      ++missing;
      continue;
    }
    const h5::handle vspace(H5Pget_virtual_vspace(dcpl, i));
    box b{std::vector<hsize_t>(dims.size()), std::vector<hsize_t>(dims.size())};
    if (!vspace || H5Sget_simple_extent_ndims(vspace) != static_cast<int>(dims.size()) ||
        H5Sget_select_bounds(vspace, b.low.data(), b.high.data()) < 0) {
      H5Eclear2(H5E_DEFAULT);
      return {};  // an unlimited selection: any block may be mapped
    }
    boxes.push_back(std::move(b));
  }
  const auto holds_values = [boxes = std::move(boxes)](const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) {
    return std::any_of(boxes.begin(), boxes.end(), [&](const box& b) {
      for (std::size_t d = 0; d < first.size(); ++d) {
        if (first[d] > b.high[d] || first[d] + count[d] <= b.low[d]) return false;
      }
      return true;
    });
  };
  return {holds_values, missing};
}


}  // namespace zarrbits::conversion
