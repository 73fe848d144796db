// SPDX-License-Identifier: BSL-1.0
#include "convert/journal.hpp"

#include "convert/json_text.hpp"

#include <zarrbits/version.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>

namespace zarrbits::conversion {

namespace {

constexpr auto patience = std::chrono::milliseconds(200);  // so much work may be done twice

std::string key_of(const char* name) { return std::string(unfinished_folder) + "/" + name; }

// All options that a byte of the store may depend on.
json choices(const convert_options& o) {
  json j = {{"profile", o.effective_profile()}, {"compress", o.compress}, {"chunk", o.chunk}, {"shard", o.shard}, {"checksum", o.checksum}, {"codec", o.codec}, {"include", o.include}, {"exclude", o.exclude}, {"keep_going", o.keep_going}};
  if (o.bits) j["bits"] = *o.bits;
  return j;
}

json plan_of(const convert_options& options, const source_file& file) {
  struct stat info {};
  ::stat(file.path().c_str(), &info);  // all 0 in S3
  const std::filesystem::path path = options.source;
  return {{"zarrbits", version()},
          {"source", path.filename().string()},  // the folder may have another name on another machine
          {"size", static_cast<std::uint64_t>(info.st_size)},
          {"etag", file.etag()},
          {"modified", {static_cast<std::int64_t>(info.st_mtim.tv_sec), static_cast<std::int64_t>(info.st_mtim.tv_nsec)}},
          {"options", choices(options)}};
}

std::string_view as_text(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

[[noreturn]] void differs(const convert_options& options, const std::string& what) {
  throw convert_error("the unfinished store \"" + options.store + "\" " + what + "; convert as before, or begin anew with --overwrite");
}

}  // namespace

journal::journal(sink& out, const convert_options& options, const source_file& file, bool join) : out_(out), key_(key_of("journal")) {
  if (options.share) key_ += "-" + std::to_string(options.share->index) + "-of-" + std::to_string(options.share->count);
  const json plan = plan_of(options, file);
  const auto there = join ? out.get(key_of("plan")) : std::nullopt;
  if (!there) {
    out.put(key_of("plan"), json_text(plan, 1) + "\n");
    return;
  }
  const json other = parse_json(as_text(*there), true);
  if (!other.is_object() || !other.contains("options")) differs(options, "has a plan that cannot be read");
  const json ours = parse_json(json_text(plan));
  if (other.value("zarrbits", "") != ours["zarrbits"]) differs(options, "was begun by another version of zarrbits");
  if (other.value("source", "") != ours["source"]) differs(options, "was begun from another source");
  if (other["size"] != ours["size"] || other["modified"] != ours["modified"] || other["etag"] != ours["etag"]) differs(options, "was begun before its source changed");
  if (other["options"] != ours["options"]) differs(options, "was begun with other options");
}

journal::~journal() {
  try {
    flush();
  } catch (...) {  // these units are done again
  }
}

std::map<unit_id, unit_result> journal::read() {
  std::map<unit_id, unit_result> done;
  for (const std::string& name : out_.list(unfinished_folder)) {
    const std::string leaf = name.substr(name.rfind('/') + 1);
    if (!leaf.starts_with("journal")) continue;
    if (const auto of = leaf.find("-of-"); of != std::string::npos) {
      shares_ = std::max(shares_, static_cast<unsigned>(std::strtoul(leaf.c_str() + of + 4, nullptr, 10)));
    }
    const auto bytes = out_.get(key_of(leaf.c_str()));
    if (!bytes) continue;
    for (std::string_view text = as_text(*bytes); !text.empty();) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      if (auto unit = line.empty() ? std::nullopt : parse_journal_line(line)) done.insert(std::move(*unit));
    }
  }
  return done;
}

void journal::add(const unit_id& id, const unit_result& result) {
  waiting_ += journal_line(id, result);
  if (std::chrono::steady_clock::now() - flushed_ >= patience) flush();
}

void journal::flush() {
  flushed_ = std::chrono::steady_clock::now();
  if (waiting_.empty()) return;
  // an earlier run may have been killed in the middle of a line
  const std::string text = (begun_ ? "" : "\n") + waiting_;
  waiting_.clear();
  begun_ = true;
  out_.append(key_, text);
}

}  // namespace zarrbits::conversion
