// SPDX-License-Identifier: BSL-1.0
//
// Objects at s3://, gs:// and az://.
//
#include "remote/object_server.hpp"
#include "remote/s3_client.hpp"
#include "remote/s3_version.hpp"

#include <zarrbits/error.hpp>

#include <map>
#include <utility>

namespace zarrbits::remote {

namespace {

class s3_object final : public object_server {
 public:
  s3_object(std::string name, std::shared_ptr<s3_client> client, std::string key, std::map<std::string, std::string> version)
      : name_(std::move(name)), client_(std::move(client)), key_(std::move(key)), version_(std::move(version)) {}

  long get(const request& r) override {
    s3_client::request sent{.key = key_, .query = version_, .range = r.range, .output = r.output, .check = r.check};
    if (r.validator && is_etag(*r.validator)) sent.only_if["if-match"] = "\"" + *r.validator + "\"";
    sent.is_known_host = r.validator != nullptr;
    return client_->send(sent).status;
  }
  validators validators_of(const http_client::response& got) const override { return s3_validators(got); }
  std::uint64_t slowed_down() const override { return client_->slowed_down(); }
  [[noreturn]] void throw_not_found(long) const override {
    throw zarrbits::error(
        errc::not_found,
        "cannot open \"" + name_ + "\": there is no such object; use the name of an HDF5 file, and check `endpoint`", {name_});
  }

 private:
  const std::string name_;
  const std::shared_ptr<s3_client> client_;
  const std::string key_;
  const std::map<std::string, std::string> version_;  // "versionId"; of a name "s3://bucket/key?versionId=..."
};

}  // namespace

std::unique_ptr<object_server> find_s3_server(const std::string& name, const remote_access& remote) {
  s3_settings settings = read_s3_settings(name, remote);
  std::string key = settings.prefix;
  std::map<std::string, std::string> version;
  if (const std::size_t begin = version_in(name); begin != std::string::npos) {
    version = {{"versionId", name.substr(begin + version_parameter.size())}};
    key.resize(key.size() - (name.size() - begin));
  }
  if (key.empty())
    throw zarrbits::error(errc::invalid_option, "\"" + name + "\" names a bucket; use the name of an HDF5 file in it", {name});
  return std::make_unique<s3_object>(name, std::make_shared<s3_client>(std::move(settings)), std::move(key), std::move(version));
}

std::unique_ptr<object_server> find_s3_server(s3_client& client, const std::string& key) {
  return std::make_unique<s3_object>(client.settings().name_of(key),
                                     std::shared_ptr<s3_client>(std::shared_ptr<s3_client>(), &client), key,
                                     std::map<std::string, std::string>());
}

}  // namespace zarrbits::remote
