// SPDX-License-Identifier: BSL-1.0
#include "hdf5/arranged_type.hpp"

namespace zarrbits::hdf5 {

namespace {

void take_for_boolean(type_tree& t) {
  for (type_tree& part : t.parts) take_for_boolean(part);
  if (t.kind == type_class::integer && t.size == 1 && t.stored.starts_with("bitfield of 8 bits")) t.kind = type_class::boolean;
}

}  // namespace

void arrange_type(type_tree& type, const arrangement& arranged) {
  if (!arranged.complex_parts.first.empty()) take_for_complex(type, arranged.complex_parts.first, arranged.complex_parts.second);
  if (arranged.bits_are_booleans) take_for_boolean(type);
  if (arranged.int8_is_boolean && type.kind == type_class::integer && type.size == 1 && type.is_signed && type.stored.empty())
    type.kind = type_class::boolean;
}

}  // namespace zarrbits::hdf5
