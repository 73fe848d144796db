// SPDX-License-Identifier: BSL-1.0
#include "command/doctor_plugins.hpp"

#include "command/doctor_probe.hpp"
#include "command/printable.hpp"

#include <zarrbits/version.hpp>

#include <hdf5.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zarrbits::command {

namespace {

// H5PLpath.c: other files in the folder are not examined.
bool hdf5_opens(const std::string& name) {
  return name.rfind("lib", 0) == 0 && (name.find(".so") != std::string::npos || name.find(".dylib") != std::string::npos);
}

std::string join(const std::string& folder, const std::string& name) { return folder + "/" + name; }

std::string absolute(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) ? resolved : path;
}

bool is_ours(const plugin_file& f) {
  return f.is_filter && (f.id == packbits_id || f.id == bytes_id) && f.filter_name.find("zarrbits") != std::string::npos;
}

// Why HDF5, which takes each folder as it is written, does not do what was meant; "" if it does.
std::string misspelling(const std::string& path, bool exists) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  const auto quote = [](char c) { return c == '"' || c == '\''; };
  if (!exists) {
    if (path[0] == '~') return "HDF5 does not expand ~, and a shell does not expand it in quotes; write the whole path";
    if (path.find('$') != std::string::npos) return "HDF5 does not replace variables; write the whole path";
    if (path.find(';') != std::string::npos) return "HDF5 separates folders by a colon here, and not by a semicolon";
    if (quote(path.front()) || quote(path.back())) return "the quotes are part of the name; remove them";
    if (blank(path.front()) || blank(path.back())) return "the blanks at its ends are part of the name; remove them";
  }
  if (path[0] != '/')
    return "a relative folder, which each program searches for where it was started; write the whole path" +
           (exists ? ", " + absolute(path) : std::string());
  return {};
}

plugin_file examine(const std::string& folder, const std::string& name, bool signatures_wanted) {
  plugin_file f;
  f.name = name;
  if (!hdf5_opens(name)) {
    f.description = "not opened: the name does not begin with \"lib\"";
    return f;
  }
  const std::string path = join(folder, name);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    f.fault = f.ends_search = true;
    f.description = std::string(errno == ENOENT ? "a dangling link" : std::strerror(errno)) +
                    ": HDF5 ends its search here, up to 1.14 the whole of it, from 2.0 on that of this folder; remove it";
    return f;
  }
  if (S_ISDIR(info.st_mode)) {
    f.description = "a folder: not opened";
    return f;
  }
  f.opened = true;
  using kind = probe_result::kind_of;
  const probe_result r = S_ISREG(info.st_mode) ? probe(path) : probe_result{};
  switch (r.kind) {
    case kind::filter:
      f.is_filter = true;
      f.class_version = r.class_version;
      f.id = r.id;
      f.filter_name = r.name;
      f.serves_netcdf = r.netcdf_codec;
      f.is_signed = is_signed(path);
      f.description = "filter " + std::to_string(r.id) + (r.name.empty() ? "" : " \"" + r.name + "\"");
      if (is_ours(f)) {
        f.version = r.version;
        f.description +=
            f.version.empty() ? " of an older zarrbits, which does not say its version" : " of zarrbits " + f.version;
        if (f.version != ZARRBITS_VERSION_STRING) f.description += " (this command is " ZARRBITS_VERSION_STRING ")";
      }
      if (r.class_version != 1) {
        f.fault = true;
        f.description +=
            ", class version " + std::to_string(r.class_version) +
            ": netCDF's Zarr refuses it, and every other plugin of this folder with it, and HDF5 up to 2.2 calls it as if "
            "it were version 1; "
            "move it to a folder of its own";
      }
      if (f.is_signed) f.description += ", signed";
      if (signatures_wanted && !f.is_signed) {
        f.fault = true;
        f.description += ", NOT SIGNED: an HDF5 that demands signed plugins refuses it; sign it: h5sign -p " +
                         shell_quoted(path) + " -k PRIVATE_KEY.pem";
      }
      break;
    case kind::other_plugin: f.description = "an HDF5 plugin, but not a filter"; break;
    case kind::no_plugin: f.description = "a library, but not an HDF5 plugin"; break;
    case kind::no_library:
      f.fault = true;
      f.description = "skipped: it is not a shared library; remove it";
      break;
    case kind::other_machine:
      f.fault = true;
      f.description = "skipped, wrong architecture: it " + r.detail;
      break;
    case kind::cannot_load:
      f.fault = true;
      f.description = "skipped, it cannot be loaded: " + r.detail;
      break;
    case kind::crashes:
      f.fault = true;
      f.description = "loading it " + r.detail + ", and would in any program that searches for a plugin; remove it";
      break;
  }
  return f;
}

folder scan_folder(const std::string& path, bool from_environment, bool last, bool signatures_wanted) {
  folder f;
  f.path = path;
  DIR* d = ::opendir(path.c_str());
  if (!d) {
    f.ends_search = true;
    f.fault = !last;
    f.description = errno == ENOENT ? "does not exist" : std::strerror(errno);
    if (const std::string reason = from_environment ? misspelling(path, false) : ""; !reason.empty()) {
      f.fault = f.misspelt = true;
      f.description += ": " + reason;
    } else {
      f.description +=
          last ? "; no folder comes after it, so that no harm is done"
               : ": HDF5 up to 1.14 ends its search here and does not see the folders after it; create it, or remove it from "
                 "HDF5_PLUGIN_PATH";
    }
    return f;
  }
  f.description = from_environment ? misspelling(path, true) : "";
  f.fault = f.misspelt = !f.description.empty();
  while (const dirent* e = ::readdir(d)) {
    const std::string name = e->d_name;
    if (hdf5_opens(name) || name.find(".so") != std::string::npos) f.files.push_back(examine(path, name, signatures_wanted));
  }
  ::closedir(d);
  return f;
}

bool has_ours(const std::string& path) {
  return ::access(join(path, "libzarrbits_packbits.so").c_str(), R_OK) == 0 &&
         ::access(join(path, "libzarrbits_bytes.so").c_str(), R_OK) == 0;
}

// Beside this program: in the build's folder, or where the installation put them.
std::string find_bundled_plugins() {
  const std::string self = absolute("/proc/self/exe");
  const std::string prefix = self.substr(0, self.rfind('/', self.rfind('/') - 1));
  const std::string installed = ZARRBITS_COMMAND_PLUGIN_DIR;
  for (const std::string& candidate : {installed.rfind('/', 0) == 0 ? installed : prefix + "/" + installed, prefix + "/plugins"})
    if (has_ours(candidate)) return absolute(candidate);
  return {};
}

}  // namespace

std::string scan::find_plugin(int id, search version) const {
  if (disabled) return {};
  for (const folder& f : folders) {
    if (f.ends_search && version == search::up_to_1_14) return {};
    for (const plugin_file& p : f.files) {
      if (p.ends_search && version == search::up_to_1_14) return {};
      if (p.ends_search) break;
      if (p.opened && p.is_filter && p.id == id) return join(f.path, p.name);
    }
  }
  return {};
}

unsigned scan::faults() const {
  unsigned n = disabled + keys.fault;
  for (const folder& f : folders) {
    n += f.fault;
    for (const plugin_file& p : f.files) n += p.fault;
  }
  for (const int id : {packbits_id, bytes_id})
    n += find_plugin(id, search::up_to_1_14).empty() || find_plugin(id, search::from_2_0).empty();
  return n;
}

bool scan::finds_both() const {
  bool result = true;
  for (const int id : {packbits_id, bytes_id})
    result = result && !find_plugin(id, search::up_to_1_14).empty() && !find_plugin(id, search::from_2_0).empty();
  return result;
}

std::string scan::export_line() const {
  if (disabled) {
    scan enabled = *this;
    enabled.disabled = false;
    const std::string line = enabled.export_line();
    return "unset HDF5_PLUGIN_PRELOAD" + (line.empty() ? "" : "; " + line);
  }
  const bool misspelt = std::any_of(folders.begin(), folders.end(), [](const folder& f) { return f.misspelt; });
  if ((finds_both() && !misspelt) || own_folder.empty()) return {};
  std::string list = absolute(own_folder), last;
  for (const folder& f : folders) {
    const bool useful =
        from_environment || std::any_of(f.files.begin(), f.files.end(), [](const plugin_file& p) { return p.is_filter; });
    if (f.ends_search || !useful || absolute(f.path) == absolute(own_folder)) continue;
    const bool stops = std::any_of(f.files.begin(), f.files.end(), [](const plugin_file& p) { return p.ends_search; });
    (stops ? last : list) += ":" + absolute(f.path);
  }
  list += last;
  return "export HDF5_PLUGIN_PATH=" + shell_quoted(list);
}

scan scan_plugins() {
  scan s;
  unsigned major = 0, minor = 0, release = 0, count = 0;
  H5get_libversion(&major, &minor, &release);
  s.hdf5 = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  s.from_environment = std::getenv("HDF5_PLUGIN_PATH") != nullptr;
  const char* preload = std::getenv("HDF5_PLUGIN_PRELOAD");
  s.disabled = preload && std::strcmp(preload, "::") == 0;
  s.keys = inspect_keystore();
  std::vector<std::string> paths;
  if (H5PLsize(&count) < 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t n = H5PLget(i, nullptr, 0);
    if (n <= 0) continue;
    std::string path(static_cast<std::size_t>(n) + 1, '\0');
    H5PLget(i, path.data(), path.size());
    path.resize(static_cast<std::size_t>(n));
    paths.push_back(path);
  }
  for (std::size_t i = 0; i < paths.size(); ++i)
    s.folders.push_back(scan_folder(paths[i], s.from_environment, i + 1 == paths.size(), s.keys.is_set));
  for (const folder& f : s.folders) {
    const auto has_filter = [&f](int id) {
      return std::any_of(f.files.begin(), f.files.end(), [id](const plugin_file& p) { return is_ours(p) && p.id == id; });
    };
    if (s.own_folder.empty() && has_filter(packbits_id) && has_filter(bytes_id)) s.own_folder = f.path;
  }
  // a folder in which a link ends the search is of no use, even in front
  for (const folder& f : s.folders)
    if (f.path == s.own_folder && std::any_of(f.files.begin(), f.files.end(), [](const plugin_file& p) { return p.ends_search; }))
      s.own_folder.clear();
  if (s.own_folder.empty()) s.own_folder = find_bundled_plugins();
  return s;
}

}  // namespace zarrbits::command
