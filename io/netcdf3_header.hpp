// SPDX-License-Identifier: BSL-1.0
//
// The header of a netCDF-3 file: classic (CDF-1), 64-bit offset (CDF-2) and 64-bit data (CDF-5). What it says is checked against
// the file: every value of every variable is within it, and in no other variable.
//
//   const netcdf3_header header = read_netcdf3_header(*file, 64 << 20);
//   for (const netcdf3_variable& v : header.variables) file->read(v.begin, first_row);
//
#ifndef ZARRBITS_IO_NETCDF3_HEADER_HPP
#define ZARRBITS_IO_NETCDF3_HEADER_HPP

#include "io/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::io {

// The file is damaged, or its header takes too much memory. what() is a reason, not a sentence.
struct netcdf3_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class netcdf3_type : std::uint32_t {
  int8 = 1,
  character = 2,
  int16 = 3,
  int32 = 4,
  float32 = 5,
  float64 = 6,
  uint8 = 7,  // this and the following ones: only in CDF-5
  uint16 = 8,
  uint32 = 9,
  int64 = 10,
  uint64 = 11,
};
// Bytes of a value.
std::size_t size_of(netcdf3_type type);

struct netcdf3_attribute {
  std::string name;
  netcdf3_type type = netcdf3_type::int8;
  std::uint64_t count = 0;  // of values
  std::string bytes = {};   // the values, each in big endian
};

struct netcdf3_dimension {
  std::string name;
  std::uint64_t length = 0;  // of the record dimension: the number of records
  bool is_record = false;
};

struct netcdf3_variable {
  std::string name;
  netcdf3_type type = netcdf3_type::int8;
  std::vector<std::size_t> dimensions = {};  // in netcdf3_header::dimensions
  std::vector<std::uint64_t> shape = {};
  std::vector<netcdf3_attribute> attributes = {};
  bool is_record = false;
  std::uint64_t begin = 0;  // of the first value in the file
  // Bytes without padding: of all values, or of those of one record. Those of the next record begin `record_stride` later.
  std::uint64_t bytes = 0;
};

// The variable's attribute _FillValue, or what netCDF-C fills variables without it with, as netCDF-4 files have it: one value, in
// big endian.
std::string fill_value(const netcdf3_variable& variable);

struct netcdf3_header {
  unsigned version = 1;             // 1, 2 or 5
  std::uint64_t records = 0;        // number
  std::uint64_t record_stride = 0;  // bytes from one record to the next
  std::vector<netcdf3_dimension> dimensions;
  std::vector<netcdf3_attribute> attributes;
  std::vector<netcdf3_variable> variables;
};

constexpr std::size_t netcdf3_magic_bytes = 4;
// True if a file begins as one of netCDF-3 does.
bool is_netcdf3(std::string_view head) noexcept;

// `memory`: bytes that the header may take. Throws netcdf3_error, and what reading the file throws.
netcdf3_header read_netcdf3_header(const byte_source& file, std::uint64_t memory);

}  // namespace zarrbits::io

#endif
