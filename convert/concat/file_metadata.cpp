// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/file_metadata.hpp"

#include "text/json_text.hpp"

#include <bit>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Each structure is a list of its members, in their order; a double is its bits, since a NaN may have a payload.

text::json of(const std::optional<cf_number>& n) {
  return n ? text::json::array({n->integer, n->whole, std::bit_cast<std::uint64_t>(n->real), n->size}) : text::json();
}

void take(const text::json& from, std::optional<cf_number>& n) {
  if (from.is_null()) return;
  n = cf_number{from.at(0), from.at(1), std::bit_cast<double>(from.at(2).get<std::uint64_t>()), from.at(3)};
}

text::json of(const cf_terms& t) {
  return text::json::array({t.kind.integer, t.kind.is_signed, t.kind.size, of(t.scale), of(t.offset), of(t.fill), of(t.missing),
                      t.units, t.calendar, t.reinterpreted, t.unread});
}

cf_terms terms_from(const text::json& from) {
  cf_terms t;
  t.kind = {from.at(0), from.at(1), from.at(2)};
  take(from.at(3), t.scale);
  take(from.at(4), t.offset);
  take(from.at(5), t.fill);
  take(from.at(6), t.missing);
  t.units = from.at(7);
  t.calendar = from.at(8);
  t.reinterpreted = from.at(9);
  t.unread = from.at(10).get<std::map<std::string, std::string>>();
  return t;
}

text::json of(const variant& v) {
  std::size_t size = 0;
  hdf5::check(H5Tencode(v.type, nullptr, &size), "encode a type");
  std::vector<std::uint8_t> type(size);
  hdf5::check(H5Tencode(v.type, type.data(), &size), "encode a type");
  return text::json::array({of(v.terms), text::json::binary(std::move(type)), v.chunk, v.layout});
}

variant variant_from(const text::json& from) {
  const auto& type = from.at(1).get_binary();
  return {terms_from(from.at(0)),
          hdf5::handle(H5Tdecode(type.data()), "decode a type"),
          from.at(2).get<std::vector<hsize_t>>(),
          from.at(3),
          {},
          0};
}

text::json of(const found_part& p) {
  text::json chunks = text::json::array(), values = text::json::array();
  for (const hdf5::stored_place& c : p.chunks) chunks.insert(chunks.end(), {c.offset, c.size, c.mask});
  for (const double v : p.values) values.push_back(std::bit_cast<std::uint64_t>(v));
  return text::json::array(
      {p.variable, of(p.form), p.address, p.count, p.room, p.stored, std::move(chunks), std::move(values), p.nothing_stored});
}

found_part part_from(const text::json& from) {
  found_part p;
  p.variable = from.at(0);
  p.form = variant_from(from.at(1));
  p.address = from.at(2);
  p.count = from.at(3);
  p.room = from.at(4);
  p.stored = from.at(5);
  const text::json& chunks = from.at(6);
  for (std::size_t i = 0; i < chunks.size(); i += 3) p.chunks.push_back({chunks.at(i), chunks.at(i + 1), chunks.at(i + 2)});
  for (const text::json& v : from.at(7)) p.values.push_back(std::bit_cast<double>(v.get<std::uint64_t>()));
  p.nothing_stored = from.at(8);
  return p;
}

}  // namespace

std::string to_bytes(const file_metadata& file) {
  text::json state, remarks = text::json::array(), parts = text::json::array();
  if (const auto& s = file.state) state = text::json::array({s->regular, s->size, s->seconds, s->nanoseconds, s->etag});
  for (const remark& r : file.remarks) remarks.push_back(text::json::array({r.text, r.object, r.leave_out, r.minor}));
  for (const found_part& p : file.parts) parts.push_back(of(p));
  std::string bytes;
  text::json::to_cbor(
      text::json::array({std::move(state), file.why ? text::json(*file.why) : text::json(), file.stops, std::move(remarks), std::move(parts)}),
      bytes);
  return bytes;
}

file_metadata from_bytes(std::string_view bytes) {
  const text::json all = text::json::from_cbor(bytes.begin(), bytes.end());
  file_metadata file;
  if (const text::json& s = all.at(0); !s.is_null()) file.state = io::file_state{s.at(0), s.at(1), s.at(2), s.at(3), s.at(4)};
  if (!all.at(1).is_null()) file.why = all.at(1).get<std::string>();
  file.stops = all.at(2);
  for (const text::json& r : all.at(3)) file.remarks.push_back({r.at(0), r.at(1), r.at(2), r.at(3)});
  for (const text::json& p : all.at(4)) file.parts.push_back(part_from(p));
  return file;
}

}  // namespace zarrbits::conversion
