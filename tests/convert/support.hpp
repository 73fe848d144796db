// SPDX-License-Identifier: BSL-1.0
//
// An HDF5 file to write, and the store that became of it.
//
#ifndef ZARRBITS_TESTS_CONVERT_SUPPORT_HPP
#define ZARRBITS_TESTS_CONVERT_SUPPORT_HPP

#include "hdf5/h5.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <blosc.h>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>
#include <zstd.h>

namespace support {

using json = nlohmann::json;
using zarrbits::hdf5::check;
using zarrbits::hdf5::handle;
using dims = std::vector<hsize_t>;

// A folder that goes away.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "zarrbits-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~folder() {
    std::error_code e;
    std::filesystem::remove_all(path_, e);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  if (!f) throw std::runtime_error("no file " + path);
  return {std::istreambuf_iterator<char>(f), {}};
}

inline std::string gunzip(const std::string& bytes, std::size_t size) {
  std::string out(size + 1, '\0');
  z_stream z{};
  inflateInit2(&z, 15 + 16);  // gzip only
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&z, Z_FINISH);
  out.resize(out.size() - z.avail_out);
  inflateEnd(&z);
  if (status != Z_STREAM_END) throw std::runtime_error("no gzip member");
  return out;
}

// A chunk's elements, of the codecs bytes and at most one of gzip, zstd and blosc.
inline std::string elements(const json& codecs, const std::string& chunk, std::size_t size) {
  if (codecs.size() == 1) return chunk;
  const std::string name = codecs.at(1).at("name");
  if (name == "gzip") return gunzip(chunk, size);
  std::string out(size, '\0');
  const std::size_t n = name == "zstd"    ? ZSTD_decompress(out.data(), size, chunk.data(), chunk.size())
                        : name == "blosc" ? static_cast<std::size_t>(blosc_decompress_ctx(chunk.data(), out.data(), size, 1))
                                          : 0;
  if (n != size || codecs.size() > 2) throw std::runtime_error("no chunk of " + codecs.dump());
  return out;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Makes a file, converts it, and reads the store.
class conversion {
 public:
  conversion() : file_(H5Fcreate(source().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "make a file") {}
  explicit conversion(hid_t creation, hid_t access)
      : file_(H5Fcreate(source().c_str(), H5F_ACC_TRUNC, creation, access), "make a file") {}

  hid_t file() const { return file_; }
  std::string source() const { return folder_ / "in.h5"; }
  std::string store() const { return folder_ / "out.zarr"; }
  const support::folder& folder() const { return folder_; }

  handle dataset(const std::string& name, hid_t type, const dims& shape, hid_t dcpl = H5P_DEFAULT, const dims& max = {}) {
    const handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), max.empty() ? nullptr : max.data()),
                       "make a space");
    return handle(H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), "make a dataset");
  }
  template <class T>
  handle dataset(const std::string& name, hid_t type, const dims& shape, const std::vector<T>& values, hid_t dcpl = H5P_DEFAULT,
                 const dims& max = {}) {
    handle d = dataset(name, type, shape, dcpl, max);
    check(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "write");
    return d;
  }

  // Not converted: to see what libhdf5 makes of chunks.
  handle dataset_of_another_file(const std::string& name, hid_t type, const dims& shape, hid_t dcpl) {
    other_ = handle(H5Fcreate((folder_ / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "make a file");
    const handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), "make a space");
    return handle(H5Dcreate2(other_, "x", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), "make a dataset");
  }

  void close() { file_ = handle(); }

  zarrbits::convert_result& run(zarrbits::convert_options options = {}) {
    file_ = handle();
    options.source.name = source();
    options.target.name = store();
    result_ = zarrbits::convert(options);
    return result_;
  }
  const zarrbits::convert_result& result() const { return result_; }

  bool has(const std::string& key) const { return std::filesystem::exists(store() + "/" + key); }
  json meta(const std::string& node) const {
    return json::parse(read_file(store() + "/" + node + (node.empty() ? "" : "/") + "zarr.json"));
  }
  // Our own notes, which readers do not see.
  json notes(const std::string& node) const {
    const json j = meta(node);
    return j.value("zarrbits", j.at("attributes").value("_nc_zarrbits", json::object()));
  }
  std::string chunk(const std::string& key) const { return read_file(store() + "/" + key); }
  const zarrbits::converted_object& entry(const std::string& path, const std::string& attribute = "") const {
    for (const auto& o : result_.objects) {
      if (o.path == path && o.attribute == attribute) return o;
    }
    throw std::runtime_error("the report does not name " + path + " " + attribute);
  }

 private:
  support::folder folder_;
  handle file_, other_;
  zarrbits::convert_result result_;
};

inline handle chunked(const dims& chunk) {
  handle p(H5Pcreate(H5P_DATASET_CREATE), "make properties");
  check(H5Pset_chunk(p, static_cast<int>(chunk.size()), chunk.data()), "set chunks");
  return p;
}

inline void write_chunk(hid_t d, const std::string& bytes, std::uint32_t mask = 0) {
  const hsize_t first[H5S_MAX_RANK] = {};
  check(H5Dwrite_chunk(d, H5P_DEFAULT, mask, first, bytes.size(), bytes.data()), "write a chunk");
}

}  // namespace support

#endif
