// SPDX-License-Identifier: BSL-1.0
#include "rename/parquet_renaming.hpp"

#include "io/files.hpp"
#include "io/parquet_file.hpp"
#include "io/reference_table.hpp"
#include "text/json_text.hpp"
#include "zarr/write/parquet_writer.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::rename {

namespace fs = std::filesystem;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Empty if no row has a name that changes.
std::string rename_rows(std::vector<std::byte> bytes, url_renaming& names) {
  io::parquet_file part(std::move(bytes), io::max_part_references);
  if (!part.has_column("path")) return {};
  auto paths = part.texts("path");
  std::map<std::string_view, std::optional<std::string>> new_names;
  bool is_renamed = false;
  for (auto& path : paths) {
    if (!path) continue;
    const auto [entry, is_new] = new_names.try_emplace(*path);
    if (is_new) entry->second = names.renamed(std::string(*path));
    if (!entry->second) continue;
    path = *entry->second;
    is_renamed = true;
  }
  if (!is_renamed) return {};
  zarr::parquet_writer file(static_cast<std::size_t>(part.rows()));
  file.add("path", paths, zarr::parquet_writer::text_kind::dictionary_utf8);
  file.add("offset", part.numbers("offset"));
  file.add("size", part.numbers("size"));
  if (part.has_column("raw")) file.add("raw", part.texts("raw"), zarr::parquet_writer::text_kind::bytes);
  return file.finish();
}

class parquet_folder_renaming {
 public:
  parquet_folder_renaming(const std::string& path, url_renaming& names, const zarr::atomic_directory& out)
      : path_(path), names_(names), out_(out), folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!folder_) io::throw_errno("cannot read", path, errno, "check the permissions there");
  }

  void rename() {
    text::json document = parse_metadata();
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_).native();
      if (!fs::is_directory(entry.symlink_status()) && name != io::references_metadata) rename_part(name);
    }
    rename_sources(document);
    out_.write(io::references_metadata, bytes_of(text::python_json_text(document) + "\n"));
  }

 private:
  std::vector<std::byte> read(const std::string& name) const {
    if (auto bytes = io::read_regular_file(folder_.get(), name, path_ + "/" + name)) return std::move(*bytes);
    throw io::reference_error("\"" + path_ + "\" has no \"" + name + "\"; use a folder of references");
  }

  [[noreturn]] void throw_corrupt() const {
    throw io::reference_error("\"" + path_ +
                              "\" does not hold references in kerchunk's Parquet format; make the references again");
  }

  text::json parse_metadata() const {
    const std::vector<std::byte> bytes = read(io::references_metadata);
    text::json document = text::parse_untrusted_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto is_object = [&](const char* key) { return document.contains(key) && document[key].is_object(); };
    if (!document.is_object() || !is_object("metadata")) throw_corrupt();
    if (document.contains("zarrbits") &&
        (!is_object("zarrbits") || !document["zarrbits"].contains("sources") || !document["zarrbits"]["sources"].is_array()))
      throw_corrupt();
    return document;
  }

  void rename_part(const std::string& name) const try {
    const std::vector<std::byte> bytes = read(name);
    const std::string rows = name.ends_with(".parq") ? rename_rows(bytes, names_) : "";
    out_.write(name, rows.empty() ? std::span(bytes) : bytes_of(rows));
  } catch (const io::parquet_error& e) {
    throw io::reference_error("\"" + path_ + "/" + name + "\" cannot be read: " + e.what() + "; make the references again");
  }

  // When all parts are renamed.
  void rename_sources(text::json& document) const {
    if (!document.contains("zarrbits")) return;  // made by another program
    text::json& sources = document["zarrbits"]["sources"];
    for (text::json& source : sources) names_.rename_source(source);
    for (text::json& source : names_.unlisted_sources()) sources.push_back(std::move(source));
  }

  const std::string& path_;
  url_renaming& names_;
  const zarr::atomic_directory& out_;
  const io::file_descriptor folder_;
};

}  // namespace

void rename_in_parquet(const std::string& path, url_renaming& names, const zarr::atomic_directory& out) {
  parquet_folder_renaming(path, names, out).rename();
}

}  // namespace zarrbits::rename
