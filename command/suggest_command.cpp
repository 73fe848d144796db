// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits suggest`: what packbits would do for the datasets of a file, or which chunks its arrays should have.
//
#include "array/extents.hpp"
#include "command/auto_bits.hpp"
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/wrapped_text.hpp"
#include "text/format.hpp"

#include <zarrbits/inspect.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

namespace zarrbits::command {
namespace {

using nlohmann::ordered_json;

const char suggest_footer[] =
    "Reads every value of the integer, boolean, enumeration and float datasets, finds the smallest range of bits (first_bit to "
    "last_bit) from\n"
    "which all of them come back, and says what the filter packbits would store. Nothing is written: the lines of h5repack and "
    "zarrbits convert are for you to type.\n"
    "Sizes are those of the chunks, without HDF5's index of them.\n"
    "With --chunks it reads no values: it suggests chunks of about 4 MiB before compression, lengths that divide the present "
    "ones "
    "or are multiples of them, one chunk for an array of at most 4 MiB, and shards of 64 MiB if an array has more than 1,000 "
    "chunks.\n\n"
    "Examples:\n"
    "  zarrbits suggest camera.h5\n"
    "  zarrbits suggest --json camera.h5 | python3 -m json.tool\n"
    "  zarrbits suggest --chunks --for time-series era5.nc\n\n"
    "Exit status: 0 done, 1 the file cannot be read, 2 wrong usage, 3 not all arrays could be listed (--chunks).";

std::string percent(std::uint64_t stored_bytes, std::uint64_t packed_bytes) {
  return stored_bytes == 0 ? "0 %"
                           : std::to_string(static_cast<int>(
                                 100.0 - 100.0 * static_cast<double>(packed_bytes) / static_cast<double>(stored_bytes) + 0.5)) +
                                 " %";
}

std::string bits_in_words(const suggestion& s) {
  return std::to_string(s.last_bit - s.first_bit + 1) + " of " + std::to_string(s.width) + " bits (" +
         (s.first_bit == s.last_bit ? "bit " : "") + std::to_string(s.first_bit) +
         (s.first_bit == s.last_bit ? "" : " to " + std::to_string(s.last_bit)) + ")";
}

std::string gain(std::uint64_t stored_bytes, std::uint64_t packed_bytes) {
  return text::format_bytes(stored_bytes) + " -> " + text::format_bytes(packed_bytes) + ", " +
         percent(stored_bytes, packed_bytes) + " saved";
}

const char* const packed = "--codec packbits";

// The option of convert that packs the dataset in the same way; "" if it packs none of its kind, as floats.
std::string bits_option(const suggestion& s) {
  if (s.type == "bool") return packed;  // always one bit
  return is_packable(s) ? "--bits " + shell_quoted(bits_argument(s)) : "";
}

void print_left_out(const std::vector<suggested_bits::omission>& left_out) {
  for (const suggested_bits::omission& l : left_out) {
    print_wrapped(l.path);
    print_wrapped("  left out: " + l.reason);
  }
}

void add_left_out(ordered_json& j, const std::vector<suggested_bits::omission>& left_out) {
  for (const suggested_bits::omission& l : left_out) j["left_out"].push_back({{"path", l.path}, {"reason", l.reason}});
}

void print_text(const suggested_bits& r, const std::string& path, bool list_all) {
  std::uint64_t useful = 0, stored_bytes = 0, packed_bytes = 0;
  std::string options;
  const std::string file = shell_file(path), files = file + " packed.h5\n", stores = file + " packed.zarr";
  std::string bits;
  bool convertible = false;
  const auto worthwhile = [](const suggestion& s) { return s.obstacle.empty(); };
  if (list_all ? !r.datasets.empty() : std::any_of(r.datasets.begin(), r.datasets.end(), worthwhile))
    print_wrapped(quote(path) + ": the bits that hold every value, and what packbits would make of the size");
  for (const suggestion& s : r.datasets) {
    const bool of_use = worthwhile(s);
    if (!of_use && !list_all) continue;
    print_wrapped(s.path);
    const std::string prefix = "  " + s.type + ": " + bits_in_words(s) + "; ";
    if (!of_use) {
      print_wrapped(prefix + text::format_bytes(s.before) + " -> " + text::format_bytes(s.after) + ": " + s.obstacle);
      if (!s.h5repack.empty()) std::cout << "  h5repack " << shell_line(s.h5repack) << ' ' << files;
      continue;
    }
    print_wrapped(prefix + gain(s.before, s.after));
    std::cout << "  h5repack " << shell_line(s.h5repack) << ' ' << files;
    if (const std::string option = bits_option(s); !option.empty()) {
      std::cout << "  zarrbits convert " << stores << " --codec packbits" << (option == packed ? "" : " " + option) << '\n';
      bits += option == packed ? "" : " " + option;
      convertible = true;
    }
    ++useful;
    stored_bytes += s.before;
    packed_bytes += s.after;
    options += shell_line(s.h5repack) + " ";
  }
  if (list_all) print_left_out(r.left_out);
  if (useful > 1) {
    std::cout << '\n';
    print_wrapped("All at once: " + gain(stored_bytes, packed_bytes));
    std::cout << "  h5repack " << options << files;
    if (convertible) std::cout << "  zarrbits convert " << stores << " --codec packbits" << bits << '\n';
  }
  if (useful > 0 && !r.missing_filters.empty()) {
    std::cout << '\n';
    print_wrapped("WARNING: h5repack reads every dataset of the file, and HDF5 does not find the filter of " +
                  text::pluralize(r.missing_filters.size(), "dataset") + ": it will fail, or leave these out without an error");
    for (const suggested_bits::omission& u : r.missing_filters) print_wrapped("  " + u.path + ": " + u.reason);
  }
  const std::uint64_t without_gain = r.datasets.size() - useful;
  if (useful > 0) std::cout << '\n';
  print_wrapped(text::pluralize(useful, "dataset") + " would gain, " + std::to_string(without_gain) + " would not, " +
                std::to_string(r.left_out.size()) + " left out" +
                (list_all || without_gain + r.left_out.size() == 0 ? "" : " (--all shows why)"));
}

std::string convert_line(const suggestion& s) {
  const std::string option = bits_option(s);
  return option.empty() || option == packed ? option : packed + (" " + option);
}

ordered_json to_json(const suggested_bits& r, const std::string& path) {
  ordered_json j = {{"version", 1},
                    {"file", path},
                    {"datasets", ordered_json::array()},
                    {"left_out", ordered_json::array()},
                    {"filter_not_found", ordered_json::array()}};
  for (const suggestion& s : r.datasets) {
    j["datasets"].push_back({{"path", s.path},
                             {"type", s.type},
                             {"elements", s.elements},
                             {"width", s.width},
                             {"first_bit", s.first_bit},
                             {"last_bit", s.last_bit},
                             {"bits", s.last_bit - s.first_bit + 1},
                             {"chunk", s.chunk},
                             {"stored_bytes", s.before},
                             {"packed_bytes", s.after},
                             {"worthwhile", s.obstacle.empty()},
                             {"obstacle", s.obstacle},
                             {"h5repack", shell_line(s.h5repack)},
                             {"convert", convert_line(s)}});
  }
  add_left_out(j, r.left_out);
  for (const suggested_bits::omission& u : r.missing_filters)
    j["filter_not_found"].push_back({{"path", u.path}, {"filter", u.reason}});
  return j;
}

chunk_access parse_access(const std::string& text) {
  if (text == "both") return chunk_access::both;
  if (text == "time-series") return chunk_access::time_series;
  if (text == "maps") return chunk_access::maps;
  throw usage_error("--for is \"" + text + "\"; use time-series, maps or both");
}

std::vector<std::string> convert_options_of(const suggested_chunks& r) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : r.options) arguments.insert(arguments.end(), {"--" + name, value});
  return arguments;
}

void print_text(const suggested_chunks& r, const std::string& path, bool list_all) {
  std::size_t changed = 0;
  for (const suggested_chunks::dataset& d : r.datasets) {
    changed += !d.option.empty();
    if (d.option.empty() && !list_all) continue;
    print_wrapped(d.path);
    print_wrapped("  " + d.type + " " + array::joined_text(d.shape) + ": " + text::pluralize(d.chunks, "chunk") + " of " +
                  array::joined_text(d.chunk) + ", " + text::format_bytes(d.chunk_bytes) + " each" +
                  (d.shard.empty() ? "" : ", in shards of " + array::joined_text(d.shard)) + "; " +
                  text::pluralize(d.objects, "object"));
    print_wrapped("  " + with_flags(d.reason));
  }
  if (list_all) print_left_out(r.left_out);
  if (!r.options.empty())
    std::cout << "zarrbits convert " << shell_file(path) << " out.zarr " << shell_line(convert_options_of(r)) << '\n';
  const std::size_t kept = r.datasets.size() - changed;
  print_wrapped(text::pluralize(changed, "array") + " would get other chunks, " + std::to_string(kept) + " would not, " +
                std::to_string(r.left_out.size()) + " left out" +
                (list_all || kept + r.left_out.size() == 0 ? "" : " (--all shows why)"));
}

ordered_json to_json(const suggested_chunks& r, const std::string& path, const std::string& access) {
  ordered_json j = {
      {"version", 1}, {"file", path}, {"for", access}, {"datasets", ordered_json::array()}, {"left_out", ordered_json::array()}};
  for (const suggested_chunks::dataset& d : r.datasets) {
    j["datasets"].push_back({{"path", d.path},
                             {"type", d.type},
                             {"shape", d.shape},
                             {"dimension_names", d.dimension_names},
                             {"time_axis", d.time_axis ? ordered_json(*d.time_axis) : ordered_json()},
                             {"current_chunk", d.current_chunk},
                             {"chunk", d.chunk},
                             {"shard", d.shard},
                             {"chunk_bytes", d.chunk_bytes},
                             {"chunks", d.chunks},
                             {"objects", d.objects},
                             {"option", d.option},
                             {"reason", with_flags(d.reason)}});
  }
  add_left_out(j, r.left_out);
  j["convert"] = convert_options_of(r);
  return j;
}

}  // namespace

int suggest_main(int argc, char** argv) {
  CLI::App app("Says which bits packbits has to keep for the datasets of a file, or which chunks they should have.",
               "zarrbits suggest");
  app.footer(suggest_footer);
  std::string path, access;
  bool as_json = false, list_all = false, chunks = false;
  app.add_option("FILE", path, "The HDF5 file; with --chunks also a Zarr store")->required()->type_name("in.h5");
  app.add_flag("--chunks", chunks, "Suggest chunks and shards instead, as options of convert");
  app.add_option(
         "--for", access,
         "With --chunks: how the arrays are read: time-series (all times of a point), maps (all points of a time), or both "
         "(the default)")
      ->type_name("both|time-series|maps");
  app.add_flag("--json", as_json, "Print one JSON object instead of text");
  app.add_flag("--all", list_all, "Also list the datasets that would gain little or nothing, and why");
  std::vector<std::string> external;
  add_external_option(app, external);
  bool lock = true;
  add_no_lock_option(app, lock);
  remote_access remote;
  add_remote_options(app, remote, "Servers");
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  check_remote_options(remote);
  if (!chunks && app.count("--for") > 0) throw usage_error("--for is for --chunks; add --chunks");
  if (chunks && !external.empty()) throw usage_error("--external is not for --chunks, which reads no values; remove it");
  if (app.count("--for") == 0) access = "both";
  const chunk_access chunks_for = parse_access(access);

  return run_in_subprocess(path, [&](const auto& set_current) {
    if (chunks) {
      const suggested_chunks r =
          suggest_chunks({.name = path, .remote = remote, .lock = lock, .progress = set_current}, chunks_for);
      set_current("");
      if (as_json) std::cout << printable_json(text::json_text(to_json(r, path, access), 1)) << '\n';
      else print_text(r, path, list_all);
      std::cout.flush();
      if (!r.incomplete.empty()) print_error("not all of " + quote(path) + " is listed: " + r.incomplete);
      return static_cast<int>(r.incomplete.empty() ? exit_success : exit_loss);
    }
    suggested_bits r;
    {
      progress line;
      std::uint64_t bytes_done = 0;
      r = suggest_bits({.file = path, .remote = remote, .external = external, .lock = lock}, [&](const suggest_progress& p) {
        set_current(p.path);
        bytes_done += p.bytes;
        line.update({.done = bytes_done, .total = p.total, .bytes = true, .path = path + ":" + p.path});
      });
    }
    set_current("");
    if (as_json) std::cout << printable_json(text::json_text(to_json(r, path), 1)) << '\n';
    else print_text(r, path, list_all);
    std::cout.flush();
    return static_cast<int>(exit_success);
  });
}

}  // namespace zarrbits::command
