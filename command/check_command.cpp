// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits check`: prints what zarrbits/check.hpp finds.
//
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/each_name.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/partition_option.hpp"
#include "command/progress.hpp"
#include "command/remote_options.hpp"
#include "command/report_file.hpp"
#include "command/source_list.hpp"
#include "command/terminal.hpp"
#include "io/remote_url.hpp"
#include "text/format.hpp"

#include <zarrbits/check.hpp>
#include <zarrbits/source_name.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace zarrbits::command {
namespace {

const char check_footer[] =
    "Names are Zarr stores of v2 or v3 (directories, .zip files, s3://BUCKET/PREFIX, references as JSON or Parquet) and HDF5 or\n"
    "netCDF-4 files. Reads all metadata and decodes every chunk: checksums, lengths, indexes of shards; compares consolidated\n"
    "metadata with those of the nodes, and looks for keys that belong to nothing, and for what killed runs left.\n\n"
    "A problem is damaged, contradicts something else, or does not belong there. A notice is unusual, and allowed.\n\n"
    "Examples:\n"
    "  zarrbits check out.zarr\n"
    "  zarrbits check --json *.nc | python3 -m json.tool\n"
    "  zarrbits check --sample 1% --seed 7 s3://bucket/out.zarr\n\n"
    "Exit status: 0 nothing is wrong; 1 failure; 2 wrong usage; 3 there are problems, or something could not be checked.";

constexpr std::size_t max_printed = 3;  // of the same path and rule

struct check_arguments {
  integrity_options options;
  std::vector<std::string> names;
  std::string sample, seed, partition, threads, memory;
  bool no_missing = false, as_json = false, quiet = false;
};

void add_check_options(CLI::App& app, check_arguments& a) {
  integrity_options& o = a.options;
  app.add_option("NAMES", a.names, "Stores and files, or in.h5:/a/b, out.zarr:/a/b for a part of one")
      ->required()
      ->type_name("out.zarr|in.h5");
  app.add_flag("--metadata", o.metadata_only, "Read no chunks, only metadata and the names of objects");
  app.add_option("--sample", a.sample, "Read only this share of the chunks (or shards) of each array, and at least one of each")
      ->type_name("PERCENT");
  app.add_option("--seed", a.seed, "With --sample: another number chooses other chunks (default: 0)")->type_name("N");
  app.add_flag("--no-missing", a.no_missing, "A chunk that was never written is a problem; without this, it has the fill value");
  app.add_option("--partition", a.partition,
                 "Read only one share of the chunks of each name; the first share also reports on metadata. I/N: share I of N, "
                 "from 0; or slurm or mpi")
      ->type_name("slurm|mpi|I/N");
  app.add_option("--threads", a.threads, "Threads that decode chunks (default: the processors that the process may use)")
      ->type_name("N");
  app.add_option("--memory", a.memory, "Limit the memory for chunks and lists of chunks, such as 512M (the default)")
      ->type_name("BYTES");
  app.add_flag("--json", a.as_json, "Print the report on standard output; of several names, a list of reports");
  app.add_flag("-q,--quiet", a.quiet, "No progress, no tables; only findings");
  add_external_option(app, o.external);
  add_no_lock_option(app, o.lock);
  add_remote_options(app, o.remote, "Servers");
}

template <class Number>
Number parse_number(const std::string& option, std::string_view text) {
  Number n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw usage_error(option + " is not a number: " + quote(std::string(text)));
  return n;
}

double parse_share(const std::string& text) {
  const bool is_percent = text.ends_with('%');
  const double n = parse_number<double>("--sample", std::string_view(text).substr(0, text.size() - is_percent));
  const double share = is_percent ? n / 100 : n;
  if (!(share > 0 && share <= 1)) throw usage_error("--sample is more than 0% and at most 100%, such as 1%, not " + quote(text));
  return share;
}

void read_arguments(check_arguments& a) {
  integrity_options& o = a.options;
  check_remote_options(o.remote);
  if (!a.sample.empty()) o.sample = parse_share(a.sample);
  if (!a.seed.empty()) {
    if (a.sample.empty()) throw usage_error("--seed requires --sample");
    o.seed = parse_number<std::uint64_t>("--seed", a.seed);
  }
  if (!a.partition.empty()) o.partition = parse_partition("--partition", a.partition).partition;
  if (!a.memory.empty()) o.memory = parse_bytes("--memory", a.memory);
  o.threads = parse_threads(a.threads);
  o.allow_missing = !a.no_missing;
  o.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
}

void print_arrays(const integrity_report& r) {
  text_table table({{"array", text_table::left, 12, true},
                    {"chunks", text_table::right},
                    {"checked", text_table::right},
                    {"missing", text_table::right},
                    {"damaged", text_table::right}});
  for (const checked_array& a : r.arrays)
    table.add({a.path, std::to_string(a.chunks), std::to_string(a.checked), std::to_string(a.missing), std::to_string(a.damaged)},
              a.damaged > 0 ? colour::red : colour::plain);
  if (!r.arrays.empty()) std::cout << table.text(describe_terminal(STDOUT_FILENO));
}

// "/a/c/0/1" of a store; "/a chunk 0/1" and "/a link" of a file.
std::string place_of(const integrity_report& r, const integrity_finding& f) {
  if (f.key.empty()) return f.path;
  if (r.format == "HDF5") return f.path + " " + f.rule + " " + f.key;
  return (f.path == "/" ? "" : f.path) + "/" + f.key;
}

void print_findings(const integrity_report& r) {
  std::map<std::pair<std::string, std::string>, std::size_t> printed;
  for (const integrity_finding& f : r.findings) {
    if (++printed[{f.path, f.rule}] > max_printed) continue;
    std::cout << to_string(f.severity) << ": " << printable(place_of(r, f)) << ": " << printable(with_flags(f.reason)) << '\n';
  }
}

void print_verdict(const integrity_report& r) {
  std::uint64_t checked = 0, bytes = 0;
  for (const checked_array& a : r.arrays) {
    checked += a.checked;
    bytes += a.bytes;
  }
  std::string counts;
  const auto add = [&](std::uint64_t n, const std::string& text) {
    if (n > 0) counts += (counts.empty() ? "" : ", ") + text;
  };
  add(r.problems, text::pluralize(r.problems, "problem"));
  add(r.unchecked, std::to_string(r.unchecked) + " unchecked");
  add(r.notices, text::pluralize(r.notices, "notice"));
  const char* const verdict = r.problems > 0 ? "FAILED" : r.unchecked > 0 ? "INCOMPLETE" : "OK";
  std::cout << verdict << ": " << quote(r.name) << ", "
            << (r.partition ? "partition " + std::to_string(r.partition->index) + "/" + std::to_string(r.partition->count) + ", "
                            : "")
            << text::pluralize(r.arrays.size(), "array") << ", " << text::pluralize(checked, "chunk") << " checked ("
            << text::format_bytes(bytes) << ")" << (r.digest.empty() || r.problems > 0 ? "" : ", digest as noted")
            << (counts.empty() ? "" : "; " + counts) << '\n';
}

int check_one(const check_arguments& a, integrity_options options, const std::string& separator,
              const std::function<void(const std::string&)>& set_current) {
  integrity_report r;
  {
    progress line(a.quiet);
    options.progress = [&](const integrity_progress& p) {
      set_current(p.path);
      line.update({p.bytes_done, p.bytes, true, 0, 0, p.path});
    };
    r = check(options);
  }
  set_current("");
  const int status = r.is_sound() ? exit_success : exit_loss;
  if (a.as_json) {
    std::cout << separator << printable_json(with_exit_status(r.report_json(), status));
  } else {
    if (!a.quiet) print_arrays(r);
    print_findings(r);
    if (!a.quiet) print_verdict(r);
  }
  std::cout << std::flush;
  return status;
}

}  // namespace

int check_main(int argc, char** argv) {
  CLI::App app("Says whether Zarr stores, HDF5 and netCDF files are all right, with nothing to compare them with.",
               "zarrbits check");
  app.footer(check_footer);
  check_arguments a;
  add_check_options(app, a);
  add_log_format_option(app);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  read_arguments(a);
  integrity_options& options = a.options;
  options.name = a.names[0];
  check_options(options);
  tune_heap(options.memory);
  return run_for_each(a.names, a.as_json, [&](const std::string& name, const std::string& separator) {
    options.name = name;
    check_options(options);
    return run_in_subprocess(split_source(name).file,
                             [&](const auto& set_current) { return check_one(a, options, separator, set_current); });
  });
}

}  // namespace zarrbits::command
