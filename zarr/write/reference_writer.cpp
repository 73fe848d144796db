// SPDX-License-Identifier: BSL-1.0
//
// References in one JSON file, version 1 of kerchunk's format. The list has a fixed order, and no time of the run.
//
#include "zarr/write/reference_writer.hpp"

#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "metadata/node.hpp"
#include "remote/s3_version.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "zarr/write/atomic_directory.hpp"
#include "zarr/write/atomic_file.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <span>
#include <utility>

namespace zarrbits::zarr {

namespace {

class json_references final : public reference_writer {
 public:
  json_references(const std::string& path, const store_writer_options& options)
      : file_(path, unfinished_name(path), options, {"a file of references that zarrbits made", io::is_zarrbits_references}) {}

  void begin(const std::vector<io::referenced_file>& files, io::zarr_formats formats,
             const io::chunk_key_index& arrays) override {
    formats_ = formats;
    arrays_ = &arrays;
    text_ = io::references_signature;
    text_ += "\"sources\":[" + sources_json(files) + "]},\"refs\":{";
    for (const io::referenced_file& f : files) urls_.push_back(text::json_text(text::json(f.url)));
  }

  void content(const std::string& key, std::string_view bytes) override {
    if (text::is_node_key(key)) return node(key, bytes);
    add(name_of(key), "\"base64:" + text::base64(bytes) + "\"");
  }

  void v2(const std::string& key, const text::json& document) override {
    add(key, text::json_text(text::json(text::python_json_text(document))));
  }

  void range(const std::string& key, std::size_t file, std::uint64_t offset, std::uint64_t size) override {
    add(name_of(key), "[" + urls_[file] + "," + std::to_string(offset) + "," + std::to_string(size) + "]");
  }

  void finish() override {
    text_ += "\n}";
    if (!formats_.v3) text_ += ",\"" + std::string(io::nodes_key) + "\":{" + nodes_ + "\n}";
    text_ += "}\n";
    flush();
    file_.finish();
  }
  bool in_place() const override { return file_.in_place(); }

 private:
  std::string name_of(const std::string& key) const { return formats_.v2 ? arrays_->to_v2_key(key) : key; }

  void node(const std::string& key, std::string_view bytes) {
    if (!formats_.v3) {
      nodes_ += (nodes_.empty() ? "\n" : ",\n") + text::json_text(text::json(key)) + ":" + text::json_text(text::json(bytes));
      return;
    }
    if (!formats_.v2) return add(key, text::json_text(text::json(bytes)));
    text::json node = text::parse_untrusted_json(bytes);
    metadata::set_all_key_encodings(node, metadata::dotted_keys);
    add(key, text::json_text(text::json(metadata::node_text(node))));
  }

  void add(const std::string& key, const std::string& value) {
    text_ += (first_ ? "\n" : ",\n") + text::json_text(text::json(key)) + ":";
    text_ += value;
    first_ = false;
    if (text_.size() > (1U << 20)) flush();
  }
  void flush() {
    file_.write_at(offset_, std::as_bytes(std::span(text_.data(), text_.size())));
    offset_ += text_.size();
    text_.clear();
  }

  atomic_file file_;
  std::string text_;
  std::uint64_t offset_ = 0;
  bool first_ = true;
  io::zarr_formats formats_;
  const io::chunk_key_index* arrays_ = nullptr;
  std::vector<std::string> urls_;
  std::string nodes_;
};

}  // namespace

std::string sources_json(const std::vector<io::referenced_file>& files) {
  std::string text;
  for (const io::referenced_file& f : files) {
    if (!f.state) continue;
    text +=
        (text.empty() ? "{\"url\":" : ",{\"url\":") + text::json_text(text::json(f.url)) +
        ",\"size\":" + std::to_string(f.state->size) +
        (f.size_only            ? ""
         : io::is_remote(f.url) ? ",\"etag\":" + text::json_text(text::json(f.state->etag))
                                : ",\"modified\":" + std::to_string(f.state->seconds * 1'000'000'000 + f.state->nanoseconds)) +
        "}";
  }
  return text;
}

void require_public_name(const std::string& url) {
  if (remote::version_in(url) != std::string::npos)
    throw zarrbits::error(
        errc::unsupported,
        "references cannot name the source \"" + url +
            "\": their readers ignore the version, and read the newest one; copy this version to a key of its own",
        {url});
  if (!io::has_hashed_query(url)) return;
  throw zarrbits::error(errc::unsupported,
                        "references cannot name the source \"" + url.substr(0, url.rfind('?')) +
                            "\": its URL has a query that tells it from other files and may be a secret; use a URL without one, "
                            "such as the one that it redirects to, or download the file",
                        {url});
}

namespace {

bool is_parquet(const std::string& path) { return io::kind_of_target(path) == io::store_kind::parquet; }

}  // namespace

std::unique_ptr<reference_writer> make_reference_writer(const std::string& path, const store_writer_options& options) {
  if (is_parquet(path)) return make_parquet_references(path, options);
  return std::make_unique<json_references>(path, options);
}

bool remove_unfinished_references(const std::string& path) {
  if (is_parquet(path)) return atomic_directory::remove_unfinished(path, unfinished_name(path));
  return atomic_file::remove_unfinished(path, unfinished_name(path));
}

}  // namespace zarrbits::zarr
