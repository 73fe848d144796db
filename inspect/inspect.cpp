// SPDX-License-Identifier: BSL-1.0
//
// The public functions: they find the kind of tree that a name means, and turn every error into one exception.
//
#include <zarrbits/convert.hpp>
#include <zarrbits/inspect.hpp>

#include "hdf5/h5.hpp"
#include "inspect/file_reports.hpp"
#include "inspect/tree_readers.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_access.hpp"
#include "zarr/read/store_reader.hpp"

#include <filesystem>
#include <system_error>

namespace zarrbits {

namespace {

namespace fs = std::filesystem;

inspected_tree read(const inspect_options& options) {
  const std::string& name = options.name;
  remote::init_s3({}, name, options.remote, options.warning);
  const source_name parts = split_source(name);
  const auto read_store = [&](zarr::store_folder store) {
    store.max_string_bytes = options.memory / 4;
    return inspection::read_zarr(store, parts.object, options);
  };
  // a store in S3 is a prefix of names, and has none itself
  const bool is_file = zarr::probe_source(name, options.remote) || io::is_web(name);
  const bool is_store = zarr::is_store_name(name);
  if (io::is_remote(name) && is_file && !is_store) return inspection::read_hdf5(parts.file, parts.object, options);
  if (io::is_remote(name))
    return read_store(zarr::open_store(parts.file, options.remote, {}, options.memory, zarr::access_pattern::partial));
  std::error_code e;
  const fs::file_status s = fs::status(parts.file, e);
  if (!fs::exists(s))
    throw zarrbits::error(errc::not_found, "cannot open \"" + name + "\": " + (e ? e.message() : "No such file or directory"),
                          {name});
  if (is_store) return read_store(zarr::open_store(parts.file, {}, {}, options.memory));
  return inspection::read_hdf5(parts.file, parts.object, options);
}

auto with_public_errors(const std::string& name, const auto& run) {
  const hdf5::silence quiet;
  return zarr::as_public_errors(name, name, errc::damaged_store, run);
}

}  // namespace

inspected_tree inspect(const inspect_options& options) {
  return with_public_errors(options.name, [&] { return read(options); });
}

std::optional<unfinished_store> find_unfinished(const std::string& store, const remote_access& remote) {
  return with_public_errors(store, [&]() -> std::optional<unfinished_store> {
    remote::init_s3({}, store, remote, {});
    std::error_code e;
    const std::string partitions = io::partitions_path(store);
    if (!io::is_object_store(store) && fs::is_directory(partitions, e) && !fs::exists(store, e))
      return inspection::read_unfinished(zarr::open_folder(partitions, remote));
    if (!io::is_object_store(store) && !fs::is_directory(store, e)) return {};
    return inspection::read_unfinished(zarr::open_folder(store, remote));
  });
}

filter_report report_filters(const file_options& options,
                             const std::function<void(const std::string& path, std::uint64_t objects)>& progress) {
  return with_public_errors(options.file, [&] { return inspection::collect_filters(options, progress); });
}

suggested_bits suggest_bits(const file_options& options, const std::function<void(const suggest_progress&)>& progress) {
  return with_public_errors(options.file, [&] { return inspection::collect_bits(options, progress); });
}

}  // namespace zarrbits
