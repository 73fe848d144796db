// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/packbits.hpp>

#include "core/codec_state.hpp"
#include "core/configuration.hpp"
#include "core/data_type.hpp"

namespace zarrbits {

namespace {

constexpr const char* padding_names[] = {"none", "first_byte", "last_byte"};
constexpr const char* older_padding_names[] = {"none", "start_byte", "end_byte"};

std::string bits_of(const data_type& type) { return type.name() + " has bits 0 to " + std::to_string(type.component_bits() - 1); }

// Leaves defaults out: readers agree on the short form, and one of them writes no count byte if all bits are kept.
std::string json_of(const data_type& type, const packbits_parameters& p, unsigned last_bit,
                    const char* const (&padding_name)[3]) {
  std::string keys;
  const auto add = [&](const std::string& key) { keys += (keys.empty() ? "" : ",") + key; };
  if (p.padding_encoding != padding::none)
    add(std::string("\"padding_encoding\":\"") + padding_name[static_cast<int>(p.padding_encoding)] + '"');
  if (p.first_bit != 0) add("\"first_bit\":" + std::to_string(p.first_bit));
  if (last_bit != type.component_bits() - 1) add("\"last_bit\":" + std::to_string(last_bit));
  return keys.empty() ? R"({"name":"packbits"})" : R"({"name":"packbits","configuration":{)" + keys + "}}";
}

}  // namespace

codec packbits(const data_type& type, const packbits_parameters& p) {
  const detail::data_type_info& i = detail::access::info(type);
  if (i.kind != detail::type_kind::number)
    throw error(errc::unsupported_data_type,
                "packbits: data type " + type.name() +
                    " is not a number, and packbits takes bool, integers, floats and complex numbers; use \"bytes\"");
  const unsigned last_bit = p.last_bit.value_or(i.bits - 1);
  if (last_bit >= i.bits)
    throw error(errc::invalid_configuration, "packbits: \"last_bit\" is " + std::to_string(last_bit) + ", but " + bits_of(type));
  if (p.first_bit >= i.bits)
    throw error(errc::invalid_configuration,
                "packbits: \"first_bit\" is " + std::to_string(p.first_bit) + ", but " + bits_of(type));
  if (last_bit < p.first_bit)
    throw error(errc::invalid_configuration, "packbits: \"last_bit\" is " + std::to_string(last_bit) + " and \"first_bit\" is " +
                                                 std::to_string(p.first_bit) +
                                                 ", so that no bit would be kept; both are inclusive");
  if (p.padding_encoding < padding::none || p.padding_encoding > padding::last_byte)
    throw error(errc::invalid_configuration, "packbits: \"padding_encoding\" is not a value of zarrbits::padding");
  detail::packing format;
  format.size = static_cast<std::uint8_t>(i.size);
  format.type_bits = static_cast<std::uint8_t>(i.bits);
  format.first_bit = static_cast<std::uint8_t>(p.first_bit);
  format.bits = static_cast<std::uint8_t>(last_bit - p.first_bit + 1);
  format.is_signed = i.is_signed;
  format.is_bool = i.is_bool;
  format.nonzero_is_true = p.nonzero_is_true;
  format.truncate = p.truncate;
  return detail::make_codec("packbits", type, json_of(type, p, last_bit, padding_names),
                            json_of(type, p, last_bit, older_padding_names), {{format, i.components}}, p.padding_encoding,
                            p.strict_padding);
}

namespace detail {

codec parse_packbits(configuration& c, const data_type& type, const codec_policy& policy) {
  packbits_parameters p;
  p.truncate = policy.truncate;
  p.nonzero_is_true = policy.nonzero_is_true;
  p.strict_padding = policy.strict_padding;
  if (const auto name = c.text("padding_encoding")) {
    int index = -1;
    for (int i = 0; i < 3; ++i)
      if (*name == padding_names[i] || *name == older_padding_names[i]) index = i;
    if (index < 0)
      throw error(errc::invalid_configuration, "packbits: \"padding_encoding\" is \"" + name->substr(0, 60) +
                                                   "\", but must be \"none\", \"first_byte\" or \"last_byte\"");
    p.padding_encoding = static_cast<padding>(index);
  }
  if (type.components() != 0) {  // otherwise the type has no components, and packbits() reports that
    p.first_bit = c.bit("first_bit", "start_bit", type).value_or(0);
    p.last_bit = c.bit("last_bit", "end_bit", type);
    c.nothing_else();
  }
  return packbits(type, p);
}

}  // namespace detail

}  // namespace zarrbits
