// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits doctor`: whether HDF5 finds the plugins, why not, and what they did in a file.
//
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/doctor_plugins.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/wrapped_text.hpp"
#include "text/format.hpp"

#include <zarrbits/inspect.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>
#include <string>

namespace zarrbits::command {
namespace {

using nlohmann::ordered_json;

const char doctor_footer[] =
    "Without a file: searches for filter plugins as HDF5 does, in HDF5_PLUGIN_PATH or HDF5's own folder, lists the folders, and "
    "says what\n"
    "happens to each file. Each file is opened in a process of its own.\n"
    "With a file: also lists its datasets with the filters packbits and bytes of zarrbits, their parameters in words, the chunks "
    "that are\n"
    "unpacked and why, the number of bits that would hold all values, and the bytes saved.\n\n"
    "Examples:\n"
    "  zarrbits doctor\n"
    "  zarrbits doctor camera.h5\n"
    "  HDF5_PLUGIN_PATH=/some/folder zarrbits doctor --json | python3 -m json.tool\n\n"
    "Exit status: 0 all is well, 1 something is at fault or cannot be read, 2 wrong usage.";

std::string group_digits(std::uint64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

std::string product_of(const std::vector<std::uint64_t>& dims) {
  std::string text;
  for (const auto n : dims) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

const char* codec_of(int id) { return id == packbits_id ? "packbits" : "bytes"; }

void print_plugins(const scan& s) {
  print_wrapped(std::string("HDF5 searches for filter plugins in ") +
                (s.from_environment ? "HDF5_PLUGIN_PATH" : "its own folder (HDF5_PLUGIN_PATH is not set)") +
                (s.folders.empty() ? ", which names no folder" : ":"));
  if (s.disabled) print_wrapped("  FAULT: HDF5_PLUGIN_PRELOAD is \"::\", which switches all plugins off; unset it");
  for (const folder& f : s.folders) {
    print_wrapped("  " + printable(f.path));
    if (!f.description.empty()) print_wrapped(std::string("    ") + (f.fault ? "FAULT: " : "") + f.description);
    for (const plugin_file& p : f.files)
      print_wrapped(std::string("    ") + (p.fault ? "FAULT: " : "") + printable(p.name) + ": " + printable(p.description) +
                    (p.serves_netcdf ? "; netCDF's Zarr too" : ""));
    if (f.description.empty() && f.files.empty()) print_wrapped("    no library in it");
  }
  if (s.keys.is_set) {
    print_wrapped("HDF5_PLUGIN_KEYSTORE is " + printable(s.keys.path));
    print_wrapped(std::string("    ") + (s.keys.fault ? "FAULT: " : "") + s.keys.description +
                  (s.keys.fault ? "" : "; whether one fits a signature is not checked here"));
  }
  std::cout << '\n';
  for (const int id : {packbits_id, bytes_id}) {
    const std::string found_by_1_14 = s.find_plugin(id, search::up_to_1_14), found_by_2_0 = s.find_plugin(id, search::from_2_0);
    std::string line = std::string(codec_of(id)) + " (filter " + std::to_string(id) + "): ";
    if (found_by_1_14.empty() && found_by_2_0.empty()) line += "NOT FOUND";
    else if (found_by_1_14.empty()) line += "NOT FOUND by HDF5 1.8 to 1.14; HDF5 2.0 and later find " + printable(found_by_2_0);
    else line += "found, " + printable(found_by_1_14);
    print_wrapped(line);
  }
  const std::string line = s.export_line();
  if (s.finds_both() && !s.from_environment)
    std::cout << "\nAn HDF5 in which another folder is built in, such as that of h5py's wheel, does not search there. For it:\n  "
                 "export HDF5_PLUGIN_PATH="
              << shell_quoted(s.own_folder) << '\n';
  if (!line.empty()) {
    std::cout << "\nTo let HDF5 find them, before the program starts:\n  " << line << '\n';
  } else if (s.own_folder.empty()) {
    std::cout
        << "\nThe plugins are not next to this command either. Give their folder:\n  export HDF5_PLUGIN_PATH=THEIR_FOLDER\n";
  }
}

ordered_json plugins_json(const scan& s) {
  ordered_json j = {{"hdf5", s.hdf5}, {"from_environment", s.from_environment}, {"disabled", s.disabled}};
  if (s.keys.is_set)
    j["keystore"] = {{"path", s.keys.path}, {"keys", s.keys.keys}, {"fault", s.keys.fault}, {"says", s.keys.description}};
  j["folders"] = ordered_json::array();
  for (const folder& f : s.folders) {
    ordered_json files = ordered_json::array();
    for (const plugin_file& p : f.files) {
      ordered_json file = {
          {"name", p.name}, {"opened", p.opened}, {"fault", p.fault}, {"ends_search", p.ends_search}, {"says", p.description}};
      if (p.is_filter)
        file.update({{"filter", p.id},
                     {"class_version", p.class_version},
                     {"filter_name", p.filter_name},
                     {"netcdf_codec", p.serves_netcdf},
                     {"zarrbits", p.version},
                     {"signed", p.is_signed}});
      files.push_back(std::move(file));
    }
    j["folders"].push_back({{"path", f.path},
                            {"fault", f.fault},
                            {"ends_search_up_to_1_14", f.ends_search},
                            {"says", f.description},
                            {"files", std::move(files)}});
  }
  for (const int id : {packbits_id, bytes_id})
    j["filters"][codec_of(id)] = {{"id", id},
                                  {"found_up_to_1_14", s.find_plugin(id, search::up_to_1_14)},
                                  {"found_from_2_0", s.find_plugin(id, search::from_2_0)}};
  j["export"] = s.export_line();
  j["faults"] = s.faults();
  return j;
}

void print_dataset(const filtered_dataset& d, const std::string& file) {
  print_wrapped("  " + printable(d.path));
  std::string line = "    " + d.filter + ": " + d.parameters + "; " + (d.mandatory ? "mandatory" : "optional");
  for (const std::string& name : d.before) line += ", after " + printable(name);
  for (const std::string& name : d.after) line += ", then " + printable(name);
  print_wrapped(line);
  if (!d.problem.empty()) print_wrapped("    FAULT: " + d.problem);
  if (!d.h5repack.empty()) std::cout << "      h5repack " << shell_line(d.h5repack) << ' ' << shell_file(file) << " packed.h5\n";
  if (d.chunk.empty()) return;
  line = "    " + text::pluralize(d.chunks, "chunk") + " of " + product_of(d.chunk) + ", " + std::to_string(d.raw) +
         " unpacked; " + group_digits(d.decoded) + " bytes take " + group_digits(d.stored);
  if (d.decoded > d.stored)
    line +=
        ": " + group_digits(d.decoded - d.stored) + " saved (" + std::to_string((d.decoded - d.stored) * 100 / d.decoded) + " %)";
  print_wrapped(line);
  for (const raw_chunk& c : d.shown) {
    std::string origin;
    for (const auto n : c.origin) origin += (origin.empty() ? "" : ", ") + std::to_string(n);
    print_wrapped("    unpacked: chunk at (" + origin + "): " + printable(c.why));
  }
  if (!d.shown.empty() && d.raw > d.shown.size())
    print_wrapped("    unpacked: and " + std::to_string(d.raw - d.shown.size()) + " more");
  if (!d.would_hold_all.empty()) print_wrapped("    " + d.would_hold_all + " would hold every value");
}

void print_file(const filter_report& r, const std::string& path, const scan& s) {
  print_wrapped(quote(path) + ": " + text::pluralize(r.filtered.size(), "dataset") + " of " + std::to_string(r.datasets) +
                " with filters of zarrbits");
  for (const filtered_dataset& d : r.filtered) print_dataset(d, path);
  for (const std::string& u : r.unreadable) print_wrapped("  UNREADABLE: " + printable(u));
  if (!r.filtered.empty() && !s.finds_both())
    print_wrapped(
        "  WARNING: as long as HDF5 does not find the plugins, h5repack, also with -f NONE, leaves out these datasets, and exits "
        "with 0");
}

ordered_json file_json(const filter_report& r, const std::string& path) {
  ordered_json j = {{"path", path}, {"datasets", r.datasets}, {"filtered", ordered_json::array()}, {"unreadable", r.unreadable}};
  for (const filtered_dataset& d : r.filtered) {
    ordered_json raw = ordered_json::array();
    for (const raw_chunk& c : d.shown) raw.push_back({{"origin", c.origin}, {"why", c.why}});
    j["filtered"].push_back({{"path", d.path},
                             {"filter", d.filter},
                             {"parameters", d.parameters},
                             {"mandatory", d.mandatory},
                             {"before", d.before},
                             {"after", d.after},
                             {"chunk", d.chunk},
                             {"chunks", d.chunks},
                             {"raw_chunks", d.raw},
                             {"raw", std::move(raw)},
                             {"would_hold_all", d.would_hold_all},
                             {"decoded_bytes", d.decoded},
                             {"stored_bytes", d.stored},
                             {"problem", d.problem},
                             {"h5repack", shell_line(d.h5repack)}});
  }
  return j;
}

bool has_fault(const filter_report& r) {
  bool fault = !r.unreadable.empty();
  for (const filtered_dataset& d : r.filtered) fault = fault || !d.problem.empty();
  return fault;
}

}  // namespace

int doctor_main(int argc, char** argv) {
  CLI::App app("Says whether HDF5 finds the plugins of zarrbits, why not, and what they did in a file.", "zarrbits doctor");
  app.footer(doctor_footer);
  std::string path;
  bool as_json = false;
  app.add_option("FILE", path, "An HDF5 file")->type_name("in.h5");
  app.add_flag("--json", as_json, "Print one JSON object instead of text");
  bool lock = true;
  add_no_lock_option(app, lock);
  remote_access remote;
  add_remote_options(app, remote, "Servers");
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  check_remote_options(remote);

  const scan s = scan_plugins();
  const auto finish = [&](const filter_report* report) {
    const int status = s.faults() > 0 || (report && has_fault(*report)) ? exit_failure : exit_success;
    if (as_json) {
      ordered_json j = {{"version", 1}, {"plugins", plugins_json(s)}};
      if (report) j["file"] = file_json(*report, path);
      j["exit_status"] = status;
      std::cout << printable_json(text::json_text(j, 1)) << '\n';
    } else {
      print_plugins(s);
      if (report) {
        std::cout << '\n';
        print_file(*report, path, s);
      }
    }
    std::cout.flush();
    return status;
  };
  if (path.empty()) return finish(nullptr);
  return run_in_subprocess(path, [&](const auto& set_current) {
    std::optional<filter_report> report;
    {
      progress line;
      std::uint64_t count = 0;
      report = report_filters({.file = path, .remote = remote, .lock = lock}, [&](const std::string& object, std::uint64_t of) {
        set_current(object);
        line.update({.done = ++count, .total = of, .path = path + ":" + object});
      });
    }
    set_current("");
    return finish(&*report);
  });
}

}  // namespace zarrbits::command
