// SPDX-License-Identifier: BSL-1.0
#include "command/place_list.hpp"

#include "command/command_line.hpp"
#include "io/remote_url.hpp"
#include "text/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace zarrbits::command {

namespace {

namespace fs = std::filesystem;

class place_list {
 public:
  place_list(const std::string& file, const std::vector<std::string>& sources, const std::vector<std::string>& dimensions)
      : file_(file), sources_(sources), dimensions_(dimensions), places_(sources.size()) {}

  std::vector<std::vector<std::uint64_t>> read() {
    std::ifstream in(file_, std::ios::binary);
    std::ostringstream table;
    if (!in) throw usage_error("cannot read the list of places " + quote(file_) + ": " + std::strerror(errno));
    table << in.rdbuf();
    if (in.bad()) throw usage_error("cannot read the list of places " + quote(file_) + " to its end");
    std::vector<text::csv_record> records;
    try {
      records = text::parse_csv(std::move(table).str());
    } catch (const text::csv_error& e) {
      throw usage_error("--places " + quote(file_) + ": " + e.what());
    }
    read_header(records);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!numbers_.emplace(path_of(sources_[i]), i).second)
        throw usage_error(quote(sources_[i]) + " is given twice; --places has one place for each file");
    }
    for (std::size_t i = 1; i < records.size(); ++i) read_line(records[i]);
    const auto missing = std::find_if(places_.begin(), places_.end(), [](const auto& place) { return place.empty(); });
    if (missing != places_.end())
      throw usage_error("--places " + quote(file_) + " has no line for " +
                        quote(sources_[static_cast<std::size_t>(missing - places_.begin())]) + "; add it, or leave out the file");
    return std::move(places_);
  }

 private:
  static std::string path_of(const fs::path& name) {
    return io::is_remote(name.string()) ? name.string() : fs::absolute(name).lexically_normal().string();
  }

  [[noreturn]] void fail(const text::csv_record& r, const std::string& reason) const {
    throw usage_error("--places " + quote(file_) + ", line " + std::to_string(r.line) + ": " + reason);
  }

  void read_header(const std::vector<text::csv_record>& records) {
    std::string expected = "file";
    for (const std::string& name : dimensions_) expected += "," + name;
    if (records.empty()) throw usage_error("--places " + quote(file_) + " is empty; it begins with the line " + quote(expected));
    const std::vector<std::string>& names = records[0].fields;
    for (const std::string& name : dimensions_) {
      const auto column = std::find(names.begin() + 1, names.end(), name);
      if (column == names.end() || names.size() != dimensions_.size() + 1)
        fail(records[0], "the first line names the columns, " + quote(expected));
      columns_.push_back(static_cast<std::size_t>(column - names.begin()));
    }
  }

  void read_line(const text::csv_record& r) {
    if (r.fields.size() != dimensions_.size() + 1)
      fail(r, "has " + std::to_string(r.fields.size()) + " fields, and the first line " + std::to_string(dimensions_.size() + 1));
    const fs::path name = io::redact_url(r.fields[0]);
    const auto source = numbers_.find(path_of(io::is_remote(name.string()) ? name : fs::path(file_).parent_path() / name));
    if (source == numbers_.end())
      fail(r, quote(r.fields[0]) + " is not among the files; names are relative to the folder of the list");
    std::vector<std::uint64_t>& place = places_[source->second];
    if (!place.empty()) fail(r, quote(r.fields[0]) + " has a line already; each file has one place");
    for (const std::size_t column : columns_) {
      const std::string& field = r.fields[column];
      std::uint64_t index = 0;
      const auto [end, e] = std::from_chars(field.data(), field.data() + field.size(), index);
      if (field.empty() || e != std::errc() || end != field.data() + field.size())
        fail(r, quote(field) + " is not a place; places are counted in files: 0, 1, 2");
      place.push_back(index);
    }
  }

  const std::string& file_;
  const std::vector<std::string>&sources_, &dimensions_;
  std::vector<std::size_t> columns_;            // of the dimensions
  std::map<std::string, std::size_t> numbers_;  // of the sources, by path
  std::vector<std::vector<std::uint64_t>> places_;
};

}  // namespace

std::vector<std::vector<std::uint64_t>> read_place_list(const std::string& file, const std::vector<std::string>& sources,
                                                        const std::vector<std::string>& dimensions) {
  return place_list(file, sources, dimensions).read();
}

}  // namespace zarrbits::command
