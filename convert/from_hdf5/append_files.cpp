// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/append_files.hpp"

#include "append/append_target.hpp"
#include "append/staged_append.hpp"
#include "convert/concat/variable.hpp"
#include "convert/from_hdf5/appended_metadata.hpp"
#include "convert/from_hdf5/hdf5_source.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "convert/plan/plan_report.hpp"
#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "remote/remote_object.hpp"
#include "remote/s3_access.hpp"
#include "text/memory_estimate.hpp"
#include "text/node_names.hpp"
#include "text/warning.hpp"
#include "zarr/write/store_writer.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace zarrbits::conversion {

namespace {

// What is to be appended, in the terms of a conversion.
struct new_files {
  std::shared_ptr<const append::append_target> store;
  convert_options options;              // of the files that are new
  std::vector<joined_source> existing;  // that are in the store
  bool is_empty = false;                // all are in the store
};

std::vector<std::string> string_list(const text::json& note, const char* key) {
  std::vector<std::string> out;
  if (!note.is_object() || !note.contains(key) || !note[key].is_array()) return out;
  for (const text::json& text : note[key]) {
    if (text.is_string()) out.push_back(text.get<std::string>());
  }
  return out;
}

// What the store is a conversion of, and by whose rules.
void inherit_choices(const append::append_target& store, convert_options& options) {
  const text::json notes = store.notes("/");
  if (const auto recorded = notes.find("selection"); recorded != notes.end()) {
    if (options.selection.include.empty()) options.selection.include = string_list(*recorded, "include");
    if (options.selection.exclude.empty()) options.selection.exclude = string_list(*recorded, "exclude");
  }
  if (store.has_notes()) options.target.convention = convention::none;  // else of another program: what the files say
  for (int c = 0; c <= static_cast<int>(convention::pytables); ++c) {
    const auto candidate = static_cast<convention>(c);
    if (notes.contains("convention") && notes["convention"] == to_string(candidate)) options.target.convention = candidate;
  }
}

// The current state of a file; not regular if absent.
io::file_state current_state(const std::string& file, const remote_access& remote) {
  if (io::is_remote(file)) return remote::find_object(file, remote)->current_state();
  return io::state_of(io::file_descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)).get());
}

// For two names without folders, which end in a part of the hash of the query.
bool is_same_but_for_query(const std::string& a, const std::string& b) {
  return io::has_hashed_query("https://" + a) && a.substr(0, a.rfind('?')) == b.substr(0, b.rfind('?'));
}

// The entry of a file in the store; null if absent. Throws zarrbits::error if it has changed since.
const append::recorded_source* find_existing(const append::append_target& store, const std::string& name,
                                             const remote_access& remote) {
  const hdf5::source_files::entry file{split_source(name).file, {}};
  const text::json leaf = hdf5::text_or_base64(text::base_name(file.name));
  std::vector<const append::recorded_source*> same_name;
  for (const append::recorded_source& s : store.sources()) {
    if (leaf == s.file) same_name.push_back(&s);
  }
  const bool has_query = io::has_hashed_query(file.name);
  const io::file_state current = same_name.empty() && !has_query ? io::file_state() : current_state(file.name, remote);
  if (!current.regular) return nullptr;  // new, or unreadable, which is reported when it is joined
  const text::json state = text::parse_json(text::json_text(append::state_note({file.name, current})));
  for (const append::recorded_source* s : same_name) {
    if (s->state == state) return s;
  }
  if (same_name.empty()) {
    // a signature of an unknown kind makes another name, and yet the same ETag and length mean the same file
    for (const append::recorded_source& s : store.sources()) {
      if (current.etag.starts_with('"') && s.state == state && is_same_but_for_query(s.file, text::base_name(file.name)))
        return &s;
    }
    return nullptr;
  }
  throw zarrbits::error(
      errc::different,
      "a file \"" + text::base_name(file.name) + "\" is in \"" + store.name() + "\" already, and \"" + name +
          "\" has a different size, time or content; if it was changed, make the store again with `concat`; if it is "
          "another file, rename it",
      {name});
}

new_files find_new_files(const convert_options& options) {
  const std::vector<std::string> names = given_sources(options.source.name, options.source.concat);
  std::vector<std::string> fresh;
  new_files files{std::make_shared<const append::append_target>(options.target.name, options.remote,
                                                                io::allowed_paths(names, options.source.external),
                                                                options.execution.memory, options.target.base),
                  options,
                  {},
                  false};
  text::report_sentence(options.execution.warning,
                        text::node_memory_warning(options.target.name, files.store->nodes().size(), options.execution.memory));
  if (io::is_references(io::kind_of_target(options.target.name))) files.options.target.references = true;
  inherit_choices(*files.store, files.options);
  for (const std::string& name : names) {
    if (const append::recorded_source* s = find_existing(*files.store, name, options.remote)) {
      joined_source entry;
      entry.file = name;
      entry.first = s->first;
      entry.count = s->count;
      add_note(entry, "it is already in the store", true);
      files.existing.push_back(std::move(entry));
    } else {
      fresh.push_back(name);
    }
  }
  files.is_empty = fresh.empty();
  if (files.is_empty) return files;
  files.options.source.name = fresh.front();
  files.options.source.concat->sources.assign(fresh.begin() + 1, fresh.end());
  return files;
}

// Makes the new chunks, and the metadata that describes them.
appended_metadata write_new_files(hdf5_conversion& converter, const new_files& files, bool consolidate, convert_result& result) {
  converter.run();
  appended_metadata metadata = write_appended_metadata(converter.source(), *files.store, consolidate);
  convert_result added = converter.result(true);
  added.objects = metadata.objects;
  for (converted_object& e : added.objects) e.reason = converter.worded(e.reason);
  // the store, and not the folder in it where new chunks are made
  added.source = result.source;
  added.store = result.store;
  added.profile = result.profile;
  added.started = result.started;
  added.sources.insert(added.sources.begin(), result.sources.begin(), result.sources.end());
  result = std::move(added);
  if (const auto& call = files.options.execution.before_done) call(result);
  converter.source().require_unchanged(conversion_source::change_check::complete);
  return metadata;
}

// New references are added to the existing ones, and take their place in one step.
void append_references(new_files& files, convert_result& result) {
  const bool consolidate = std::exchange(files.options.target.consolidate, false).value_or(false);
  hdf5_conversion converter(files.options, hdf5_conversion::mode::full, files.store);
  const appended_metadata metadata = write_new_files(converter, files, consolidate, result);
  converter.out().remove_old(metadata.absent);
  converter.out().finish();
  std::tie(result.store_objects, result.store_bytes) = zarr::count_reference_files(files.options.target.name);
}

// New chunks are made in a folder of the store, and moved to their places when all are complete.
void append_chunks(new_files& files, append::staged_append& waiting, convert_result& result) {
  files.options.target.name = waiting.folder();
  const bool consolidate =
      std::exchange(files.options.target.consolidate, false).value_or(false);  // of the whole store, by write_appended_metadata()
  std::unique_ptr<hdf5_conversion> converter;
  const auto begin = [&] {
    converter = std::make_unique<hdf5_conversion>(files.options, hdf5_conversion::mode::resume, files.store);
  };
  try {
    begin();
  } catch (const zarrbits::error&) {  // the existing chunks may be of other files
    waiting.discard();
    begin();
  }
  const appended_metadata metadata = write_new_files(*converter, files, consolidate, result);
  converter->out().finish();
  converter.reset();
  waiting.remove_from_store(metadata.absent);
  std::vector<append::replaced_metadata> replaced;
  for (const std::string& key : metadata.keys)
    replaced.push_back({key, files.store->checksum_of(key), metadata.checksums.at(key)});
  waiting.declare(replaced, metadata.chunk_bytes);
  waiting.commit();
}

// Keeps other appends away from references: whoever writes them renames new ones to their place, and with them the lock goes.
io::file_descriptor lock_references(const std::string& path) {
  std::error_code e;
  const std::string name = std::filesystem::canonical(path, e).string();
  for (int tries = 0; !e && tries < 100; ++tries) {
    io::file_descriptor file(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file) break;
    const io::lock_state state = io::take_lock(file.get(), AT_FDCWD, name, false);
    if (state == io::lock_state::contended)
      throw zarrbits::error(errc::busy, "another process is appending to \"" + path + "\"; wait until it ends, then append",
                            {path});
    if (state != io::lock_state::removed) return file;
  }
  return {};  // problems with it are reported where it is read
}

}  // namespace

convert_result append_files(const convert_options& options, const std::string& started) {
  std::unique_ptr<append::staged_append> waiting;
  io::file_descriptor references;
  if (!zarr::is_one_file(options.target.name)) {
    waiting = append::staged_append::begin(
        options.target.name, {.run = options.execution.run, .sync = options.execution.fsync, .remote = options.remote});
    if (waiting->is_complete()) waiting->commit();  // of a run that was killed
  } else {
    references = lock_references(options.target.name);
    zarr::remove_unfinished(options.target.name, {});  // of such a run, too, which may have been done but for this
  }
  new_files files = find_new_files(options);
  convert_result result;
  result.source = options.source.name;
  result.store = options.target.name;
  result.started = started;
  result.sources = files.existing;
  if (files.is_empty) {
    if (const auto& call = options.execution.before_done) call(result);
  } else if (waiting) {
    append_chunks(files, *waiting, result);
  } else {
    append_references(files, result);
  }
  return result;
}

convert_plan plan_append(const convert_options& options, const plan_options& further) {
  const new_files files = find_new_files(options);
  convert_plan plan;
  if (!files.is_empty) plan = hdf5_conversion(files.options, hdf5_conversion::mode::dry_run, files.store).plan(further);
  plan.sources.insert(plan.sources.begin(), files.existing.begin(), files.existing.end());
  return plan;
}

}  // namespace zarrbits::conversion
