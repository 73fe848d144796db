// SPDX-License-Identifier: BSL-1.0
#include "hdf5/external_files.hpp"

#include "hdf5/chunk_form.hpp"
#include "hdf5/open_source.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace zarrbits::hdf5 {

namespace {

constexpr unsigned deepest_virtual = 16;          // levels of virtual datasets of virtual datasets
constexpr std::uint64_t max_sources = 1'000'000;  // for one dataset and those below it

std::optional<std::string> real_path(const std::string& name) {
  char resolved[PATH_MAX];
  if (!::realpath(name.c_str(), resolved)) return {};
  return resolved;
}

std::string folder_above(const std::string& name) {
  std::error_code e;
  const std::filesystem::path absolute = std::filesystem::absolute(name, e);
  return e ? std::string() : absolute.parent_path().string();
}

// True if errno says that no file has this name. Any other error leaves open whether one has.
bool is_absence(int error) { return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG; }

bool lies_in(const std::string& folder, const std::string& file) {
  return folder == "/" || (file.size() > folder.size() && file.starts_with(folder) && file[folder.size()] == '/');
}

}  // namespace

external_file_policy::external_file_policy(std::string name, bool remote, const std::vector<std::string>& allowed,
                                           const remote_access& access)
    : name_(std::move(name)), access_(access) {
  for (const std::string& folder : allowed) {
    if (io::is_remote(folder)) {
      remote_parts_[folder];
      continue;
    }
    if (folder == "all") {
      allow_all_ = true;
      continue;
    }
    struct stat info {};
    const auto real = real_path(folder);
    if (!real || ::stat(real->c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      throw zarrbits::error(errc::invalid_option,
                            "`external` is \"" + text::escape_name(folder) +
                                "\", which is not a folder; use a folder whose files may be read, or all",
                            {folder});
    }
    allowed_.push_back(*real);
  }
  if (remote) return;
  struct stat info {};
  if (::stat(name_.c_str(), &info) == 0) source_ = {info.st_dev, info.st_ino};
  // the folder of the name, and the folder where the file is: they differ for a symbolic link
  if (const auto folder = real_path(folder_above(name_))) allowed_.push_back(*folder);
  if (const auto file = real_path(name_)) allowed_.push_back(folder_above(*file));
  note_folder(source_, name_);
}

void external_file_policy::note_folder(const identity& file, const std::string& name) {
  std::vector<std::string>& recorded = folders_[file];
  std::vector<std::string> folders{folder_above(name)};
  if (const auto real = real_path(name)) folders.push_back(folder_above(*real));
  for (std::string& folder : folders) {
    if (std::find(recorded.begin(), recorded.end(), folder) == recorded.end()) recorded.push_back(std::move(folder));
  }
}

std::vector<std::string> external_file_policy::folders_of(const std::string& name) const {
  struct stat info {};
  if (::stat(name.c_str(), &info) != 0) return {folder_above(name)};
  const auto entry = folders_.find({info.st_dev, info.st_ino});
  return entry == folders_.end() ? std::vector<std::string>{folder_above(name)} : entry->second;
}

std::shared_ptr<const remote::remote_file> external_file_policy::open_remote(const std::string& name) {
  constexpr std::size_t max_recent = 16;
  constexpr std::uint64_t cache = 4 * remote::remote_file::page_size;
  const auto part = remote_parts_.find(name);
  if (part == remote_parts_.end()) return nullptr;
  auto& [state, opened] = part->second;
  auto file = opened.lock();
  if (!file) file = std::make_shared<const remote::remote_file>(name, access_, cache, state);
  state = file->state();
  opened = file;
  recent_.remove(file);
  recent_.push_front(file);
  if (recent_.size() > max_recent) recent_.pop_back();
  return file;
}

std::optional<io::file_state> external_file_policy::remote_state(const std::string& name) const {
  const auto part = remote_parts_.find(name);
  return part == remote_parts_.end() ? std::nullopt : part->second.state;
}

external_file_policy::decision external_file_policy::check(const std::string& name) {
  if (remote_parts_.contains(name)) {
    checked_path_ = name;
    return decision::allowed;
  }
  const auto real = real_path(name);
  struct stat info {};
  if (!real || ::stat(real->c_str(), &info) != 0) {
    const int error = errno;
    if (is_absence(error)) return decision::missing;
    refused_file_ = name;
    refusal_ = "\"" + text::escape_name(name) + "\" cannot be examined: " + std::system_category().message(error);
    return decision::refused;
  }
  if (S_ISDIR(info.st_mode)) return decision::missing;
  checked_path_ = *real;
  if (identity{info.st_dev, info.st_ino} == source_) return decision::allowed;
  std::string reason;
  if (!S_ISREG(info.st_mode)) {
    reason = "is not a regular file";
  } else if (!allow_all_ &&
             std::none_of(allowed_.begin(), allowed_.end(), [&](const std::string& folder) { return lies_in(folder, *real); })) {
    reason = "is outside the source's folder (`external` FOLDER allows another folder, `external` all allows any file)";
  }
  if (reason.empty()) return decision::allowed;
  refused_file_ = *real;
  refusal_ = "\"" + text::escape_name(*real) + "\" " + reason;
  return decision::refused;
}

bool external_file_policy::permit(const char* name) noexcept {
  try {
    if (check(name) != decision::allowed) return false;
    if (remote_parts_.contains(name)) {
      note_read();
      return true;
    }
    struct stat info {};
    if (::stat(name, &info) != 0) return false;
    note_folder({info.st_dev, info.st_ino}, name);
    if (identity{info.st_dev, info.st_ino} != source_) note_read();
    return true;
  } catch (...) {
    return false;
  }
}

namespace {

std::string name_of_file(hid_t object) {
  const ssize_t length = H5Fget_name(object, nullptr, 0);
  if (length <= 0) return {};
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  if (H5Fget_name(object, name.data(), name.size()) < 0) return {};
  name.resize(static_cast<std::size_t>(length));
  return name;
}

template <class F>
std::string text_of_source(F get, hid_t dcpl, std::size_t index) {
  const ssize_t length = get(dcpl, index, nullptr, 0);
  if (length <= 0) return {};
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  if (get(dcpl, index, name.data(), name.size()) < 0) return {};
  name.resize(static_cast<std::size_t>(length));
  return name;
}

// A name that is made while reading: %b is the number of a block, %% is one %.
struct numbered_name {
  explicit numbered_name(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%' && i + 1 < text.size() && (text[i + 1] == 'b' || text[i + 1] == '%')) {
        if (text[++i] == 'b') {
          parts.emplace_back();
          continue;
        }
      }
      parts.back() += text[i];
    }
  }
  bool numbered() const { return parts.size() > 1; }
  std::string operator()(std::uint64_t block) const {
    std::string name = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) name += std::to_string(block) + parts[i];
    return name;
  }
  std::vector<std::string> parts{1};
};

// libhdf5's value of ${ORIGIN}, which it replaces only at the beginning of a prefix.
std::string with_origin(const std::string& prefix, const std::string& folder) {
  return prefix.starts_with("${ORIGIN}") ? folder + prefix.substr(9) : prefix;
}

std::string below_folder(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string name_of_raw_file(hid_t dcpl, unsigned index) {
  std::string name(2 * PATH_MAX, '\0');  // a longer one cannot be opened
  off_t offset = 0;
  hsize_t size = 0;
  check(H5Pget_external(dcpl, index, name.size() - 1, name.data(), &offset, &size), "get an external file");
  name.resize(std::strlen(name.c_str()));
  return name;
}

// Where libhdf5 looks: below the prefix of the environment, else in the current folder of the process. `folder`: that of the HDF5
// file.
std::string path_of_raw_file(const std::string& name, const std::string& folder) {
  const char* environment = std::getenv("HDF5_EXTFILE_PREFIX");
  const std::string prefix = !environment || std::strcmp(environment, ".") == 0 ? "" : environment;
  return name.starts_with('/') ? name : below_folder(with_origin(prefix, folder), name);
}

std::string refusal_of_raw_file(const std::string& name, int error) {
  return "its external file \"" + text::escape_name(name) + "\" cannot be opened: " + std::system_category().message(error) +
         (name.starts_with('/') ? "" : "; HDF5 looks in the current folder, or below HDF5_EXTFILE_PREFIX");
}

class dependency_finder {
 public:
  dependency_finder(external_file_policy& gate, external_dependencies& out) : policy_(gate), out_(out) {}

  void search(hid_t dataset, unsigned depth) {
    const handle dcpl(H5Dget_create_plist(dataset), "get the properties");
    const int raw = H5Pget_external_count(dcpl);
    for (int i = 0; i < raw && out_.obstacle.empty(); ++i) search_raw(dataset, dcpl, static_cast<unsigned>(i), depth);
    if (depth > 0 && raw == 0 && H5Pget_layout(dcpl) == H5D_CHUNKED) note_chunks(dataset, dcpl);
    if (H5Pget_layout(dcpl) != H5D_VIRTUAL) return;
    struct stat status {};
    const std::string name_of_dataset = name_of_file(dataset);
    if (::stat(name_of_dataset.c_str(), &status) != 0)  // on a server
      status.st_ino = static_cast<ino_t>(std::hash<std::string>()(name_of_dataset));
    const place location{status.st_dev, status.st_ino, address_of(dataset)};
    if (std::find(path_.begin(), path_.end(), location) != path_.end())
      return fail_cyclic({reason_code::damaged, "it is a virtual dataset of itself"});
    if (!visited_.insert(location).second) return;
    if (depth > deepest_virtual)
      return fail_cyclic({reason_code::too_large, "it is a virtual dataset of virtual datasets, more than " +
                                                      std::to_string(deepest_virtual) + " levels deep"});
    path_.push_back(location);
    std::size_t n = 0;
    check(H5Pget_virtual_count(dcpl, &n), "count the sources of a virtual dataset");
    if (depth == 0) out_.sources.assign(n, {});
    for (std::size_t i = 0; i < n && out_.obstacle.empty(); ++i) {
      policy_.forget_refusal();
      const numbered_name file(text_of_source(H5Pget_virtual_filename, dcpl, i)),
          name(text_of_source(H5Pget_virtual_dsetname, dcpl, i));
      const bool is_available = search_source(dataset, file, name, depth);
      if (!is_available && !policy_.refusal().empty()) {
        policy_.note_refusal();
        ++out_.refused;
        if (out_.refusal_reason.empty()) out_.refusal_reason = policy_.refusal();
      } else if (!is_available && !file.numbered() &&
                 !name.numbered()) {  // numbered sources: any number of them; the extent follows from it
        ++out_.missing;
      }
      if (depth > 0) continue;
      if (is_available && !file.numbered() && !name.numbered()) out_.sources[i] = source_;
      out_.sources[i].is_available = is_available;
    }
    path_.pop_back();
  }

 private:
  using place = std::tuple<dev_t, ino_t, haddr_t>;

  static haddr_t address_of(hid_t object) {
    H5O_info_t info;
    std::memset(&info, 0, sizeof info);
    check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "get information about an object");
    return info.addr;
  }

  void note_chunks(hid_t dataset, hid_t dcpl) {
    const array::extents shape = chunk_extent(dcpl);
    if (shape.empty() || array::product(shape) == 0) return;
    handle type(H5Dget_type(dataset), "get the datatype");
    std::string form = chunk_form(dcpl, type);
    if (!out_.chunked) {
      handle properties(H5Pcopy(dcpl), "copy a property list");
      out_.chunked = std::make_shared<const external_dependencies::chunked_source>(
          external_dependencies::chunked_source{shape, std::move(type), std::move(properties), std::move(form)});
    } else if (shape.size() != out_.chunked->chunk.size() || form != out_.chunked->form ||
               H5Tequal(type, out_.chunked->type) <= 0) {
      return;
    }
    source_.chunked = true;
    source_.address = address_of(dataset);
    source_.extent = extent(handle(H5Dget_space(dataset), "get the dataspace"));
    source_.chunk = shape;
  }

  void fail_cyclic(text::coded_reason reason) {
    out_.is_cyclic = true;
    out_.obstacle = std::move(reason);
  }

  void search_raw(hid_t dataset, hid_t dcpl, unsigned index, unsigned depth) {
    const std::string name = name_of_raw_file(dcpl, index);
    std::set<std::string> names;
    for (const std::string& folder : policy_.folders_of(name_of_file(dataset))) names.insert(path_of_raw_file(name, folder));
    int error = ENOENT;  // 0: it opens
    for (const std::string& full : names) {
      const auto decision = policy_.check(full);
      if (decision == external_file_policy::decision::refused) {
        policy_.note_refusal();
        out_.obstacle.code = reason_code::refused_file;
        out_.obstacle.sentence =
            (depth == 0 ? "its external file " : "an external file of one of its sources must not be read: ") + policy_.refusal();
        return;
      }
      if (decision == external_file_policy::decision::missing) continue;
      policy_.note_read();
      if (error != 0) error = ::access(full.c_str(), R_OK) == 0 ? 0 : errno;
      struct stat info {};
      if (::stat(full.c_str(), &info) == 0) out_.raw_bytes += static_cast<std::uint64_t>(info.st_size);
    }
    if (error != 0 && depth == 0) out_.missing_raw = refusal_of_raw_file(name, error);
  }

  bool search_source(hid_t dataset, const numbered_name& file, const numbered_name& name, unsigned depth) {
    if (!file.numbered() && !name.numbered()) return search_file(dataset, file(0), name(0), depth);
    std::uint64_t block = 0;  // libhdf5 stops at the first missing block
    while (out_.obstacle.empty() && search_file(dataset, file(block), name(block), depth)) ++block;
    return block > 0;
  }

  // All names that libhdf5 may try, in its order. It uses the first file that it can open; the others are checked too for safety.
  std::vector<std::string> candidates(hid_t dataset, const std::string& file) const {
    const std::vector<std::string> folders = policy_.folders_of(name_of_file(dataset));
    std::vector<std::string> paths;
    std::string relative_name = file;
    if (file.starts_with('/')) {
      paths.push_back(file);
      relative_name = file.substr(file.rfind('/') + 1);
    }
    if (const char* environment = std::getenv("HDF5_VDS_PREFIX"); environment && *environment) {
      const std::string prefixes = environment;
      for (std::size_t begin = 0; begin <= prefixes.size();) {
        const std::size_t end = std::min(prefixes.find(':', begin), prefixes.size());
        if (end > begin) paths.push_back(below_folder(prefixes.substr(begin, end - begin), relative_name));
        begin = end + 1;
      }
      for (const std::string& folder : folders) paths.push_back(below_folder(with_origin(prefixes, folder), relative_name));
    }
    for (const std::string& folder : folders) paths.push_back(below_folder(folder, relative_name));
    paths.push_back(relative_name);
    return paths;
  }

  bool search_file(hid_t dataset, const std::string& file, const std::string& name, unsigned depth) {
    if (++sources_ > max_sources) {
      out_.obstacle = {reason_code::too_large, "it has more than " + std::to_string(max_sources) + " sources"};
      return false;
    }
    const handle file_handle(H5Iget_file_id(dataset), "get the file of a dataset");
    if (file == ".") return search_dataset(file_handle, name_of_file(file_handle), name, depth);
    const handle access(H5Fget_access_plist(file_handle), "get the access properties of the file");
    std::set<std::string> tried;
    std::optional<bool> result;
    virtual_source first;
    for (const std::string& candidate : candidates(dataset, file)) {
      if (policy_.check(candidate) != external_file_policy::decision::allowed || !tried.insert(policy_.checked_path()).second)
        continue;
      const std::string real = policy_.checked_path();
      const handle opened(H5Fopen(candidate.c_str(), H5F_ACC_RDONLY, access));
      if (!opened) {  // libhdf5 would treat it as missing
        const std::string reason = last_error();
        out_.obstacle.code = reason_code::unreadable;
        out_.obstacle.sentence =
            "its source \"" + text::escape_name(candidate) + "\" " +
            (writer_mark_of(candidate) != writer_mark::none ? "is marked as open for writing" : "cannot be opened: " + reason);
        break;
      }
      H5Eclear2(H5E_DEFAULT);
      const bool is_available = search_dataset(opened, real, name, depth);
      if (!result) {
        result = is_available;
        first = source_;
      }
      if (!out_.obstacle.empty()) break;
    }
    source_ = std::move(first);
    return result.value_or(false);
  }

  // Sets source_ to the result.
  bool search_dataset(hid_t file, const std::string& file_name, const std::string& name, unsigned depth) {
    source_ = {};
    const handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT));
    H5Eclear2(H5E_DEFAULT);
    if (!dataset) return false;
    search(dataset, depth + 1);
    if (H5Pget_layout(handle(H5Dget_create_plist(dataset), "get the properties")) != H5D_CHUNKED) source_ = {};
    source_.file = file_name;
    return true;
  }

  external_file_policy& policy_;
  external_dependencies& out_;
  std::vector<place> path_;
  std::set<place> visited_;
  virtual_source source_;  // the last one that was checked
  std::uint64_t sources_ = 0;
};

}  // namespace

bool is_aggregation_variable(hid_t dataset) {
  const handle space(H5Dget_space(dataset), "get the dataspace");
  return H5Sget_simple_extent_type(space) == H5S_SCALAR && H5Aexists(dataset, "aggregated_dimensions") > 0 &&
         H5Aexists(dataset, "aggregated_data") > 0;
}

void check_read(herr_t status, hid_t dataset, const char* action) {
  if (status >= 0) return;
  const text::coded_reason reason = last_reason();
  const handle dcpl(H5Dget_create_plist(dataset), "get the properties");
  const int raw = H5Pget_external_count(dcpl);
  const std::string file = name_of_file(dataset), folder = file.substr(0, file.rfind('/') + 1);
  for (int i = 0; i < raw; ++i) {
    const std::string name = name_of_raw_file(dcpl, static_cast<unsigned>(i));
    if (::access(path_of_raw_file(name, folder).c_str(), R_OK) == 0) continue;
    throw failure(refusal_of_raw_file(name, errno), reason_code::missing_file);
  }
  fail(action, reason);
}

external_dependencies find_external_dependencies(hid_t dataset, external_file_policy& gate) {
  external_dependencies result;
  if (is_aggregation_variable(dataset)) {
    result.obstacle = {
        reason_code::unsupported_feature,
        "it is a CF aggregation variable, whose values are in other files; use those as the sources, with `concat`"};
    return result;
  }
  dependency_finder(gate, result).search(dataset, 0);
  return result;
}

}  // namespace zarrbits::hdf5
