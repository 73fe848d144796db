// SPDX-License-Identifier: BSL-1.0
#include "hdf5/foreign_format.hpp"

#include "text/node_names.hpp"

#include <algorithm>
#include <cstddef>
#include <hdf5.h>
#include <iterator>

namespace zarrbits::hdf5 {

namespace {

using namespace std::string_view_literals;

struct known_format {
  std::string_view signature;
  const char* text;
};

constexpr std::size_t max_blank_bytes = 512;  // in front of an HTML page, and its first word

constexpr const char* netcdf3 =
    "it is a netCDF-3 file, which cannot be used here; make a netCDF-4 file of it: \"nccopy -k nc4 IN.nc OUT.nc\"";
constexpr const char* tiff = "it is a TIFF file";
constexpr const char* html =
    "it is an HTML page, which servers send in place of a file, such as a login; download the file again";

constexpr known_format known_formats[] = {
    {"CDF\x01"sv, netcdf3},
    {"CDF\x02"sv, netcdf3},
    {"CDF\x05"sv, netcdf3},
    {"\x0e\x03\x13\x01"sv, "it is an HDF4 file; make an HDF5 file of it: \"h4toh5convert IN.hdf OUT.h5\""},
    {"GRIB"sv, "it is a GRIB file; make a netCDF-4 file of it, for example with \"cdo -f nc4 copy IN.grib OUT.nc\""},
    {"SIMPLE  ="sv, "it is a FITS file"},
    {"II*\0"sv, tiff},
    {"MM\0*"sv, tiff},
    {"MATLAB 5.0 MAT-file"sv, "it is a MAT file of MATLAB before 7.3; save it again with \"-v7.3\""},
    {"\x1f\x8b"sv, "it is compressed with gzip; decompress it: \"gunzip NAME\""},
    {"BZh"sv, "it is compressed with bzip2; decompress it: \"bunzip2 NAME\""},
    {"\xfd\x37zXZ\0"sv, "it is compressed with xz; decompress it: \"unxz NAME\""},
    {"\x28\xb5\x2f\xfd"sv, "it is compressed with zstd; decompress it: \"unzstd NAME\""},
    {"PK\x03\x04"sv, "it is a .zip file; unpack it, or, if it is a Zarr store, name it NAME.zip"},
    {"version https://git-lfs"sv, "it is a pointer of Git LFS; get the file: \"git lfs pull\""},
    {"/annex/objects/"sv, "it is a pointer of git-annex; get the file: \"git annex get NAME\""},
    {"<?xml"sv, "it is an XML document, which servers send in place of a file, as an error; download the file again"},
};

}  // namespace

bool is_hdf5_file(const std::string& path) {
  const bool is_hdf5 = H5Fis_hdf5(path.c_str()) > 0;
  H5Eclear2(H5E_DEFAULT);
  return is_hdf5;
}

std::string foreign_format(std::string_view head) {
  if (head.empty()) return "it is empty; download or write it again";
  const auto entry = std::find_if(std::begin(known_formats), std::end(known_formats),
                                  [&](const known_format& f) { return head.starts_with(f.signature); });
  if (entry != std::end(known_formats)) return entry->text;
  head = head.substr(0, max_blank_bytes);
  const std::string words = text::case_fold(head.substr(std::min(head.find_first_not_of(" \t\n\v\f\r"), head.size())));
  if (words.starts_with("<!doctype html") || words.starts_with("<html")) return html;
  return "";
}

}  // namespace zarrbits::hdf5
