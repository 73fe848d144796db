// SPDX-License-Identifier: BSL-1.0
#include "hdf5/s3_source.hpp"

#include <zarrbits/error.hpp>

#if defined ZARRBITS_WITH_S3 && defined H5_HAVE_ROS3_VFD
#define ZARRBITS_READS_S3
#include "io/s3_client.hpp"
#include "io/s3_objects.hpp"

#include <H5FDros3.h>

#include <cstring>
#include <string_view>
#include <utility>
#endif

namespace zarrbits::conversion {

#ifdef ZARRBITS_READS_S3

namespace {

template <std::size_t N>
void copy(char (&to)[N], std::string_view from, const char* what) {
  if (from.size() >= N)
    throw zarrbits::error(errc::unsupported,
                          std::string(what) + " of S3 is longer than libhdf5 accepts; copy the file to a local disk first");
  std::memcpy(to, from.data(), from.size());  // the rest is zeros
}

}  // namespace

s3_source find_in_s3(const std::string& name, const std::string& endpoint, hid_t access) {
  secret_bytes secret_key;
  s3_settings settings = read_s3_settings(name, endpoint, &secret_key);
  const std::string key = settings.prefix;
  if (key.empty())
    throw zarrbits::error(errc::invalid_option, "\"" + name + "\" names a bucket; give the name of an HDF5 file in it", {name});
  if (!settings.session_token.empty()) {
    throw zarrbits::error(errc::unsupported,
                          "libhdf5 cannot read \"" + name +
                              "\" with a session token (AWS_SESSION_TOKEN); use a key that does not need one, or copy the file "
                              "to a local disk first",
                          {name});
  }
  H5FD_ros3_fapl_t driver{};
  driver.version = H5FD_CURR_ROS3_FAPL_T_VERSION;
  driver.authenticate = true;
  copy(driver.aws_region, settings.region, "the region");
  copy(driver.secret_id, settings.access_key, "the access key");
  copy(driver.secret_key, secret_key.view(), "the secret key");
  const std::string url = settings.url + "/" + s3_client::percent_encoded(key, true);
  // libhdf5 does not report the reason; this request does
  s3_client client(std::move(settings));
  file_state state = state_in_s3(client, key);
  if (!state.regular)
    throw zarrbits::error(
        errc::not_found,
        "cannot open \"" + name + "\": there is no such object; give the name of an HDF5 file, and check `endpoint`", {name});
  const herr_t set = H5Pset_fapl_ros3(access, &driver);
  wipe(driver.secret_key, sizeof driver.secret_key);
  h5::check(set, "set the driver for S3");
  return {url, std::move(state)};
}

#else

s3_source find_in_s3(const std::string& name, const std::string&, hid_t) {
  throw zarrbits::error(errc::unsupported,
                        "this zarrbits, or its libhdf5, was built without support for reading from S3, and cannot open \"" +
                            name + "\"; copy the file to a local disk first",
                        {name});
}

#endif

}  // namespace zarrbits::conversion
