// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/file_metadata.hpp"

#include "text/json_text.hpp"

#include <bit>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Each structure is a list of its members, in their order; a double is its bits, since a NaN may have a payload.

text::json serialize(const std::optional<cf_number>& n) {
  return n ? text::json::array({n->is_integer, n->integer_value, std::bit_cast<std::uint64_t>(n->real), n->size}) : text::json();
}

void parse_number(const text::json& fields, std::optional<cf_number>& n) {
  if (fields.is_null()) return;
  n = cf_number{fields.at(0), fields.at(1), std::bit_cast<double>(fields.at(2).get<std::uint64_t>()), fields.at(3)};
}

text::json serialize(const cf_encoding& t) {
  return text::json::array({t.kind.is_integer, t.kind.is_signed, t.kind.size, serialize(t.scale), serialize(t.offset),
                            serialize(t.fill), serialize(t.missing), t.units, t.calendar, t.reinterpreted, t.unread});
}

cf_encoding parse_encoding(const text::json& fields) {
  cf_encoding t;
  t.kind = {fields.at(0), fields.at(1), fields.at(2)};
  parse_number(fields.at(3), t.scale);
  parse_number(fields.at(4), t.offset);
  parse_number(fields.at(5), t.fill);
  parse_number(fields.at(6), t.missing);
  t.units = fields.at(7);
  t.calendar = fields.at(8);
  t.reinterpreted = fields.at(9);
  t.unread = fields.at(10).get<std::map<std::string, std::string>>();
  return t;
}

text::json serialize(const variant& v) {
  std::size_t size = 0;
  hdf5::check(H5Tencode(v.type, nullptr, &size), "encode a type");
  std::vector<std::uint8_t> type(size);
  hdf5::check(H5Tencode(v.type, type.data(), &size), "encode a type");
  return text::json::array({serialize(v.encoding), text::json::binary(std::move(type)), v.chunk, v.layout});
}

variant parse_variant(const text::json& fields) {
  const auto& type = fields.at(1).get_binary();
  return {parse_encoding(fields.at(0)),
          hdf5::handle(H5Tdecode(type.data()), "decode a type"),
          fields.at(2).get<array::extents>(),
          fields.at(3),
          {},
          0};
}

text::json serialize(const variable_part& p) {
  text::json chunks = text::json::array(), values = text::json::array();
  for (const hdf5::stored_place& c : p.chunks) chunks.insert(chunks.end(), {c.offset, c.size, c.mask});
  for (const double v : p.values) values.push_back(std::bit_cast<std::uint64_t>(v));
  return text::json::array({p.variable, serialize(p.form), p.address, p.count, p.dimension_length, p.stored, std::move(chunks),
                            std::move(values), p.nothing_stored});
}

variable_part parse_part(const text::json& fields) {
  variable_part p;
  p.variable = fields.at(0);
  p.form = parse_variant(fields.at(1));
  p.address = fields.at(2);
  p.count = fields.at(3);
  p.dimension_length = fields.at(4);
  p.stored = fields.at(5);
  const text::json& chunks = fields.at(6);
  for (std::size_t i = 0; i < chunks.size(); i += 3) p.chunks.push_back({chunks.at(i), chunks.at(i + 1), chunks.at(i + 2)});
  for (const text::json& v : fields.at(7)) p.values.push_back(std::bit_cast<double>(v.get<std::uint64_t>()));
  p.nothing_stored = fields.at(8);
  return p;
}

}  // namespace

std::string to_bytes(const file_metadata& file) {
  text::json state, remarks = text::json::array(), parts = text::json::array();
  if (const auto& s = file.state) state = text::json::array({s->regular, s->size, s->seconds, s->nanoseconds, s->etag});
  text::json reason;
  if (file.reason) reason = text::json::array({to_string(file.reason->code), file.reason->sentence});
  for (const file_note& r : file.notes) remarks.push_back(text::json::array({r.text, r.object, r.is_omitted, r.is_minor}));
  for (const variable_part& p : file.parts) parts.push_back(serialize(p));
  std::string bytes;
  text::json::to_cbor(
      text::json::array({std::move(state), std::move(reason), file.is_fatal, std::move(remarks), std::move(parts)}), bytes);
  return bytes;
}

file_metadata from_bytes(std::string_view bytes) {
  const text::json fields = text::json::from_cbor(bytes.begin(), bytes.end());
  file_metadata file;
  if (const text::json& s = fields.at(0); !s.is_null()) file.state = io::file_state{s.at(0), s.at(1), s.at(2), s.at(3), s.at(4)};
  if (const text::json& r = fields.at(1); !r.is_null())
    file.reason =
        text::coded_reason{text::parse_reason_code(r.at(0).get<std::string>()).value_or(reason_code::unreadable), r.at(1)};
  file.is_fatal = fields.at(2);
  for (const text::json& r : fields.at(3)) file.notes.push_back({r.at(0), r.at(1), r.at(2), r.at(3)});
  for (const text::json& p : fields.at(4)) file.parts.push_back(parse_part(p));
  return file;
}

}  // namespace zarrbits::conversion
