// SPDX-License-Identifier: BSL-1.0
#include "command/source_list.hpp"

#include "command/command_line.hpp"
#include "command/location.hpp"
#include "command/option_parsers.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_version.hpp"
#include "text/natural_order.hpp"
#include "zarr/read/store_reader.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <glob.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>

namespace zarrbits::command {

namespace {

using io::is_object_store;
using io::is_web;

// The query of a URL, and the version of an object in S3, which begin with a "?", are not patterns.
bool is_pattern(const std::string& name) {
  const std::size_t version = remote::version_in(name);
  const std::size_t end = is_web(name) ? name.find('?') : version == std::string::npos ? name.size() : version;
  return name.substr(0, end).find_first_of("*?[") != std::string::npos;
}

// "a{b,c}d" is "abd" and "acd", as the shell has it. A shell leaves it to us in quotes.
std::vector<std::string> expand_braces(const std::string& name) {
  const std::size_t open = name.find('{'), close = name.find('}', open == name.npos ? 0 : open),
                    nested = open == name.npos ? open : name.find('{', open + 1);
  if (open == name.npos || close == name.npos || nested < close || name.substr(open, close - open).find(',') == name.npos)
    return {name};
  std::vector<std::string> expansions;
  for (std::size_t begin = open + 1; begin <= close;) {
    const std::size_t end = std::min(name.find(',', begin), close);
    for (const std::string& suffix : expand_braces(name.substr(close + 1)))
      expansions.push_back(name.substr(0, open) + name.substr(begin, end - begin) + suffix);
    begin = end + 1;
  }
  return expansions;
}

bool exists(const std::string& name) {
  struct stat info {};
  return ::stat(name.c_str(), &info) == 0;
}

// Not a store.
bool is_file(const std::string& source, const remote_access& remote) {
  const std::string file = split_source(source).file;
  std::error_code e;
  if (is_web(file)) return !zarr::is_store_name(file);
  if (remote::version_in(file) != std::string::npos) return true;
  return is_object_store(file) ? !find_s3_sources(file, remote).empty() : std::filesystem::is_regular_file(file, e);
}

void add_list(const std::string& list, std::vector<std::string>& result) {
  std::ifstream file(list);
  if (!file) throw usage_error("cannot read the list of sources " + quote(list) + ": " + std::strerror(errno));
  const std::size_t previous_size = result.size();
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) result.push_back(io::redact_url(location_name(line)));
  }
  if (file.bad() || result.size() == previous_size) throw usage_error("the list of sources " + quote(list) + " has no names");
}

std::vector<std::string> local_matches(const std::string& pattern) {
  glob_t matches{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  std::vector<std::string> names(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  return status == 0 ? names : std::vector<std::string>();
}

void add_matches(const std::string& pattern, const remote_access& remote, std::vector<std::string>& result) {
  std::vector<std::string> names = is_object_store(pattern) ? find_s3_sources(pattern, remote) : local_matches(pattern);
  if (names.empty()) throw usage_error("no file matches " + quote(pattern));
  std::sort(names.begin(), names.end(), text::natural_less);
  result.insert(result.end(), names.begin(), names.end());
}

}  // namespace

std::vector<std::string> expand_sources(const std::vector<std::string>& names, const remote_access& remote) {
  std::vector<std::string> result;
  for (const std::string& name : names) {
    if (name.starts_with('@') && !exists(name)) {
      add_list(name.substr(1), result);
    } else if (is_web(name)) {
      if (is_pattern(name))
        throw usage_error(quote(name) + " has a wildcard, but https has no list of files; name each, as in " +
                          "\"https://host/{a,b}.nc\", or in a list @LIST.txt");
      for (const std::string& one : expand_braces(io::original_url(name))) result.push_back(io::redact_url(one));
    } else if (is_pattern(name) && !exists(name)) {
      add_matches(name, remote, result);
    } else {
      result.push_back(name);
    }
  }
  return result;
}

void add_concat_options(CLI::App& app, concat_arguments& a, bool may_append, bool of_stores) {
  const char* const group = "Several files";
  app.add_option("more", a.extra_names, "With --concat: more names; all but the last are sources, and the last is the store")
      ->type_name("");
  app.add_option(
         "--concat", a.dimension,
         "Join several files, or several Zarr stores, along this dimension: its name, or PATTERN:N for axis N of the datasets; "
         "or "
         "files along several, where their coordinates belong: time,y,x. A source may also be @LIST.txt or a quoted \"*.nc\"")
      ->type_name("DIMENSION")
      ->group(group);
  if (!of_stores) {
    app.add_option("--concat-new", a.fresh,
                   "Join several files along a new dimension of this name: each file is one step of it, or, with --concat, each "
                   "folder of files. It becomes the first dimension of all datasets but the dimension scales")
        ->type_name("DIMENSION")
        ->group(group);
    app.add_option(
           "--places", a.places,
           "With --concat and --concat-new: a table of where each file belongs, and not its coordinates. The first line is "
           "file,time,x with the names of the dimensions; each other one a name and its places, counted in files from 0 on")
        ->type_name("FILE.csv")
        ->group(group);
  }
  if (may_append) {
    app.add_option(
           "--append", a.append,
           "Append these files to an existing store in a directory, in S3 or of references, along this dimension; files that are "
           "already in it are skipped. Of several, time,y,x, where their coordinates belong, one continues the store's")
        ->type_name("DIMENSION")
        ->group(group);
  }
  app.add_option("--order", a.order,
                 "With --concat: given (the default), name, or value (the first of the dimension's variable). Of two dimensions, "
                 "value is the default, and with given or name, folders follow each other along the first one, and the files in "
                 "each along the second")
      ->type_name("given|name|value")
      ->group(group);
  app.add_option("--different", a.different,
                 "With --concat, where datasets without the dimension differ between the files: refuse (the default), take those "
                 "of the first file (first), or leave them out (skip)")
      ->type_name("refuse|first|skip")
      ->group(group);
  app.add_flag("--allow-overlap", a.overlap,
               "With --concat: values of the dimension's variable may occur twice, or change direction")
      ->group(group);
}

std::optional<concatenation> take_sources(concat_arguments& a, std::string& source, std::string& store,
                                          const remote_access& remote, bool store_may_be_missing) {
  if (!a.append.empty() && !(a.dimension + a.fresh + a.places).empty())
    throw usage_error("--append extends a store, and --concat, --concat-new and --places make one; use one or the other");
  if (a.dimension.empty() && a.append.empty() && a.fresh.empty()) {
    if (!a.extra_names.empty())
      throw usage_error(quote(a.extra_names.front()) + " is one name too many; to join several files, use --concat or --append");
    if (!a.order.empty() || !a.different.empty() || a.overlap || !a.places.empty())
      throw usage_error("--order, --different, --places and --allow-overlap go with --concat or --append");
    return {};
  }
  std::vector<std::string> names{source};
  if (!store.empty()) names.push_back(store);
  names.insert(names.end(), a.extra_names.begin(), a.extra_names.end());
  const std::string& last = names.back();
  const bool in_one_file = last.ends_with(".json") || last.ends_with(".zip");
  const bool no_store =
      store_may_be_missing && !in_one_file && (last.starts_with('@') || is_pattern(last) || is_file(last, remote));
  store = no_store ? "" : last;
  if (!no_store) names.pop_back();
  names = expand_sources(names, remote);
  if (names.empty()) throw usage_error("no source is given before the store " + quote(store));
  source = names.front();
  concatenation concat;
  concat.append = !a.append.empty();
  concat.is_new = a.dimension.empty() && !a.fresh.empty();
  concat.dimension = concat.append ? a.append : concat.is_new ? a.fresh : a.dimension;
  concat.sources.assign(names.begin() + 1, names.end());
  concat.order = parse_order(a.order);
  concat.different = parse_different(a.different);
  concat.allow_overlap = a.overlap;
  return concat;
}

}  // namespace zarrbits::command
