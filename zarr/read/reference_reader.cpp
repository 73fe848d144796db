// SPDX-License-Identifier: BSL-1.0
//
// A store of references in kerchunk's formats, of which none leads to a file that has nothing to do with the source.
//
#include "io/files.hpp"
#include "io/reference_table.hpp"
#include "zarr/read/sorted_keys.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace zarrbits::verification {

namespace {

namespace fs = std::filesystem;

class bytes_object final : public stored_object {
 public:
  explicit bytes_object(std::string content) : content_(std::move(content)) {}
  std::uint64_t size() const override { return content_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
  }

 private:
  std::string content_;
};

class range_object final : public stored_object {
 public:
  range_object(std::shared_ptr<const conversion::file_descriptor> file, const conversion::reference& r)
      : file_(std::move(file)), r_(r) {}
  std::uint64_t size() const override { return r_.size; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    try {
      conversion::read_range(file_->get(), r_.offset + offset, out);
    } catch (const conversion::unreadable_range& e) {
      throw store_error(std::string("a reference cannot be read: ") + e.what());
    }
  }

 private:
  std::shared_ptr<const conversion::file_descriptor> file_;
  conversion::reference r_;
};

class reference_reader final : public store_reader {
 public:
  reference_reader(const std::string& path, const std::string& endpoint, const std::vector<std::string>& sources,
                   std::uint64_t memory)
      : endpoint_(endpoint), sources_(sources) {
    try {
      table_ = conversion::read_references(path, memory);
    } catch (const conversion::reference_error& e) {
      throw store_error(e.what());
    }
    std::error_code e;
    path_ = fs::weakly_canonical(path, e).string();
    for (const std::string& source : sources) {
      const fs::path real = fs::canonical(source, e);
      if (!e) folders_.push_back(fs::is_directory(real, e) ? real.string() : real.parent_path().string());
    }
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto found = table_.keys.find(key);
    if (found == table_.keys.end()) return nullptr;
    const conversion::reference& r = found->second;
    if (r.file && table_.files[*r.file].url.starts_with(conversion::s3_url)) return in_s3(table_.files[*r.file], r);
    if (r.file) return std::make_unique<range_object>(opened(*r.file, r), r);
    return std::make_unique<bytes_object>(r.content);
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& each) const override {
    list_sorted(table_.keys, folder, each);
  }

 private:
  // Only of a source: the keys may allow reading more in S3 than that.
  std::unique_ptr<stored_object> in_s3(const conversion::referred_file& file, const conversion::reference& r) const {
    if (std::find(sources_.begin(), sources_.end(), file.url) == sources_.end())
      throw store_error("the references point to \"" + file.url + "\", which is not one of the sources");
#ifdef ZARRBITS_WITH_S3
    const std::lock_guard held(turn_);
    if (!in_s3_) in_s3_ = open_s3_files(endpoint_);
    return in_s3_->range(file.url, file.state, r.offset, r.size);
#else
    throw store_error("this zarrbits was built without libcurl and cannot read \"" + file.url + "\"");
#endif
  }

  // A file that may be read for this store: of the source's folder or below, or the one beside it. References may name any file.
  std::shared_ptr<const conversion::file_descriptor> opened(std::size_t number, const conversion::reference& r) const {
    const std::lock_guard held(turn_);
    auto& known = open_[number];
    const conversion::referred_file& file = table_.files[number];
    const std::string name = file.url.starts_with(conversion::file_url) ? file.url.substr(conversion::file_url.size()) : file.url;
    if (!known) {
      std::error_code e;
      const std::string real = fs::canonical(name, e).string();
      if (e) throw store_error("the references point to \"" + name + "\", which cannot be opened: " + e.message());
      const auto below = [&](const std::string& folder) { return folder == "/" || real.starts_with(folder + "/"); };
      if (!conversion::is_data_beside(path_, real) && std::none_of(folders_.begin(), folders_.end(), below))
        throw store_error("the references point to \"" + name +
                          "\", which is not in the folder of a source; name it with `external`");
      if (open_.size() > most_open) {
        open_.clear();
        open_[number] = {};
      }
      auto fd = std::make_shared<const conversion::file_descriptor>(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      struct stat s = {};
      if (!*fd || ::fstat(fd->get(), &s) != 0 || !S_ISREG(s.st_mode))
        throw store_error("the references point to \"" + name + "\", which is not a regular file that can be read");
      if (file.state && *file.state != conversion::state_in(s))
        throw store_error("\"" + name + "\" has changed since the references were made; make them again");
      open_[number] = fd;
    }
    const auto fd = open_[number];
    struct stat s = {};
    if (::fstat(fd->get(), &s) != 0 || r.offset > static_cast<std::uint64_t>(s.st_size) ||
        r.size > static_cast<std::uint64_t>(s.st_size) - r.offset)
      throw store_error("a reference points beyond the end of \"" + name + "\"");
    return fd;
  }

  static constexpr std::size_t most_open = 64;
  conversion::reference_table table_;
  std::string path_, endpoint_;
  std::vector<std::string> sources_, folders_;
  mutable std::unique_ptr<s3_files> in_s3_;
  mutable std::mutex turn_;
  mutable std::map<std::size_t, std::shared_ptr<const conversion::file_descriptor>> open_;
};

}  // namespace

std::shared_ptr<const store_reader> open_references(const std::string& path, const std::string& endpoint,
                                                    const std::vector<std::string>& sources, std::uint64_t memory) {
  return std::make_shared<reference_reader>(path, endpoint, sources, memory);
}

}  // namespace zarrbits::verification
