// SPDX-License-Identifier: BSL-1.0
//
// Nodes of a store, and what their zarr.json says at the outermost level.
//
#include "convert/verify/zarr_json.hpp"
#include "convert/verify/zarr_reader.hpp"

namespace zarrbits::verify {

using nlohmann::json;

namespace {

constexpr std::uint64_t most_metadata = 64u << 20;
constexpr int deepest_metadata = 100;

json read_metadata(const store_folder& folder, bool& exists) {
  const auto object = folder.open("zarr.json");
  exists = object != nullptr;
  if (!exists) return {};
  const std::vector<std::byte> text = read_object(*object, most_metadata);
  const char* begin = reinterpret_cast<const char*>(text.data());
  // what is done with JSON later recurses
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    if (depth > deepest_metadata) throw store_error((folder / "zarr.json").name() + " is nested too deeply");
    return true;
  };
  json j = json::parse(begin, begin + text.size(), shallow, false);
  if (!j.is_object()) throw store_error((folder / "zarr.json").name() + " is no JSON object");
  return j;
}

}  // namespace

std::string json_text(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

std::vector<std::uint64_t> extents(const json& list, const char* what) {
  if (!list.is_array()) throw store_error(std::string("\"") + what + "\" is no list");
  std::vector<std::uint64_t> out;
  for (const json& n : list) {
    if (!n.is_number_unsigned()) throw store_error(std::string("\"") + what + "\" holds " + json_text(n) + ", which is no extent");
    out.push_back(n.get<std::uint64_t>());
  }
  return out;
}

std::string named(const json& j, json& configuration) {
  configuration = json::object();
  if (j.is_string()) return j.get<std::string>();
  if (!j.is_object() || !j.contains("name") || !j["name"].is_string()) throw store_error(json_text(j) + " has no name");
  if (j.contains("configuration") && j["configuration"].is_object()) configuration = j["configuration"];
  return j["name"].get<std::string>();
}

const json& required(const json& j, const char* key) {
  if (!j.contains(key)) throw store_error(std::string("zarr.json has no \"") + key + "\"");
  return j[key];
}

json read_node(const store_folder& folder) {
  bool exists = false;
  json j = read_metadata(folder, exists);
  if (!exists) throw store_error("there is no " + (folder / "zarr.json").name());
  return j;
}

node_kind kind_of(const store_folder& folder) {
  bool exists = false;
  const json j = read_metadata(folder, exists);
  if (!exists) return node_kind::none;
  if (j.value("zarr_format", json()) != 3) throw store_error("\"zarr_format\" is not 3");
  const json type = j.value("node_type", json());
  if (type == "group") return node_kind::group;
  if (type == "array") return node_kind::array;
  throw store_error("\"node_type\" is " + json_text(type) + ", neither group nor array");
}

store_selection selection_of(const store_folder& store) {
  bool exists = false;
  const json j = read_metadata(store, exists);
  store_selection s;
  const auto texts = [](const json& list) {
    std::vector<std::string> out;
    for (const json& text : list) out.push_back(text.get<std::string>());
    return out;
  };
  try {
    const json note = j.value(json::json_pointer("/attributes/zarrbits/selection"), json::object());
    s.object = note.value("object", "");
    s.include = texts(note.value("include", json::array()));
    s.exclude = texts(note.value("exclude", json::array()));
  } catch (const json::exception&) {
    throw store_error("the attribute \"zarrbits\" of the store's root does not say as it should what was selected");
  }
  return s;
}

std::string unescape(const std::string& name) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '%' && i + 2 < name.size() && digit(name[i + 1]) >= 0 && digit(name[i + 2]) >= 0) {
      out += static_cast<char>(digit(name[i + 1]) * 16 + digit(name[i + 2]));
      i += 2;
    } else {
      out += name[i];
    }
  }
  return out;
}

}  // namespace zarrbits::verify
