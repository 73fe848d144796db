// SPDX-License-Identifier: BSL-1.0
#include "hdf5/flat_struct.hpp"

#include "hdf5/type_json.hpp"
#include "metadata/named_configuration.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <string>

namespace zarrbits::hdf5 {

namespace {

bool is_text(const type_description& t) {
  return t.kind == type_class::object_reference || (t.kind == type_class::text && t.variable);
}

bool fits_in_struct(const type_description& t) {
  if (!text::is_utf8(t.name)) return false;
  if (t.kind == type_class::compound)
    return t.memory && !t.parts.empty() && std::all_of(t.parts.begin(), t.parts.end(), fits_in_struct);
  return is_text(t) || !zarr_data_type(t, true).is_null();
}

bool has_text(const type_description& t) {
  return is_text(t) || (t.kind == type_class::compound && std::any_of(t.parts.begin(), t.parts.end(), has_text));
}

// Calls text(m, field) for each field that becomes text, and on_other(m, field) for each other field, in order.
template <class Text, class Other>
void each_field(const type_description& t, const std::byte* data, const Text& text, const Other& on_other) {
  for (const type_description& m : t.parts) {
    const std::byte* field = data ? data + m.offset : nullptr;
    if (m.kind == type_class::compound) each_field(m, field, text, on_other);
    else if (is_text(m)) text(m, field);
    else on_other(m, field);
  }
}

// The text of a field. A reference to nothing has none, and sets `dangling`.
std::string text_in(const type_description& t, const std::byte* data, reference_reader& references, bool& dangling) {
  if (t.kind == type_class::text) return std::string(text_of(t, data));
  const text::json target = references.object(data);
  if (target.is_null()) dangling = true;
  return target.is_null() ? "" : target.get<std::string>();
}

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void append_utf32(std::string_view utf8, std::size_t length, compressors::buffer& out) {
  const std::size_t end = out.size() + 4 * length;
  for (std::size_t i = 0; i < utf8.size();) {
    const std::size_t n = text::utf8_length(utf8.substr(i));
    const auto lead = static_cast<unsigned char>(utf8[i]);
    std::uint32_t code = n == 1 ? lead : lead & (0xFFU >> (n + 1));
    for (std::size_t k = 1; k < n; ++k) code = code << 6 | (static_cast<unsigned char>(utf8[i + k]) & 0x3FU);
    for (unsigned k = 0; k < 4; ++k) out.push_back(static_cast<std::byte>(code >> (8 * k)));
    i += n;
  }
  if (out.size() > end) throw failure("a string is longer than when it was measured");
  out.resize(end, std::byte{0});
}

text::json data_type_of(const type_description& t, std::span<const std::size_t>& lengths) {
  if (is_text(t)) {
    const std::size_t length = std::max<std::size_t>(1, lengths.front());
    lengths = lengths.subspan(1);
    return metadata::sized_type("fixed_length_utf32", 4 * length);
  }
  if (t.kind != type_class::compound) return zarr_data_type(t, true);
  std::vector<std::pair<std::string, text::json>> fields;
  for (const type_description& m : t.parts) fields.emplace_back(m.name, data_type_of(m, lengths));
  return metadata::struct_type(fields);
}

}  // namespace

bool can_be_flat(const type_description& t) { return t.kind == type_class::compound && has_text(t) && fits_in_struct(t); }

std::size_t leaves_of_text(const type_description& t) {
  std::size_t n = 0;
  each_field(
      t, nullptr, [&](const type_description&, const std::byte*) { ++n; }, [](const type_description&, const std::byte*) {});
  return n;
}

bool measure(const type_description& t, const std::byte* element, reference_reader& references,
             std::vector<std::size_t>& lengths) {
  std::size_t field = 0;
  bool valid = true, dangling = false;
  each_field(
      t, element,
      [&](const type_description& m, const std::byte* data) {
    const std::string text = text_in(m, data, references, dangling);
    valid = valid && text::is_utf8(text);
    lengths[field] = std::max(lengths[field], characters(text));
    ++field;
      },
      [](const type_description&, const std::byte*) {});
  return valid;
}

text::json flat_data_type(const type_description& t, std::span<const std::size_t> lengths) { return data_type_of(t, lengths); }

text::json flat_fill(const type_description& t, const std::byte* element) {
  text::json object = text::json::object();
  for (const type_description& m : t.parts) {
    const std::byte* data = element + m.offset;
    object[m.name] = m.kind == type_class::compound ? flat_fill(m, data) : is_text(m) ? text::json("") : fill_json(m, data);
  }
  return object;
}

bool append_flat(const type_description& t, const std::byte* element, reference_reader& references,
                 std::span<const std::size_t> lengths, compressors::buffer& out) {
  std::size_t field = 0;
  bool dangling = false;
  each_field(
      t, element,
      [&](const type_description& m, const std::byte* data) {
    append_utf32(text_in(m, data, references, dangling), std::max<std::size_t>(1, lengths[field++]), out);
      },
      [&](const type_description& m, const std::byte* data) { out.insert(out.end(), data, data + m.size); });
  return !dangling;
}

}  // namespace zarrbits::hdf5
