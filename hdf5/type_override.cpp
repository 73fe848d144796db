// SPDX-License-Identifier: BSL-1.0
#include "hdf5/type_override.hpp"

namespace zarrbits::hdf5 {

namespace {

void take_for_boolean(type_description& t) {
  for (type_description& part : t.parts) take_for_boolean(part);
  if (t.kind == type_class::integer && t.size == 1 && t.stored.starts_with("bitfield of 8 bits")) t.kind = type_class::boolean;
}

}  // namespace

void apply_type_override(type_description& type, const schema_override& arranged) {
  if (!arranged.complex_parts.first.empty()) take_for_complex(type, arranged.complex_parts.first, arranged.complex_parts.second);
  if (arranged.bits_are_booleans) take_for_boolean(type);
  if (arranged.int8_is_boolean && type.kind == type_class::integer && type.size == 1 && type.is_signed && type.stored.empty())
    type.kind = type_class::boolean;
}

}  // namespace zarrbits::hdf5
