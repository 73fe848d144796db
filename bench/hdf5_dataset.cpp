// SPDX-License-Identifier: BSL-1.0
#include "bench/hdf5_dataset.hpp"

#include <stdexcept>
#include <string>

namespace zarrbits::bench {

handle::handle(hid_t id, herr_t (*close)(hid_t))
    : id_(id < 0 ? throw std::runtime_error("HDF5 refused") : new hid_t(id), [close](const hid_t* p) {
        close(*p);
        delete p;
      }) {}

void register_noop_filter() {
  H5Z_class2_t c{};
  c.version = H5Z_CLASS_T_VERS;
  c.id = noop_filter;
  c.encoder_present = c.decoder_present = 1;
  c.name = "no-op";
  c.filter = [](unsigned, std::size_t, const unsigned*, std::size_t bytes, std::size_t*, void**) { return bytes; };
  if (H5Zregister(&c) < 0) throw std::runtime_error("HDF5 did not register a filter");
}

handle integer(std::size_t size, std::size_t precision) {
  const handle h(H5Tcopy(size == 1   ? H5T_STD_U8LE
                         : size == 2 ? H5T_STD_U16LE
                         : size == 4 ? H5T_STD_U32LE
                                     : H5T_STD_U64LE),
                 H5Tclose);
  H5Tset_precision(h, precision);
  return h;
}

handle boolean() {
  const handle h(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  signed char value = 0;
  H5Tenum_insert(h, "FALSE", &value);
  value = 1;
  H5Tenum_insert(h, "TRUE", &value);
  return h;
}

namespace {

handle memory_file() {
  const handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, std::size_t{16} << 20, false);
  static unsigned count = 0;  // HDF5 wants names of their own even for files that are never written
  const std::string name = "bench" + std::to_string(++count) + ".h5";
  return {H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose};
}

handle create(hid_t file, hid_t type, std::size_t bytes, std::size_t chunk, const dataset::filters& set) {
  const std::size_t size = H5Tget_size(type);
  const hsize_t elements = bytes / size, chunk_elements = chunk / size;
  const handle space(H5Screate_simple(1, &elements, nullptr), H5Sclose);
  const handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access, 0, 0, 0);
  H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
  if (chunk != 0) H5Pset_chunk(creation, 1, &chunk_elements);
  if (set && set(creation) < 0) throw std::runtime_error("HDF5 did not take a filter");
  return {H5Dcreate2(file, "data", type, space, H5P_DEFAULT, creation, access), H5Dclose};
}

}  // namespace

dataset::dataset(hid_t file_type, hid_t memory_type, std::size_t bytes, std::size_t chunk, const filters& set, const void* in)
    : file_(memory_file()),
      memory_type_(H5Tcopy(memory_type), H5Tclose),
      data_(create(file_, file_type, bytes, chunk, set)),
      bytes_(bytes) {
  if (!write(in)) throw std::runtime_error("HDF5 did not write");
}

bool dataset::write(const void* in) const { return H5Dwrite(data_, memory_type_, H5S_ALL, H5S_ALL, H5P_DEFAULT, in) >= 0; }

bool dataset::read(void* out) const { return H5Dread(data_, memory_type_, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0; }

double dataset::stored() const { return static_cast<double>(H5Dget_storage_size(data_)) / static_cast<double>(bytes_); }

}  // namespace zarrbits::bench
