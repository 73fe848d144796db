// SPDX-License-Identifier: BSL-1.0
//
// The public functions: rename_references, its report.
//
#include <zarrbits/rename.hpp>
#include <zarrbits/version.hpp>

#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "rename/json_renaming.hpp"
#include "rename/parquet_renaming.hpp"
#include "rename/url_renaming.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "zarr/write/atomic_directory.hpp"
#include "zarr/write/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace zarrbits {

namespace fs = std::filesystem;

namespace {

// In one step: a reader has the old references or the new ones. Whoever else would write them is refused meanwhile.
void replace_references(const std::string& path, rename::url_renaming& names, const rename_options& options) {
  const zarr::store_writer_options target = {.target = zarr::store_writer_options::if_exists::replace, .sync = options.fsync};
  const zarr::atomic_file::kind references = {"references", [](const std::string&) { return true; }};  // they are read first
  const auto require_names = [&] {
    if (names.count() == 0)
      throw error(errc::no_match,
                  "no reference of \"" + path + "\" is to \"" + text::escape_name(options.old_name) +
                      "\" or below; use what its names begin with",
                  {path});
  };
  if (fs::is_directory(path)) {
    zarr::atomic_directory folder(path, zarr::unfinished_name(path), target, references);
    rename::rename_in_parquet(path, names, folder);
    require_names();
    folder.finish();
    return;
  }
  zarr::atomic_file file(path, zarr::unfinished_name(path), target, references);
  std::uint64_t offset = 0;
  rename::rename_in_json(path, names, [&](std::string_view text) {
    require_names();
    file.write_at(offset, std::as_bytes(std::span(text.data(), text.size())));
    offset += text.size();
  });
  file.finish();
}

}  // namespace

void check_options(const rename_options& options) { rename::url_renaming(options, options.references); }

rename_report rename_references(const rename_options& options) {
  check_options(options);
  const auto begun = std::chrono::steady_clock::now();
  std::error_code e;
  const std::string temporary = zarr::unfinished_name(options.references);
  if (!fs::exists(options.references, e) && fs::is_directory(temporary, e))
    zarr::atomic_directory::remove_unfinished(options.references, temporary);  // a run was killed as it replaced the folder
  constexpr const char* remedy = "use the name of references in JSON or Parquet";
  const std::string path = fs::canonical(options.references, e).native();  // a symbolic link stays one
  if (e) io::throw_errno("cannot open", options.references, e.value(), remedy);
  if (!fs::is_directory(path, e) && !fs::is_regular_file(path, e))  // a pipe would block
    throw error(errc::unsupported, "\"" + path + "\" is neither a file nor a folder; " + remedy, {path});
  rename::url_renaming names(options, path);
  try {
    replace_references(path, names, options);
  } catch (const io::reference_error& wrong) {
    throw error(errc::damaged_source, wrong.what(), {path});
  } catch (const fs::filesystem_error& wrong) {
    throw error(errc::io_failed, "cannot read \"" + path + "\": " + wrong.code().message() + "; check the permissions there",
                {path});
  }
  rename_report report{options.references, names.count()};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

std::string rename_report::report_json() const {
  text::json report = {
      {"version", 1}, {"renamer", std::string("zarrbits ") + version()}, {"references", text::escape_name(references)}};
  report["files"] = files;
  report["seconds"] = seconds;
  return text::json_text(report, 1) + "\n";
}

}  // namespace zarrbits
