// SPDX-License-Identifier: BSL-1.0
#include "inspect/tree_readers.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace zarrbits::inspection {

using json = nlohmann::ordered_json;
using node = inspected_node;

namespace {

// A larger store is reported in part.
constexpr std::size_t max_nodes = 1'000'000;
constexpr std::uint64_t max_files = 20'000'000;
constexpr int max_depth = 500;

std::string text_of(const json& j) { return j.is_string() ? j.get<std::string>() : text::json_text(j); }

json configuration_of(const json& j) {
  return j.is_object() && j.contains("configuration") ? j["configuration"] : json::object();
}

std::string name_in(const json& j) { return j.is_object() && j.contains("name") ? text_of(j["name"]) : text_of(j); }

std::vector<std::uint64_t> extents(const json& list) {
  std::vector<std::uint64_t> out;
  if (!list.is_array()) return out;
  for (const json& n : list) out.push_back(n.is_number_unsigned() ? n.get<std::uint64_t>() : 0);
  return out;
}

// For a rectilinear grid: the longest length along each dimension; some have one length, others a list with lengths and [length,
// count].
std::vector<std::uint64_t> longest_chunk(const json& shapes) {
  std::vector<std::uint64_t> out;
  if (!shapes.is_array()) return out;
  const auto number = [](const json& n) { return n.is_number_unsigned() ? n.get<std::uint64_t>() : 0; };
  for (const json& lengths : shapes) {
    std::uint64_t longest = number(lengths);
    for (const json& length : lengths.is_array() ? lengths : json::array())
      longest = std::max(longest, number(length.is_array() && !length.empty() ? length[0] : length));
    out.push_back(longest);
  }
  return out;
}

std::string type_text(const json& j) {
  const std::string name = name_in(j);
  const json c = configuration_of(j);
  if ((name == "struct" || name == "structured") && c.is_object() && c.contains("fields") && c["fields"].is_array()) {
    std::string s = "{";
    for (const json& f : c["fields"]) {
      const bool pair = f.is_array() && f.size() == 2;  // of the older name
      if (!pair && !(f.is_object() && f.contains("name") && f.contains("data_type"))) return name;
      s += (s.size() > 1 ? ", " : "") + text_of(pair ? f[0] : f["name"]) + ": " + type_text(pair ? f[1] : f["data_type"]);
    }
    return s + "}";
  }
  if (c.is_object() && c.contains("length_bytes")) return name + " of " + text_of(c["length_bytes"]);
  return name;
}

// "bytes, gzip 6"; with the most important number of a codec, if it has one.
std::string codecs_text(const json& codecs, node& n, bool outermost) {
  if (!codecs.is_array()) return text_of(codecs);
  std::string s;
  for (const json& codec : codecs) {
    const std::string name = name_in(codec);
    const json c = configuration_of(codec);
    std::string word = name;
    const auto value = [&](const char* key) { return c.is_object() && c.contains(key) ? text_of(c[key]) : std::string(); };
    if (name == "sharding_indexed") {
      if (outermost) {
        n.shard = n.chunk;
        n.chunk = extents(c.is_object() && c.contains("chunk_shape") ? c["chunk_shape"] : json());
      }
      word = "shards of (" + codecs_text(c.is_object() && c.contains("codecs") ? c["codecs"] : json::array(), n, false) + ")";
    } else if (name == "bytes" && value("endian") == "big") {
      if (outermost || n.type.find("big-endian") == std::string::npos) n.type += " big-endian";
    } else if (name == "gzip" || name == "zstd" || name == "numcodecs.zlib" || name == "numcodecs.bz2") {
      if (!value("level").empty()) word += " " + value("level");
    } else if (name == "blosc") {
      word = "blosc " + value("cname") + " " + value("clevel") +
             (value("shuffle").empty() || value("shuffle") == "noshuffle" ? "" : " " + value("shuffle"));
    } else if (name == "packbits" && !value("last_bit").empty() && value("last_bit") != "null") {
      word +=
          " " + (value("first_bit").empty() || value("first_bit") == "null" ? "0" : value("first_bit")) + "-" + value("last_bit");
    }
    s += (s.empty() ? "" : ", ") + word;
  }
  return s;
}

class store_walk {
 public:
  store_walk(const zarr::store_folder& store, const inspect_options& options)
      : root_(store), progress_(options.progress), attributes_(options.attributes) {
    tree_.name = store.name();
    tree_.format = store.is_v2() ? "Zarr v2" : "Zarr v3";
  }

  inspected_tree run(const std::string& object) {
    const zarr::store_folder top = zarr::node_at(root_, object);
    tree_.top = top.path().empty() ? "/" : text::join_path("/", text::escape_name(top.path()));
    visit(top, tree_.top, 0);
    return std::move(tree_);
  }

 private:
  void visit(const zarr::store_folder& folder, const std::string& path, int depth) {
    if (progress_) progress_(path);
    const std::size_t index = tree_.nodes.size();
    tree_.nodes.emplace_back();
    node n;
    n.path = path;
    const auto metadata = describe(folder, n);
    std::vector<zarr::store_folder> children;
    scan(folder, n, children, depth);
    tree_.nodes[index] = std::move(n);
    std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.path() < b.path(); });
    for (const zarr::store_folder& child : children) {
      if (depth >= max_depth || tree_.nodes.size() >= max_nodes) {
        tree_.incomplete = depth >= max_depth ? "groups deeper than " + std::to_string(max_depth) + " are left out"
                                              : "more than " + std::to_string(max_nodes) + " nodes";
        return;
      }
      visit(child, text::join_path(path, text::escape_name(zarr::name_in_source(metadata, child.leaf_name()))), depth + 1);
    }
  }

  // Returns the zarr.json.
  nlohmann::json describe(const zarr::store_folder& folder, node& n) const {
    nlohmann::json document;
    try {
      document = zarr::read_node(folder);
      const json j = document;
      const std::string kind = j.contains("node_type") ? text_of(j["node_type"]) : "";
      if (j.contains("attributes") && j["attributes"].is_object()) {
        n.attributes = j["attributes"].size();
        if (attributes_ && n.attributes > 0) n.attribute_values = text::json_text(j["attributes"]);
      }
      if (j.value("zarr_format", json()) != 3 || (kind != "group" && kind != "array"))
        throw zarr::store_error("its zarr.json is not a Zarr v3 node");
      n.kind = kind;
      if (kind == "group") return document;
      for (const char* key : {"shape", "data_type", "chunk_grid", "codecs"}) {
        if (!j.contains(key)) throw zarr::store_error(std::string("its zarr.json has no \"") + key + "\"");
      }
      n.shape = extents(j["shape"]);
      n.type = type_text(j["data_type"]);
      const json grid = configuration_of(j["chunk_grid"]);
      if (grid.is_object() && grid.contains("chunk_shape")) n.chunk = extents(grid["chunk_shape"]);
      const bool rectilinear = name_in(j["chunk_grid"]) == "rectilinear";
      if (rectilinear && grid.is_object() && grid.contains("chunk_shapes")) n.chunk = longest_chunk(grid["chunk_shapes"]);
      n.codecs = codecs_text(j["codecs"], n, true);
      json details = {{"data_type", j["data_type"]}, {"codecs", j["codecs"]}};
      n.rectilinear = rectilinear;
      if (rectilinear) details["chunk_grid"] = j["chunk_grid"];
      n.dimension_names = zarr::dimension_names_in(j);
      if (j.contains("fill_value")) n.fill_value = text::json_text(j["fill_value"]);
      n.details = text::json_text(details);
    } catch (const std::exception& e) {
      n.kind = "unreadable";
      n.note = e.what();
    }
    return document;
  }

  // Counts objects of the node itself; returns folders that are nodes in `children`.
  void scan(const zarr::store_folder& folder, node& n, std::vector<zarr::store_folder>& children, int depth) {
    try {
      folder.list([&](const zarr::store_entry& e) {
        if (!e.is_folder) {
          count(e, n, e.name != "zarr.json" && n.kind == "array");
        } else if (!e.is_link) {
          std::optional<zarr::store_folder> child;
          if (n.kind != "array") child = folder.node(e);
          else if ((folder / e.name).open("zarr.json")) child = folder / e.name;
          if (child) children.push_back(std::move(*child));
          else if (depth < max_depth) scan_chunks(folder / e.name, n, depth);
        }
        return true;
      });
    } catch (const zarr::store_error& e) {
      n.note = e.what();
    }
  }

  void scan_chunks(const zarr::store_folder& folder, node& n, int depth) {
    folder.list([&](const zarr::store_entry& e) {
      if (tree_.files >= max_files) {
        tree_.incomplete = "more than " + std::to_string(max_files) + " files";
        return false;
      }
      if (!e.is_folder) count(e, n, n.kind == "array");
      else if (!e.is_link && depth < max_depth) scan_chunks(folder / e.name, n, depth + 1);
      return true;
    });
  }

  void count(const zarr::store_entry& object, node& n, bool chunk) {
    if (object.is_link || !object.is_readable) return;
    ++tree_.files;
    tree_.bytes += object.size;
    if (!chunk) return;
    ++n.objects;
    n.stored_bytes += object.size;
  }

  zarr::store_folder root_;
  const std::function<void(const std::string&)>& progress_;
  bool attributes_;
  inspected_tree tree_;
};

}  // namespace

inspected_tree read_zarr(const zarr::store_folder& store, const std::string& object, const inspect_options& options) {
  return store_walk(store, options).run(object);
}

}  // namespace zarrbits::inspection
