// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits repack`: an HDF5 file gets another layout, chunks or filters.
//
#include "array/extents.hpp"
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/digest_comparison.hpp"
#include "command/each_name.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/partition_option.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/report_file.hpp"
#include "command/terminal.hpp"
#include "text/format.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/repack.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace zarrbits::command {
namespace {

const char repack_footer[] =
    "Layouts: asis, metadata in one block at the start; cloud, the same in pages, at most 8 MiB of metadata, chunks of 4 to\n"
    "16 MiB; cmip7, what CMIP7's archives check: the indexes of chunks before all chunks, time and its bounds in one chunk, the\n"
    "data in chunks of at least 4 MiB, longer along the first dimension only, or along the next ones where that is not enough.\n"
    "Chunks that keep shape and filters are copied as they are stored; what a rule of cmip7 changes gets shuffle, deflate:4 and\n"
    "fletcher32. All else stays: values, types, attributes, links, orders.\n\n"
    "Examples:\n"
    "  zarrbits repack --check --layout cmip7 *.nc\n"
    "  zarrbits repack --layout cmip7 in.nc out.nc && zarrbits verify in.nc out.nc\n"
    "  zarrbits repack --layout cmip7 --in-place *.nc\n"
    "  zarrbits repack --chunk /v=64x64 --filter zstd:3 in.h5 out.h5\n\n"
    "Exit status: 0 done, or nothing to do; 1 failure; 2 wrong usage; 3 a file does not follow the\n"
    "rules: --check, or a dataset whose filters nothing here decodes.";

struct repack_arguments {
  repack_options options;
  std::vector<std::string> files;
  std::string layout, chunk_bytes, format, page_size, threads, memory, partition;
  std::string report;  // file for it; "": none
  bool in_place = false, check = false, dry_run = false, has_digest = false, as_json = false, quiet = false;
};

void add_repack_options(CLI::App& app, repack_arguments& a) {
  repack_options& o = a.options;
  app.add_option("FILES", a.files, "The file to repack and the file to write; with --in-place or --check any number of files")
      ->required()
      ->type_name("in.h5 out.h5");
  app.add_option("--layout", a.layout, "Which rules the file follows (default: asis)")->type_name("asis|cloud|cmip7");
  app.add_flag("--check", a.check, "Only say which rules of the layout the files follow; exit status 3 if one does not");
  app.add_flag("--in-place", a.in_place,
               "Replace the files that do not follow the rules, one after another, each when its new form is complete");
  app.add_flag("--dry-run", a.dry_run,
               "Write nothing, and say what would change, with the sizes and the time that samples of the values lead to")
      ->excludes("--check");
  app.add_option("--chunk", o.chunks,
                 "The shape of the chunks of what the path pattern matches; -1 is the whole dimension; can be repeated")
      ->type_name("PATTERN=SHAPE")
      ->allow_extra_args(false);
  app.add_option(
         "--filter", o.filters,
         "Filters of all chunked datasets, or of what the path pattern matches: none, deflate:LEVEL or zstd:LEVEL, after a "
         "shuffle; can be repeated")
      ->type_name("[PATTERN=]none|deflate[:LEVEL]|zstd[:LEVEL]")
      ->allow_extra_args(false);
  app.add_option("--chunk-bytes", a.chunk_bytes,
                 "Size of the chunks that a rule makes larger, such as 8M (default: 4M, and not less)")
      ->type_name("BYTES");
  app.add_option("--page-size", a.page_size, "Write pages of this size (default: none; cloud: one for all metadata)")
      ->type_name("BYTES");
  app.add_option("--libver", a.format,
                 "The format of the file: compatible (the default), which HDF5 1.8 reads, or latest, that of this libhdf5")
      ->type_name("compatible|latest");
  app.add_flag("--overwrite", o.overwrite, "Replace out.h5 if it is an HDF5 file");
  app.add_option("--partition", a.partition,
                 "Of the files of --in-place or --check, only each COUNT-th from INDEX on, such as 0/4; or slurm or mpi")
      ->type_name("INDEX/COUNT|slurm|mpi");
  app.add_option("--threads", a.threads, "Threads that decode and encode (default: the processors)")->type_name("N");
  app.add_option("--memory", a.memory, "Limit the memory for values, such as 512M (the default)")->type_name("BYTES");
  app.add_option("--scratch", o.scratch,
                 "Folder of a file for values that do not fit in the memory, where chunks get a very different shape (default: "
                 "that of the new file)")
      ->type_name("FOLDER");
  app.add_flag("--fsync", o.fsync, "Flush the file to the disk before it gets its name");
  add_no_lock_option(app, o.lock);
  app.add_flag("--digest", a.has_digest, "Read both files again, compare the digests of all values, and add them to the report");
  app.add_option("--report", a.report, "Write the report on one file to this file, as JSON")->type_name("FILE.json");
  app.add_flag("--json", a.as_json, "Print the report on standard output; of several files, a list of reports");
  app.add_flag("-q,--quiet", a.quiet, "No progress, no table");
  add_log_format_option(app);
  add_remote_options(app, o.remote, "Servers");
}

void read_arguments(repack_arguments& a) {
  repack_options& o = a.options;
  check_remote_options(o.remote);
  if (a.check && a.in_place) throw usage_error("use --check or --in-place, not both");
  if (!a.check && !a.in_place && a.files.size() != 2)
    throw usage_error("name the file to repack and the file to write, not " + text::pluralize(a.files.size(), "file") +
                      "; or use --in-place to replace files");
  if (a.layout == "cloud") o.layout = file_layout::cloud;
  else if (a.layout == "cmip7") o.layout = file_layout::cmip7;
  else if (!a.layout.empty() && a.layout != "asis") throw usage_error("--layout is asis, cloud or cmip7, not " + quote(a.layout));
  o.format = parse_libver(a.format);
  if (!a.chunk_bytes.empty()) o.chunk_bytes = parse_bytes("--chunk-bytes", a.chunk_bytes);
  if (!a.page_size.empty()) o.page_size = parse_bytes("--page-size", a.page_size);
  if (!a.memory.empty()) o.memory = parse_bytes("--memory", a.memory);
  o.threads = parse_threads(a.threads);
  tune_heap(o.memory);
  if (a.has_digest && (a.check || a.in_place || a.dry_run))
    throw usage_error("--digest compares the file with OUT; remove it, or --check, --in-place and --dry-run");
  if (a.partition.empty()) return;
  if (!a.check && !a.in_place) throw usage_error("--partition is for the files of --in-place or --check");
  const partition part = parse_partition("--partition", a.partition).partition;
  std::vector<std::string> own;
  for (std::size_t i = part.index; i < a.files.size(); i += part.count) own.push_back(a.files[i]);
  a.files = std::move(own);
}

void print_findings(const std::string& file, const std::string& layout, const std::vector<layout_finding>& findings, bool met) {
  std::cout << file << (met ? ": follows the layout " : ": does not follow the layout ") << layout << '\n';
  text_table table(
      {{""}, {"rule"}, {"of", text_table::left, 12, true}, {"has", text_table::left, 16}, {"wanted", text_table::left, 16}});
  for (const layout_finding& f : findings) {
    table.add({f.met        ? "  ok"
               : f.required ? "  no"
                            : "  (no)",
               f.rule, f.path, f.value, f.wanted},
              f.met        ? colour::plain
              : f.required ? colour::red
                           : colour::dim);
  }
  std::cout << table.text(describe_terminal(STDOUT_FILENO));
}

std::string described(const std::vector<std::uint64_t>& chunk, const std::string& filters) {
  return (chunk.empty() ? "no chunks" : array::joined_text(chunk)) + (filters.empty() ? "" : " (" + filters + ")");
}

void print_plan(const repack_report& r) {
  const std::string name = printable(r.target.empty() ? r.source : r.target);
  if (r.unchanged) {
    std::cout << name << ": follows the layout already, nothing would change\n";
    return;
  }
  text_table table({{"dataset", text_table::left, 12, true},
                    {"in source", text_table::right},
                    {"about", text_table::right},
                    {"chunks before"},
                    {"chunks after"},
                    {"because of"}});
  std::uint64_t recoded = 0;
  for (const repacked_dataset& d : r.datasets) {
    if (!d.recoded) continue;
    ++recoded;
    table.add({d.path, text::format_bytes(d.source_bytes), text::format_bytes(d.bytes),
               described(d.source_chunk, d.source_filters), described(d.chunk, d.filters), d.reason});
  }
  if (recoded > 0) std::cout << table.text(describe_terminal(STDOUT_FILENO));
  std::cout << name << ": " << text::pluralize(r.datasets.size(), "dataset") << ", " << recoded
            << " with other chunks or filters; " << text::format_bytes(r.source_bytes) << " -> about "
            << text::format_bytes(r.bytes) << ", metadata in the first " << text::format_bytes(r.metadata_bytes) << "; about "
            << duration_text(r.seconds) << " to read and encode it here\n";
}

void print_result(const repack_report& r) {
  if (logs_json()) {
    write_log_line("info", {{"message", "done"}, {"bytes", r.bytes}, {"seconds", r.seconds}});
    return;
  }
  const std::string name = printable(r.target.empty() ? r.source : r.target);
  if (r.unchanged) {
    std::fputs((name + ": follows the layout already, nothing was changed\n").c_str(), stderr);
    return;
  }
  text_table table({{"dataset", text_table::left, 12, true}, {"chunks before"}, {"chunks after"}, {"because of"}});
  std::uint64_t recoded = 0;
  for (const repacked_dataset& d : r.datasets) {
    if (!d.recoded) continue;
    ++recoded;
    table.add({d.path, described(d.source_chunk, d.source_filters), described(d.chunk, d.filters), d.reason});
  }
  std::string text = recoded > 0 ? table.text(describe_terminal(STDERR_FILENO)) : "";
  for (const layout_finding& f : r.findings) {
    if (f.met || !f.required) continue;
    text += "not as the layout has it: " + f.rule + " of " + quote(f.path) + " is " + f.value + "; wanted: " + f.wanted + '\n';
  }
  if (r.dangling_references > 0)
    text += text::pluralize(r.dangling_references, "reference") + " to what no link leads to; null in the new file\n";
  text += name + ": " + text::pluralize(r.datasets.size(), "dataset") + ", " + std::to_string(recoded) +
          " with other chunks or filters; " + text::format_bytes(r.source_bytes) + " -> " + text::format_bytes(r.bytes) +
          ", metadata in the first " + text::format_bytes(r.metadata_bytes) + ", " + duration_text(r.seconds) + '\n';
  std::fputs(text.c_str(), stderr);
}

int check_file(const repack_arguments& a, const repack_options& options, const std::string& separator) {
  const layout_report r = check_layout(options);
  const int status = r.conforms() ? exit_success : exit_loss;
  if (a.as_json) std::cout << separator << printable_json(with_exit_status(r.report_json(), status));
  else if (!a.quiet) print_findings(printable(r.source), to_string(r.layout), r.findings, r.conforms());
  std::cout << std::flush;
  return status;
}

int plan_file(const repack_arguments& a, const repack_options& options, const std::string& separator) {
  const repack_report r = plan(options);
  if (a.as_json) std::cout << separator << printable_json(with_exit_status(r.report_json(), exit_success));
  else if (!a.quiet) print_plan(r);
  std::cout << std::flush;
  return exit_success;
}

digest_comparison repack_comparison(const repack_options& options) {
  digest_comparison c;
  c.source = options_to_digest(options.source, options.remote, options);
  c.target = options_to_digest(options.target, options.remote, options);
  c.source.lock = c.target.lock = options.lock;
  return c;
}

int repack_file(const repack_arguments& a, repack_options options, const std::string& separator,
                const std::function<void(const std::string&)>& set_current) {
  repack_report r;
  {
    progress line(a.quiet);
    options.progress = [&](const std::string& path, std::uint64_t bytes_done, std::uint64_t bytes) {
      set_current(path);
      line.update({bytes_done, bytes, true, 0, 0, path});
    };
    r = repack(options);
  }
  const int status = conforms(r.findings) ? exit_success : exit_loss;
  std::string report = with_exit_status(r.report_json(), status);
  if (a.has_digest) report = report_with_digests(report, compare_digests(repack_comparison(options), a.quiet, set_current));
  set_current("");
  if (!a.report.empty()) write_report(a.report, report);
  if (a.as_json) std::cout << separator << printable_json(report) << std::flush;
  if (!a.quiet) print_result(r);
  return status;
}

// In a process of its own.
int run_for_file(const repack_arguments& a, const repack_options& options, const std::string& separator) {
  std::error_code e;
  const std::filesystem::path real = std::filesystem::canonical(options.source, e);
  const std::string written = !options.target.empty() ? options.target : e ? options.source : real.native();
  return run_in_subprocess(
      options.source,
      [&](const std::function<void(const std::string&)>& set_current) {
    return a.check     ? check_file(a, options, separator)
           : a.dry_run ? plan_file(a, options, separator)
                       : repack_file(a, options, separator, set_current);
      },
      [&](bool) {
    if (!a.check && !a.dry_run) zarr::atomic_file::remove_unfinished(written, zarr::unfinished_name(written));
  });
}

int run(int argc, char** argv, bool planning) {
  CLI::App app("Changes the layout, chunks or filters of an HDF5 or netCDF-4 file; all else stays as it is.", "zarrbits repack");
  app.footer(repack_footer);
  repack_arguments a;
  add_repack_options(app, a);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  a.dry_run = a.dry_run || planning;
  read_arguments(a);
  repack_options& options = a.options;
  options.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
  if (!a.report.empty() && (a.check || a.in_place || a.dry_run))
    throw usage_error("--report is for a file that is written from another one; use --json");
  if (!a.check && !a.in_place) {
    options.source = a.files[0];
    options.target = a.files[1];
    require_json_report(a.report, options.source, options.target);
    check_options(options);
    return run_for_file(a, options, "");
  }
  if (a.files.empty()) return exit_success;  // a share of none
  options.source = a.files[0];
  check_options(options);
  return run_for_each(a.files, a.as_json, [&](const std::string& file, const std::string& separator) {
    options.source = file;
    check_options(options);
    return run_for_file(a, options, separator);
  });
}

}  // namespace

const CLI::App& repack_parser() {
  static repack_arguments a;
  static CLI::App app;
  static const bool is_complete = (add_repack_options(app, a), true);
  return static_cast<void>(is_complete), app;
}

bool is_repack(int argc, char** argv) {
  CLI::App app;
  repack_arguments a;
  add_repack_options(app, a);
  return can_parse(app, argc, argv) && a.files.size() == 2 && !a.check && !a.in_place && a.partition.empty() &&
         zarr::is_hdf5_name(a.files[1]) && !zarr::is_store_source(a.files[0], a.options.remote);
}

int repack_main(int argc, char** argv) { return run(argc, argv, false); }
int plan_repack_main(int argc, char** argv) { return run(argc, argv, true); }

}  // namespace zarrbits::command
