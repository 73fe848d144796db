// SPDX-License-Identifier: BSL-1.0
//
// `zarrbits rename`: other names for the sources of references.
//
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/printable.hpp"
#include "command/report_file.hpp"
#include "text/format.hpp"
#include "zarr/write/atomic_directory.hpp"
#include "zarr/write/atomic_file.hpp"

#include <zarrbits/rename.hpp>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

namespace zarrbits::command {
namespace {

const char rename_footer[] =
    "OLD is what names of files in the references begin with, up to a slash or the end: a path, file:///PATH, "
    "s3://BUCKET/PREFIX,\n"
    "gs://, az:// or https://HOST/PATH. A path that is relative is one from the folder of the references. NEW is such a name.\n"
    "Below an https:// URL, names are percent-encoded. A NEW with a user or a query is refused: all would read it.\n\n"
    "The references are replaced in one step: if anything fails, they are as they were. Of renamed files they have only the\n"
    "size, because copies have times of their own; \"zarrbits verify --base OLD=NEW\" finds the files here.\n\n"
    "Examples:\n"
    "  zarrbits rename refs.json /data https://host/archive\n"
    "  zarrbits rename refs.parquet s3://old-bucket s3://new-bucket/prefix\n\n"
    "Exit status: 0 done; 1 failure, such as references with no such name, or damaged ones; 2 wrong usage.";

struct rename_arguments {
  rename_options options;
  std::string memory;
  bool as_json = false, quiet = false;
};

void add_rename_options(CLI::App& app, rename_arguments& a) {
  rename_options& o = a.options;
  app.add_option("REFS", o.references, "References: a JSON file, or a folder of Parquet files")->required()->type_name("REFS");
  app.add_option("OLD", o.old_name, "What names of files begin with: a path or a URL")->required()->type_name("OLD");
  app.add_option("NEW", o.new_name, "What they begin with then")->required()->type_name("NEW");
  app.add_flag("--fsync", o.fsync, "Flush the new references to the disk before they replace the old ones");
  app.add_option("--memory", a.memory,
                 "Limit the memory for the names of all files that are renamed, such as 512M (the default); references "
                 "themselves are read piece by piece")
      ->type_name("BYTES");
  app.add_flag("--json", a.as_json, "Print a report as JSON");
  app.add_flag("-q,--quiet", a.quiet, "Print nothing but errors");
}

// What a run that is ended by a signal leaves beside the references.
void remove_unfinished(const std::string& references) {
  std::error_code e;
  const std::filesystem::path real = std::filesystem::canonical(references, e);
  const std::string path = e ? references : real.native(), temporary = zarr::unfinished_name(path);
  if (std::filesystem::is_directory(temporary, e)) zarr::atomic_directory::remove_unfinished(path, temporary);
  else zarr::atomic_file::remove_unfinished(path, temporary);
}

}  // namespace

int rename_main(int argc, char** argv) {
  CLI::App app("Gives the sources of references other names.", "zarrbits rename");
  app.footer(rename_footer);
  rename_arguments a;
  add_rename_options(app, a);
  add_log_format_option(app);
  if (const auto over = parse_arguments(app, argc, argv)) return *over;
  if (!a.memory.empty()) a.options.memory = parse_bytes("--memory", a.memory);
  check_options(a.options);
  tune_heap(a.options.memory);
  return run_in_subprocess(
      a.options.references,
      [&](const auto& set_current) {
    set_current("");  // a large file takes its time
    const rename_report r = rename_references(a.options);
    if (a.as_json) std::cout << printable_json(with_exit_status(r.report_json(), exit_success));
    else if (!a.quiet)
      std::cout << printable(r.references) << ": " << text::pluralize(r.files, "file") << (r.files == 1 ? " has" : " have")
                << " another name\n";
    std::cout << std::flush;
    return int{exit_success};
      },
      [&](bool) { remove_unfinished(a.options.references); });
}

}  // namespace zarrbits::command
