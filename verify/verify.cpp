// SPDX-License-Identifier: BSL-1.0
//
// The public functions: verify(), and the checks of options and store before it.
//
#include "metadata/node.hpp"

#include <zarrbits/verify.hpp>

#include "io/byte_source.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "io/thread_pool.hpp"
#include "remote/remote_file.hpp"
#include "remote/s3_access.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "text/selection.hpp"
#include "verify/compare_hdf5_files.hpp"
#include "verify/compare_stores.hpp"
#include "verify/joined_files.hpp"
#include "verify/netcdf3_source.hpp"
#include "verify/source_order.hpp"
#include "verify/tree_comparison.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/detail/processors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zarrbits::verification {

namespace {

verify_result verify_one(const verify_options& options, const zarr::store_folder& store, const source_name& name,
                         joined_arrays* joined, bool first, comparison_progress& progress, io::thread_pool& pool,
                         bool is_exchanged = false) {
  verify_result result;
  result.is_exchanged = is_exchanged;
  tree_comparison comparison(options, store, name, joined, first, progress, pool, result);
  comparison.run();
  comparison.finish();
  return result;
}

// A source that is read as a store. A netCDF-3 file has a reader here that the conversion does not share.
zarr::store_folder open_store_source(const verify_options& options, const std::string& source) {
  const source_name name = split_source(source);
  if (!zarr::is_netcdf3_file(name.file))
    return zarr::open_source_store(source, options.remote, io::allowed_paths({}, options.external), options.memory);
  std::shared_ptr<const io::byte_source> bytes;
  if (io::is_remote(name.file)) {
    bytes = std::make_shared<const remote::remote_file>(name.file, options.remote, options.memory / 4, std::nullopt,
                                                        extent_of(options, name));
  } else {
    io::file_descriptor file(::open(name.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    bytes = std::make_shared<const io::local_bytes>(std::move(file));
  }
  return zarr::node_at(read_netcdf3_source(name.file, bytes, options.memory / 4), name.object);
}

// Throws zarrbits::error for options that only files have.
void check_joined_stores(const verify_options& options, const std::vector<std::string>& sources) {
  for (const std::string& name : sources) {
    if (!zarr::is_read_as_store(name, true))
      throw error(errc::invalid_option,
                  "Zarr stores are joined with Zarr stores, and files with files: \"" + options.source + "\" is a store, and \"" +
                      name + "\" is not; make a store of it first",
                  {name});
  }
  if (options.concat->is_new)
    throw error(errc::invalid_option, "a new dimension is for HDF5 files, and the source is a Zarr store; leave out `is_new`");
  if (options.part) throw error(errc::invalid_option, "a joined store is compared with all of its Zarr stores; leave out `part`");
}

// The store as all but the first of the joined files need it: of them, only values are compared. Its root does not list the
// files, because it is read several times for each one, and the time for all would be quadratic.
class store_without_sources final : public zarr::store_reader {
 public:
  // Throws store_error.
  explicit store_without_sources(const zarr::store_folder& store) : store_(store) {
    nlohmann::json root = zarr::read_node(store);
    nlohmann::json& attributes = metadata::mutable_attributes(root);
    if (const auto notes = attributes.find(text::annotation_key); notes != attributes.end() && notes->is_object())
      notes->erase("sources");
    root_ = text::sorted_json_text(root);
  }

  std::unique_ptr<zarr::stored_object> open(const std::string& key) const override {
    if (key == "zarr.json") return std::make_unique<zarr::text_object>(root_);
    return store_.open(key);
  }
  void list(const std::string& folder, const std::function<bool(const zarr::store_entry&)>& visit) const override {
    (folder.empty() ? store_ : store_ / folder).list(visit);
  }
  bool is_v2() const noexcept override { return store_.is_v2(); }

 private:
  const zarr::store_folder store_;
  std::string root_;
};

zarr::store_folder without_sources(const zarr::store_folder& store) {
  zarr::store_folder reduced(std::make_shared<store_without_sources>(store), store.name());
  reduced.max_string_bytes = store.max_string_bytes;
  return reduced;
}

// The place of a file along the dimension, as the store says: its values are compared in any case. Throws store_error.
struct stored_place {
  std::uint64_t first = 0;
  bool is_first = false;  // the first of all files
};
stored_place place_in(const zarr::store_folder& store, const nlohmann::json& root, const std::string& source) {
  const std::string leaf = text::base_name(split_source(source).file);
  const nlohmann::json& notes = metadata::note_of(root, "sources");
  const nlohmann::json* entry = nullptr;
  for (const nlohmann::json& note : notes) {
    if (!note.is_object() || note.value("file", nlohmann::json()) != nlohmann::json(leaf)) continue;
    if (entry)
      throw zarr::store_error("\"" + store.name() + "\" has several files named \"" + text::escape_name(leaf) +
                              "\"; compare the store with all files, without `part`");
    entry = &note;
  }
  if (!entry || !entry->contains("first") || !(*entry)["first"].is_number_unsigned())
    throw zarr::store_error("\"" + store.name() + "\" does not list \"" + text::escape_name(source) +
                            "\" among its sources; append it, or compare the store with all files, without `part`");
  return {(*entry)["first"].get<std::uint64_t>(), entry == &notes[0]};
}

// Everything but values is compared with the first file only.
verify_result verify_joined(const verify_options& options, const zarr::store_folder& store, io::thread_pool& pool) {
  joined_arrays joined(*options.concat);
  verify_result result;
  bool first = true;
  comparison_progress progress(options.progress);
  progress.begin_files(options.concat->sources.size());
  const nlohmann::json root = options.part ? zarr::read_node(store) : nlohmann::json();
  std::optional<zarr::store_folder> for_values;  // made when it is needed
  for (const std::string& source : sources_in_order(options)) {
    if (options.part) {
      const stored_place stored = place_in(store, root, source);
      joined.begin_at(stored.first);
      first = stored.is_first;
    }
    if (!first && !for_values) for_values = without_sources(store);
    verify_result one = verify_one(options, first ? store : *for_values, split_source(source), &joined, first, progress, pool);
    progress.end_file();
    joined.next_file();
    if (std::exchange(first, false)) {
      result = std::move(one);
      continue;
    }
    for (finding& f : one.findings) {
      if (f.kind != "dataset" || (f.outcome == verdict::missing && !joined.all_equal())) continue;
      f.reason += " (\"" + source + "\")";
      result.findings.push_back(std::move(f));
    }
    for (std::size_t i = 0; i < verdict_count; ++i) result.datasets[i] += one.datasets[i];
    result.elements += one.elements;
    result.elements_unchecked += one.elements_unchecked;
  }
  if (options.part) return result;
  for (finding& f : joined.longer_arrays()) add_finding(result, std::move(f));
  return result;
}

}  // namespace

}  // namespace zarrbits::verification

namespace zarrbits {

const char* to_string(verdict v) noexcept {
  static const char* const names[verdict_count] = {"equal", "unchecked", "unreadable", "missing", "differs"};
  return names[static_cast<std::size_t>(v)];
}

bool verify_result::failed() const noexcept {
  return !only_in_store.empty() || std::any_of(extras.begin(), extras.end(), [](const extra& e) { return e.kind != "note"; }) ||
         std::any_of(findings.begin(), findings.end(), [](const finding& f) { return f.outcome > verdict::unchecked; });
}

bool verify_result::incomplete() const noexcept {
  return !extras.empty() ||
         std::any_of(findings.begin(), findings.end(), [](const finding& f) { return f.outcome == verdict::unchecked; });
}

void check_options(const verify_options& options) {
  if (options.part && !options.concat)
    throw zarrbits::error(errc::invalid_option, "`part` requires `concat`: it is for stores made from several files");
  text::selection(options.include, options.exclude);
}

bool is_whole_store(const verify_options& options) {
  remote::init_s3(verification::sources_of(options), options.store, options.remote, {});
  try {
    using zarr::store_entry;
    const auto store = zarr::open_store(options.store, options.remote, verification::sources_of(options), options.memory);
    bool begun = false;
    store.list([&](const store_entry& e) {
      if (!e.name.starts_with(text::internal_prefix)) return true;
      begun = !e.is_folder || e.is_link;
      // a conversion that was killed as it ended may have left what it removes after its plan
      if (!begun) {
        (store / e.name).list([&](const store_entry& inner) {
          begun = inner.name == text::plan_name || inner.name == text::removal_marker;
          return !begun;
        });
      }
      return !begun;
    });
    return !begun;
  } catch (const zarr::store_error&) {
    return false;
  }
}

namespace {

// `is_store_file`: the store is an HDF5 file. `is_exchanged`: the source is, and was made of the store.
verify_result compare(const verify_options& options, bool is_store_file, bool is_exchanged) {
  if (is_store_file) {
    if (options.concat)
      throw zarrbits::error(errc::invalid_option,
                            "\"" + options.store +
                                "\" is an HDF5 file, which is compared with one other file or store; remove `concat`, or join "
                                "stores in a Zarr store, and compare that with the file");
    return verification::compare_hdf5_files(options);
  }
  const std::vector<std::string> sources = verification::sources_of(options);
  std::vector<std::string> readable = sources;
  if (is_exchanged) readable.push_back(options.store);  // it is the source
  const io::source_url_map names(options.base, sources, options.store);
  const auto extent = verification::extent_of(options, options.concat ? source_name() : split_source(options.source));
  zarr::store_folder store =
      zarr::open_store(options.store, options.remote, io::allowed_paths(readable, options.external), options.memory,
                       extent == io::access_hint::full ? zarr::access_pattern::full : zarr::access_pattern::partial,
                       zarr::symbolic_links::follow, &names);
  store.max_string_bytes = options.memory / 2;
  io::thread_pool pool(options.threads ? options.threads : detail::usable_processors(), verification::work_memory(options));
  if (zarr::is_read_as_store(options.source, options.concat.has_value())) {
    if (!options.concat)
      return verification::compare_stores(options, verification::open_store_source(options, options.source), store, pool);
    verification::check_joined_stores(options, sources);
    return verification::compare_joined_stores(
        options, verification::sources_in_order(options),
        [&](const std::string& name) { return verification::open_store_source(options, name); }, store, pool);
  }
  if (options.concat) return verification::verify_joined(options, store, pool);
  verification::comparison_progress progress(options.progress);
  return verification::verify_one(options, store, split_source(options.source), nullptr, true, progress, pool, is_exchanged);
}

}  // namespace

verify_result verify(const verify_options& requested) {
  verify_options options = requested;
  options.source = io::redact_url(options.source);
  if (options.concat)
    std::transform(options.concat->sources.begin(), options.concat->sources.end(), options.concat->sources.begin(),
                   io::redact_url);
  check_options(options);
  const hdf5::silence quiet;
  return zarr::as_public_errors(options.store, options.source, errc::damaged_store, [&] {
    remote::init_s3(verification::sources_of(options), options.store, options.remote, options.warning);
    if (!options.concat)
      zarr::probe_source(options.source, options.remote, verification::extent_of(options, split_source(options.source)));
    const bool is_store_file = !zarr::is_store_name(options.store) && verification::is_hdf5_name(options.store),
               is_exchanged = !options.concat && is_store_file && zarr::is_store_name(options.source);
    if (is_exchanged) {
      std::swap(options.source, options.store);
      check_options(options);
    }
    verify_result result = compare(options, is_store_file && !is_exchanged, is_exchanged);
    result.is_exchanged = is_exchanged;
    return result;
  });
}

}  // namespace zarrbits
