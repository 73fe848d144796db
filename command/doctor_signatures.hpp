// SPDX-License-Identifier: BSL-1.0
//
// Signed plugins: an HDF5 (2.2 and later) that was built with HDF5_REQUIRE_SIGNED_PLUGINS opens only files that h5sign has signed
// with a key whose public half is in its keystore.
//
#ifndef ZARRBITS_COMMAND_DOCTOR_SIGNATURES_HPP
#define ZARRBITS_COMMAND_DOCTOR_SIGNATURES_HPP

#include <string>

namespace zarrbits::command {

// The folder of public keys that HDF5_PLUGIN_KEYSTORE names.
struct keystore {
  bool is_set = false;
  std::string path;
  unsigned keys = 0;
  bool fault = false;
  std::string description;
};
keystore inspect_keystore();

// Whether h5sign has signed the file; not whether a key fits.
bool is_signed(const std::string& path);

}  // namespace zarrbits::command

#endif
