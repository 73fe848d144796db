// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/bytes.hpp>

#include "core/codec_state.hpp"
#include "core/configuration.hpp"
#include "core/data_type.hpp"

#include <bit>

namespace zarrbits {

namespace {

using detail::packing;
using detail::run;

bool is_same_packing(const packing& a, const packing& b) {
  return a.size == b.size && a.swap_encoded == b.swap_encoded && a.is_bool == b.is_bool && a.is_signed == b.is_signed &&
         a.bits == b.bits;
}

void add(std::vector<run>& runs, packing format, std::uint64_t count) {
  // components that are only copied are copied byte by byte, so that neighbours merge
  if (format.bits == 8u * format.size && !format.swap_encoded) {
    count *= format.size;
    format = packing{.full_width = true};
  }
  if (!runs.empty() && is_same_packing(runs.back().format, format) && runs.back().count + count <= 0xffffffff) {
    runs.back().count += static_cast<std::uint32_t>(count);
    return;
  }
  runs.push_back({format, static_cast<std::uint32_t>(count)});
}

void add_type(std::vector<run>& runs, const data_type& type, bool swap, const bytes_parameters& p) {
  const detail::data_type_info& i = detail::access::info(type);
  switch (i.kind) {
    case detail::type_kind::number: {
      packing format{.size = static_cast<std::uint8_t>(i.size),
                     .type_bits = static_cast<std::uint8_t>(i.bits),
                     .bits = static_cast<std::uint8_t>(i.bits),
                     .full_width = true};
      format.is_signed = i.is_signed;
      format.is_bool = i.is_bool;
      format.nonzero_is_true = p.nonzero_is_true;
      format.truncate = p.truncate;
      format.swap_encoded = swap && i.size > 1;
      add(runs, format, i.components);
      return;
    }
    case detail::type_kind::raw: add(runs, packing{.full_width = true}, i.element_size); return;
    case detail::type_kind::text32:
      add(runs, packing{.size = 4, .type_bits = 32, .bits = 32, .full_width = true, .swap_encoded = swap}, i.element_size / 4);
      return;
    case detail::type_kind::fields:
      for (const data_type& f : i.fields) add_type(runs, f, swap, p);
      return;
  }
}

}  // namespace

codec bytes(const data_type& type, const bytes_parameters& p) {
  if (!p.endian && type.has_byte_order())
    throw error(errc::invalid_configuration,
                "bytes: \"endian\" is missing, but " + type.name() + " has a byte order; use \"little\" or \"big\"");
  const bool big = p.endian == endian::big;
  std::vector<run> runs;
  add_type(runs, type, big != (std::endian::native == std::endian::big), p);
  std::string json = R"({"name":"bytes"})";
  if (type.has_byte_order())
    json = std::string(R"({"name":"bytes","configuration":{"endian":)") + (big ? R"("big"}})" : R"("little"}})");
  return detail::make_codec("bytes", type, json, json, std::move(runs));
}

namespace detail {

codec parse_bytes(configuration& c, const data_type& type, const codec_policy& policy) {
  bytes_parameters p{.endian = {}, .truncate = policy.truncate, .nonzero_is_true = policy.nonzero_is_true};
  if (const auto e = c.text("endian")) {
    // checked even where it has no effect
    if (*e != "little" && *e != "big")
      throw error(errc::invalid_configuration,
                  "bytes: \"endian\" is \"" + e->substr(0, 60) + "\", but must be \"little\" or \"big\"");
    p.endian = *e == "big" ? endian::big : endian::little;
  }
  c.nothing_else();
  // zarr-python 3.1 wrote structs by their older name, and without a byte order: little, says the registry
  if (!p.endian && (policy.assume_little_endian || type.name() == "structured")) p.endian = endian::little;
  return bytes(type, p);
}

}  // namespace detail

}  // namespace zarrbits
