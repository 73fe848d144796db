// SPDX-License-Identifier: BSL-1.0
#include "command/combined_source.hpp"

#include "command/child_process.hpp"
#include "command/command_line.hpp"
#include "command/digest_comparison.hpp"
#include "command/place_list.hpp"
#include "command/printable.hpp"
#include "command/progress.hpp"
#include "command/report_file.hpp"
#include "io/remote_url.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/natural_order.hpp"
#include "text/node_names.hpp"
#include "text/selection.hpp"
#include "text/sha256.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sys/stat.h>
#include <utility>

namespace zarrbits::command {

namespace {

std::vector<std::string> names_in(const std::string& dimensions) {
  std::vector<std::string> names(1);
  for (const char c : dimensions) {
    if (c == ',') names.emplace_back();
    else names.back() += c;
  }
  for (const std::string& name : names) {
    if (name.empty()) throw usage_error(quote(dimensions) + " has an empty name; use names of dimensions such as time,y,x");
  }
  return names;
}

text::json json_of(const combine_report& r, const std::string& target) {
  text::json files = text::json::array();
  for (const combined_file& f : r.files) {
    text::json place = text::json::array();
    for (const combined_range& range : f.place)
      place.push_back({{"dimension", text::escape_name(range.dimension)}, {"first", range.first}, {"count", range.count}});
    files.push_back({{"file", text::escape_name(f.file)}, {"bytes", f.bytes}, {"place", std::move(place)}});
  }
  text::json notes = text::json::array();
  for (const std::string& note : r.notes) notes.push_back(text::escape_invalid_utf8(note));
  return {{"version", 1},
          {"target", text::escape_name(target)},
          {"bytes", r.bytes},
          {"copied_chunks", r.copied_chunks},
          {"encoded_chunks", r.encoded_chunks},
          {"files", files},
          {"notes", notes}};
}

combine_report combine_with_progress(combine_options options, bool quiet,
                                     const std::function<void(const std::string&)>& set_current) {
  progress line(quiet);
  options.progress = [&](const std::string& file, std::uint64_t done, std::uint64_t files) {
    set_current(file.starts_with('/') ? "/" + file : file);
    line.update({done, files, false, 0, 0, file});
  };
  options.copied = [&](const std::string& path, std::uint64_t done, std::uint64_t bytes) {
    set_current(path);
    line.update({done, bytes, true, 0, 0, path});
  };
  combine_report r = combine(options);
  set_current("");
  return r;
}

// A name that follows from the files and their states: an unfinished store records it, and refuses other sources.
std::string name_for(const combine_report& r) {
  text::sha256 sum;
  for (const combined_file& f : r.files) {
    sum.add_field(f.file);
    sum.add_field(f.version);
  }
  return sum.hex(32) + ".nc";
}

// A resumed run writes the file again. Its size, time and bytes must be equal for the store to accept it.
void set_fixed_time(const std::string& path) {
  constexpr timespec fixed[2] = {};
  if (::utimensat(AT_FDCWD, path.c_str(), fixed, 0) != 0)
    throw error(errc::io_failed,
                "cannot set the time of " + quote(path) + ": " + std::strerror(errno) + "; set TMPDIR to another place", {path});
}

// Where the files belong by their order alone, as nested lists have them: the files of a folder follow each other along the last
// dimension, and the folders along the one before it.
void place_in_order(combine_options& options, const std::string& order) {
  const std::size_t dimensions = options.dimensions.size() + (options.new_dimension.empty() ? 0 : 1);
  if (dimensions > 2)
    throw usage_error("--order " + order +
                      " is for two dimensions: folders along the first one, and the files in each along the "
                      "second; use --places for more, or --order value for the order of their coordinates");
  if (order == "name") std::sort(options.sources.begin(), options.sources.end(), text::natural_less);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> folders;  // number, and files
  for (const std::string& name : options.sources) {
    const std::string folder = dimensions == 1 ? "" : name.substr(0, name.rfind('/') == name.npos ? 0 : name.rfind('/'));
    auto& [number, files] = folders.try_emplace(folder, folders.size(), 0).first->second;
    options.places.push_back(dimensions == 1 ? std::vector{files} : std::vector{number, files});
    ++files;
  }
  const auto& [first_folder, first] = *folders.begin();
  for (const auto& [folder, entry] : folders) {
    if (entry.second != first.second)
      throw usage_error("--order " + order + " is for folders that have the same number of files, unlike " + quote(first_folder) +
                        " with " + std::to_string(first.second) + " and " + quote(folder) + " with " +
                        std::to_string(entry.second) + "; use --places, or --order value for the order of their coordinates");
  }
}

void print_notes(const combine_report& r) {
  for (const std::string& note : r.notes) print_error("note: " + note);
}

}  // namespace

combine_options combination_of(const concat_arguments& a, const std::string& source, const concatenation& concat) {
  using different = combine_options::different_type;
  combine_options options;
  options.sources = concat.sources;
  options.sources.insert(options.sources.begin(), source);
  for (const std::string& name : options.sources) {
    if (zarr::is_read_as_store(name, true))
      throw usage_error("Zarr stores such as " + quote(name) +
                        " are joined along one dimension at a time, with --concat and its name; join the results along the next");
  }
  if (const std::string& dimensions = concat.append ? a.append : a.dimension; !dimensions.empty())
    options.dimensions = names_in(dimensions);
  options.new_dimension = a.fresh;
  std::vector<std::string> names = options.dimensions;
  if (!a.fresh.empty()) names.insert(names.begin(), a.fresh);
  if (!a.places.empty() && !a.order.empty())
    throw usage_error("--places lists where each file belongs; remove --order, or --places");
  if (!a.places.empty()) options.places = read_place_list(a.places, options.sources, names);
  if (!a.order.empty() && a.order != "value") place_in_order(options, a.order);
  options.different = concat.different == concatenation::different_type::first  ? different::first
                      : concat.different == concatenation::different_type::skip ? different::skip
                                                                                : different::refuse;
  return options;
}

std::optional<combine_options> find_combination(const concat_arguments& a, const std::string& source,
                                                const std::optional<concatenation>& concat, bool is_for_file) {
  if (!concat || !(a.combines() || is_for_file)) return {};
  if (concat->append && !a.order.empty() && a.order != "value")
    throw usage_error("--append along several dimensions follows the coordinates; remove --order " + a.order);
  const std::optional<combine_options> combination = combination_of(a, source, *concat);
  if (a.overlap) require_single_dimension(combination, "--allow-overlap");
  return combination;
}

void require_single_dimension(const std::optional<combine_options>& combination, const char* option) {
  if (!combination) return;
  std::string concat = combination->new_dimension.empty() ? "" : " --concat-new " + combination->new_dimension;
  for (const std::string& name : combination->dimensions)
    concat += (&name == combination->dimensions.data() ? " --concat " : ",") + name;
  if (!combination->places.empty()) concat += " --places LIST.csv";
  throw usage_error(std::string(option) + " goes with one dimension; write one file first, with \"zarrbits convert --virtual" +
                    concat + " ... ALL.nc\", and use that as the source");
}

combined_source::combined_source(std::optional<combine_options> combination, const std::string& folder)
    : combination_(std::move(combination)) {
  if (combination_) folder_ = folder.empty() ? new_folder() : folder;
}

std::string combined_source::new_folder() {
  std::error_code e;
  const std::filesystem::path place = std::filesystem::temp_directory_path(e);
  if (e) throw command_error("there is no folder for temporary files: " + e.message() + "; set TMPDIR to one");
  std::random_device random;
  return (place / ("zarrbits-" + std::to_string(random()) + std::to_string(random()))).string();
}

void combined_source::remove() noexcept {
  std::error_code e;
  if (is_used()) std::filesystem::remove_all(folder_, e);
}

void combined_source::replace(std::string& source, std::optional<concatenation>& concat, std::optional<source_base>& base,
                              std::vector<std::string>& external, const remote_access& remote, bool lock, bool quiet,
                              const std::function<void(const std::string&)>& set_current) {
  if (!is_used()) return;
  namespace fs = std::filesystem;
  if (::mkdir(folder_.c_str(), S_IRWXU) != 0)
    throw error(errc::io_failed,
                "cannot make the folder " + quote(folder_) + ": " + std::strerror(errno) + "; set TMPDIR to another place",
                {folder_});
  combine_options options = *combination_;
  options.lock = lock;
  options.target = folder_ + "/all.nc";
  options.relative_names = false;
  options.netcdf3 = options.servers = true;
  options.remote = remote;
  report_ = combine_with_progress(options, quiet, set_current);
  set_fixed_time(options.target);
  if (!quiet) print_notes(report_);
  std::set<std::string> readable;  // folders, and files on servers
  for (const std::string& name : options.sources) {
    const bool is_remote = io::is_remote(name);
    readable.insert(is_remote ? name : fs::absolute(name).lexically_normal().parent_path().string());
    if (!is_remote && base && base->folder.empty() && base->url != ".")
      base->folder = fs::absolute(name).lexically_normal().parent_path().string();
  }
  external.insert(external.end(), readable.begin(), readable.end());
  source = folder_ + "/" + name_for(report_);
  fs::rename(options.target, source);
  if (concat && concat->append) concat->sources.clear();
  else concat.reset();
}

void combined_source::choose_dimension(convert_options& options) {
  if (!is_used() || !options.source.concat) return;
  if (!io::is_remote(options.target.name) && !std::filesystem::exists(options.target.name))
    throw error(errc::not_found, "nothing can be appended to " + quote(options.target.name) + ": there is no such store",
                {options.target.name});
  std::set<std::string> coordinates;
  for (const combined_file& f : report_.files) {
    for (const combined_range& range : f.place) coordinates.insert(range.dimension);
  }
  const auto digests_of = [&](const std::string& name) {
    digest_options how = options_to_digest(name, options.remote, options.execution);
    for (const std::string& path : coordinates) how.include.push_back(text::pattern_of_path(path));
    how.external = options.source.external;
    how.lock = options.source.lock;
    std::map<std::string, std::string> digests;  // by path
    for (const array_digest& a : digest(how).arrays) digests[a.path] = a.digest;
    return digests;
  };
  const auto stored = digests_of(name_to_digest(options.target.name)), added = digests_of(options.source.name);
  std::vector<std::string> different;
  for (const std::string& path : coordinates) {
    const auto a = stored.find(path), b = added.find(path);
    if (a == stored.end() || b == added.end() || a->second.empty() || a->second != b->second) different.push_back(path);
  }
  if (different.size() == 1) {
    growing_ = different[0];
    options.source.concat->dimension = text::base_name(growing_);
    return;
  }
  std::string names;
  for (const std::string& path : different) names += (names.empty() ? "" : " and ") + quote(path);
  throw error(errc::not_joinable,
              different.empty()
                  ? "the files cannot be appended to " + quote(options.target.name) +
                        ": it has their coordinates of all dimensions already; name files that continue it along one"
                  : "the files cannot be appended to " + quote(options.target.name) + ": their " + names +
                        " are not those of the store, which grows along one dimension; name files that have all of its other "
                        "coordinates, or make the store again with `concat`",
              {options.target.name});
}

convert_result combined_source::described(convert_result result) const {
  if (!is_used()) return result;
  result.source = report_.files[0].file;
  result.source_bytes = 0;
  const joined_source as_one = result.sources.empty() ? joined_source{} : result.sources[0];
  const bool is_in_store = !growing_.empty() && as_one.bytes == 0;
  result.sources.clear();
  for (const combined_file& f : report_.files) {
    joined_source& s = result.sources.emplace_back();
    s.file = f.file;
    s.bytes = is_in_store ? 0 : f.bytes;
    result.source_bytes += s.bytes;
    if (f.place.empty()) continue;
    const auto along = std::find_if(f.place.begin(), f.place.end(), [&](const auto& p) { return p.dimension == growing_; });
    const combined_range& place = along != f.place.end() ? *along : f.place[0];
    s.first = place.first + (along != f.place.end() ? as_one.first : 0);
    s.count = place.count;
  }
  if (!growing_.empty()) result.sources[0].notes = as_one.notes;
  return result;
}

int write_combined_file(combine_options combination, const convert_options& options, bool quiet, const std::string& report,
                        bool as_json) {
  return run_in_subprocess(
      options.source.name,
      [&](const auto& set_current) {
    combine_options how = std::move(combination);
    how.target = options.target.name;
    how.lock = options.source.lock;
    how.remote = options.remote;
    how.overwrite = options.target.existing == existing_store::overwrite;
    how.fsync = options.execution.fsync;
    const combine_report r = combine_with_progress(how, quiet, set_current);
    const std::string document = json_of(r, options.target.name).dump(1) + "\n";
    if (!report.empty()) write_report(report, document);
    if (as_json) std::cout << printable_json(document) << std::flush;
    if (quiet) return 0;
    print_notes(r);
    print_status(quote(options.target.name) + ": " + text::pluralize(r.files.size(), "file") + " as one, " +
                 text::format_bytes(r.bytes) + "; " +
                 (how.copies
                      ? text::pluralize(r.copied_chunks, "chunk") + " copied, " + std::to_string(r.encoded_chunks) + " encoded"
                      : "the values stay in the files"));
    return 0;
      },
      [&](bool) { zarr::atomic_file::remove_unfinished(options.target.name, zarr::unfinished_name(options.target.name)); });
}

}  // namespace zarrbits::command
