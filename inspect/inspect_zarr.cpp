// SPDX-License-Identifier: BSL-1.0
#include "inspect/tree_readers.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/named_configuration.hpp"
#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace zarrbits::inspection {

using json = nlohmann::ordered_json;
using metadata::codec_id;
using node = inspected_node;

namespace {

// A larger store is reported in part.
constexpr std::size_t max_nodes = 1'000'000;
constexpr std::uint64_t max_files = 20'000'000;
constexpr int max_depth = 500;

std::string text_of(const json& j) { return j.is_string() ? j.get<std::string>() : text::json_text(j); }

// An extension's, whatever it is.
std::string name_in(const json& j) {
  return metadata::member(j, "name").is_null() ? text_of(j) : text_of(metadata::member(j, "name"));
}

std::vector<std::uint64_t> extents(const json& list) {
  std::vector<std::uint64_t> out;
  if (!list.is_array()) return out;
  for (const json& n : list) out.push_back(n.is_number_unsigned() ? n.get<std::uint64_t>() : 0);
  return out;
}

std::string type_text(const json& j) {
  const std::string name = name_in(j);
  const auto fields = metadata::struct_fields(j);
  if ((name == "struct" || name == "structured") && !fields.empty()) {
    std::string s = "{";
    for (const auto& f : fields) {
      if (f.name.is_null() || f.data_type.is_null()) return name;
      s += (s.size() > 1 ? ", " : "") + text_of(f.name) + ": " + type_text(f.data_type);
    }
    return s + "}";
  }
  const json& length = metadata::length_bytes(j);
  return length.is_null() ? name : name + " of " + text_of(length);
}

// "bytes, gzip 6"; with the most important number of a codec, if it has one.
std::string codecs_text(const json& codecs, node& n, bool outermost) {
  if (!codecs.is_array()) return text_of(codecs);
  std::string s;
  for (const json& codec : codecs) {
    const std::string name = name_in(codec);
    const json c = metadata::configuration_of(codec);
    std::string word = name;
    const auto value = [&](const char* key) { return c.contains(key) ? text_of(c[key]) : std::string(); };
    switch (metadata::codec_id_of(name)) {
      case codec_id::sharding: {
        if (outermost) {
          n.shard = n.chunk;
          n.chunk = extents(metadata::inner_chunk_shape(codec));
        }
        const json& inner = metadata::codecs_in_shards(codec);
        word = "shards of (" + (inner.is_null() ? "" : codecs_text(inner, n, false)) + ")";
        break;
      }
      case codec_id::bytes:
        if (value("endian") == "big" && (outermost || n.type.find("big-endian") == std::string::npos)) n.type += " big-endian";
        break;
      case codec_id::gzip:
      case codec_id::zstd:
      case codec_id::zlib:
      case codec_id::bz2:
        if (!value("level").empty()) word += " " + value("level");
        break;
      case codec_id::blosc:
        word += " " + value("cname") + " " + value("clevel");
        if (!value("shuffle").empty() && value("shuffle") != "noshuffle") word += " " + value("shuffle");
        break;
      case codec_id::packbits:
        if (!value("last_bit").empty() && value("last_bit") != "null")
          word += " " + (value("first_bit").empty() || value("first_bit") == "null" ? "0" : value("first_bit")) + "-" +
                  value("last_bit");
        break;
      default: break;
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
      const metadata::node_kind kind = metadata::kind_of(j);
      if (const json& attributes = metadata::attributes_of(j); attributes.is_object()) {
        n.attributes = attributes.size();
        if (attributes_ && n.attributes > 0) n.attribute_values = text::json_text(attributes);
      }
      if (!metadata::is_v3(j) || kind == metadata::node_kind::none)
        throw zarr::store_error("its zarr.json is not a Zarr v3 node");
      n.kind = kind == metadata::node_kind::group ? "group" : "array";
      if (kind == metadata::node_kind::group) return document;
      if (const std::string missing = metadata::missing_member(j); !missing.empty())
        throw zarr::store_error("its zarr.json has no \"" + missing + "\"");
      const json &data_type = metadata::data_type_of(j), &codecs = metadata::codecs_of(j);
      n.shape = extents(metadata::shape_of(j));
      n.type = type_text(data_type);
      n.chunk = metadata::longest_chunk(j);
      n.codecs = codecs_text(codecs, n, true);
      json details = {{"data_type", data_type}, {"codecs", codecs}};
      n.rectilinear = metadata::is_rectilinear(j);
      if (n.rectilinear) details["chunk_grid"] = metadata::chunk_grid_of(j);
      n.dimension_names = metadata::dimension_names_in(j);
      if (const json& fill = metadata::fill_value_of(j); !fill.is_null()) n.fill_value = text::json_text(fill);
      n.details = text::json_text(details);
    } catch (const zarr::store_error& e) {
      mark_unreadable(n, e.reason, e);
    } catch (const zarr::not_supported& e) {
      mark_unreadable(n, e.code, e);
    } catch (const std::exception& e) {
      mark_unreadable(n, reason_code::damaged, e);
    }
    return document;
  }

  static void mark_unreadable(node& n, reason_code code, const std::exception& e) {
    n.kind = "unreadable";
    n.note = e.what();
    n.code = code;
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
      n.code = e.reason;
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
