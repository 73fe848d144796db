// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_links.hpp"

#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "verify/compare_json.hpp"
#include "verify/source_notes.hpp"
#include "verify/value_format.hpp"

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr std::size_t max_link_bytes = 1 << 20;  // bytes

// A group's note of this name, if it is an object.
json members_of(const node_pair& n, const char* name) {
  const auto note = n.notes().find(name);
  return note != n.notes().end() && note->is_object() ? *note : json::object();
}

// hdmf-zarr's links, as the notes that they would be. Those to other stores are none of HDF5's.
void add_hdmf_links(const node_pair& n, json& links) {
  if (!n.notes().empty()) return;  // these have the links
  for (const json& link : n.attributes().value("_LINKS", json::array())) {
    const auto text = [&](const char* key) {
      const json value = link.is_object() ? link.value(key, json()) : json();
      return value.is_string() ? value.get<std::string>() : "";
    };
    if (text("source") == "." && !text("name").empty() && !links.contains(text("name")))
      links[text("name")] = {{"kind", "soft"}, {"target", text("path")}};
  }
}

json soft_note(const std::string& value) { return {{"kind", "soft"}, {"target", text::escape_name(value.c_str())}}; }

json external_note(const std::string& value) {
  unsigned flags = 0;
  const char *file = nullptr, *object = nullptr;
  check(H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &object), "cannot read an external link");
  json note = {{"kind", "external"}, {"target", text::escape_name(object)}};
  if (*file != '\0') note["file"] = text::escape_name(file);
  return note;
}

// A user-defined link: its value is bytes.
bool is_user_link(const json& note, H5L_type_t type, const std::string& value) {
  if (!note.is_object() || note.size() != 3 || note.value("kind", json()) != "user") return false;
  if (note.value("target", json()) != "link class " + std::to_string(static_cast<int>(type))) return false;
  const json stored = note.value("value", json());
  if (!stored.is_object() || stored.size() != 1 || !stored.value("base64", json()).is_string()) return false;
  const auto bytes = text::decode_base64(stored["base64"].get_ref<const std::string&>());
  return bytes && std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) == value;
}

std::string quote_name(const source_link& l) { return format_text(text::escape_name(l.name)); }

}  // namespace

std::string link_value(hid_t group, const std::string& name) {
  H5L_info_t info;
  check(H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT), "cannot read a link");
  if (info.u.val_size > max_link_bytes) throw zarr::not_supported(reason_code::too_large, "links of more than 1 MiB");
  std::string value(info.u.val_size, '\0');
  if (info.type >= H5L_TYPE_UD_MIN && info.type != H5L_TYPE_EXTERNAL) {
    if (!value.empty() && H5Lget_val(group, name.c_str(), value.data(), value.size(), H5P_DEFAULT) < 0) value.clear();
    H5Eclear2(H5E_DEFAULT);
    return value;
  }
  if (!value.empty()) check(H5Lget_val(group, name.c_str(), value.data(), value.size(), H5P_DEFAULT), "cannot read a link");
  return value;
}

void link_comparison::group(haddr_t address, const node_pair& n, const std::set<std::string>& nodes) {
  json links = members_of(n, "links");
  const json types = members_of(n, "named_types");
  add_hdmf_links(n, links);
  const hdf5::handle id = tree_.open(address);
  std::set<std::string> source_keys;
  for (const source_link& l : tree_.object_at(address).links) {
    const std::string key = text::escape_name(l.name);
    source_keys.insert(key);
    if (l.type != H5L_TYPE_HARD) {
      other_link(id.get(), l, n, links);
    } else if (l.target == HADDR_UNDEF) {
      continue;  // already reported that it cannot be opened
    } else if (nodes.contains(l.name) && links.contains(key) && links[key].is_object() &&
               links[key].value("kind", json()) == "external") {
      metadata_.report_finding(n, "link", l.name, verdict::equal, "");  // `export` had the copy of its target, which is compared
    } else if (links.contains(key)) {
      hard_link(l, n, links[key]);
    } else if (tree_.object_at(l.target).type == H5O_TYPE_NAMED_DATATYPE) {
      if (types.contains(key)) named_type(l, n, types[key]);
      else missing(n, "named type", l.name);
    } else if (!nodes.contains(l.name)) {
      lost_links_.push_back({n.path, n.store_path, l.name, l.target});
    }
  }
  for (const auto& [key, note] : links.items()) {
    if (!source_keys.contains(key)) metadata_.report_extra(n, "link", key);
  }
  for (const auto& [key, note] : types.items()) {
    if (!source_keys.contains(key)) metadata_.report_extra(n, "named type", key);
  }
}

void link_comparison::finish() {
  const json empty = json::object();
  for (const lost_link& l : lost_links_) {
    if (tree_.object_at(l.target).in_store) missing({l.path, l.store_path, empty}, "link", l.name);
  }
}

void link_comparison::hard_link(const source_link& l, const node_pair& n, const json& note) {
  const json target = note.is_object() ? note.value("target", json()) : json();
  const bool is_equal = note.is_object() && note.size() == 2 && note.value("kind", json()) == "hard" && target.is_string() &&
                        tree_.address_of(target.get<std::string>()) == l.target;
  if (is_equal) return metadata_.report_finding(n, "link", l.name, verdict::equal, "");
  const std::string path = text::escape_name(tree_.object_at(l.target).path);
  metadata_.report_finding(n, "link", l.name, verdict::differs,
                           "has a different link " + quote_name(l) + ": source hard, to " + path + ", store " +
                               text::sorted_json_text(note).substr(0, 200));
}

void link_comparison::named_type(const source_link& l, const node_pair& n, const json& note) {
  try {
    const hdf5::handle type = tree_.open(l.target);
    if (!type) throw source_error(hdf5_reason());
    const std::string reason = type_difference(type_note(type.get()), note);
    if (reason.empty()) return metadata_.report_finding(n, "named type", l.name, verdict::equal, "");
    metadata_.report_finding(n, "named type", l.name, verdict::differs,
                             "has a different named type " + quote_name(l) + ": " + reason);
  } catch (const source_error& e) {
    metadata_.report_finding(n, "named type", l.name, verdict::unreadable,
                             "has a named type " + quote_name(l) + " that cannot be read from the source: " + e.what());
  }
}

void link_comparison::other_link(hid_t group, const source_link& l, const node_pair& n, const json& links) {
  const auto note = links.find(text::escape_name(l.name));
  if (note == links.end()) return missing(n, "link", l.name);
  try {
    const std::string value = link_value(group, l.name);
    json source;
    if (l.type == H5L_TYPE_SOFT) source = soft_note(value);
    else if (l.type == H5L_TYPE_EXTERNAL) source = external_note(value);
    const bool is_equal = source.is_null() ? is_user_link(*note, l.type, value) : source == *note;
    if (is_equal) return metadata_.report_finding(n, "link", l.name, verdict::equal, "");
    const std::string description =
        source.is_null() ? "of class " + std::to_string(static_cast<int>(l.type)) : text::sorted_json_text(source);
    metadata_.report_finding(n, "link", l.name, verdict::differs,
                             "has a different link " + quote_name(l) + ": source " + description.substr(0, 200) + ", store " +
                                 text::sorted_json_text(*note).substr(0, 200));
  } catch (const zarr::not_supported& e) {
    metadata_.report_finding(n, "link", l.name, verdict::unchecked,
                             "has a link " + quote_name(l) + " that was not compared: this reader does not support " + e.what());
  } catch (const source_error& e) {
    metadata_.report_finding(n, "link", l.name, verdict::unreadable,
                             "has a link " + quote_name(l) + " that cannot be read from the source: " + e.what());
  }
}

void link_comparison::missing(const node_pair& n, const char* kind, const std::string& name) {
  const verdict v = if_missing_(child_path(n.path, name));
  if (v == verdict::equal) return;
  const std::string reason = "has no " + std::string(kind) + " " + format_text(text::escape_name(name)) + " in the store";
  metadata_.report_finding(
      n, kind, name, v, v == verdict::missing ? reason : reason + ", which says (zarrbits.selection) that it was not selected");
}

}  // namespace zarrbits::verification
