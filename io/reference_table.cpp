// SPDX-License-Identifier: BSL-1.0
#include "io/reference_table.hpp"

#include "array/extents.hpp"
#include "io/parquet_file.hpp"
#include "io/reference_builder.hpp"
#include "io/reference_v2.hpp"
#include "io/source_url_map.hpp"
#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/format.hpp"
#include "text/node_names.hpp"
#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace zarrbits::io {

namespace fs = std::filesystem;

namespace {

// A folder of Parquet files.
class parquet_folder {
 public:
  // Through a descriptor: if another store replaces the folder in the meantime, nothing of that one is read.
  parquet_folder(const std::string& path, std::uint64_t memory)
      : path_(path), folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), builder_(memory) {
    if (!folder_) throw reference_error("\"" + path + "\" cannot be opened: " + std::system_category().message(errno));
  }

  reference_table read() {
    const std::vector<std::byte> bytes = read_part(references_metadata);
    const text::json document = text::parse_untrusted_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const text::json* const record_size = find(document, "record_size");
    const text::json* const metadata = find(document, "metadata");
    if (!record_size || !record_size->is_number_unsigned() || !metadata || !metadata->is_object()) throw_corrupt();
    record_size_ = record_size->get<std::uint64_t>();
    if (record_size_ == 0 || record_size_ > max_part_references) throw_corrupt();
    if (const text::json* const annotation = find(document, "zarrbits")) {
      read_sources(*annotation);
      read_part_list(*annotation);
    }
    bool only_v2 = find(document, "zarrbits") == nullptr;  // made by others
    for (const auto& item : metadata->items()) only_v2 = only_v2 && !text::is_node_key(item.key());
    for (const auto& [key, value] : metadata->items()) {
      if (text::is_node_key(key)) read_node(key, value);
      else if (metadata::is_v2_metadata_key(key) && value.is_object() && !metadata::is_v2_grid_alone(value)) {
        builder_.add_content(key, text::python_json_text(value));
        if (only_v2 && key.ends_with("/.zarray")) read_v2_array(key.substr(0, key.rfind('/')), value);
      }
    }
    const text::json* const annotation = find(document, "zarrbits");
    if (const text::json* const nodes = annotation ? find(*annotation, "nodes") : nullptr; nodes && nodes->is_object()) {
      builder_.set_no_v3();
      for (const auto& [key, value] : nodes->items()) read_node(key, value);
    }
    struct stat read {
    }, current{};
    // the parts of a store that was replaced may be removed in the meantime, and a missing one has no references
    if (::fstat(folder_.get(), &read) != 0 || ::stat(path_.c_str(), &current) != 0 || read.st_dev != current.st_dev ||
        read.st_ino != current.st_ino)
      throw reference_error("\"" + path_ + "\" was replaced while it was read; read it again");
    for (const auto& [array, listed] : parts_) {
      if (!listed.empty()) throw_corrupt("\"" + references_part(array, listed.begin()->first) + "\" is missing");
    }
    return builder_.take();
  }

 private:
  [[noreturn]] void throw_corrupt(const std::string& reason = "") const {
    throw reference_error("\"" + path_ + "\" does not hold references in kerchunk's Parquet format" +
                          (reason.empty() ? "" : ": " + reason) + "; use a Zarr v3 store");
  }

  static const text::json* find(const text::json& j, const char* key) {
    const auto it = j.is_object() ? j.find(key) : j.end();
    return it == j.end() ? nullptr : &*it;
  }

  std::vector<std::byte> read_part(const std::string& name) const {
    try {
      if (auto bytes = read_regular_file(folder_.get(), name, path_ + "/" + name)) return std::move(*bytes);
    } catch (const zarrbits::error& e) {
      throw reference_error(e.what());
    }
    throw reference_error("\"" + path_ + "\" has no \"" + name + "\"");
  }

  // Which files each array has, and how many references are in each: a lost file would read as chunks that were never written.
  void read_part_list(const text::json& annotation) {
    const text::json* const parts = find(annotation, "parts");
    if (!parts) return;  // made by another program, or an earlier zarrbits
    lists_parts_ = true;
    if (!parts->is_object()) throw_corrupt();
    for (const auto& [array, list] : parts->items()) {
      builder_.count(array.size());
      for (const text::json& part : list) {
        const auto pair = numbers(&part);
        if (pair.size() != 2 || !parts_[array].emplace(pair[0], pair[1]).second) throw_corrupt();
        builder_.count(sizeof pair + 2 * sizeof pair[0]);
      }
    }
  }

  void read_sources(const text::json& annotation) {
    const text::json* const sources = find(annotation, "sources");
    if (!sources || !sources->is_array()) throw_corrupt();
    for (const text::json& s : *sources) {
      const text::json *const url = find(s, "url"), *const size = find(s, "size"), *const modified = find(s, "modified"),
                              *const etag = find(s, "etag");
      const bool has_timestamp = etag ? etag->is_string() : !modified || modified->is_number_integer();
      if (!url || !url->is_string() || !size || !size->is_number_unsigned() || !has_timestamp) throw_corrupt();
      builder_.add_source(url->get<std::string>(), size->get<std::uint64_t>(),
                          modified ? std::optional(modified->get<std::int64_t>()) : std::nullopt,
                          etag ? std::optional(etag->get<std::string>()) : std::nullopt);
    }
  }

  static std::vector<std::uint64_t> numbers(const text::json* list) {
    std::vector<std::uint64_t> result;
    if (!list || !list->is_array()) return result;
    for (const text::json& n : *list) result.push_back(n.is_number_unsigned() ? n.get<std::uint64_t>() : 0);
    return result;
  }

  // Chunks are where their keys point to, whatever the keys in the metadata look like: they become those of Zarr v3.
  void read_node(const std::string& key, text::json node) {
    const std::string array = path_of_node(key);
    if (metadata::is_array(node)) {
      const auto counts = metadata::chunks_along(node);
      if (!counts) throw_corrupt();
      read_parts(array, *counts);
    }
    metadata::set_all_key_encodings(node, {});
    builder_.add_content(key, metadata::node_text(node));
  }

  void read_v2_array(const std::string& array, const text::json& zarray) {
    const auto counts = metadata::v2_chunks_along(zarray);
    if (!counts) throw_corrupt();
    v2_separator_ = metadata::v2_separator(zarray);
    read_parts(array, *counts);
    v2_separator_.reset();
  }

  void read_parts(const std::string& array, const std::vector<std::uint64_t>& counts) {
    const fs::path folder = fs::path(array).lexically_normal();
    if (array.empty() || folder.is_absolute() || folder.native() != array || *folder.begin() == "..")
      throw_corrupt("\"" + array + "\" points outside of it");
    std::error_code e;
    for (fs::directory_iterator i("/proc/self/fd/" + std::to_string(folder_.get()) + "/" + array, e), end; !e && i != end;
         i.increment(e)) {
      const std::string name = i->path().filename().string();
      std::uint64_t number = 0;
      std::string_view digits = name;
      if (!digits.starts_with("refs.") || !digits.ends_with(".parq")) continue;
      digits.remove_prefix(5);
      digits.remove_suffix(5);
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (error != std::errc() || stop != digits.data() + digits.size()) continue;
      try {
        read_rows(array, counts, number);
      } catch (const parquet_error& wrong) {
        throw_corrupt("\"" + array + "/" + name + "\": " + wrong.what());
      }
    }
  }

  void read_rows(const std::string& array, const std::vector<std::uint64_t>& counts, std::uint64_t number) {
    parquet_file part(read_part(references_part(array, number)), record_size_);
    const std::size_t n = static_cast<std::size_t>(part.rows());
    builder_.count(n * sizeof(std::uint64_t));
    if (n < rows_of(counts, number)) throw parquet_error("it has only " + text::pluralize(n, "row"));
    if (!part.has_column("path") && !part.has_column("raw")) throw parquet_error("columns are missing");
    const auto texts = [&](const char* name) {
      return part.has_column(name) ? part.texts(name) : std::vector<std::optional<std::string_view>>(n);
    };
    const auto paths = texts("path"), contents = texts("raw");
    const bool ranges = part.has_column("path");
    std::uint64_t references = 0;
    const auto offsets = ranges ? part.numbers("offset") : std::vector<std::int64_t>(n);
    const auto sizes = ranges ? part.numbers("size") : std::vector<std::int64_t>(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (!paths[i] && !contents[i]) continue;
      ++references;
      const auto key = key_of(array, counts, number, i);
      if (!key || offsets[i] < 0 || sizes[i] < 0)
        throw parquet_error("row " + std::to_string(i) + " is not a chunk of the array");
      if (contents[i]) builder_.add_content(*key, *contents[i]);
      else
        builder_.add_range(*key, std::string(*paths[i]), static_cast<std::uint64_t>(offsets[i]),
                           static_cast<std::uint64_t>(sizes[i]));
    }
    if (!lists_parts_) return;
    auto& listed = parts_[array];
    const auto it = listed.find(number);
    if (it == listed.end() || it->second != references)
      throw parquet_error("it has " + text::pluralize(references, "reference") +
                          (it == listed.end() ? ", and should not be there" : ", and had " + std::to_string(it->second)));
    listed.erase(it);
  }

  // At least the rows that this file needs for its chunks of the array.
  std::uint64_t rows_of(const std::vector<std::uint64_t>& counts, std::uint64_t number) const {
    const std::uint64_t chunks = array::product(counts);
    if (chunks == UINT64_MAX) return record_size_;
    std::uint64_t first_chunk = 0;
    if (__builtin_mul_overflow(number, record_size_, &first_chunk) || first_chunk >= chunks) return 0;
    return std::min(record_size_, chunks - first_chunk);
  }

  // Empty if the array has no such chunk.
  std::optional<std::string> key_of(const std::string& array, const std::vector<std::uint64_t>& counts, std::uint64_t number,
                                    std::uint64_t row) const {
    if (number > (UINT64_MAX - row) / record_size_) return {};
    const std::uint64_t chunk = number * record_size_ + row;
    if (chunk >= array::product(counts)) return {};
    const array::extents indices = array::unravel(chunk, counts);
    std::string key = array + "/c";
    for (const std::uint64_t n : indices) key += "/" + std::to_string(n);
    if (!v2_separator_) return key;
    key = array + "/";
    for (std::size_t d = 0; d < indices.size(); ++d)
      key += (d > 0 ? std::string(1, *v2_separator_) : "") + std::to_string(indices[d]);
    return indices.empty() ? key + "0" : key;
  }

  const std::string& path_;
  const file_descriptor folder_;
  std::uint64_t record_size_ = 1;
  std::optional<char> v2_separator_;  // of the keys of an array of Zarr v2
  bool lists_parts_ = false;
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> parts_;  // those that were not read yet
  table_builder builder_;
};

}  // namespace

bool is_unchanged(const referenced_file& file, const file_state& current) {
  return !file.state || (file.size_only ? current.regular && current.size == file.state->size : current == *file.state);
}

namespace {

// Whether `stored` has the same documents as `expected`, and the first key that differs.
std::string first_difference(const std::map<std::string, std::string>& stored,
                             const std::map<std::string, text::json>& expected) {
  for (const auto& [key, document] : expected) {
    const auto it = stored.find(key);
    if (it == stored.end() ||
        text::python_json_text(text::parse_untrusted_json(it->second), 0) != text::python_json_text(document, 0))
      return key;
  }
  for (const auto& [key, text] : stored) {
    if (!expected.contains(key)) return key;
  }
  return {};
}

// Makes the keys those of Zarr v3, and takes out the metadata of v2, which follow from those of v3.
void normalize_to_v3(reference_table& table, bool is_folder) {
  std::map<std::string, std::string> documents;
  v2_references v2;
  chunk_key_index dotted;
  for (auto it = table.keys.begin(); it != table.keys.end();) {
    auto& [key, r] = *it;
    if (metadata::is_v2_metadata_key(key) && !r.file) {
      documents.emplace(key, std::move(r.content));
      it = table.keys.erase(it);
      continue;
    }
    if (text::is_node_key(key) && !r.file) {
      text::json node = text::parse_untrusted_json(r.content);
      if (metadata::is_array(node) && (!table.formats.v3 || metadata::key_encoding_of(node).v2) &&
          dotted.add(path_of_node(key), node) && table.formats.v3) {
        metadata::set_all_key_encodings(node, {});
        r.content = metadata::node_text(node);
        r.size = r.content.size();
      } else if (key == "zarr.json" && !metadata::consolidated_metadata_of(node).is_null()) {
        metadata::set_all_key_encodings(node, {});
        r.content = metadata::node_text(node);
        r.size = r.content.size();
      }
    }
    ++it;
  }
  const bool has_v3 =
      std::any_of(table.keys.begin(), table.keys.end(), [](const auto& one) { return text::is_node_key(one.first); });
  if (!has_v3 && !documents.empty()) {  // made by others: a store of Zarr v2
    table.formats = {.v2 = true, .v3 = false};
    for (auto& [key, text] : documents) {
      const std::uint64_t size = text.size();
      table.keys[key] = {{}, 0, size, false, std::move(text)};
    }
    return;
  }
  if (!is_folder && dotted.size() > 0) {
    std::map<std::string, reference> renamed;
    while (!table.keys.empty()) {
      auto one = table.keys.extract(table.keys.begin());
      if (!text::is_node_key(one.key())) one.key() = dotted.to_v3_key(one.key());
      if (!renamed.insert(std::move(one)).inserted)
        throw reference_error("two references are of the same chunk; make the references again");
    }
    table.keys = std::move(renamed);
  }
  table.formats.v2 = !documents.empty();
  if (!table.formats.v2 || !table.keys.contains("zarr.json")) return;
  for (const auto& [key, r] : table.keys) {
    if (text::is_node_key(key)) v2.node(key, r.content);
  }
  for (const auto& [key, r] : table.keys) {
    if (!text::is_node_key(key)) v2.chunk(key);
  }
  auto expected = v2.documents();
  if (is_folder) expected.erase(references_metadata);
  table.differing_v2 = first_difference(documents, expected);
}

}  // namespace

reference_table read_references(const std::string& path, std::uint64_t memory) {
  std::error_code e;
  const bool is_folder = fs::is_directory(path, e);
  reference_table table = is_folder ? parquet_folder(path, memory).read() : read_json_references(path, memory);
  normalize_to_v3(table, is_folder);
  for (referenced_file& f : table.files) {
    std::string absolute = from_references(f.url, path);
    table.relative = table.relative || (absolute != f.url && f.state);
    f.url = std::move(absolute);
  }
  return table;
}

namespace {

// Looks for the object "zarrbits" at the top, and stops there: programs that save JSON again change its order and its blanks.
class signature_finder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool is_found() const noexcept { return is_found_; }

  bool start_object(std::size_t) override {
    is_found_ = depth_ == 1 && key_ == "zarrbits";
    ++depth_;
    return !is_found_;
  }
  bool end_object() override { return --depth_ > 0; }
  bool start_array(std::size_t) override { return depth_++ > 0; }
  bool end_array() override { return --depth_ > 0; }
  bool key(std::string& name) override {
    if (depth_ == 1) key_ = name;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  std::string key_;
  std::size_t depth_ = 0;
  bool is_found_ = false;
};

}  // namespace

bool is_zarrbits_references(const std::string& path) noexcept {
  try {
    std::error_code e;
    const std::string file = fs::is_directory(path, e) ? path + "/" + references_metadata : path;
    const file_descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const std::string_view begin = references_signature;
    std::string head(begin.size(), '\0');
    if (!fd || !state_of(fd.get()).regular) return false;
    if (::pread(fd.get(), head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) && head == begin) return true;
    std::ifstream in("/proc/self/fd/" + std::to_string(fd.get()), std::ios::binary);
    signature_finder finder;
    nlohmann::json::sax_parse(in, &finder);
    return finder.is_found();
  } catch (...) {
    return false;
  }
}

bool is_parquet_references(const std::string& path) noexcept {
  std::error_code e;
  const auto holds = [&](const char* key) { return fs::exists(fs::path(path) / key, e); };
  return fs::is_directory(path, e) && holds(references_metadata) && !holds("zarr.json") && !holds(".zgroup");
}

std::vector<std::string> allowed_paths(const std::vector<std::string>& sources, const std::vector<std::string>& external) {
  std::vector<std::string> result;
  for (const std::string& source : sources) {
    const std::string file = split_source(source).file;
    result.push_back(file);
    // as a file of references, they lead to files beside it
    if (is_parquet_references(file)) result.push_back(fs::absolute(file).lexically_normal().string() + "/..");
  }
  for (const std::string& folder : external) result.push_back(folder == "all" ? "/" : folder);
  return result;
}

std::string data_file_path(const std::string& references, std::size_t number) {
  return references + ".data" + (number == 0 ? "" : "." + std::to_string(number));
}

bool is_data_file(const std::string& references, const std::string& file) {
  const std::string first = data_file_path(references);
  if (!file.starts_with(first)) return false;
  const std::string_view suffix = std::string_view(file).substr(first.size());
  return suffix.empty() || (suffix.size() > 1 && suffix[0] == '.' && suffix.find_first_not_of("0123456789", 1) == suffix.npos);
}

std::string partitions_path(const std::string& references) {
  return text::strip_trailing_slashes(references) + ".zarrbits-partitions";
}

std::string references_part(const std::string& array, std::uint64_t number) {
  return array + "/refs." + std::to_string(number) + ".parq";
}

}  // namespace zarrbits::io
