// SPDX-License-Identifier: BSL-1.0
#include "convert/run/append_files.hpp"

#include "append/grown_store.hpp"
#include "append/waiting_append.hpp"
#include "convert/concat/file_order.hpp"
#include "convert/concat/variable.hpp"
#include "convert/plan/plan_report.hpp"
#include "convert/run/grown_metadata.hpp"
#include "convert/run/job.hpp"
#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "io/remote_name.hpp"
#include "io/remote_object.hpp"
#include "io/s3_access.hpp"
#include "text/node_names.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/sink.hpp"

#include <zarrbits/detail/convert_front_end.hpp>

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace zarrbits::conversion {

namespace {

// What is to be appended, in the terms of a job.
struct new_files {
  std::shared_ptr<const append::grown_store> store;
  convert_options options;           // of the files that are new
  std::vector<joined_source> known;  // that are in the store
  bool none = false;                 // all are in the store
};

std::vector<std::string> texts_in(const text::json& note, const char* key) {
  std::vector<std::string> out;
  if (!note.is_object() || !note.contains(key) || !note[key].is_array()) return out;
  for (const text::json& text : note[key]) {
    if (text.is_string()) out.push_back(text.get<std::string>());
  }
  return out;
}

// What the store is a conversion of, and by whose rules.
void take_choices(const append::grown_store& store, convert_options& options) {
  const text::json notes = store.notes("/");
  if (const auto said = notes.find("selection"); said != notes.end()) {
    if (options.include.empty()) options.include = texts_in(*said, "include");
    if (options.exclude.empty()) options.exclude = texts_in(*said, "exclude");
  }
  if (store.has_notes()) options.convention = convention::none;  // else of another program: what the files say
  for (int c = 0; c <= static_cast<int>(convention::pytables); ++c) {
    const auto each = static_cast<convention>(c);
    if (notes.contains("convention") && notes["convention"] == to_string(each)) options.convention = each;
  }
}

// Of a file as it is now; not regular where there is none.
io::file_state state_now(const std::string& file, const remote_access& remote) {
  if (io::is_remote(file)) return io::find_object(file, remote)->now();
  return io::state_of(io::file_descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)).get());
}

// The entry of a file that is in the store; null where it is in none. Throws zarrbits::error where it has changed since.
const append::known_source* find_known(const append::grown_store& store, const std::string& name, const remote_access& remote) {
  const hdf5::source_files::entry file{split_source(name).file, {}};
  const text::json leaf = hdf5::text_or_base64(text::leaf_of(file.name));
  std::vector<const append::known_source*> same_name;
  for (const append::known_source& s : store.sources()) {
    if (leaf == s.file) same_name.push_back(&s);
  }
  const io::file_state now = same_name.empty() ? io::file_state() : state_now(file.name, remote);
  if (!now.regular) return nullptr;  // new, or unreadable, which is reported when it is joined
  const text::json state = text::parse_json(text::json_text(append::state_note({file.name, now})));
  for (const append::known_source* s : same_name) {
    if (s->state == state) return s;
  }
  throw zarrbits::error(
      errc::different,
      "a file \"" + text::leaf_of(file.name) + "\" is in \"" + store.name() + "\" already, and \"" + name +
          "\" has a different size, time or content; if it was changed, make the store again with `concat`; if it is "
          "another file, rename it",
      {name});
}

new_files choose(const convert_options& given) {
  const std::vector<std::string> names = given_sources(given.source, given.concat);
  std::vector<std::string> fresh;
  new_files all{std::make_shared<const append::grown_store>(given.store, given.remote, io::may_be_read(names, given.external), given.memory,
                                                    given.base),
                given,
                {},
                false};
  if (zarr::is_reference_target(given.store) && !all.options.references) all.options.references = usual_inline_bytes;
  take_choices(*all.store, all.options);
  for (const std::string& name : names) {
    if (const append::known_source* s = find_known(*all.store, name, given.remote)) {
      joined_source known;
      known.file = name;
      known.first = s->first;
      known.count = s->count;
      add_note(known, "it is already in the store", true);
      all.known.push_back(std::move(known));
    } else {
      fresh.push_back(name);
    }
  }
  all.none = fresh.empty();
  if (all.none) return all;
  all.options.source = fresh.front();
  all.options.concat->sources.assign(fresh.begin() + 1, fresh.end());
  return all;
}

// Makes the new chunks, and the metadata that describes them.
grown_metadata make_new(job& made, const new_files& all, bool consolidate, convert_result& result) {
  made.run();
  grown_metadata metadata = write_grown_metadata(made, *all.store, consolidate);
  result.convention = made.convention();
  result.objects = metadata.objects;
  result.store_objects = made.out().objects();
  result.store_bytes = made.out().bytes();
  result.referred_objects = made.out().referred_objects();
  result.referred_bytes = made.out().referred_bytes();
  convert_result fresh;
  fresh.sources = made.joined_sources();
  count_source(made, fresh);
  result.source_bytes = fresh.source_bytes;
  result.sources.insert(result.sources.end(), fresh.sources.begin(), fresh.sources.end());
  list_other_files(made.source().others(), result.other_files, result.refused_files);
  for (auto& refused : result.refused_files) refused.reason = made.worded(refused.reason);
  for (converted_object& e : result.objects) e.reason = made.worded(e.reason);
  if (const auto& call = front_end_of(all.options).before_done) call(result);
  made.require_unchanged();
  return metadata;
}

// New references come to those that are there, and take their place in one step.
void append_references(new_files& all, convert_result& result) {
  const bool consolidate = std::exchange(all.options.consolidate, false).value_or(false);
  job made(all.options, job::mode::all, all.store);
  const grown_metadata metadata = make_new(made, all, consolidate, result);
  made.out().remove_old(metadata.absent);
  made.out().finish();
  std::tie(result.store_objects, result.store_bytes) = zarr::count_reference_files(all.options.store);
}

// New chunks are made in a folder of the store, and moved to their places when all are there.
void append_chunks(new_files& all, append::waiting_append& waiting, convert_result& result) {
  all.options.store = waiting.folder();
  const bool consolidate =
      std::exchange(all.options.consolidate, false).value_or(false);  // of the whole store, by write_grown_metadata()
  std::unique_ptr<job> made;
  const auto begin = [&] { made = std::make_unique<job>(all.options, job::mode::resume, all.store); };
  try {
    begin();
  } catch (const zarrbits::error&) {  // what is there may be of other files
    waiting.discard();
    begin();
  }
  const grown_metadata metadata = make_new(*made, all, consolidate, result);
  made->out().finish();
  made.reset();
  waiting.remove_from_store(metadata.absent);
  std::vector<append::replaced_metadata> replaced;
  for (const std::string& key : metadata.keys) replaced.push_back({key, all.store->checksum_of(key), metadata.checksums.at(key)});
  waiting.declare(replaced, metadata.chunk_bytes);
  waiting.move();
}

// Keeps other appends away from references: whoever writes them renames new ones to their place, and with them the lock goes.
io::file_descriptor lock_references(const std::string& path) {
  std::error_code e;
  const std::string name = std::filesystem::canonical(path, e).string();
  for (int tries = 0; !e && tries < 100; ++tries) {
    io::file_descriptor there(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!there) break;
    const io::lock_state state = io::take_lock(there.get(), AT_FDCWD, name, false);
    if (state == io::lock_state::busy)
      throw zarrbits::error(errc::busy, "another process is appending to \"" + path + "\"; wait until it ends, then append",
                            {path});
    if (state != io::lock_state::gone) return there;
  }
  return {};  // what is wrong with it is told where it is read
}

}  // namespace

convert_result append_files(const convert_options& given, const std::string& started) {
  std::unique_ptr<append::waiting_append> waiting;
  io::file_descriptor references;
  if (!zarr::is_one_file(given.store)) {
    waiting = append::waiting_append::begin(given.store, {.run = front_end_of(given).run, .sync = given.sync, .remote = given.remote});
    if (waiting->is_whole()) waiting->move();  // of a run that was killed
  } else {
    references = lock_references(given.store);
    zarr::remove_unfinished(given.store, {});  // of such a run, too, which may have been done but for this
  }
  new_files all = choose(given);
  convert_result result;
  result.source = given.source;
  result.store = given.store;
  result.started = started;
  result.sources = all.known;
  if (all.none) {
    if (const auto& call = front_end_of(given).before_done) call(result);
  } else if (waiting) {
    append_chunks(all, *waiting, result);
  } else {
    append_references(all, result);
  }
  return result;
}

convert_plan plan_append(const convert_options& given) {
  const new_files all = choose(given);
  convert_plan made;
  if (!all.none) made = job(all.options, job::mode::look, all.store).plan();
  made.sources.insert(made.sources.begin(), all.known.begin(), all.known.end());
  return made;
}

}  // namespace zarrbits::conversion
