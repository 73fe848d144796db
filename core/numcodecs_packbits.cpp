// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/packbits.hpp>

#include "core/codec_state.hpp"
#include "core/configuration.hpp"

namespace zarrbits {

codec numcodecs_packbits(const data_type& type, const numcodecs_packbits_parameters& p) {
  if (!type.is_bool())
    throw error(errc::unsupported_data_type,
                "numcodecs.packbits: data type " + type.name() + ", but this codec takes only bool; use \"packbits\"");
  detail::packing format;
  format.type_bits = 1;
  format.bits = 1;
  format.is_bool = true;
  format.nonzero_is_true = p.nonzero_is_true;
  format.msb_first = true;
  const std::string json = R"({"name":"numcodecs.packbits","configuration":{}})";
  return detail::make_codec("numcodecs.packbits", type, json, json, {{format, 1}}, padding::first_byte, p.strict_padding);
}

namespace detail {

codec parse_numcodecs_packbits(configuration& c, const data_type& type, const codec_policy& policy) {
  c.nothing_else();
  return numcodecs_packbits(type, {.nonzero_is_true = policy.nonzero_is_true, .strict_padding = policy.strict_padding});
}

}  // namespace detail

}  // namespace zarrbits
