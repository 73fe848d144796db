// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_listing.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <algorithm>
#include <charconv>
#include <fnmatch.h>
#include <map>
#include <set>

namespace zarrbits::remote {

namespace {

constexpr std::size_t max_list_pages = 100'000, max_empty_list_pages = 100, max_listing_bytes = std::size_t{1} << 30;
constexpr std::size_t max_small_list_pages = 10'000, min_page_entries = 100;  // servers send up to 1,000 entries in a page

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

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    throw zarrbits::error(errc::server_failed,
                          "the server lists an object whose size is \"" + text.substr(0, 40) + "\"; check `endpoint`");
  return size;
}

// One page of a list, whichever server made it.
struct list_page {
  std::vector<s3_entry> entries = {};
  std::string next = {};  // where the next page begins; "" if this is the last
  bool is_last = false;
};

list_page page_of_s3(const xml_element& list) {
  const bool encoded = list.text_of("EncodingType") == "url";
  list_page page{.next = list.text_of("NextContinuationToken"), .is_last = list.text_of("IsTruncated") != "true"};
  for (const xml_element& element : list.elements) {
    const bool object = element.name == "Contents";
    if (!object && element.name != "CommonPrefixes") continue;
    s3_entry e{element.text_of(object ? "Key" : "Prefix"), object ? parse_size(element.text_of("Size")) : 0,
               element.text_of("LastModified"), element.text_of("ETag")};
    if (encoded) e.key = percent_decoded(e.key);
    page.entries.push_back(std::move(e));
  }
  return page;
}

// A folder of a hierarchical namespace is a blob, too.
bool is_folder_blob(const xml_element& properties, const xml_element& metadata) {
  return properties.text_of("ResourceType") == "directory" || metadata.text_of("hdi_isfolder") == "true";
}

list_page page_of_azure(const xml_element& list) {
  list_page page{.next = list.text_of("NextMarker")};
  page.is_last = page.next.empty();
  for (const xml_element& element : list.child("Blobs").elements) {
    const bool object = element.name == "Blob";
    if (!object && element.name != "BlobPrefix") continue;
    const xml_element& properties = element.child("Properties");
    if (object && is_folder_blob(properties, element.child("Metadata"))) continue;
    page.entries.push_back({element.text_of("Name"), object ? parse_size(properties.text_of("Content-Length")) : 0,
                            properties.text_of("Last-Modified"), properties.text_of("Etag")});
  }
  return page;
}

}  // namespace

void for_each_object(s3_client& client, const std::string& start, bool folders, std::size_t limit,
                     const std::function<bool(s3_entry&&)>& callback) {
  const bool azure = client.settings().is_azure();
  std::map<std::string, std::string> query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", start}};
  // Azure's own limit is 5,000, which are more elements than a response may have
  if (azure)
    query = {{"comp", "list"}, {"include", "metadata"}, {"maxresults", "1000"}, {"prefix", start}, {"restype", "container"}};
  if (folders) query["delimiter"] = "/";
  if (limit < 1000) query[azure ? "maxresults" : "max-keys"] = std::to_string(limit);
  std::set<std::size_t> tokens;  // hashes
  std::string last_key;
  for (std::size_t pages = 0, empty = 0, small = 0;; ++pages) {
    const auto response = client.send({.query = query, .expected_element = azure ? "EnumerationResults" : "ListBucketResult"});
    if (response.status == 404) {
      throw zarrbits::error(errc::not_found,
                            "there is no " + client.settings().bucket_kind() + " \"" + client.settings().bucket + "\" at " +
                                client.settings().url + "; create it, or check `endpoint`",
                            {client.settings().name_of("")});
    }
    list_page page = azure ? page_of_azure(response.xml) : page_of_s3(response.xml);
    std::string first_key;
    bool has_entries = false;
    if (page.entries.size() < min_page_entries) ++small;
    for (s3_entry& e : page.entries) {
      std::erase(e.etag, '"');
      if (first_key.empty()) first_key = e.key;
      if (!e.key.starts_with(start)) continue;
      const std::string_view suffix = std::string_view(e.key).substr(start.size());
      const bool itself = suffix.empty() && !start.empty() && !start.ends_with('/');
      if (!itself && !is_sane(suffix)) continue;
      has_entries = true;
      if (!callback(std::move(e))) return;
    }
    if (page.is_last) return;
    const std::string& next = page.next;
    empty = has_entries ? 0 : empty + 1;
    // the list must advance: with a different token, and different objects
    const bool repeats =
        next.empty() || !tokens.insert(std::hash<std::string>()(next)).second || (!first_key.empty() && first_key == last_key);
    if (repeats || empty > max_empty_list_pages || small > max_small_list_pages || pages > max_list_pages) {
      throw zarrbits::error(errc::server_failed,
                            client.settings().server_name() + "'s list of \"" + client.settings().name_of(start) +
                                "\" does not end; check the server, or choose another target",
                            {client.settings().name_of(start)});
    }
    last_key = first_key;
    query[azure ? "marker" : "continuation-token"] = next;
  }
}

void abort_uploads(s3_client& client, const std::string& start,
                   const std::function<bool(const std::string& key, const std::string& initiated)>& is_ours) {
  if (client.settings().is_azure()) return;  // which removes parts that are not used after a week
  constexpr std::size_t max_pages = 100;
  std::map<std::string, std::string> query = {{"encoding-type", "url"}, {"prefix", start}, {"uploads", ""}};
  try {
    for (std::size_t page = 0; page < max_pages; ++page) {
      const auto response = client.send({.query = query, .expected_element = "ListMultipartUploadsResult"});
      const bool encoded = response.xml.text_of("EncodingType") == "url";
      for (const xml_element& element : response.xml.elements) {
        if (element.name != "Upload") continue;
        std::string key = element.text_of("Key");
        if (encoded) key = percent_decoded(key);
        const std::string id = element.text_of("UploadId");
        if (id.empty() || !key.starts_with(start) || !is_sane(std::string_view(key).substr(start.size())) ||
            !is_ours(key, element.text_of("Initiated")))
          continue;
        client.send({.method = "DELETE", .key = key, .query = {{"uploadId", id}}});
      }
      const std::string next_key = response.xml.text_of("NextKeyMarker"), next_id = response.xml.text_of("NextUploadIdMarker");
      if (response.xml.text_of("IsTruncated") != "true" || next_key.empty()) return;
      query["key-marker"] = encoded ? percent_decoded(next_key) : next_key;
      query["upload-id-marker"] = next_id;
    }
  } catch (const zarrbits::error&) {  // a server that has no list of them, or does not show it
  }
}

std::vector<s3_entry> list_objects(s3_client& client, const std::string& start, bool folders, std::size_t limit) {
  std::vector<s3_entry> entries;
  std::size_t total_bytes = 0;
  for_each_object(client, start, folders, limit, [&](s3_entry&& e) {
    total_bytes += sizeof(s3_entry) + e.key.size() + e.modified.size() + e.etag.size();
    if (total_bytes > max_listing_bytes) {
      throw zarrbits::error(
          errc::refused,
          "\"" + client.settings().name_of(start) + "\" has more than " + std::to_string(entries.size()) +
              " objects, more than can be held; remove them with the server's own tools, or choose another target",
          {client.settings().name_of(start)});
    }
    entries.push_back(std::move(e));
    return entries.size() < limit;
  });
  return entries;
}

}  // namespace zarrbits::remote

std::vector<std::string> zarrbits::find_s3_sources(const std::string& pattern, const remote_access& remote) {
  using namespace remote;
  const s3_settings settings = read_s3_settings(pattern, remote);
  const std::string bucket = settings.name_of(""), key_pattern = settings.prefix;
  const std::size_t first = std::min(key_pattern.find_first_of("*?[\\"), key_pattern.size());
  const bool one_folder = key_pattern.find('/', first) == std::string::npos;
  std::vector<std::string> names;
  bool exact_match = false;
  s3_client client(settings);
  for_each_object(client, key_pattern.substr(0, first), one_folder, no_limit, [&](s3_entry&& e) {
    exact_match = e.key == key_pattern;
    if (exact_match) names.clear();
    if (exact_match || (!e.key.ends_with('/') && ::fnmatch(key_pattern.c_str(), e.key.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0))
      names.push_back(bucket + e.key);
    return !exact_match;
  });
  return names;
}
