// SPDX-License-Identifier: BSL-1.0
//
// zarrbits plan: what convert would do.
//
#include "command/child_process.hpp"
#include "command/combined_source.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/convert_arguments.hpp"
#include "command/progress.hpp"
#include "command/report_file.hpp"
#include "command/summary.hpp"
#include "command/terminal.hpp"
#include "io/store_kind.hpp"
#include "text/format.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <iostream>
#include <limits>
#include <string>
#include <unistd.h>
#include <vector>

namespace zarrbits::command {

namespace {

using text::format_bytes;

// Where the other grid would copy more, or this one does.
void print_grids(const std::vector<planned_dataset>& datasets) {
  using choice = planned_dataset::grid_choice;
  const auto text = [](const choice::count& c) { return std::to_string(c.copied) + " of " + text::pluralize(c.chunks, "chunk"); };
  bool suggested = false;
  for (const planned_dataset& d : datasets) {
    if (!d.grids) continue;
    const choice& g = *d.grids;
    std::cout << quote(d.path) << ": a regular grid keeps " << text(g.regular) << ", a rectilinear grid " << text(g.rectilinear)
              << '\n';
    suggested = suggested || g.suggested != g.used;
  }
  if (suggested) std::cout << "--grid rectilinear would more than halve what is encoded again\n";
}

// What arrays without compression would save with one, which is for the user to decide.
void print_compression(const std::vector<planned_dataset>& datasets) {
  std::vector<const planned_dataset*> candidates;
  for (const planned_dataset& d : datasets) {
    if (d.compressed) candidates.push_back(&d);
  }
  if (candidates.empty()) return;
  const auto saved = [](const planned_dataset* d) { return d->store_bytes - d->compressed->store_bytes; };
  std::stable_sort(candidates.begin(), candidates.end(), [&](const auto* a, const auto* b) { return saved(a) > saved(b); });
  constexpr std::size_t max_names = 3;
  std::uint64_t total_bytes = 0, saved_bytes = 0;
  std::string names;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    total_bytes += candidates[i]->store_bytes;
    saved_bytes += saved(candidates[i]);
    if (i < max_names) names += (i == 0 ? "" : ", ") + quote(candidates[i]->path);
  }
  if (candidates.size() > max_names) names += " and " + std::to_string(candidates.size() - max_names) + " more";
  std::cout << "--compress " << candidates[0]->compressed->compress << " would save about " << format_bytes(saved_bytes) << " of "
            << format_bytes(total_bytes) << ", by a sample of the values of " << names << '\n';
}

void print(const convert_plan& p) {
  text_table table({{"dataset", text_table::left, 12, true, colour::plain},
                    {"outcome"},
                    {"objects", text_table::right},
                    {"in source", text_table::right},
                    {"about", text_table::right},
                    {"in store", text_table::right},
                    {"units", text_table::right},
                    {"how", text_table::left, 6}});
  std::uint64_t objects = p.groups, source = 0, store = 0;
  bool bound = false;
  for (const planned_dataset& d : p.datasets) {
    objects += d.objects;
    source += d.source_bytes;
    store += d.store_bytes;
    const bool is_bound = d.outcome != outcome::raw && d.store_bytes > 0;
    bound = bound || is_bound;
    table.add({d.path, to_string(d.outcome), std::to_string(d.objects), format_bytes(d.source_bytes),
               d.estimated_bytes ? format_bytes(*d.estimated_bytes) : "", (is_bound ? "<= " : "") + format_bytes(d.store_bytes),
               std::to_string(d.units.size()), d.how});
  }
  std::cout << table.text(describe_terminal(STDOUT_FILENO));
  print_grids(p.datasets);
  print_compression(p.datasets);
  if (p.convention != convention::none) std::cout << "convention " << to_string(p.convention) << '\n';
  for (const joined_source& s : p.sources) {
    if (s.left_out) std::cout << "left out " << quote(s.file) << ": " << printable(with_flags(s.notes.front())) << '\n';
  }
  std::cout << notes_text(p.sources, true, std::numeric_limits<std::size_t>::max());
  std::cout << links_line(p.links);
  for (const std::string& file : p.other_files) std::cout << "reads also " << quote(file) << '\n';
  for (const auto& refused : p.refused_files) std::cout << "not read: " << printable(refused.reason) << '\n';
  std::cout << objects << " files or objects at most, " << format_bytes(source) << " to " << (bound ? "at most " : "")
            << format_bytes(store) << '\n';
  if (p.estimated_bytes)
    std::cout << "about " << format_bytes(*p.estimated_bytes) << " with metadata, by samples of the values\n";
  if (p.seconds) std::cout << "about " << duration_text(*p.seconds) << " to read and encode it here, without the time to write\n";
}

// A file takes whole blocks of the file system: half a block more than its bytes, on average.
void warn_of_space(const convert_plan& p, const std::string& store) {
  constexpr std::uint64_t half_block = 2048;
  if (!p.free_bytes || !p.estimated_bytes) return;
  std::uint64_t files = p.groups;
  for (const planned_dataset& d : p.datasets) files += d.objects;
  const std::uint64_t bytes = *p.estimated_bytes + (io::kind_of_target(store) == io::store_kind::zip ? 0 : half_block * files);
  if (bytes > *p.free_bytes)
    print_error("note: the store needs about " + format_bytes(bytes) + ", and the file system of " + quote(store) + " has " +
                format_bytes(*p.free_bytes) + " free; use another place, or a stronger --compress");
}

}  // namespace

int plan_main(int argc, char** argv) {
  if (is_repack(argc, argv)) return plan_repack_main(argc, argv);
  convert_arguments arguments;
  if (const auto over = parse_convert_arguments(arguments, convert_kind::plan, argc, argv)) return *over;
  combined_source combined(arguments.combination);
  return run_in_subprocess(
      arguments.options.source.name,
      [&](const auto& set_current) {
    convert_options& options = arguments.options;
    combined.replace(options.source.name, options.source.concat, options.target.base, options.source.external, options.remote,
                     options.source.lock, true, set_current);
    combined.choose_dimension(options);
    arguments.options.execution.progress = [&](const convert_progress& p) {
      set_current(p.path.empty() ? "/" : std::string(p.path));
    };
    const convert_plan p = plan(arguments.options, {.time = arguments.measures_time});
    set_current("");
    if (arguments.measures_time && !p.seconds)
      print_error("note: --time has no result: only chunks of HDF5 files on this machine are converted for it");
    warn_of_space(p, arguments.options.target.name);
    if (!arguments.report.empty()) write_report(arguments.report, p.json());
    if (arguments.print_json) std::cout << printable_json(p.json());
    else print(p);
    std::cout.flush();
    const bool is_complete = std::none_of(p.datasets.begin(), p.datasets.end(),
                                          [](const planned_dataset& d) { return d.outcome == outcome::skipped; }) &&
                             std::none_of(p.sources.begin(), p.sources.end(), [](const joined_source& s) { return s.left_out; });
    return static_cast<int>((is_complete && p.refused_files.empty()) || arguments.allow_lossy ? exit_success : exit_loss);
      },
      [&](bool) { combined.remove(); });
}

}  // namespace zarrbits::command
