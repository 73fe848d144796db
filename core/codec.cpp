// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/codec.hpp>

#include "core/codec_state.hpp"
#include "core/configuration.hpp"
#include "core/json.hpp"
#include "core/kernels/kernels.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <limits>

namespace zarrbits {

namespace {

struct entry {
  const char* name;
  detail::codec_parser parse;
};

// A new codec is a file that fills in a codec_state, and a row here.
constexpr entry codecs[] = {
    {"bytes", detail::parse_bytes},
    {"endian", detail::parse_bytes},  // the old name of bytes
    {"packbits", detail::parse_packbits},
    {"numcodecs.packbits", detail::parse_numcodecs_packbits},
};

std::string shortened(std::string_view text) {
  constexpr std::size_t max_size = 80;
  return std::string(text.substr(0, max_size)) + (text.size() > max_size ? "..." : "");
}

[[noreturn]] void too_large(const codec& c, std::uint64_t elements) {
  throw error(errc::size_overflow, c.name() + ": the size of " + std::to_string(elements) + " elements of " + c.type().name() +
                                       " does not fit in 64 bits; use smaller chunks");
}

}  // namespace

const std::string& codec::name() const noexcept { return state_->name; }
const data_type& codec::type() const noexcept { return state_->type; }
std::string codec::json(spelling s) const { return s == spelling::older ? state_->json_older : state_->json; }
std::size_t codec::element_size() const noexcept { return static_cast<std::size_t>(state_->layout.element_size); }
std::uint64_t codec::element_bits() const noexcept { return state_->layout.element_bits; }
bool codec::needs_element_count() const noexcept { return state_->layout.count_byte == padding::first_byte; }

std::uint64_t codec::decoded_size(std::uint64_t elements) const {
  std::uint64_t size = 0;
  if (!detail::decoded_size(state_->layout, elements, size)) too_large(*this, elements);
  return size;
}

std::uint64_t codec::encoded_size(std::uint64_t elements) const {
  std::uint64_t size = 0;
  if (!detail::encoded_size(state_->layout, elements, size)) too_large(*this, elements);
  return size;
}

byte_range codec::encoded_range(std::uint64_t elements, element_range r) const {
  encoded_size(elements);  // checks that nothing below overflows
  byte_range range;
  if (!detail::encoded_range(state_->layout, elements, r, range))
    throw error(errc::invalid_range, name() + ": the range of " + std::to_string(r.count) + " elements from element " +
                                         std::to_string(r.first) + " on does not lie within the chunk's " +
                                         std::to_string(elements));
  return range;
}

std::string codec::explain(const failure& f) const {
  if (!f) return name() + ": nothing failed";
  const std::string element = "element " + std::to_string(f.element);
  const detail::layout& l = state_->layout;
  char hex[24];
  std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(f.value));
  const std::string value_text = std::to_string(f.value);
  std::string message = name() + ": ";
  switch (static_cast<errc>(f.code.value())) {
    case errc::value_does_not_fit: {
      const detail::packing& p = l.runs.front().format;
      if (p.full_width)
        return message + element + " is " + hex + ", which is not a value of " + type().name() +
               "; clear the bits above, or allow truncation";
      return message + element + " of " + type().name() + " is " + hex + ", which does not fit in bits " +
             std::to_string(p.first_bit) + " to " + std::to_string(p.first_bit + p.bits - 1) +
             "; keep more bits, or allow truncation";
    }
    case errc::invalid_bool:
      return message + element + " is " + value_text +
             ", but a bool is 0 or 1; correct it, or allow that any other value counts as true";
    case errc::truncated:
      return message + "the data ends too early, after " + std::to_string(f.element) +
             " whole elements; it is truncated, or does not match the codec and data type";
    case errc::trailing_data:
      return message + "the data continues after the last of " + std::to_string(f.element) +
             " elements; it is too long, or does not match the codec and data type";
    case errc::invalid_padding_count:
      return message + "the count byte says " + value_text +
             " bits of padding, which disagrees with the length of the data; it is damaged, or has a different number of "
             "elements";
    case errc::nonzero_padding:
      return message + "the padding bits at the end are " + hex + ", not 0; the data is damaged, or has more elements";
    case errc::buffer_too_small: return message + "the output buffer is too small; it has to hold " + value_text + " bytes";
    case errc::partial_element:
      return message + "the buffer for the decoded elements has " + value_text + " bytes, which is not a whole number of " +
             type().name() + " elements of " + std::to_string(l.element_size) + " bytes; provide room for whole elements";
    case errc::element_size_mismatch:
      return message + "the elements in memory have " + value_text + " bytes each, but those of " + type().name() + " have " +
             std::to_string(l.element_size) + "; use elements of the codec's data type";
    case errc::element_count_mismatch:
      return message +
             (f.element < f.value ? "only " + std::to_string(f.element) + " elements arrived"
                                  : std::string("more elements arrived")) +
             ", but " + value_text + " were declared; declare the right number";
    default: return message + f.code.message();
  }
}

codec parse_codec(std::string_view text, const data_type& type, const codec_policy& policy) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    throw error(errc::invalid_codec, "the codec is empty; use a name such as packbits, or its JSON");
  std::string name(text);
  auto configuration = nlohmann::ordered_json::object();
  if (text[first] == '{' || text[first] == '"' || text[first] == '[') {
    const auto j = detail::parse_json(text, errc::invalid_codec, "the codec");
    if (j.is_string()) {
      name = j.get<std::string>();
    } else if (j.is_object()) {
      const auto it = j.find("name");
      if (it == j.end() || !it->is_string())
        throw error(errc::invalid_codec, "the codec has no \"name\", a string, in " + shortened(text));
      name = it->get<std::string>();
      for (const auto& [key, value] : j.items())
        if (key != "name" && key != "configuration" && !(key == "must_understand" && value == true))
          throw error(errc::invalid_codec, shortened(name) + ": unknown key \"" + shortened(key) +
                                               "\" in the codec; the keys are \"name\" and \"configuration\"");
      if (const auto c = j.find("configuration"); c != j.end() && !c->is_null()) configuration = *c;
      if (!configuration.is_object())
        throw error(errc::invalid_configuration, shortened(name) + ": \"configuration\" must be an object");
    } else {
      throw error(errc::invalid_codec, "the codec is neither a name nor an object: " + shortened(text));
    }
  }
  for (const entry& e : codecs)
    if (name == e.name) {
      detail::configuration c(name, configuration);
      return e.parse(c, type, policy);
    }
  throw error(errc::invalid_codec,
              "codec \"" + shortened(name) + "\" is not one of zarrbits': bytes, packbits, numcodecs.packbits");
}

namespace detail {

codec make_codec(std::string name, const data_type& type, std::string json, std::string json_older, std::vector<run> runs,
                 padding count_byte, bool strict_padding) {
  if (const char* wrong = unavailable_kernels()) {
    std::string names;
    for (const kernel_table* k : all_kernels()) names += (names.empty() ? "" : ", ") + std::string(k->name);
    throw error(errc::invalid_configuration, "zarrbits: the environment variable ZARRBITS_KERNELS is \"" + shortened(wrong) +
                                                 "\", but the kernels that this machine can run are: " + names);
  }
  auto s = std::make_shared<codec_state>(
      codec_state{std::move(name), type, std::move(json), std::move(json_older), std::move(runs), {}});
  layout& l = s->layout;
  l.runs = s->runs;
  l.count_byte = count_byte;
  l.strict_padding = strict_padding;
  l.kernels = &kernels();
  l.element_size = type.element_size();
  for (const run& r : s->runs) l.element_bits += std::uint64_t{r.count} * r.format.encoded_bits();
  return access::make(std::move(s));
}

codec with_kernels(const codec& c, const kernel_table& k) {
  auto s = std::make_shared<codec_state>(access::state(c));
  s->layout.runs = s->runs;
  s->layout.kernels = &k;
  return access::make(std::move(s));
}

}  // namespace detail

}  // namespace zarrbits
