// SPDX-License-Identifier: BSL-1.0
#include "command/digest_comparison.hpp"

#include "command/progress.hpp"
#include "io/remote_url.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace zarrbits::command {

namespace {

using text::json;

digest_report digest_with_progress(digest_options options, bool quiet,
                                   const std::function<void(const std::string&)>& set_current) {
  progress line(quiet);
  options.progress = [&](const std::string& path, std::uint64_t bytes_done, std::uint64_t bytes) {
    set_current(path);
    line.update({bytes_done, bytes, true, 0, 0, path});
  };
  return digest(options);
}

bool is_lost(const std::string& path, const std::vector<std::string>& lost) {
  return std::any_of(lost.begin(), lost.end(),
                     [&](const std::string& p) { return path == p || path.starts_with(text::join_path(p, "")); });
}

json value_of(const std::string& digest) { return digest.empty() ? json() : json(digest); }

}  // namespace

std::string name_to_digest(const std::string& store) {
  return store + (io::is_object_store(store) && !store.ends_with('/') ? "/" : "");
}

text::json compare_digests(const digest_comparison& comparison, bool quiet,
                           const std::function<void(const std::string&)>& set_current) {
  const digest_report source = digest_with_progress(comparison.source, quiet, set_current),
                      target = digest_with_progress(comparison.target, quiet, set_current);
  std::map<std::string, const array_digest*> written;
  for (const array_digest& a : target.arrays) written.emplace(a.path, &a);
  json arrays = json::array();
  std::vector<std::string> different;
  for (const array_digest& a : source.arrays) {
    const auto entry = written.find(a.path);
    const array_digest* const other = entry == written.end() ? nullptr : entry->second;
    arrays.push_back({{"path", a.path}, {"source", value_of(a.digest)}, {"target", value_of(other ? other->digest : "")}});
    if (a.digest.empty() || (other && other->digest == a.digest) || is_lost(a.path, comparison.lost)) continue;
    if (comparison.may_change_types && other && other->data_type != a.data_type) continue;
    different.push_back(a.path);
  }
  if (!different.empty()) {
    const std::string others = different.size() == 1 ? "" : " and of " + std::to_string(different.size() - 1) + " more";
    throw error(errc::damaged_store,
                "the digest of array \"" + different[0] + "\"" + others + " in \"" + target.source +
                    "\" is not that of the source; " + comparison.remedy,
                {target.source, different[0]});
  }
  json digests = {{"source", value_of(source.digest)}, {"target", value_of(target.digest)}, {"arrays", std::move(arrays)}};
  if (comparison.has_note) {
    const std::string reason = target.digest.empty()
                                   ? "an array has no digest"
                                   : note_digest(comparison.target.source, target.digest, comparison.target.remote);
    digests["noted"] = reason.empty();
    if (!reason.empty()) digests["reason"] = reason;
  }
  return digests;
}

std::string report_with_digests(const std::string& report, text::json digests) {
  json document = text::parse_json(report);
  document["digest"] = std::move(digests);
  return text::json_text(document, 1) + "\n";
}

}  // namespace zarrbits::command
