// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_CORE_DATA_TYPE_HPP
#define ZARRBITS_CORE_DATA_TYPE_HPP

#include "core/access.hpp"

#include <zarrbits/data_type.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::detail {

enum class type_kind : std::uint8_t {
  number,  // components of `bits` bits: bool, integers, floats, complex, datetime
  raw,     // bytes without meaning: r<N>, raw_bytes, null_terminated_bytes
  text32,  // 4-byte code units: fixed_length_utf32
  fields,  // struct
};

struct data_type_info {
  std::string name;
  std::string json;
  type_kind kind = type_kind::number;
  unsigned bits = 8;  // N of the data type
  unsigned components = 1;
  unsigned size = 1;  // bytes of a component in memory
  bool is_signed = false;
  bool is_bool = false;
  std::size_t element_size = 1;
  std::vector<data_type> fields;  // struct: the fields' types, in order, without gaps

  // operator== also compares these
  std::string family;  // the name, but the same for all r<N>; for an alias, the name that it means
  std::string unit;    // numpy.datetime64, numpy.timedelta64; "" without a configuration
  std::uint64_t scale_factor = 0;
  std::vector<std::string> field_names;
};

}  // namespace zarrbits::detail

#endif
