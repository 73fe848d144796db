// SPDX-License-Identifier: BSL-1.0
//
// zarrbits convert and finalize: progress, and the output at the end.
//
#include "command/auto_bits.hpp"
#include "command/child_process.hpp"
#include "command/combined_source.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/complete_store.hpp"
#include "command/convert_arguments.hpp"
#include "command/digest_comparison.hpp"
#include "command/progress.hpp"
#include "command/report_file.hpp"
#include "command/summary.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/inspect.hpp>
#include <zarrbits/source_name.hpp>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <string>

namespace zarrbits::command {

int exit_status_of(const convert_arguments& arguments, const convert_result& result) {
  return result.has_losses() && !arguments.allow_lossy ? exit_loss : exit_success;
}

bool is_up_to_date(const convert_arguments& arguments, const std::function<void(const std::string&)>& set_current) {
  const auto uncompared = compare_complete_store(arguments.options, set_current);
  if (!uncompared) return false;
  zarr::remove_stale_lock(arguments.options.target.name);
  if (!arguments.quiet) {
    print_error(quote(arguments.options.target.name) + " is complete and was made from this source" +
                (*uncompared == 0 ? "" : " (except for " + text::pluralize(*uncompared, "object") + ", not compared)") +
                ": nothing is left to do" + (arguments.report.empty() && !arguments.print_json ? "" : ", and no report of it"));
  }
  return true;
}

namespace {

digest_comparison convert_comparison(const convert_options& options, const convert_result& result) {
  digest_comparison c;
  c.source = options_to_digest(options.source.name, options.remote, options.execution);
  c.source.include = options.selection.include;
  c.source.exclude = options.selection.exclude;
  c.source.external = options.source.external;
  c.source.lock = options.source.lock;
  c.source.allow_expansion = options.execution.allow_expansion;
  c.target = options_to_digest(name_to_digest(options.target.name), options.remote, options.execution);
  c.has_note = true;
  c.target.external = options.source.external;
  // references, and sources that lead to further files
  const std::string file = split_source(options.source.name).file;
  if (options.target.references && !io::is_remote(file)) c.target.external.push_back(file);
  for (const converted_object& o : result.objects) {
    if (o.kind != object_kind::dataset || (o.outcome != outcome::skipped && !o.lossy)) continue;
    c.lost.push_back(o.zarr_path.empty() ? o.path : o.zarr_path);
    if (!o.lost_chunks.empty()) c.source.exclude.push_back(o.path);
  }
  return c;
}

}  // namespace

int print_result(const convert_arguments& arguments, const convert_result& result,
                 const std::function<void(const std::string&)>& set_current) {
  print_losses(result);
  std::string report = with_exit_status(result.report_json(), exit_status_of(arguments, result));
  if (arguments.has_digest) {
    report =
        report_with_digests(report, compare_digests(convert_comparison(arguments.options, result), arguments.quiet, set_current));
    set_current("");
    if (!arguments.report.empty()) write_report(arguments.report, report);
  }
  if (arguments.print_json) std::cout << printable_json(report) << std::flush;
  if (!arguments.quiet) print_summary(result);
  return exit_status_of(arguments, result);
}

namespace {

// No other process on any machine has this name.
std::string unique_text() {
  std::random_device random;
  char text[32];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

// A single-file store, and one that the same command starts over, is not continued.
bool can_continue(const convert_options& options) {
  return !zarr::is_one_file(options.target.name) && !(options.source.concat && options.source.concat->append);
}

// What a signal or a crash left. Empty if there is nothing, or a server does not respond.
std::optional<unfinished_store> unfinished_work(const convert_options& options, bool interrupted) {
  if (!can_continue(options)) return {};
  try {
    return find_unfinished(options.target.name, options.remote);
  } catch (const std::exception& e) {
    print_error((interrupted ? "interrupted: " : "") + std::string(e.what()));
    return {};
  }
}

// Prints which part of an interrupted store (by a signal or a crash) is kept, and how to continue.
void print_resume_hint(const convert_options& options, const unfinished_store& unfinished, convert_kind kind, bool interrupted) {
  const std::string prefix = std::string(interrupted ? "interrupted: " : "") + "what is done is kept in " +
                             quote(options.target.name) + " (" + text::pluralize(unfinished.units_done, "unit") +
                             (unfinished.units > 0 ? " of " + std::to_string(unfinished.units) : std::string()) + "); ";
  print_error(prefix + (options.target.existing == existing_store::overwrite
                            ? "run the same command without --overwrite to continue"
                        : kind == convert_kind::finalize ? "the same command completes it"
                                                         : "run the same command again to continue"));
}

int run(convert_kind kind, int argc, char** argv) {
  if (kind == convert_kind::convert && is_export(argc, argv)) return export_main(argc, argv);
  if (kind == convert_kind::convert && is_repack(argc, argv)) return repack_main(argc, argv);
  convert_arguments arguments;
  if (const auto over = parse_convert_arguments(arguments, kind, argc, argv)) return *over;
  convert_options& options = arguments.options;
  if (arguments.is_joined_file)
    return write_combined_file(*arguments.combination, options, arguments.quiet, arguments.report, arguments.print_json);
  combined_source combined(arguments.combination);
  options.source.is_temporary = combined.is_used();
  if (const auto write = options.execution.before_done; write && combined.is_used())
    options.execution.before_done = [&combined, write](const convert_result& result) { write(combined.described(result)); };
  const bool finalizing = kind == convert_kind::finalize,
             keep = finalizing || options.target.existing == existing_store::resume || options.execution.partition;
  options.execution.run = unique_text();
  return run_in_subprocess(
      options.source.name,
      [&](const std::function<void(const std::string&)>& at_hand) {
    combined.replace(options.source.name, options.source.concat, options.target.base, options.source.external, options.remote,
                     options.source.lock, arguments.quiet, at_hand);
    combined.choose_dimension(options);
    if ((options.target.existing == existing_store::resume || finalizing) && is_up_to_date(arguments, at_hand))
      return static_cast<int>(exit_success);
    if (arguments.bits_auto) find_bits(options, at_hand);
    convert_result result;
    {
      progress line(arguments.quiet);
      options.execution.measure_first = line.is_visible();
      options.execution.progress = [&](const convert_progress& p) {
        at_hand(p.path.empty() ? "/" : std::string(p.path));
        line.update({p.bytes_done, p.bytes, true, p.objects_done, p.objects, std::string(p.path), p.bytes_resumed});
      };
      result = combined.described(finalizing ? finalize(options) : convert(options));
    }
    at_hand("");
    if (options.execution.partition) {
      if (!arguments.quiet) {
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, "%.2f s", result.seconds);
        print_status("share " + std::to_string(options.execution.partition->index) + " of " +
                     std::to_string(options.execution.partition->count) + " (" + arguments.partition_origin + ") is done: " +
                     (options.target.references ? text::pluralize(result.referenced_objects, "reference") + ", and "
                                                : text::pluralize(result.store_objects, "file") + ", ") +
                     text::format_bytes(result.store_bytes) + (options.target.references ? " that no source has" : "") + ", " +
                     seconds + "; when all are done, run: zarrbits finalize");
      }
      return 0;
    }
    return print_result(arguments, result, at_hand);
      },
      [&](bool interrupted) {
    combined.remove();
    if (interrupted) remote::cancel_s3_retries();
    const auto unfinished = unfinished_work(options, interrupted);
    const bool stays = keep || (unfinished && unfinished->units_done > 0);
    const zarr::store_writer_options own_run{.run = options.execution.run, .remote = options.remote};
    if (stays) zarr::release_unfinished(options.target.name, own_run);
    else zarr::remove_unfinished(options.target.name, own_run);
    if (unfinished && stays) print_resume_hint(options, *unfinished, kind, interrupted);
  });
}

}  // namespace

int convert_main(int argc, char** argv) { return run(convert_kind::convert, argc, argv); }
int finalize_main(int argc, char** argv) { return run(convert_kind::finalize, argc, argv); }

}  // namespace zarrbits::command
