// SPDX-License-Identifier: BSL-1.0
#include "command/combined_source.hpp"

#include "command/child_process.hpp"
#include "command/command_line.hpp"
#include "command/place_list.hpp"
#include "command/printable.hpp"
#include "command/progress.hpp"
#include "command/report_file.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/sha256.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
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
    if (name.empty()) throw usage_error("--concat " + quote(dimensions) + " has an empty name; give names such as time,y,x");
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
  return {{"version", 1}, {"target", text::escape_name(target)}, {"bytes", r.bytes}, {"files", files}, {"notes", notes}};
}

combine_report combine_with_progress(combine_options options, bool quiet,
                                     const std::function<void(const std::string&)>& set_current) {
  progress line(quiet);
  options.progress = [&](const std::string& file, std::uint64_t done, std::uint64_t files) {
    set_current(file.starts_with('/') ? "/" + file : file);
    line.update({done, files, false, 0, 0, file});
  };
  combine_report r = combine(options);
  set_current("");
  return r;
}

// A name that follows from the files and their states: an unfinished store records it, and refuses other sources.
std::string name_for(const std::vector<std::string>& sources) {
  text::sha256 sum;
  for (const std::string& name : sources) {
    struct stat info {};
    if (::stat(name.c_str(), &info) != 0) continue;  // combine() says why
    sum.add_field(name);
    sum.add_number(static_cast<std::uint64_t>(info.st_size));
    sum.add_number(static_cast<std::uint64_t>(info.st_mtim.tv_sec));
    sum.add_number(static_cast<std::uint64_t>(info.st_mtim.tv_nsec));
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
  if (!a.dimension.empty()) options.dimensions = names_in(a.dimension);
  options.new_dimension = a.fresh;
  std::vector<std::string> names = options.dimensions;
  if (!a.fresh.empty()) names.insert(names.begin(), a.fresh);
  if (!a.places.empty()) options.places = read_place_list(a.places, options.sources, names);
  options.different = concat.different == concatenation::different_type::first  ? different::first
                      : concat.different == concatenation::different_type::skip ? different::skip
                                                                                : different::refuse;
  return options;
}

std::optional<combine_options> find_combination(const concat_arguments& a, const std::string& source,
                                                const std::optional<concatenation>& concat) {
  if (!concat) return {};
  if (concat->append && a.append.find(',') != std::string::npos)
    throw usage_error(
        "--append goes with one dimension; name the one that the new files continue. If each step of it is several files, "
        "write one file of them first, with \"zarrbits convert --virtual --concat " +
        a.append + " ... NEW.nc\", and append that");
  if (!a.combines()) return {};
  const std::optional<combine_options> combination = combination_of(a, source, *concat);
  if (a.overlap) require_single_dimension(combination, "--allow-overlap");
  if (!a.order.empty()) require_single_dimension(combination, "--order");
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

combined_source::combined_source(std::optional<combine_options> combination) : combination_(std::move(combination)) {
  if (!combination_) return;
  std::error_code e;
  const std::filesystem::path place = std::filesystem::temp_directory_path(e);
  if (e) throw command_error("there is no folder for temporary files: " + e.message() + "; set TMPDIR to one");
  std::random_device random;
  folder_ = (place / ("zarrbits-" + std::to_string(random()) + std::to_string(random()))).string();
}

void combined_source::remove() noexcept {
  std::error_code e;
  if (is_used()) std::filesystem::remove_all(folder_, e);
}

void combined_source::replace(std::string& source, std::optional<concatenation>& concat, std::optional<source_base>& base,
                              std::vector<std::string>& external, bool lock, bool quiet,
                              const std::function<void(const std::string&)>& set_current) {
  if (!is_used()) return;
  namespace fs = std::filesystem;
  if (::mkdir(folder_.c_str(), S_IRWXU) != 0)
    throw error(errc::io_failed,
                "cannot make the folder " + quote(folder_) + ": " + std::strerror(errno) + "; set TMPDIR to another place",
                {folder_});
  combine_options options = *combination_;
  options.lock = lock;
  options.target = folder_ + "/" + name_for(options.sources);
  options.relative_names = false;
  options.netcdf3 = true;
  report_ = combine_with_progress(options, quiet, set_current);
  set_fixed_time(options.target);
  if (!quiet) print_notes(report_);
  std::set<std::string> folders;
  for (const std::string& name : options.sources) folders.insert(fs::absolute(name).lexically_normal().parent_path().string());
  external.insert(external.end(), folders.begin(), folders.end());
  if (base && base->folder.empty() && base->url != ".")
    base->folder = fs::absolute(source).lexically_normal().parent_path().string();
  source = options.target;
  concat.reset();
}

convert_result combined_source::described(convert_result result) const {
  if (!is_used()) return result;
  result.source = report_.files[0].file;
  result.source_bytes = 0;
  result.sources.clear();
  for (const combined_file& f : report_.files) {
    joined_source& s = result.sources.emplace_back();
    s.file = f.file;
    s.bytes = f.bytes;
    result.source_bytes += f.bytes;
    if (f.place.empty()) continue;
    s.first = f.place[0].first;
    s.count = f.place[0].count;
  }
  return result;
}

int write_combined_file(combine_options combination, const convert_options& options, bool quiet, const std::string& report,
                        bool as_json) {
  return run_in_subprocess(
      options.source,
      [&](const auto& set_current) {
    combine_options how = std::move(combination);
    how.target = options.store;
    how.lock = options.lock;
    how.overwrite = options.overwrite;
    how.sync = options.sync;
    const combine_report r = combine_with_progress(how, quiet, set_current);
    const std::string document = json_of(r, options.store).dump(1) + "\n";
    if (!report.empty()) write_report(report, document);
    if (as_json) std::cout << printable_json(document) << std::flush;
    if (quiet) return 0;
    print_notes(r);
    print_status(quote(options.store) + ": " + text::pluralize(r.files.size(), "file") + " as one, " +
                 text::format_bytes(r.bytes) + "; the values stay in the files");
    return 0;
      },
      [&](bool) { zarr::atomic_file::remove_unfinished(options.store, zarr::unfinished_name(options.store)); });
}

}  // namespace zarrbits::command
