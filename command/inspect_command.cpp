// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits inspect`: the trees of inspect.hpp as a table, alone or side by side, or as JSON.
//
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/option_parsers.hpp"
#include "command/remote_options.hpp"
#include "command/terminal.hpp"
#include "command/unfinished_text.hpp"
#include "command/wrapped_text.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/reserved_names.hpp"

#include <zarrbits/inspect.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <unistd.h>

namespace zarrbits::command {
namespace {

using text::format_bytes;
using json = nlohmann::ordered_json;
using node = inspected_node;
using tree = inspected_tree;

const char inspect_footer[] =
    "The column of stored bytes counts the chunks as they are in the file or the store, without metadata. Fill values of 0 are "
    "not shown. With two trees, a cell with an arrow has the first's value, then the second's; a cell without an arrow is the "
    "same "
    "in both; \"-\" means that one has no value.\n\n"
    "Examples:\n"
    "  zarrbits inspect in.h5\n"
    "  zarrbits inspect in.h5:/group out.zarr\n"
    "  zarrbits inspect out.zip\n"
    "  zarrbits inspect --json out.zarr | python3 -m json.tool\n\n"
    "Exit status: 0 all could be read, 1 failure, 2 wrong usage, 3 something in it cannot be read, or a store is unfinished.";

std::string extent_text(const std::vector<std::uint64_t>& extent) {
  std::string s;
  for (const std::uint64_t n : extent) s += (s.empty() ? "" : "x") + std::to_string(n);
  return s.empty() ? "scalar" : s;
}

struct cells {
  std::string shape, dimensions, type, fill, chunks, codecs, stored, count;
};

// The converter's names of nameless dimensions say nothing.
std::string dimension_text(const std::string& name) { return name.empty() || name.starts_with(text::phony_prefix) ? "-" : name; }

cells cells_of(const node& n) {
  cells c;
  if (n.kind != "array") {
    c.type = n.kind == "link" || n.kind == "unreadable" ? "" : n.kind == "datatype" ? "type " + n.type : "";
    if (!n.note.empty()) c.codecs = n.kind == "link" ? n.type + " to " + n.note : n.note;
    return c;
  }
  c.shape = n.shape ? extent_text(*n.shape) : "null";
  for (const std::string& name : n.dimension_names) c.dimensions += (c.dimensions.empty() ? "" : ", ") + dimension_text(name);
  if (c.dimensions.find_first_not_of("-, ") == std::string::npos) c.dimensions.clear();
  if (n.fill_value != "0" && n.fill_value != "0.0" && n.fill_value != "false" && n.fill_value != "\"\"") c.fill = n.fill_value;
  c.type = n.type;
  c.chunks = !n.layout.empty() ? n.layout : n.chunk.empty() ? "" : extent_text(n.chunk);
  if (n.rectilinear) c.chunks = "up to " + c.chunks;
  if (!n.shard.empty()) c.chunks += " in " + extent_text(n.shard);
  c.codecs = n.codecs + (n.note.empty() ? "" : " " + n.note);
  if (n.unpacked.value_or(0) > 0) c.codecs += " (" + text::pluralize(*n.unpacked, "chunk") + " unpacked)";
  c.stored = format_bytes(n.stored_bytes);
  c.count = std::to_string(n.objects);
  return c;
}

// "/a/b" below "/": two spaces for each group above, and the last name.
std::string indent_name(const std::string& path, const std::string& top) {
  if (path == top) return top;
  const std::string relative_path = top == "/" ? path : path.substr(top.size());
  const auto depth = static_cast<std::size_t>(std::count(relative_path.begin(), relative_path.end(), '/'));
  return std::string(2 * depth, ' ') + relative_path.substr(relative_path.rfind('/') + 1);
}

text_table::column name_column() { return {"name", text_table::left, 12, true, colour::plain}; }

colour paint_of(const node& n) {
  return n.kind == "group"        ? colour::blue
         : n.kind == "unreadable" ? colour::red
         : n.kind == "array"      ? colour::plain
                                  : colour::dim;
}

void print_heading(const tree& t, const terminal& screen) {
  std::uint64_t arrays = 0, groups = 0;
  for (const node& n : t.nodes) {
    arrays += n.kind == "array";
    groups += n.kind == "group";
  }
  std::cout << coloured(screen, colour::bold, printable(t.name)) << "  " << t.format << ", " << format_bytes(t.bytes) << " in "
            << text::pluralize(t.files, "file") << ", " << text::pluralize(arrays, "array") << ", "
            << text::pluralize(groups, "group") << '\n';
}

void print_one(const tree& t, const terminal& screen) {
  const bool zarr = t.format != "HDF5";
  text_table table({name_column(),
                    {"shape", text_table::left, 6},
                    {"dimensions", text_table::left, 8},
                    {"type", text_table::left, 8},
                    {"fill", text_table::left, 6},
                    {"chunks", text_table::left, 6},
                    {zarr ? "codecs" : "filters", text_table::left, 12},
                    {"stored", text_table::right},
                    {zarr ? "files" : "chunks", text_table::right}});
  for (const node& n : t.nodes) {
    const cells c = cells_of(n);
    table.add({indent_name(n.path, t.top), c.shape, c.dimensions, c.type, c.fill, c.chunks, c.codecs, c.stored, c.count},
              paint_of(n));
  }
  print_heading(t, screen);
  std::cout << table.text(screen);
}

void print_attributes(const tree& t, const terminal& screen) {
  for (const node& n : t.nodes) {
    if (n.attribute_values.empty()) continue;
    std::cout << '\n' << coloured(screen, colour::bold, printable(n.path)) << '\n';
    const json values = text::parse_untrusted_json(n.attribute_values);
    for (const auto& [name, value] : values.items()) print_wrapped("  " + name + ": " + text::json_text(value));
  }
}

std::string format_change(const std::string& a, const std::string& b) {
  if (a == b) return a;
  return (a.empty() ? "-" : a) + " → " + (b.empty() ? "-" : b);
}

void print_comparison(const tree& a, const tree& b, const terminal& screen) {
  const auto relative_path = [](const std::string& path, const std::string& top) {
    return top == "/" ? path : path == top ? "/" : path.substr(top.size());
  };
  std::map<std::string, const node*> second;
  for (const node& n : b.nodes) second.emplace(relative_path(n.path, b.top), &n);
  text_table table({name_column(),
                    {"shape", text_table::left, 6},
                    {"dimensions", text_table::left, 8},
                    {"type", text_table::left, 7},
                    {"chunks", text_table::left, 7},
                    {"stored as", text_table::left, 12},
                    {"stored", text_table::right},
                    {"ratio", text_table::right}});
  const node empty_node;
  const auto row = [&](const node& x, const node& y, const std::string& path) {
    const cells p = cells_of(x), q = cells_of(y);
    const bool arrays = x.kind == "array" && y.kind == "array";
    std::string ratio;
    if (arrays && x.stored_bytes > 0) {
      char text[32];
      std::snprintf(text, sizeof text, "%.2f", static_cast<double>(y.stored_bytes) / static_cast<double>(x.stored_bytes));
      ratio = text;
    }
    const bool in_both = !x.kind.empty() && !y.kind.empty();
    const auto cell = [&](const std::string& l, const std::string& r) {
      return in_both || !(l.empty() && r.empty()) ? format_change(l, r) : std::string();
    };
    std::string stored_as = cell(p.codecs, q.codecs);
    if (!in_both && x.kind != "array" && y.kind != "array")
      stored_as = x.kind.empty() ? "- → " + y.kind : (p.codecs.empty() ? x.kind : p.codecs) + " → -";
    table.add({indent_name(path, "/"), cell(p.shape, q.shape), cell(p.dimensions, q.dimensions), cell(p.type, q.type),
               cell(p.chunks, q.chunks), stored_as, cell(p.stored, q.stored), ratio},
              !in_both && x.kind != "link" && y.kind != "link" ? colour::yellow
                                                               : paint_of(in_both          ? y
                                                                          : x.kind.empty() ? y
                                                                                           : x));
  };
  // below each group, the nodes of the first, in its order, then those only in the second
  std::map<std::string, const node*> first;
  std::map<std::string, std::vector<std::string>> children;
  const auto add_child = [&](const std::string& path) {
    if (path != "/") children[path.substr(0, std::max<std::size_t>(1, path.rfind('/')))].push_back(path);
  };
  for (const node& n : a.nodes) {
    if (first.emplace(relative_path(n.path, a.top), &n).second) add_child(relative_path(n.path, a.top));
  }
  for (const node& n : b.nodes) {
    if (!first.contains(relative_path(n.path, b.top))) add_child(relative_path(n.path, b.top));
  }
  for (std::vector<std::string> todo{"/"}; !todo.empty();) {
    const std::string path = todo.back();
    todo.pop_back();
    const auto one = first.find(path), second_node = second.find(path);
    row(one == first.end() ? empty_node : *one->second, second_node == second.end() ? empty_node : *second_node->second, path);
    const auto below_it = children.find(path);
    if (below_it != children.end()) todo.insert(todo.end(), below_it->second.rbegin(), below_it->second.rend());
  }
  print_heading(a, screen);
  print_heading(b, screen);
  std::cout << table.text(screen);
}

json to_json(const tree& t) {
  json nodes = json::array();
  for (const node& n : t.nodes) {
    json j = {{"path", n.path}, {"kind", n.kind}};
    if (n.kind == "array") {
      j["shape"] = n.shape ? json(*n.shape) : json(nullptr);
      j["type"] = n.type;
      if (!n.layout.empty()) j["layout"] = n.layout;
      if (!n.chunk.empty()) j["chunk_shape"] = n.chunk;
      if (!n.shard.empty()) j["shard_shape"] = n.shard;
      j["stored_bytes"] = n.stored_bytes;
      j[t.format == "HDF5" ? "chunks" : "files"] = n.objects;
      if (n.unpacked) j["unpacked_chunks"] = *n.unpacked;
    } else if (!n.type.empty()) {
      j["type"] = n.type;
    }
    if (!n.dimension_names.empty()) j["dimension_names"] = n.dimension_names;
    if (!n.fill_value.empty()) j["fill_value"] = json::parse(n.fill_value);
    if (n.attributes) j["attributes"] = n.attributes;
    if (!n.attribute_values.empty()) j["attribute_values"] = text::parse_untrusted_json(n.attribute_values);
    if (!n.note.empty()) j[n.kind == "link" ? "target" : "reason"] = n.note;
    if (n.code != reason_code::none) j["code"] = to_string(n.code);
    if (!n.details.empty()) j.update(json::parse(n.details));
    nodes.push_back(std::move(j));
  }
  json j = {{"name", t.name}, {"format", t.format}, {"bytes", t.bytes}, {"files", t.files}};
  if (!t.incomplete.empty()) j["incomplete"] = t.incomplete;
  j["nodes"] = std::move(nodes);
  return j;
}

bool is_complete(const tree& t) {
  return t.incomplete.empty() && std::none_of(t.nodes.begin(), t.nodes.end(), [](const node& n) {
           return n.kind == "unreadable" || (!n.note.empty() && n.kind != "link");
         });
}

}  // namespace

int inspect_main(int argc, char** argv) {
  CLI::App app(
      "Shows what is in an HDF5 file or a Zarr v3 store: groups, arrays with shape, type, chunks, codecs and sizes; or both, "
      "side by side.",
      "zarrbits inspect");
  app.footer(inspect_footer);
  std::string first, second;
  remote_access remote;
  bool as_json = false, attributes = false;
  app.add_option(
         "FILE", first,
         "An HDF5 file, one of its objects (in.h5:/a/b), or a Zarr v3 store (a directory, a .zip file, s3://BUCKET/PREFIX)")
      ->required()
      ->type_name("FILE|STORE");
  app.add_option("OTHER", second, "Another, shown side by side")->type_name("FILE|STORE");
  app.add_flag("--attributes", attributes, "Also show the values of all attributes");
  app.add_flag("--json", as_json, "Print one JSON object instead of a table");
  add_remote_options(app, remote, "Servers");
  std::string memory;
  app.add_option("--memory", memory, "Limit the memory for the references of a store, such as 512M (the default)")
      ->type_name("BYTES");
  bool lock = true;
  add_no_lock_option(app, lock);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  check_remote_options(remote);
  const std::uint64_t max_memory = memory.empty() ? inspect_options().memory : parse_bytes("--memory", memory);

  return run_in_subprocess(first, [&](const auto& at_hand) {
    std::vector<tree> trees;
    std::vector<std::pair<std::string, unfinished_store>> unfinished;
    for (const std::string& name : {first, second}) {
      if (name.empty()) continue;
      if (auto begun = find_unfinished(name, remote)) {
        unfinished.emplace_back(name, std::move(*begun));
        continue;
      }
      trees.push_back(inspect({.name = name,
                               .remote = remote,
                               .lock = lock,
                               .attributes = attributes,
                               .memory = max_memory,
                               .progress = at_hand,
                               .warning = [](const std::string& sentence) { print_error("warning: " + sentence); }}));
    }
    at_hand("");
    if (as_json) {
      json j = {{"version", 1}, {"trees", json::array()}};
      for (const tree& t : trees) j["trees"].push_back(to_json(t));
      for (const auto& [name, store] : unfinished) j["unfinished"].push_back(unfinished_json(name, store));
      std::cout << printable_json(text::json_text(j, 1)) << '\n';
    } else {
      const terminal screen = describe_terminal(STDOUT_FILENO);
      for (const auto& [name, store] : unfinished) print_unfinished(name, store);
      if (trees.size() == 1) print_one(trees[0], screen);
      if (trees.size() == 2) print_comparison(trees[0], trees[1], screen);
      for (const tree& t : trees) print_attributes(t, screen);
    }
    int status = unfinished.empty() ? exit_success : exit_loss;
    for (const tree& t : trees) {
      if (!is_complete(t)) status = exit_loss;
      if (!t.incomplete.empty()) print_error("not all of " + quote(t.name) + " is shown: " + t.incomplete);
    }
    return status;
  });
}

}  // namespace zarrbits::command
