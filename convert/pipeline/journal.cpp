// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/journal.hpp"

#include "convert/pipeline/options_json.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/version.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace zarrbits::conversion {

namespace {

constexpr auto patience = std::chrono::milliseconds(200);  // upper limit of the work that may be lost and done again

std::string key_of(const char* name) { return std::string(text::unfinished_folder) + "/" + name; }

std::string name_of_source(const convert_options& options) {
  const std::filesystem::path path(options.source.name);
  return (path.has_filename() ? path : path.parent_path()).filename().string();  // a folder may end in "/"
}

text::json plan_of(const convert_options& options, const source_identity& source) {
  return {{"zarrbits", version()},
          {"source", name_of_source(options)},  // the folder may have another name on another machine
          {"size", source.size},
          {"etag", source.etag},
          {"modified", {source.seconds, source.nanoseconds}},
          {"checksum", source.checksum},
          {"joined", source.joined},
          {"memory", source.region_memory},
          {"concat", options.source.concat
                         ? text::json((options.source.concat->is_new ? "new: " : "") + options.source.concat->dimension)
                         : text::json(nullptr)},
          {"options", options_json(options)},
          {"consolidate", options.target.consolidate ? text::json(*options.target.consolidate) : text::json(nullptr)},
          {"external", !options.source.external.empty()},
          {"command", options.execution.command}};
}

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A plan is untrusted: its command is shown as words, quoted for a shell by the caller.
std::string command_in(const text::json& plan, const convert_options& options) {
  constexpr std::size_t max_length = 400;
  const auto& show = options.execution.show_command;
  if (!show || !plan.is_object() || !plan.contains("command") || !plan["command"].is_array()) return {};
  std::vector<std::string> words;
  for (const text::json& word : plan["command"]) {
    if (!word.is_string()) return {};
    words.push_back(word.get<std::string>());
  }
  std::string text = words.empty() ? "" : show(words);
  if (text.size() > max_length) {
    std::size_t end = max_length;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // no half of a character
    text = text.substr(0, end) + " ...";
  }
  return text;
}

// The completed work is worth keeping: the sentence says how to resume, and no more than that `overwrite` would remove it.
[[noreturn]] void throw_mismatch(const convert_options& options, const text::json& plan, const std::string& problem) {
  std::string commands;
  const std::string original = command_in(plan, options), current = command_in({{"command", options.execution.command}}, options);
  if (!original.empty() && original != current)
    commands = ": it was begun by " + original + (current.empty() ? "" : ", and this is " + current);
  throw zarrbits::error(
      errc::different,
      "the unfinished store \"" + options.target.name + "\" " + problem + commands +
          "; continue it as it was begun, or choose another name (`overwrite` would remove the work that is done)",
      {options.target.name});
}

// The completed work is of no use any more.
[[noreturn]] void throw_unusable(const convert_options& options, const std::string& problem) {
  throw zarrbits::error(errc::damaged_store,
                        "the unfinished store \"" + options.target.name + "\" " + problem + "; start over with `overwrite`",
                        {options.target.name});
}

// A short text of an untrusted plan; "" if it has none.
std::string text_in_plan(const text::json& plan, const char* key) {
  if (!plan.contains(key) || !plan[key].is_string()) return {};
  return text::escape_name(plan[key].get<std::string>().substr(0, 200));
}

std::string different_version(const text::json& plan) {
  const std::string existing = text_in_plan(plan, "zarrbits");
  return "was begun by " + (existing.empty() ? "a different version of zarrbits" : "zarrbits " + existing) + ", and this is " +
         version();
}

std::string different_source(const text::json& plan, const convert_options& options) {
  const std::string existing = text_in_plan(plan, "source");
  return "was begun from a different source" +
         (existing.empty() ? std::string() : ": \"" + existing + "\", and this is \"" + name_of_source(options) + "\"") +
         " (its name without the folder, its size and its time must be the same)";
}

}  // namespace

bool load_plan(zarr::store_writer& out, convert_options& options, bool strict) {
  const auto stored_plan = out.get(key_of("plan"));
  if (!stored_plan) return false;
  const text::json plan = text::parse_untrusted_json(as_text(*stored_plan));
  if (!plan.is_object() || !plan.contains("options")) throw_unusable(options, "has a plan that cannot be read");
  if (!plan.contains("zarrbits") || plan["zarrbits"] != version()) throw_mismatch(options, plan, different_version(plan));
  if (!plan.contains("source") || plan["source"] != text::parse_json(text::json_text(name_of_source(options))))
    throw_mismatch(options, plan, different_source(plan, options));
  // a file in the store must not decide which files may be read
  if (plan.contains("external") && plan["external"] == true && options.source.external.empty())
    throw_mismatch(options, plan, "was begun with `external`, which must be given again");
  if (!options.target.consolidate && plan.contains("consolidate") && plan["consolidate"].is_boolean())
    options.target.consolidate = plan["consolidate"].get<bool>();
  try {
    return load_options_json(plan["options"], options, strict);
  } catch (const conflicting_options& e) {
    throw_mismatch(
        options, plan,
        "was begun with different options: " + e.names + (strict ? "" : " (those that are left out are taken from its plan)"));
  } catch (const invalid_plan&) {
    throw_unusable(options, "has a plan that cannot be read");
  }
}

std::uint64_t region_memory_of(zarr::store_writer& out, std::uint64_t otherwise) {
  const auto stored_plan = out.get(key_of("plan"));
  const text::json plan = stored_plan ? text::parse_untrusted_json(as_text(*stored_plan)) : text::json();
  const auto entry = plan.is_object() ? plan.find("memory") : plan.end();
  if (entry == plan.end() || !entry->is_number_unsigned() || *entry == 0) return otherwise;
  return std::max(entry->get<std::uint64_t>(), min_memory);
}

journal::journal(zarr::store_writer& out, const convert_options& options, const source_identity& source, start start_mode)
    : out_(out), key_(key_of("journal")) {
  if (options.execution.partition)
    key_ +=
        "-" + std::to_string(options.execution.partition->index) + "-of-" + std::to_string(options.execution.partition->count);
  const text::json plan = plan_of(options, source);
  const std::string text = text::json_text(plan, 1) + "\n";
  if (start_mode != start::finalize && out.put_new(key_of("plan"), std::as_bytes(std::span(text.data(), text.size())))) return;
  const auto stored_plan = out.get(key_of("plan"));
  if (start_mode == start::begin || !stored_plan)
    throw zarrbits::error(errc::busy,
                          "another conversion is writing to \"" + options.target.name + "\"; wait for it or choose another name",
                          {options.target.name});
  const text::json existing_plan = text::parse_untrusted_json(as_text(*stored_plan));
  if (!existing_plan.is_object() || !existing_plan.contains("options")) throw_unusable(options, "has a plan that cannot be read");
  const text::json own_plan = text::parse_json(text);
  const auto is_same = [&](const char* key) { return existing_plan.contains(key) && existing_plan[key] == own_plan[key]; };
  if (!is_same("source")) throw_mismatch(options, existing_plan, different_source(existing_plan, options));
  if (!is_same("joined") || !is_same("concat"))
    throw_mismatch(options, existing_plan, "was begun from different files, or along a different dimension");
  if (!is_same("memory"))
    throw_mismatch(options, existing_plan, "was just begun with another `memory`, by which its regions are chosen");
  const auto throw_changed = [&] {
    if (!options.execution.partition && start_mode != start::finalize)
      throw_unusable(options, "was begun before its source changed");
    // the work of the other shares is not for this one to remove
    throw zarrbits::error(errc::different,
                          "the unfinished store \"" + options.target.name +
                              "\" was begun before its source changed, or this source is a copy with another time; continue "
                              "with the file that the other shares have (cp -p keeps its time), or choose another store",
                          {options.target.name});
  };
  if (!is_same("size") || !is_same("modified") || !is_same("etag")) throw_changed();
  if (!same_options(existing_plan["options"], own_plan["options"]) || !is_same("zarrbits"))
    throw_mismatch(options, existing_plan, "was just begun with different options");
  if (!is_same("checksum") && source.region_memory > 0) throw_changed();
  if (!is_same("checksum"))
    throw_mismatch(options, existing_plan, "was begun from a different source of the same name, size and time");
}

journal::~journal() { kept_units(); }

namespace {

bool is_made(const work_unit_result& result) { return result.skipped.empty(); }

}  // namespace

std::map<work_unit_id, work_unit_result> journal::read(bool only_made) {
  std::map<work_unit_id, work_unit_result> results;
  for (const std::string& name : out_.list(text::unfinished_folder)) {
    const std::string leaf = name.substr(name.rfind('/') + 1);
    if (!leaf.starts_with("journal")) continue;
    if (const auto of = leaf.find("-of-"); of != std::string::npos) {
      partition_count_ = std::max(partition_count_, static_cast<unsigned>(std::strtoul(leaf.c_str() + of + 4, nullptr, 10)));
    }
    const auto bytes = out_.get(key_of(leaf.c_str()));
    if (!bytes) continue;
    for (std::string_view text = as_text(*bytes); !text.empty();) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      auto unit = line.empty() ? std::nullopt : parse_journal_line(line);
      if (!unit || (only_made && !is_made(unit->second))) continue;
      const auto [entry, is_new] = results.try_emplace(unit->first);
      if (is_new || !is_made(entry->second)) entry->second = std::move(unit->second);
    }
  }
  kept_units_ = static_cast<std::uint64_t>(
      std::count_if(results.begin(), results.end(), [](const auto& unit) { return is_made(unit.second); }));
  return results;
}

void journal::add(const work_unit_id& id, const work_unit_result& result) {
  waiting_ += journal_line(id, result);
  if (result.skipped.empty()) ++units_waiting_;
  if (std::chrono::steady_clock::now() - flushed_ >= patience) flush();
}

namespace {

double seconds_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

void journal::begin(std::uint64_t all_units, std::uint64_t own_units) {
  total_units_ = all_units;
  waiting_ += text::json_text({{"began", seconds_now()}, {"units", all_units}, {"own", own_units}}) + "\n";
}

void journal::end() {
  waiting_ += text::json_text({{"ended", seconds_now()}}) + "\n";
  flush();
}

void journal::flush() {
  flushed_ = std::chrono::steady_clock::now();
  if (waiting_.empty()) return;
  waiting_ += text::json_text({{"at", seconds_now()}}) + "\n";
  // an earlier run may have been killed while it wrote a line
  const std::string text = (begun_ ? "" : "\n") + waiting_;
  waiting_.clear();
  begun_ = true;
  const std::uint64_t units = std::exchange(units_waiting_, 0);
  out_.append(key_, text);
  kept_units_ += units;
}

std::uint64_t journal::kept_units() noexcept {
  try {
    flush();
  } catch (...) {  // these units are redone
  }
  return kept_units_;
}

bool is_permanent(const error& e) noexcept {
  return e.kind() == errc::no_match || e.kind() == errc::not_joinable || e.kind() == errc::changed;
}

std::string kept_work_message(const convert_options& options, journal& finished) {
  const std::uint64_t units = finished.kept_units();
  return "What is done is kept in \"" + options.target.name + "\" (" +
         (finished.total_units() > 0 ? std::to_string(units) + " of " + text::pluralize(finished.total_units(), "unit")
                                     : text::pluralize(units, "unit")) +
         "); run the same command " + (options.target.existing == existing_store::overwrite ? "without `overwrite` " : "again ") +
         "to continue";
}

}  // namespace zarrbits::conversion
