// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits digest`: one number for the values of each array.
//
#include "array/extents.hpp"
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/each_name.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/partition_option.hpp"
#include "command/printable.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/report_file.hpp"

#include <zarrbits/digest.hpp>
#include <zarrbits/source_name.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace zarrbits::command {
namespace {

const char digest_footer[] =
    "Prints a line for each array: the digest of its values, shape and data type, and its path; and one for all of them, with\n"
    "their paths. Digests are equal for equal values, whatever the format, chunks, shards, codecs and byte order are. "
    "Attributes\n"
    "count with --attributes alone. A digest shows accidents, and does not protect from attackers: see "
    "docs/reference/digest.md.\n\n"
    "Examples:\n"
    "  zarrbits convert in.nc out.zarr && zarrbits digest in.nc out.zarr\n"
    "  zarrbits digest -q s3://bucket/out.zarr\n"
    "  zarrbits digest --json --include /t2m in.nc\n"
    "  zarrbits digest --attributes in.nc out.zarr\n"
    "  zarrbits digest --json --partition 0/2 in.nc > 0.json; zarrbits digest --json --partition 1/2 in.nc > 1.json\n"
    "  zarrbits digest --add 0.json 1.json\n"
    "  zarrbits digest --manifest out.sha256 out.zarr && cd out.zarr && sha256sum -c ../out.sha256\n\n"
    "Exit status: 0 done; 1 failure, such as a damaged chunk; 2 wrong usage; 3 an array has no digest,\n"
    "and so all of them together have none.";

struct digest_arguments {
  digest_options options;
  std::vector<std::string> names;
  std::string nan, threads, memory;
  std::string manifest, partition;
  bool add = false, dandi = false, as_json = false, quiet = false;
};

void add_digest_options(CLI::App& app, digest_arguments& a) {
  digest_options& o = a.options;
  app.add_option(
         "NAMES", a.names,
         "HDF5 or netCDF-4 files, and Zarr stores: directories, files x.zip, references, s3://BUCKET/PREFIX; in.h5:/a/b is "
         "an object of one")
      ->required()
      ->type_name("NAME[:/PATH]");
  app.add_option("--include", o.include, "Only arrays that this pattern of paths matches; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--exclude", o.exclude, "Without arrays that this pattern of paths matches; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_flag("--attributes", o.attributes,
               "Also digests of the attributes of each array and group, and count them in that of all");
  app.add_option("--nan", a.nan, "Whether the bits of a NaN count: bits (the default), or any, with which all NaNs are one value")
      ->type_name("bits|any");
  app.add_option(
         "--manifest", a.manifest,
         "Write the SHA-256 sums, sizes and names of the objects of a store, or of a file, for sha256sum -c; no values are "
         "read")
      ->type_name("FILE");
  app.add_flag("--dandi", a.dandi, "Print the checksum that the DANDI archive has for a store: of its objects, not of values");
  app.add_option(
         "--partition", a.partition,
         "Read only one share of the values, and print its part of the sums as JSON, for --add. I/N: share I of N, from 0; "
         "or slurm or mpi")
      ->type_name("slurm|mpi|I/N");
  app.add_flag("--add", a.add, "NAMES are reports of all partitions, in any order: print the digests of the whole source");
  app.add_option("--threads", a.threads, "Threads that decode (default: the processors)")->type_name("N");
  app.add_option("--memory", a.memory, "Limit the memory for chunks, such as 512M (the default); a larger chunk is read alone")
      ->type_name("BYTES");
  app.add_flag("--allow-expansion", o.allow_expansion,
               "Read chunks that expand more than 1,000 times when decoded, beyond --memory");
  app.add_flag("--json", a.as_json, "Print one JSON object; of several names, a list of them");
  app.add_flag("-q,--quiet", a.quiet, "No progress; only the digest of all arrays together");
  add_external_option(app, o.external);
  add_no_lock_option(app, o.lock);
  add_remote_options(app, o.remote, "Servers");
}

void read_arguments(digest_arguments& a) {
  digest_options& o = a.options;
  check_remote_options(o.remote);
  if (!a.nan.empty() && a.nan != "bits" && a.nan != "any") throw usage_error("--nan is bits or any, not " + quote(a.nan));
  o.any_nan = a.nan == "any";
  if (!a.memory.empty()) o.memory = parse_bytes("--memory", a.memory);
  o.threads = parse_threads(a.threads);
  check_options(o);
  const bool of_objects = a.dandi || !a.manifest.empty();
  if (a.dandi && !a.manifest.empty()) throw usage_error("use --dandi or --manifest, not both");
  if (of_objects && (a.as_json || !a.nan.empty() || o.attributes || !o.include.empty() || !o.exclude.empty()))
    throw usage_error("--dandi and --manifest are about objects; remove --json, --nan, --attributes, --include and --exclude");
  if (!a.partition.empty()) {
    if (of_objects || a.add || o.attributes)
      throw usage_error("--partition is about values; remove --add, --attributes, --dandi and --manifest");
    if (!a.as_json) throw usage_error("--partition prints its part of the sums as JSON; use --json");
    if (a.names.size() != 1) throw usage_error("--partition is about one name, not " + std::to_string(a.names.size()));
    o.partition = parse_partition("--partition", a.partition).partition;
  }
  if (a.add && (of_objects || !a.nan.empty() || o.attributes || !o.include.empty() || !o.exclude.empty()))
    throw usage_error(
        "--add takes what the reports of partitions have; remove --nan, --attributes, --include, --exclude, --dandi and "
        "--manifest");
  if (a.manifest.empty()) return;
  if (a.names.size() != 1) throw usage_error("--manifest is about one name, not " + std::to_string(a.names.size()));
  require_distinct_path(a.manifest, a.names[0], a.names[0], "manifest");
  try_report(a.manifest, "manifest");
}

void print_digests(const digest_report& r, bool quiet) {
  for (const array_digest& a : r.arrays) {
    if (a.digest.empty()) print_error("no digest of " + quote(a.path) + ": " + a.reason);
    else if (!a.reason.empty()) print_error("warning: " + quote(a.path) + ": " + a.reason);
    if (quiet || a.digest.empty()) continue;
    std::cout << a.digest << "  " << printable(a.path) << "  " << printable(a.data_type)
              << (a.shape.empty() ? "" : " " + array::joined_text(a.shape)) << '\n';
  }
  for (const attribute_digest& a : r.attributes.value_or(std::vector<attribute_digest>())) {
    if (!quiet) std::cout << a.digest << "  " << printable(a.path) << "  attributes\n";
  }
  if (!r.digest.empty()) std::cout << r.digest << "  " << printable(r.source) << '\n';
}

// As sha256sum has it, which takes lines with "#" for comments, and a backslash before a sum for escapes in the name.
std::string manifest_text(const std::vector<object_hash>& objects) {
  std::string text;
  for (const object_hash& object : objects) {
    std::string name;
    for (const char c : object.name) name += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
    text +=
        "# " + std::to_string(object.size) + " bytes\n" + (name == object.name ? "" : "\\") + object.hash + "  " + name + '\n';
  }
  return text;
}

int print_report(const digest_report& r, const digest_arguments& a, const std::string& separator) {
  const bool is_complete = std::all_of(r.arrays.begin(), r.arrays.end(),
                                       [](const array_digest& array) { return !array.digest.empty() || !array.sums.empty(); });
  const int status = is_complete ? exit_success : exit_loss;
  if (a.as_json) std::cout << separator << printable_json(with_exit_status(r.report_json(), status));
  else print_digests(r, a.quiet);
  std::cout << std::flush;
  return status;
}

int print_digest(const digest_arguments& a, digest_options options, const std::string& separator,
                 const std::function<void(const std::string&)>& set_current) {
  digest_report r;
  std::vector<object_hash> objects;
  std::string checksum;
  {
    progress line(a.quiet);
    options.progress = [&](const std::string& path, std::uint64_t bytes_done, std::uint64_t bytes) {
      set_current(path);
      line.update({bytes_done, bytes, true, 0, 0, path});
    };
    if (a.dandi) checksum = dandi_checksum(options);
    else if (!a.manifest.empty()) objects = hash_objects(options);
    else r = digest(options);
  }
  set_current("");
  if (!a.manifest.empty()) write_report(a.manifest, manifest_text(objects), "manifest");
  if (a.dandi) std::cout << checksum << "  " << printable(options.source) << '\n' << std::flush;
  if (a.dandi || !a.manifest.empty()) return exit_success;
  return print_report(r, a, separator);
}

}  // namespace

int digest_main(int argc, char** argv) {
  CLI::App app("Prints digests of the values in HDF5 files and Zarr stores, which are equal whatever the format.",
               "zarrbits digest");
  app.footer(digest_footer);
  digest_arguments a;
  add_digest_options(app, a);
  add_log_format_option(app);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  read_arguments(a);
  a.options.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
  if (a.add) return print_report(add_digests(a.names), a, "");
  tune_heap(a.options.memory);
  return run_for_each(a.names, a.as_json, [&](const std::string& name, const std::string& separator) {
    digest_options options = a.options;
    options.source = name;
    return run_in_subprocess(split_source(name).file,
                             [&](const auto& set_current) { return print_digest(a, options, separator, set_current); });
  });
}

}  // namespace zarrbits::command
