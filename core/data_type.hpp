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
  unsigned bits = 8;  // N
  unsigned components = 1;
  unsigned size = 1;  // bytes of a component in memory
  bool is_signed = false;
  bool is_bool = false;
  std::size_t element_size = 1;
  std::vector<data_type> fields;  // struct: the fields' types, in order, without gaps

  // what operator== compares beside these
  std::string family;  // the name, but one for all r<N>, and of an alias the name that it stands for
  std::string unit;    // numpy.datetime64, numpy.timedelta64: "" where there is no configuration
  std::uint64_t scale_factor = 0;
  std::vector<std::string> field_names;
};

}  // namespace zarrbits::detail

#endif
