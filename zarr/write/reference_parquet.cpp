// SPDX-License-Identifier: BSL-1.0
//
// References in a folder of Parquet files, as fsspec reads kerchunk's: .zmetadata has the metadata of all nodes and, for each
// array, at least its extents as Zarr v2 has them, from which fsspec computes the row of a chunk. It knows keys of the form
// "0.1" alone, which the arrays' own metadata says, too. https://fsspec.github.io/kerchunk/spec.html#parquet-references
//
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "zarr/write/atomic_directory.hpp"
#include "zarr/write/parquet_writer.hpp"
#include "zarr/write/reference_writer.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace zarrbits::zarr {

namespace {

constexpr std::uint64_t record_size = 10'000;  // references in a file, all of which a reader takes to have one

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

class parquet_references final : public reference_writer {
 public:
  parquet_references(const std::string& path, const store_writer_options& options)
      : path_(path),
        folder_(path, unfinished_name(path), options, {"a folder of references that zarrbits made", io::is_zarrbits_references}) {
  }

  void begin(const std::vector<io::referenced_file>& files, io::zarr_formats formats,
             const io::chunk_key_index& arrays) override {
    formats_ = formats;
    arrays_ = &arrays;
    sources_ = sources_json(files);
    for (const io::referenced_file& f : files) urls_.push_back(f.url);
  }

  void content(const std::string& key, std::string_view bytes) override {
    if (text::is_node_key(key)) add_node(key, bytes);
    else add_row(key, {0, no_file, 0, 0, std::string(bytes)});
  }

  void v2(const std::string& key, const text::json& document) override {
    if (key == io::references_metadata) return;  // which readers make of all the others
    add_entry(key, document);
  }

  void range(const std::string& key, std::size_t file, std::uint64_t offset, std::uint64_t size) override {
    add_row(key, {0, file, offset, size, {}});
  }

  void finish() override {
    write_rows();
    const std::string content_text =
        io::references_signature + ("\"sources\":[" + sources_) + "],\"parts\":" + text::json_text(parts_) +
        (formats_.v3 ? "" : ",\"nodes\":{" + nodes_ + "\n}") + "},\"record_size\":" + std::to_string(record_size) +
        ",\"metadata\":{" + metadata_ + "\n}}\n";
    folder_.write(io::references_metadata, bytes_of(content_text));
    folder_.finish();
  }
  bool in_place() const override { return folder_.in_place(); }

 private:
  static constexpr std::size_t no_file = static_cast<std::size_t>(-1);
  struct row {
    std::uint64_t index;  // of the chunk, in C order
    std::size_t file;
    std::uint64_t offset, size;
    std::string content;
  };

  void add_entry(const std::string& key, const text::json& value) { add_to(metadata_, key, value); }
  static void add_to(std::string& out, const std::string& key, const text::json& value) {
    out += (out.empty() ? "\n" : ",\n") + text::json_text(text::json(key)) + ":" + text::python_json_text(value);
  }

  void add_node(const std::string& key, std::string_view text) {
    text::json node = text::parse_untrusted_json(text);
    if (metadata::is_array(node)) {
      const std::string path = io::path_of_node(key);
      if (path.empty()) {
        throw zarrbits::error(
            errc::unsupported,
            "\"" + path_ +
                "\" would be one array, for which kerchunk's Parquet format has no place; make references \"OUT.json\", or "
                "of the group that it is in",
            {path_});
      }
      const auto counted = metadata::chunks_along(node);
      if (!counted) throw zarrbits::error(errc::unsupported, "\"" + key + "\" has no chunk grid that can be counted", {path_});
      if (metadata::is_rectilinear(node) || !formats_.v2) add_entry(path + "/.zarray", metadata::v2_grid_alone(node));
    }
    metadata::set_all_key_encodings(node, metadata::dotted_keys);
    add_to(formats_.v3 ? metadata_ : nodes_, key, node);
  }

  void add_row(const std::string& key, row r) {
    const io::chunk_key_index::entry* const array = arrays_->find_array(key);
    const auto refuse = [&] {
      throw zarrbits::error(errc::unsupported,
                            "\"" + key + "\" is not a chunk of an array, and has no place in \"" + path_ + "\"", {path_});
    };
    if (!array) refuse();
    if (array != current_) write_rows();
    current_ = array;
    std::string_view remaining = std::string_view(key).substr(array->first.size() + 2);
    for (const std::uint64_t n : array->second) {
      std::uint64_t coordinate = 0;
      if (!remaining.starts_with('/')) refuse();
      const auto [end, error] = std::from_chars(remaining.data() + 1, remaining.data() + remaining.size(), coordinate);
      if (error != std::errc() || coordinate >= n) refuse();
      remaining.remove_prefix(static_cast<std::size_t>(end - remaining.data()));
      r.index = r.index * n + coordinate;
    }
    if (!remaining.empty()) refuse();
    rows_.push_back(std::move(r));
  }

  // Those of the current array, a file for each record_size chunks of which some exist.
  void write_rows() {
    std::sort(rows_.begin(), rows_.end(), [](const row& a, const row& b) { return a.index < b.index; });
    for (std::size_t first = 0; first < rows_.size();) {
      const std::uint64_t number = rows_[first].index / record_size;
      std::size_t end = first;
      while (end < rows_.size() && rows_[end].index / record_size == number) ++end;
      write_record(number, std::span(rows_).subspan(first, end - first));
      first = end;
    }
    rows_.clear();
  }

  void write_record(std::uint64_t number, std::span<const row> rows) {
    std::uint64_t chunks = 1;
    for (const std::uint64_t n : current_->second) chunks *= n;
    const auto n = static_cast<std::size_t>(std::min(record_size, chunks - number * record_size));
    std::vector<std::optional<std::string_view>> paths(n), contents(n);
    std::vector<std::int64_t> offsets(n), sizes(n);
    bool ranges = false, texts = false;
    for (const row& r : rows) {
      const auto i = static_cast<std::size_t>(r.index % record_size);
      (r.file == no_file ? texts : ranges) = true;
      if (r.file == no_file) {
        contents[i] = r.content;
      } else {
        paths[i] = urls_[r.file];
        offsets[i] = static_cast<std::int64_t>(r.offset);
        sizes[i] = static_cast<std::int64_t>(r.size);
      }
    }
    parquet_writer file(n);
    if (ranges) {
      file.add("path", paths, parquet_writer::text_kind::dictionary_utf8);
      file.add("offset", offsets);
      file.add("size", sizes);
    }
    if (texts) file.add("raw", contents, parquet_writer::text_kind::bytes);
    folder_.write(io::references_part(current_->first, number), bytes_of(file.finish()));
    parts_[current_->first].push_back({number, rows.size()});
  }

  std::string path_;
  atomic_directory folder_;
  std::string sources_, metadata_, nodes_;
  text::json parts_ =
      text::json::object();  // of each array its files, and how many references are in each: a reader notices if some are lost
  io::zarr_formats formats_;
  std::vector<std::string> urls_;
  const io::chunk_key_index* arrays_ = nullptr;
  const io::chunk_key_index::entry* current_ = nullptr;
  std::vector<row> rows_;
};

}  // namespace

std::unique_ptr<reference_writer> make_parquet_references(const std::string& path, const store_writer_options& options) {
  return std::make_unique<parquet_references>(path, options);
}

}  // namespace zarrbits::zarr
