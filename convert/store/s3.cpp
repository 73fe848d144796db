// SPDX-License-Identifier: BSL-1.0
#include "convert/store/s3.hpp"

#include "convert/store/files.hpp"
#include "convert/store/s3_listing.hpp"

#include <zarrbits/convert.hpp>

#include <boost/property_tree/ptree.hpp>

#include <algorithm>
#include <cstdio>

namespace zarrbits::conversion {

namespace {

constexpr const char* begun = "begun";  // beside the plan and the journal: that a store was begun
constexpr std::size_t first_part = 16 << 20;  // S3 wants 5 MiB at least, and 10,000 parts at most: later ones are larger

bool is_metadata(const std::string& key) { return key == "zarr.json" || key.ends_with("/zarr.json"); }

}  // namespace

s3_sink::s3_sink(const std::string& target, const sink_options& options)
    : client_(read_s3_settings(target, options.endpoint)), token_(unique_token()), joined_(options.target == sink_options::existing::join) {
  using existing = sink_options::existing;
  const std::string mark = std::string(unfinished_folder) + "/";
  const std::string below = whole("");
  if (!find(below, false, 1).empty()) {
    const bool unfinished = !find(whole(mark), false, 1).empty();
    const bool store = unfinished || get("zarr.json");
    if (options.target == existing::refuse) {
      throw convert_error("the target \"" + target + "\" exists; choose another name, or replace it with --overwrite");
    }
    if (options.target == existing::replace) {
      if (!store) {
        throw convert_error("the target \"" + target + "\" exists and is no Zarr v3 store, so --overwrite does not remove it; "
                            "choose another name or remove it yourself");
      }
      put_object(mark + removing, {});
      marked_ = true;
      remove_all(false);
      remove_object(whole(mark + removing));
    } else if (!unfinished) {
      throw convert_error("the target \"" + target + "\" exists and is no unfinished store that could be gone on with; choose another name" +
                          (store ? ", or replace it with --overwrite" : ""));
    } else if (get(mark + removing)) {
      throw convert_error("the target \"" + target + "\" is an old store that was not wholly removed; replace it with --overwrite");
    }
  }
  put_object(mark + begun, {});
  marked_ = true;
}

s3_sink::~s3_sink() {
  if (finished_ || joined_ || !marked_) return;
  try {
    remove_all(true);
  } catch (...) {  // the mark still says that the store is not whole
  }
}

std::string s3_sink::whole(std::string_view key) const {
  const std::string& prefix = client_.settings().prefix;
  return prefix.empty() ? std::string(key) : prefix + "/" + std::string(key);
}

void s3_sink::put_object(const std::string& key, std::span<const std::byte> bytes) {
  const auto answer = client_.send({.method = "PUT", .key = whole(key), .body = bytes});
  if (answer.status == 404) {
    throw convert_error("there is no S3 bucket \"" + client_.settings().bucket + "\" at " + client_.settings().url + "; make it, or check --endpoint");
  }
}

void s3_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  if (bytes.size() > 4 * first_part) {
    const auto object = begin(key);
    object->append(bytes);
    return object->commit();
  }
  put_object(std::string(key), bytes);
  count(key, bytes.size());
}

// An upload of many parts, where there is more than one.
class s3_sink::writer final : public object_writer {
 public:
  writer(s3_sink& sink, std::string_view key) : sink_(sink), key_(key) {}
  ~writer() override {
    if (upload_.empty()) return;
    try {
      sink_.client_.send({.method = "DELETE", .key = sink_.whole(key_), .query = {{"uploadId", upload_}}});
    } catch (...) {  // the server's rules for uploads without end remove it
    }
  }
  void append(std::span<const std::byte> bytes) override {
    size_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t n = std::min(bytes.size(), part_size() - part_.size());
      part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      bytes = bytes.subspan(n);
      if (part_.size() == part_size() && !bytes.empty()) send_part();
    }
  }
  void commit() override {
    if (upload_.empty()) {
      sink_.put_object(key_, part_);
    } else {
      if (part_.size() > 0) send_part();
      complete();
    }
    sink_.count(key_, size_);
  }

 private:
  std::size_t part_size() const { return first_part << std::min<std::size_t>(etags_.size() / 1000, 8); }
  void send_part() {
    s3_client& client = sink_.client_;
    const std::string whole_key = sink_.whole(key_);
    if (upload_.empty()) {
      const auto answer = client.send({.method = "POST", .key = whole_key, .query = {{"uploads", ""}}});
      upload_ = parsed_xml(answer.body).get("InitiateMultipartUploadResult.UploadId", std::string());
      if (upload_.empty()) throw convert_error("the S3 server begins no upload of parts for \"" + whole_key + "\"; check the bucket and --endpoint");
    }
    const auto answer = client.send({.method = "PUT", .key = whole_key,
                                     .query = {{"partNumber", std::to_string(etags_.size() + 1)}, {"uploadId", upload_}}, .body = part_});
    if (answer.status == 404 || answer.etag.empty()) throw convert_error("the S3 server takes no parts of \"" + whole_key + "\"; convert again");
    etags_.push_back(answer.etag);
    part_.clear();
  }
  void complete() {
    const std::string whole_key = sink_.whole(key_);
    std::string list = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    for (std::size_t i = 0; i < etags_.size(); ++i) {
      list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + etags_[i] + "</ETag></Part>";
    }
    list += "</CompleteMultipartUpload>";
    const auto answer = sink_.client_.send({.method = "POST", .key = whole_key, .query = {{"uploadId", upload_}},
                                            .body = std::as_bytes(std::span(list.data(), list.size()))});
    if (answer.status == 404) {
      // done by an attempt whose answer was lost?
      const auto there = sink_.client_.send({.method = "HEAD", .key = whole_key});
      if (answer.attempts == 1 || there.status == 404 || there.length != static_cast<long long>(size_)) {
        throw convert_error("the S3 server lost the upload of \"" + whole_key + "\"; convert again");
      }
    }
    upload_.clear();
  }
  s3_sink& sink_;
  std::string key_, upload_;
  std::vector<std::byte> part_;
  std::vector<std::string> etags_;
  std::uint64_t size_ = 0;
};

std::unique_ptr<object_writer> s3_sink::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

std::optional<std::vector<std::byte>> s3_sink::get(std::string_view key) {
  const auto answer = client_.send({.key = whole(key)});
  if (answer.status == 404) return std::nullopt;
  const auto bytes = std::as_bytes(std::span(answer.body.data(), answer.body.size()));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

std::vector<std::string> s3_sink::find(const std::string& start, bool folders, std::size_t most) {
  std::vector<std::string> keys;
  for (s3_entry& e : list_objects(client_, start, folders, most)) keys.push_back(std::move(e.key));
  return keys;
}

std::vector<std::string> s3_sink::list(std::string_view folder) {
  const std::string start = folder.empty() ? whole("") : whole(folder) + "/";
  std::vector<std::string> keys;
  const std::size_t above = whole("").size();
  for (std::string& key : find(start, true, all_of_them)) {
    key.erase(0, above);
    if (key.back() == '/') key.pop_back();
    if (folder != unfinished_folder || (!key.ends_with(std::string("/") + begun) && !key.ends_with(std::string("/") + removing))) {
      keys.push_back(std::move(key));
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

void s3_sink::append(std::string_view key, std::string_view text) {
  char number[24];
  std::snprintf(number, sizeof number, "%08llu", static_cast<unsigned long long>(next_line_++));
  put_object(std::string(key) + "-" + token_ + "-" + number, std::as_bytes(std::span(text.data(), text.size())));
}

void s3_sink::remove_object(const std::string& whole_key) { client_.send({.method = "DELETE", .key = whole_key}); }

void s3_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  for (const std::string& key : find(whole(folder) + "/", false, all_of_them)) remove_object(key);
}

// zarr.json first, the outermost before those in it, so that no reader takes the rest for a store. The mark goes last, or stays.
void s3_sink::remove_all(bool mark_too) {
  std::vector<std::string> keys = find(whole(""), false, all_of_them);
  const auto late = std::stable_partition(keys.begin(), keys.end(), is_metadata);
  std::sort(keys.begin(), late, [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  const std::string mark = whole(std::string(unfinished_folder) + "/");
  for (const std::string& key : keys) {
    if (key != mark + begun && key != mark + removing) remove_object(key);
  }
  if (mark_too) {
    for (const char* name : {removing, begun}) remove_object(mark + name);
  }
}

void s3_sink::finish() {
  for (const std::string& key : find(whole(std::string(unfinished_folder) + "/"), false, all_of_them)) remove_object(key);
  finished_ = true;
}

bool s3_sink::remove_unfinished(const std::string& target, const std::string& endpoint) {
  try {
    s3_sink sink(target, {.target = sink_options::existing::join, .endpoint = endpoint});
    sink.remove_all(true);
    return true;
  } catch (const convert_error&) {  // none that is unfinished
    return false;
  }
}

}  // namespace zarrbits::conversion
