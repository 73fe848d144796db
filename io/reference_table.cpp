// SPDX-License-Identifier: BSL-1.0
#include "io/reference_table.hpp"

#include "io/parquet_file.hpp"
#include "io/reference_builder.hpp"
#include "text/node_names.hpp"
#include "text/words.hpp"
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

namespace zarrbits::conversion {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_in_part = 1'000'000;  // references in one Parquet file

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
    const json document = parse_foreign_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const json* const record_size = find(document, "record_size");
    const json* const metadata = find(document, "metadata");
    if (!record_size || !record_size->is_number_unsigned() || !metadata || !metadata->is_object()) damaged();
    record_size_ = record_size->get<std::uint64_t>();
    if (record_size_ == 0 || record_size_ > most_in_part) damaged();
    if (const json* const own = find(document, "zarrbits")) {
      read_sources(*own);
      read_part_list(*own);
    }
    for (const auto& [key, value] : metadata->items()) {
      if (is_node_key(key)) read_node(key, value);
    }
    struct stat read {
    }, there{};
    // the parts of a store that was replaced may be removed in the meantime, and a missing one has no references
    if (::fstat(folder_.get(), &read) != 0 || ::stat(path_.c_str(), &there) != 0 || read.st_dev != there.st_dev ||
        read.st_ino != there.st_ino)
      throw reference_error("\"" + path_ + "\" was replaced while it was read; read it again");
    for (const auto& [array, listed] : parts_) {
      if (!listed.empty()) damaged("\"" + references_part(array, listed.begin()->first) + "\" is missing");
    }
    return builder_.take();
  }

 private:
  [[noreturn]] void damaged(const std::string& why = "") const {
    throw reference_error("\"" + path_ + "\" does not hold references in kerchunk's Parquet format" +
                          (why.empty() ? "" : ": " + why) + "; give a Zarr v3 store");
  }

  static const json* find(const json& j, const char* key) {
    const auto found = j.is_object() ? j.find(key) : j.end();
    return found == j.end() ? nullptr : &*found;
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
  void read_part_list(const json& own) {
    const json* const parts = find(own, "parts");
    if (!parts) return;  // made by another program, or an earlier zarrbits
    lists_parts_ = true;
    if (!parts->is_object()) damaged();
    for (const auto& [array, list] : parts->items()) {
      builder_.count(array.size());
      for (const json& part : list) {
        const auto pair = numbers(&part);
        if (pair.size() != 2 || !parts_[array].emplace(pair[0], pair[1]).second) damaged();
        builder_.count(sizeof pair + 2 * sizeof pair[0]);
      }
    }
  }

  void read_sources(const json& own) {
    const json* const sources = find(own, "sources");
    if (!sources || !sources->is_array()) damaged();
    for (const json& s : *sources) {
      const json *const url = find(s, "url"), *const size = find(s, "size"), *const modified = find(s, "modified"),
                        *const etag = find(s, "etag");
      const bool told = etag ? etag->is_string() : modified && modified->is_number_integer();
      if (!url || !url->is_string() || !size || !size->is_number_unsigned() || !told) damaged();
      builder_.add_source(url->get<std::string>(), size->get<std::uint64_t>(), etag ? 0 : modified->get<std::int64_t>(),
                          etag ? etag->get<std::string>() : "");
    }
  }

  static std::vector<std::uint64_t> numbers(const json* list) {
    std::vector<std::uint64_t> all;
    if (!list || !list->is_array()) return all;
    for (const json& n : *list) all.push_back(n.is_number_unsigned() ? n.get<std::uint64_t>() : 0);
    return all;
  }

  // Chunks are where their keys point to, whatever the keys in the metadata look like: they become those of Zarr v3.
  void read_node(const std::string& key, json node) {
    const std::string array =
        key.substr(0, key.size() - std::min<std::size_t>(key.size(), std::string_view("/zarr.json").size()));
    if (const json* const type = find(node, "node_type"); type && *type == "array") {
      const auto counts = chunks_along(node);
      if (!counts) damaged();
      read_parts(array, *counts);
    }
    set_key_form(node, key_form::slashes);
    builder_.add_content(key, python_json_text(node, 2) + "\n");
  }

  void read_parts(const std::string& array, const std::vector<std::uint64_t>& counts) {
    const fs::path folder = fs::path(array).lexically_normal();
    if (array.empty() || folder.is_absolute() || folder.native() != array || *folder.begin() == "..")
      damaged("\"" + array + "\" points outside of it");
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
        damaged("\"" + array + "/" + name + "\": " + wrong.what());
      }
    }
  }

  void read_rows(const std::string& array, const std::vector<std::uint64_t>& counts, std::uint64_t number) {
    parquet_file part(read_part(references_part(array, number)), record_size_);
    const std::size_t n = static_cast<std::size_t>(part.rows());
    builder_.count(n * sizeof(std::uint64_t));
    if (n < rows_of(counts, number)) throw parquet_error("it has only " + counted(n, "row"));
    if (!part.has("path") && !part.has("raw")) throw parquet_error("columns are missing");
    const auto texts = [&](const char* name) {
      return part.has(name) ? part.texts(name) : std::vector<std::optional<std::string_view>>(n);
    };
    const auto paths = texts("path"), contents = texts("raw");
    const bool ranges = part.has("path");
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
    const auto known = listed.find(number);
    if (known == listed.end() || known->second != references)
      throw parquet_error("it has " + counted(references, "reference") +
                          (known == listed.end() ? ", and should not be there" : ", and had " + std::to_string(known->second)));
    listed.erase(known);
  }

  // At least the rows that this file needs for its chunks of the array.
  std::uint64_t rows_of(const std::vector<std::uint64_t>& counts, std::uint64_t number) const {
    std::uint64_t chunks = 1, before = 0;
    for (const std::uint64_t n : counts) {
      if (__builtin_mul_overflow(chunks, n, &chunks)) return record_size_;
    }
    if (__builtin_mul_overflow(number, record_size_, &before) || before >= chunks) return 0;
    return std::min(record_size_, chunks - before);
  }

  // Empty if the array has no such chunk.
  std::optional<std::string> key_of(const std::string& array, const std::vector<std::uint64_t>& counts, std::uint64_t number,
                                    std::uint64_t row) const {
    if (number > (UINT64_MAX - row) / record_size_) return {};
    std::uint64_t index = number * record_size_ + row;
    std::vector<std::uint64_t> at(counts.size());
    for (std::size_t d = counts.size(); d-- > 0;) {
      if (counts[d] == 0) return {};
      at[d] = index % counts[d];
      index /= counts[d];
    }
    if (index > 0) return {};
    std::string key = array + "/c";
    for (const std::uint64_t n : at) key += "/" + std::to_string(n);
    return key;
  }

  const std::string& path_;
  const file_descriptor folder_;
  std::uint64_t record_size_ = 1;
  bool lists_parts_ = false;
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> parts_;  // those that were not read yet
  table_builder builder_;
};

}  // namespace

void set_key_form(json& node, key_form form) {
  if (!node.is_object()) return;
  if (node.contains("node_type") && node["node_type"] == "array") {
    const bool dots = form == key_form::dots;
    node["chunk_key_encoding"] = {{"name", dots ? "v2" : "default"}, {"configuration", {{"separator", dots ? "." : "/"}}}};
  }
  if (!node.contains("consolidated_metadata") || !node["consolidated_metadata"].is_object()) return;
  json& all = node["consolidated_metadata"];
  if (!all.contains("metadata") || !all["metadata"].is_object()) return;
  for (json& each : all["metadata"]) set_key_form(each, form);
}

std::optional<std::vector<std::uint64_t>> chunks_along(const json& array) {
  const auto extent = [](const json& n) { return n.is_number_unsigned() ? n.get<std::uint64_t>() : 0; };
  const auto member = [](const json* j, const char* key) {
    return j && j->is_object() && j->contains(key) ? &(*j)[key] : nullptr;
  };
  const json *const shape = member(&array, "shape"), *const configuration = member(member(&array, "chunk_grid"), "configuration");
  if (!shape || !shape->is_array()) return {};
  const json *const regular = member(configuration, "chunk_shape"), *const lengths =
                                                                        regular ? regular : member(configuration, "chunk_shapes");
  if (!lengths || !lengths->is_array() || lengths->size() != shape->size()) return {};
  std::vector<std::uint64_t> counts;
  for (std::size_t d = 0; d < shape->size(); ++d) {
    const json& along = (*lengths)[d];
    const std::uint64_t all = extent((*shape)[d]), length = extent(along);
    std::uint64_t n = 0;
    if (length > 0) {
      n = all / length + (all % length != 0);
    } else if (!regular && along.is_array()) {
      for (const json& each : along) {  // a length, or [length, count]
        const std::uint64_t more = each.is_array() && each.size() == 2 ? extent(each[1]) : 1;
        if (__builtin_add_overflow(n, more, &n)) return {};
      }
    } else {
      return {};
    }
    counts.push_back(n);
  }
  return counts;
}

reference_table read_references(const std::string& path, std::uint64_t memory) {
  std::error_code e;
  return fs::is_directory(path, e) ? parquet_folder(path, memory).read() : read_json_references(path, memory);
}

bool are_own_references(const std::string& path) noexcept {
  try {
    std::error_code e;
    const std::string file = fs::is_directory(path, e) ? path + "/" + references_metadata : path;
    const file_descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const std::string_view begin = own_references_begin;
    std::string head(begin.size(), '\0');
    return fd && ::pread(fd.get(), head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) && head == begin;
  } catch (...) {
    return false;
  }
}

std::vector<std::string> may_be_read(const std::vector<std::string>& sources, const std::vector<std::string>& external) {
  std::vector<std::string> all;
  for (const std::string& source : sources) all.push_back(split_source(source).file);
  for (const std::string& folder : external) all.push_back(folder == "all" ? "/" : folder);
  return all;
}

std::string data_beside(const std::string& references, std::size_t number) {
  return references + ".data" + (number == 0 ? "" : "." + std::to_string(number));
}

bool is_data_beside(const std::string& references, const std::string& file) {
  const std::string first = data_beside(references);
  if (!file.starts_with(first)) return false;
  const std::string_view rest = std::string_view(file).substr(first.size());
  return rest.empty() || (rest.size() > 1 && rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == rest.npos);
}

std::string references_part(const std::string& array, std::uint64_t number) {
  return array + "/refs." + std::to_string(number) + ".parq";
}

}  // namespace zarrbits::conversion
