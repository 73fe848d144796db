// SPDX-License-Identifier: BSL-1.0
//
// The public functions repack() and check_layout(): the file, which gets its name when it is complete and its layout was seen.
//
#include <zarrbits/convert_options.hpp>
#include <zarrbits/detail/ordered_work.hpp>
#include <zarrbits/repack.hpp>
#include <zarrbits/source_name.hpp>

#include "hdf5/created_file.hpp"
#include "hdf5/file_pages.hpp"
#include "hdf5/foreign_format.hpp"
#include "io/remote_url.hpp"
#include "repack/file_attributes.hpp"
#include "repack/metadata_size.hpp"
#include "repack/opened_file.hpp"
#include "repack/value_copier.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <map>
#include <string_view>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t default_page_bytes = 64U << 10, max_page_bytes = 1U << 30;

hdf5::source_options source_options_of(const repack_options& options) { return {.remote = options.remote, .lock = options.lock}; }

class new_file {
 public:
  new_file(const opened_contents& source, const dataset_changes& changes, const repack_options& options)
      : source_(source), changes_(changes), options_(options), lowest_format_(lowest_format(source, changes)) {}

  // How many bytes its metadata take. `visit` gets the value_copier.
  template <class Visit>
  std::uint64_t measure(const Visit& visit) const {
    metadata_counter counter;
    const hdf5::handle access = access_properties();
    counter.set_driver(access);
    write("metadata", access, 0, [&](value_copier& values) {
      counter.drop_values();
      values.reserve_indexes();
      visit(values);
    });
    return counter.bytes();
  }
  std::uint64_t measure() const {
    return measure([](value_copier&) {});
  }

  // `metadata_bytes`: room at the start of the file, in a block or in a page.
  void write(const std::string& name, std::uint64_t metadata_bytes, std::uint64_t page_size) const {
    const hdf5::handle access = access_properties();
    hdf5::check(H5Pset_meta_block_size(access, metadata_bytes), "set the size of the block of metadata");
    write(name, access, page_size, [](value_copier& values) { values.run(); });
  }

  // References in the last file that lead to nothing.
  std::uint64_t dangling() const noexcept { return dangling_; }

 private:
  hdf5::handle access_properties() const {
    hdf5::handle access(H5Pcreate(H5P_FILE_ACCESS), "create properties");
    const H5F_libver_t lowest = options_.format == file_format::latest ? H5F_LIBVER_LATEST : lowest_format_;
    hdf5::check(H5Pset_libver_bounds(access, lowest, H5F_LIBVER_LATEST), "choose the format of the file");
    return access;
  }

  template <class WriteValues>
  void write(const std::string& name, hid_t access, std::uint64_t page_size, const WriteValues& write_values) const {
    file_copier copies(source_, changes_);
    hdf5::created_file file(name, copies.creation_properties(page_size), access);
    copies.run(file);
    value_copier values(source_, copies, changes_, options_);
    write_values(values);
    dangling_ = copies.references().dangling();
    file.finish();
  }

  const opened_contents source_;
  const dataset_changes& changes_;
  const repack_options& options_;
  const H5F_libver_t lowest_format_;
  mutable std::uint64_t dangling_ = 0;
};

// A page that has all metadata, so that a reader gets them with one request.
std::uint64_t page_size_for(std::uint64_t metadata_bytes, std::uint64_t user_block, const repack_options& options) {
  if (options.page_size > 0) return options.page_size;
  if (options.layout != file_layout::cloud || user_block > 0) return 0;
  return std::clamp(std::bit_ceil(metadata_bytes), default_page_bytes, max_page_bytes);
}

void copy_user_block(const hdf5::source_file& source, const zarr::atomic_file& target) {
  std::vector<std::byte> block(static_cast<std::size_t>(source.user_block_size()));
  if (block.empty()) return;
  source.bytes()->read(0, block);
  target.write_at(0, block);
}

std::vector<repacked_dataset> describe_datasets(const opened_contents& source, const opened_contents& target,
                                                const dataset_changes& changes) {
  std::map<std::string_view, haddr_t> copies;
  for (const tree_object& o : target.tree.objects) {
    if (o.kind == H5I_DATASET) copies.emplace(o.path, o.address);
  }
  std::vector<repacked_dataset> list;
  for (const tree_object& o : source.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    const auto copy = copies.find(o.path);
    if (copy == copies.end()) throw hdf5::failure("\"" + text::escape_name(o.path) + "\" is not in the new file");
    const dataset_layout &before = source.contents.datasets.at(o.address), &after = target.contents.datasets.at(copy->second);
    const auto change = changes.find(o.address);
    repacked_dataset& d = list.emplace_back();
    d.path = text::escape_name(o.path);
    d.recoded = change != changes.end();
    if (d.recoded) d.reason = change->second.reason;
    d.source_chunk = before.chunk;
    d.chunk = after.chunk;
    d.source_filters = before.filters.text();
    d.filters = after.filters.text();
    d.chunks = after.chunks;
    d.source_bytes = before.stored_bytes;
    d.bytes = after.stored_bytes;
  }
  return list;
}

// The datasets of a file that is not written.
std::vector<repacked_dataset> describe_changes(const opened_contents& source, const dataset_changes& changes,
                                               const std::map<haddr_t, copy_estimate>& estimates) {
  std::vector<repacked_dataset> list;
  for (const tree_object& o : source.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    const dataset_layout& before = source.contents.datasets.at(o.address);
    const copy_estimate& after = estimates.at(o.address);
    repacked_dataset& d = list.emplace_back();
    d.path = text::escape_name(o.path);
    d.source_chunk = d.chunk = before.chunk;
    d.source_filters = d.filters = before.filters.text();
    d.source_bytes = before.stored_bytes;
    d.chunks = after.chunks;
    d.bytes = after.bytes;
    const auto change = changes.find(o.address);
    if (change == changes.end()) continue;
    d.recoded = true;
    d.reason = change->second.reason;
    if (!change->second.chunk.empty()) d.chunk = change->second.chunk;
    if (change->second.filters) d.filters = hdf5::pipeline{.filters = *change->second.filters}.text();
  }
  return list;
}

// True if an object names another file relative to the folder of its own.
bool names_files_beside_it(const opened_file& source) {
  const auto is_relative = [](const char* name) { return name && *name && *name != '/'; };
  for (const tree_object& o : source.tree.objects) {
    for (const tree_link& link : o.links) {
      unsigned flags = 0;
      const char *file = nullptr, *object = nullptr;
      if (link.type == H5L_TYPE_EXTERNAL &&
          H5Lunpack_elink_val(link.value.data(), link.value.size(), &flags, &file, &object) >= 0 && is_relative(file))
        return true;
    }
    if (o.kind != H5I_DATASET) continue;
    const hdf5::handle properties(H5Dget_create_plist(open_object(source.file.file(), o)), "get the properties");
    if (source.contents.datasets.at(o.address).layout == H5D_VIRTUAL || H5Pget_external_count(properties) > 0) return true;
  }
  return false;
}

void warn_of_other_folder(const opened_file& source, const repack_options& options) {
  namespace fs = std::filesystem;
  std::error_code e;
  if (!options.warning || io::is_remote(options.source)) return;
  const fs::path from = fs::weakly_canonical(fs::absolute(options.source), e).parent_path(),
                 to = fs::weakly_canonical(fs::absolute(options.target), e).parent_path();
  if (from == to || !names_files_beside_it(source)) return;
  options.warning("\"" + options.source + "\" names other files, which readers of \"" + options.target +
                  "\" look for in its own folder; write the new file into the folder of the old one, or move the others, too");
}

bool has_explicit_changes(const repack_options& o) {
  return !o.chunks.empty() || !o.filters.empty() || o.page_size > 0 || o.format != file_format::compatible;
}

void write_checked(const opened_file& source, const dataset_changes& changes, const repack_options& options,
                   const zarr::atomic_file& target, repack_report& report) {
  hdf5::require_pages_fit(options.source, options.page_size, source.file.user_block_size());
  const opened_contents view = source.view();
  const new_file file(view, changes, options);
  std::uint64_t metadata_bytes = file.measure();
  // what libhdf5 allocates in the end depends a little on when it writes what
  metadata_bytes += metadata_bytes / 64 + 2048;
  constexpr int max_tries = 3;
  for (int i = 1;; ++i) {
    try {
      file.write(target.temporary(), metadata_bytes, page_size_for(metadata_bytes, source.file.user_block_size(), options));
    } catch (const hdf5::failure& e) {
      if (!hdf5::is_of_system(e.what())) throw;  // the driver of the source has its own sentences
      throw error(errc::io_failed,
                  "cannot write \"" + target.path() + "\": " + e.what() + "; check the space and the permissions there",
                  {target.path()});
    }
    copy_user_block(source.file, target);
    const opened_file copy(target.temporary(), {.lock = false});  // it is ours
    if (copy.contents.last_metadata >= copy.contents.first_value() && i < max_tries) {
      metadata_bytes *= 2;
      continue;
    }
    report.findings = check_rules(copy.view(), options);
    report.datasets = describe_datasets(view, copy.view(), changes);
    report.metadata_bytes = copy.contents.last_metadata;
    report.objects = copy.tree.objects.size();
    break;
  }
  report.dangling_references = file.dangling();
}

repack_report new_report(const repack_options& options) {
  repack_report report;
  report.source = options.source;
  report.target = options.target;
  report.layout = options.layout;
  return report;
}

template <class F>
auto with_public_errors(const repack_options& options, F&& run) {
  return zarr::as_public_errors(options.target, options.source, errc::damaged_source, [&] {
    try {
      return run();
    } catch (const hdf5::failure& e) {
      throw error(errc::damaged_source, "\"" + options.source + "\" cannot be copied: " + e.what(), {options.source});
    } catch (const io::read_error& e) {
      throw error(errc::io_failed, "\"" + options.source + "\" cannot be read: " + e.what(), {options.source});
    } catch (const compressors::corrupt_chunk& e) {
      throw error(errc::damaged_source, "\"" + options.source + "\" is damaged: " + e.what(), {options.source});
    }
  });
}

}  // namespace

}  // namespace zarrbits::repacking

namespace zarrbits {

const char* to_string(file_layout layout) noexcept {
  switch (layout) {
    case file_layout::asis: return "asis";
    case file_layout::cloud: return "cloud";
    case file_layout::cmip7: return "cmip7";
  }
  return "unknown";
}

void check_options(const repack_options& options) {
  if (options.source.empty()) throw error(errc::invalid_option, "there is no name of a file to repack");
  if (options.target.find("://") != std::string::npos)
    throw error(errc::invalid_option, "a file is written to a local disk, not to \"" + options.target +
                                          "\"; write it to a disk, and upload it from there");
  if (options.target.empty() && options.source.find("://") != std::string::npos)
    throw error(errc::invalid_option, "\"" + options.source + "\" is on a server, where it cannot be replaced; name a target");
  if (options.chunk_bytes < repacking::min_chunk_bytes || options.chunk_bytes > (std::uint64_t{1} << 31))
    throw error(errc::invalid_option, "`chunk_bytes` is 4 MiB to 2 GiB, not " + text::format_bytes(options.chunk_bytes));
  if (options.page_size != 0 && (options.page_size < 512 || options.page_size > repacking::max_page_bytes))
    throw error(errc::invalid_option,
                "`page_size` has 512 bytes to 1 GiB, not " + std::to_string(options.page_size) + "; set it to such a size");
  if (options.memory < min_memory)
    throw error(errc::invalid_option, "`memory` is " + text::format_bytes(options.memory) +
                                          ", too little to repack; use at least " + text::format_bytes(min_memory));
}

repack_report plan(const repack_options& options) {
  check_options(options);
  const hdf5::silence quiet;
  repack_report report = repacking::new_report(options);
  repacking::with_public_errors(options, [&] {
    const repacking::opened_file source(options.source, repacking::source_options_of(options));
    const repacking::opened_contents view = source.view();
    report.source_bytes = report.bytes = source.file.state().size;
    report.objects = source.tree.objects.size();
    report.findings = repacking::check_rules(view, options);
    report.unchanged = options.target.empty() && !repacking::has_explicit_changes(options) && conforms(report.findings);
    if (report.unchanged) return;
    const repacking::dataset_changes changes = repacking::plan_changes(view, options);
    hdf5::require_pages_fit(options.source, options.page_size, source.file.user_block_size());
    std::map<haddr_t, repacking::copy_estimate> estimates;
    const repacking::new_file file(view, changes, options);
    report.metadata_bytes = file.measure([&](repacking::value_copier& values) { estimates = values.estimates(); });
    report.dangling_references = file.dangling();
    report.datasets = repacking::describe_changes(view, changes, estimates);
    report.bytes = report.metadata_bytes + source.file.user_block_size();
    for (const auto& [address, e] : estimates) {
      report.bytes += e.bytes;
      report.seconds += e.seconds;
    }
    report.seconds /= static_cast<double>(hdf5::detail::threads_or_all(options.threads));
  });
  return report;
}

layout_report check_layout(const repack_options& options) {
  check_options(options);
  const hdf5::silence quiet;
  layout_report report;
  report.source = options.source;
  report.layout = options.layout;
  repacking::with_public_errors(options, [&] {
    const repacking::opened_file source(options.source, repacking::source_options_of(options));
    report.findings = repacking::check_rules(source.view(), options);
  });
  return report;
}

repack_report repack(const repack_options& options) {
  check_options(options);
  const auto begun = std::chrono::steady_clock::now();
  const hdf5::silence quiet;
  repack_report report = repacking::new_report(options);
  repacking::with_public_errors(options, [&] {
    const bool in_place = options.target.empty();
    const std::string name = in_place ? repacking::file_to_replace(options.source) : options.target;
    const repacking::opened_file source(options.source, repacking::source_options_of(options));
    report.source_bytes = source.file.state().size;
    const repacking::dataset_changes changes = repacking::plan_changes(source.view(), options);
    if (in_place && !repacking::has_explicit_changes(options)) {
      report.findings = repacking::check_rules(source.view(), options);
      if (conforms(report.findings)) {
        report.unchanged = true;
        report.bytes = report.source_bytes;
        return;
      }
    }
    zarr::store_writer_options target_options;
    target_options.target = in_place || options.overwrite ? zarr::store_writer_options::if_exists::replace
                                                          : zarr::store_writer_options::if_exists::refuse;
    target_options.sync = options.fsync;
    if (!in_place) {
      target_options.source = options.source;
      repacking::warn_of_other_folder(source, options);
    }
    zarr::atomic_file target(name, zarr::unfinished_name(name), target_options, {"an HDF5 file", hdf5::is_hdf5_file});
    repacking::write_checked(source, changes, options, target, report);
    source.file.require_unchanged();
    source.file.require_same_on_server();
    report.bytes = std::filesystem::file_size(target.temporary());
    if (in_place) repacking::copy_file_attributes(name, target.temporary());
    target.finish();
  });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

}  // namespace zarrbits
