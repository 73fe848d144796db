// SPDX-License-Identifier: BSL-1.0
#include "command/doctor_signatures.hpp"

#include "text/format.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <string_view>
#include <sys/stat.h>

namespace zarrbits::command {

keystore inspect_keystore() {
  keystore k;
  const char* path = std::getenv("HDF5_PLUGIN_KEYSTORE");
  if (!path) return k;
  k.is_set = true;
  k.path = path;
  DIR* d = ::opendir(path);
  if (!d) {
    k.fault = true;
    k.description =
        std::string(std::strerror(errno)) +
        ": an HDF5 that demands signed plugins loads none; create the folder, and put the public keys (*.pem) into it";
    return k;
  }
  while (const dirent* e = ::readdir(d)) {
    const std::string_view name = e->d_name;
    struct stat info {};
    // HDF5 skips links
    if (name.size() > 4 && name.substr(name.size() - 4) == ".pem" && ::lstat((k.path + "/" + e->d_name).c_str(), &info) == 0 &&
        S_ISREG(info.st_mode))
      ++k.keys;
  }
  ::closedir(d);
  k.fault = k.keys == 0;
  k.description = k.fault ? "has no public key (*.pem that is a file, not a link): an HDF5 that demands signed plugins loads none"
                          : "has " + text::pluralize(k.keys, "public key");
  return k;
}

bool is_signed(const std::string& path) {
  // at the end of the file: the signature, its kind and length, these eight bytes, and the version of this layout
  constexpr std::string_view mark("\x89HPS\r\n\x1A\n");
  char end[9] = {};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() < 14) return false;
  file.seekg(-9, std::ios::end);
  file.read(end, sizeof end);
  return file && std::string_view(end, mark.size()) == mark;
}

}  // namespace zarrbits::command
