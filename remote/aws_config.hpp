// SPDX-License-Identifier: BSL-1.0
//
// The profiles of ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE), which all AWS tools share.
//
#ifndef ZARRBITS_REMOTE_AWS_CONFIG_HPP
#define ZARRBITS_REMOTE_AWS_CONFIG_HPP

#include <zarrbits/remote_access.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace zarrbits::remote {

// The value of an environment variable; "" if it is not set.
std::string environment_value(const char* name);

// True for a value that turns something on: "true", "yes", "on" or "1".
bool is_true(const std::string& value);

// True for "true" in any case, which is all that the AWS tools take for it in their settings.
bool is_true_setting(const std::string& value);

// The file of certificates to trust: the option's, else that of AWS_CA_BUNDLE, of a profile, or of SSL_CERT_FILE; "": the
// system's.
std::string ca_file_of(const remote_access& remote, const std::string& in_profile = {});

// The content of a file, as far as `max_bytes`; empty if it cannot be read.
std::optional<std::string> read_small_file(const std::string& path, std::size_t max_bytes);

class aws_config {
 public:
  using section = std::map<std::string, std::string>;  // names in lower case

  // Reads both files; a missing one has no profiles.
  aws_config();

  bool contains(const std::string& profile) const;
  // A value of a profile, "s3.x" for x below s3: that of the credentials file, else that of the configuration; "" if neither has
  // it.
  std::string value(const std::string& profile, const std::string& name) const;
  // A value of another section of the configuration, such as [services TITLE] or [sso-session TITLE].
  std::string value_in(const std::string& kind, const std::string& title, const std::string& name) const;
  // Each file by itself: keys of two files are not mixed.
  const section& in_credentials(const std::string& profile) const;
  const section& in_config(const std::string& profile) const;

 private:
  std::map<std::string, section> credentials_, config_;
};

}  // namespace zarrbits::remote

#endif
