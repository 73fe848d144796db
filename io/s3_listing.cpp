// SPDX-License-Identifier: BSL-1.0
#include "io/s3_listing.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <algorithm>
#include <charconv>
#include <fnmatch.h>
#include <map>
#include <set>

namespace zarrbits::io {

namespace {

constexpr std::size_t most_pages = 1'000'000, most_empty_pages = 100, most_held = std::size_t{1} << 30;

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(&text[i] + 1, &text[i] + 3, value, 16).ptr == &text[i] + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

// For a key without its prefix; the key of a folder ends with "/".
bool is_sane(std::string_view key) {
  if (key.ends_with('/')) key.remove_suffix(1);
  if (key.empty() || key.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::string_view part = key.substr(0, key.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == key.size()) return true;
    key.remove_prefix(part.size() + 1);
  }
}

std::uint64_t size_of(const xml_element& object) {
  const std::string text = object.text_of("Size");
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    throw zarrbits::error(errc::server_failed,
                          "the S3 server lists an object whose size is \"" + text.substr(0, 40) + "\"; check `endpoint`");
  return size;
}

}  // namespace

void for_each_object(s3_client& client, const std::string& start, bool folders, std::size_t most,
                     const std::function<bool(s3_entry&&)>& each) {
  std::map<std::string, std::string> query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", start}};
  if (folders) query["delimiter"] = "/";
  if (most < 1000) query["max-keys"] = std::to_string(most);
  std::set<std::size_t> tokens;  // hashes
  std::string last_key;
  for (std::size_t pages = 0, empty = 0;; ++pages) {
    const auto answer = client.send({.query = query, .answer = "ListBucketResult"});
    if (answer.status == 404) {
      throw zarrbits::error(errc::not_found,
                            "there is no S3 bucket \"" + client.settings().bucket + "\" at " + client.settings().url +
                                "; create it, or check `endpoint`",
                            {"s3://" + client.settings().bucket});
    }
    const bool encoded = answer.xml.text_of("EncodingType") == "url";
    std::string first_key;
    bool any = false;
    for (const xml_element& found : answer.xml.elements) {
      const bool object = found.name == "Contents";
      if (!object && found.name != "CommonPrefixes") continue;
      s3_entry e{found.text_of(object ? "Key" : "Prefix"), object ? size_of(found) : 0, found.text_of("LastModified"),
                 found.text_of("ETag")};
      std::erase(e.etag, '"');
      if (encoded) e.key = percent_decoded(e.key);
      if (first_key.empty()) first_key = e.key;
      if (!e.key.starts_with(start)) continue;
      const std::string_view rest = std::string_view(e.key).substr(start.size());
      const bool itself = rest.empty() && !start.empty() && !start.ends_with('/');
      if (!itself && !is_sane(rest)) continue;
      any = true;
      if (!each(std::move(e))) return;
    }
    const std::string next = answer.xml.text_of("NextContinuationToken");
    if (answer.xml.text_of("IsTruncated") != "true") return;
    empty = any ? 0 : empty + 1;
    // the list must advance: with a different token, and different objects
    const bool again =
        next.empty() || !tokens.insert(std::hash<std::string>()(next)).second || (!first_key.empty() && first_key == last_key);
    if (again || empty > most_empty_pages || pages > most_pages) {
      throw zarrbits::error(errc::server_failed,
                            "the S3 server's list of \"s3://" + client.settings().bucket + "/" + start +
                                "\" does not end; check the server, or choose another target",
                            {"s3://" + client.settings().bucket + "/" + start});
    }
    last_key = first_key;
    query["continuation-token"] = next;
  }
}

std::vector<s3_entry> list_objects(s3_client& client, const std::string& start, bool folders, std::size_t most) {
  std::vector<s3_entry> entries;
  std::size_t held = 0;
  for_each_object(client, start, folders, most, [&](s3_entry&& e) {
    held += sizeof(s3_entry) + e.key.size() + e.modified.size() + e.etag.size();
    if (held > most_held) {
      throw zarrbits::error(
          errc::refused,
          "\"s3://" + client.settings().bucket + "/" + start + "\" has more than " + std::to_string(entries.size()) +
              " objects, more than can be held; remove them with the server's own tools, or choose another target",
          {"s3://" + client.settings().bucket + "/" + start});
    }
    entries.push_back(std::move(e));
    return entries.size() < most;
  });
  return entries;
}

}  // namespace zarrbits::io

std::vector<std::string> zarrbits::find_s3_sources(const std::string& pattern, const remote_access& remote) {
  using namespace io;
  const s3_settings settings = read_s3_settings(pattern, remote);
  const std::string bucket = "s3://" + settings.bucket + "/", wanted = settings.prefix;
  const std::size_t first = std::min(wanted.find_first_of("*?[\\"), wanted.size());
  const bool one_folder = wanted.find('/', first) == std::string::npos;
  std::vector<std::string> names;
  bool whole = false;
  s3_client client(settings);
  for_each_object(client, wanted.substr(0, first), one_folder, all_of_them, [&](s3_entry&& e) {
    whole = e.key == wanted;
    if (whole) names.clear();
    if (whole || (!e.key.ends_with('/') && ::fnmatch(wanted.c_str(), e.key.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0))
      names.push_back(bucket + e.key);
    return !whole;
  });
  return names;
}
