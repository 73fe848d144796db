// SPDX-License-Identifier: BSL-1.0
#include "command/summary.hpp"

#include "command/command_line.hpp"
#include "command/progress.hpp"
#include "command/terminal.hpp"
#include "text/format.hpp"
#include "zarr/read/store_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace zarrbits::command {

namespace {

using text::format_bytes;
using text::pluralize;

std::string name_of(const converted_object& o) {
  return std::string(to_string(o.kind)) + " " + quote(o.path) + (o.attribute.empty() ? "" : " attribute " + quote(o.attribute));
}

constexpr std::size_t max_notes = 20;  // in a summary

std::string ratio_text(std::uint64_t store, std::uint64_t source) {
  if (source == 0) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(store) / static_cast<double>(source));
  return text;
}

}  // namespace

std::string links_line(const link_counts& links) {
  std::string line;
  const auto add = [&](std::uint64_t n, const char* description) {
    if (n > 0) line += (line.empty() ? "links: " : ", ") + std::to_string(n) + description;
  };
  add(links.copied, " copied");
  add(links.kept, " kept as notes");
  add(links.lost, " whose targets cannot be copied");
  return line.empty() ? "" : line + '\n';
}

std::string notes_text(const std::vector<joined_source>& sources, bool with_minor, std::size_t max_lines) {
  std::string text;
  std::size_t lines = 0, omitted = 0;
  for (const bool minor : {false, true}) {
    if (minor && !with_minor) break;
    struct shared_note {
      std::string file, note;
      std::size_t files = 0;
    };
    std::vector<shared_note> notes;
    std::map<std::string, std::size_t> positions;
    for (const joined_source& s : sources) {
      if (s.left_out) continue;
      const std::size_t major = s.notes.size() - s.minor_notes;
      for (std::size_t i = minor ? major : 0; i < (minor ? s.notes.size() : major); ++i) {
        const auto [entry, is_new] = positions.emplace(s.notes[i], notes.size());
        if (is_new) notes.push_back({s.file, s.notes[i]});
        ++notes[entry->second].files;
      }
    }
    for (const shared_note& n : notes) {
      if (++lines > max_lines) {
        ++omitted;
        continue;
      }
      text += quote(n.file) + (n.files > 1 ? " and " + pluralize(n.files - 1, "file") + " more" : std::string()) + ": " +
              printable(with_flags(n.note)) + '\n';
    }
  }
  if (omitted > 0) text += "and " + pluralize(omitted, "note") + " more\n";
  return text;
}

void print_losses(const convert_result& r) {
  for (const converted_object& o : r.objects) {
    if (!o.selected) continue;
    if (o.outcome == outcome::skipped) print_error("skipped " + name_of(o) + ": " + o.reason);
    else if (o.lossy) print_error("lossy " + name_of(o) + ": " + o.reason);
  }
  print_left_out(r.sources);
}

void print_left_out(const std::vector<joined_source>& sources) {
  for (const joined_source& s : sources) {
    if (s.left_out) print_error("left out " + quote(s.file) + ": " + s.notes.front());
  }
}

std::string joined_text(const std::vector<joined_source>& sources, const char* kind) {
  if (sources.empty()) return "";
  std::uint64_t notes = 0, joined = 0, fresh = 0;
  for (const joined_source& s : sources) {
    if (s.left_out) continue;
    ++joined;
    notes += s.notes.size();
    fresh += s.bytes > 0;
  }
  const std::uint64_t left_out = sources.size() - joined;
  return pluralize(joined, kind) + (fresh < joined ? ", " + std::to_string(fresh) + " of them new," : "") + " joined" +
         (left_out > 0 ? ", " + std::to_string(left_out) + " left out" : "") +
         (notes > 0 ? ", with " + pluralize(notes, "note") + " on them: see --report or --json" : "") + "\n" +
         notes_text(sources, false, max_notes);
}

void print_summary(const convert_result& r) {
  struct sums {
    std::uint64_t objects = 0, source = 0, store = 0;
    void add(const converted_object& o) {
      ++objects;
      source += o.source_bytes;
      store += o.store_bytes;
    }
  };
  sums rows[5], unselected, lossy, total;
  for (const converted_object& o : r.objects) {
    (o.selected ? rows[static_cast<std::size_t>(o.outcome)] : unselected).add(o);
    if (o.lossy) lossy.add(o);
    if (o.selected) total.add(o);
  }
  const terminal screen = describe_terminal(STDERR_FILENO);
  text_table table({{"outcome"},
                    {"objects", text_table::right},
                    {"in source", text_table::right},
                    {"in store", text_table::right},
                    {"ratio", text_table::right}});
  const auto add = [&](const char* name, const sums& s, colour paint) {
    if (s.objects > 0)
      table.add({name, std::to_string(s.objects), format_bytes(s.source), format_bytes(s.store), ratio_text(s.store, s.source)},
                paint);
  };
  for (const auto o : {outcome::raw, outcome::rewrapped, outcome::recoded, outcome::mapped, outcome::skipped}) {
    add(to_string(o), rows[static_cast<std::size_t>(o)], o == outcome::skipped ? colour::red : colour::plain);
  }
  add("all", total, colour::bold);
  if (lossy.objects > 0) table.add({"of them lossy", std::to_string(lossy.objects)}, colour::yellow);
  if (unselected.objects > 0) table.add({"not selected", std::to_string(unselected.objects)}, colour::dim);
  const bool is_known =
      std::all_of(r.sources.begin(), r.sources.end(), [](const joined_source& s) { return !s.left_out && s.bytes == 0; });
  if (!r.sources.empty() && is_known && r.store_objects == 0) {
    print_status((r.sources.size() == 1 ? "the file is" : "all " + pluralize(r.sources.size(), "file") + " are") +
                 std::string(" in ") + quote(r.store) + " already: nothing was appended");
    return;
  }
  if (logs_json()) {
    write_log_line("info", {{"message", "done"},
                            {"source_bytes", r.source_bytes},
                            {"files", r.store_objects},
                            {"bytes", r.store_bytes},
                            {"seconds", r.seconds}});
    return;
  }
  const std::uint64_t size = r.source_bytes;
  std::string last = format_bytes(size);
  if (r.referenced_objects > 0) {
    last += ", of which " + format_bytes(r.referenced_bytes) + " in " + pluralize(r.referenced_objects, "chunk") +
            " are referred to; the references have " + format_bytes(r.store_bytes) + " in " + pluralize(r.store_objects, "file");
  } else {
    last += " to " + format_bytes(r.store_bytes) + " in " + pluralize(r.store_objects, "file");
    if (size > 0 && unselected.objects == 0) last += " (ratio " + ratio_text(r.store_bytes, size) + ")";
  }
  last += ", " + duration_text(r.seconds);
  if (r.seconds > 0)
    last += ", " + format_bytes(static_cast<std::uint64_t>(static_cast<double>(total.source) / r.seconds)) + "/s";
  last = joined_text(r.sources, zarr::is_store_name(r.source) ? "store" : "file") + last;
  if (r.convention != convention::none)
    last = std::string("convention ") + to_string(r.convention) + ", as the file says; --convention none has it as HDF5 does\n" +
           last;
  const std::string text = table.text(screen) + links_line(r.links) + last + '\n';
  std::fputs(text.c_str(), stderr);
}

}  // namespace zarrbits::command
