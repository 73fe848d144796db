// SPDX-License-Identifier: BSL-1.0
//
// A netCDF-3 file as libhdf5 reads it: as the HDF5 file that nccopy would make of it, whose metadata is in memory, and whose
// values stay where they are. So everything that reads HDF5 files reads netCDF-3 too.
//
// Addresses below the size of the netCDF-3 file are those of values: the place of a chunk in HDF5 is its place in the file. The
// metadata lies behind them (but the superblock, which libhdf5 looks for at 0, and asks for as such). Chunks that the file does
// not have as one range (records are interleaved) get addresses of their own, and are put together when they are read.
//
#ifndef ZARRBITS_HDF5_NETCDF3_VIEW_HPP
#define ZARRBITS_HDF5_NETCDF3_VIEW_HPP

#include "io/byte_source.hpp"
#include "io/netcdf3_chunks.hpp"

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace zarrbits::hdf5 {

class netcdf3_view {
 public:
  // `cache`: bytes of a file on a server that are kept. Throws io::netcdf3_error, failure, and what reading the file throws.
  netcdf3_view(std::shared_ptr<const io::byte_source> file, std::uint64_t cache);

  // End of all addresses.
  haddr_t end() const noexcept { return end_; }
  // Whether a read concerns bytes of the file itself, at this offset.
  bool is_in_file(H5FD_mem_t type, haddr_t address) const noexcept { return type == H5FD_MEM_DRAW && address < metadata_begin_; }
  // Whether the chunk at this address is in the file as one range.
  static bool is_range(haddr_t address) noexcept { return address < gathered_begin; }
  // For all other reads: metadata, and gathered chunks. Throws io::read_error, and what reading the file throws.
  void read(haddr_t address, std::span<std::byte> out) const;

 private:
  static constexpr haddr_t gathered_begin = haddr_t{1} << 62;
  struct driver;
  struct writer;

  std::shared_ptr<const io::byte_source> file_;
  std::uint64_t cache_ = 0;
  haddr_t metadata_begin_ = 0, end_ = 0;
  std::vector<std::byte> superblock_, metadata_;
  std::map<haddr_t, io::netcdf3_rows> gathered_;  // by the address of the chunk
};

}  // namespace zarrbits::hdf5

#endif
