// SPDX-License-Identifier: BSL-1.0
#include "io/s3_objects.hpp"

#ifdef ZARRBITS_WITH_S3
#include "io/s3_client.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#endif

namespace zarrbits::conversion {

#ifdef ZARRBITS_WITH_S3

namespace {

constexpr std::size_t most_at_once = 32U << 20;  // one request has its whole answer in memory

}  // namespace

file_state state_in_s3(s3_client& client, const std::string& key) {
  const auto there = client.send({.method = "HEAD", .key = key});
  if (there.status == 404) return {};
  return {true, static_cast<std::uint64_t>(std::max(there.length, 0LL)), 0, 0, there.etag};
}

bool read_from_s3(s3_client& client, const std::string& key, std::uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const auto piece = to.first(std::min(to.size(), most_at_once));
    const std::string range = std::to_string(offset) + "-" + std::to_string(offset + piece.size() - 1);
    const auto answer = client.send({.key = key, .range = range, .longest = piece.size()});
    if (answer.body.size() != piece.size()) return false;
    std::memcpy(piece.data(), answer.body.data(), piece.size());
    offset += piece.size();
    to = to.subspan(piece.size());
  }
  return true;
}

std::pair<s3_client*, std::string> s3_objects::find(const std::string& name) {
  const std::string place = name.substr(std::min(name.size(), std::string_view("s3://").size()));
  const std::size_t slash = place.find('/');
  // environment and profile files are read once for each bucket
  if (const auto known = clients_.find(place.substr(0, slash)); known != clients_.end() && slash != std::string::npos)
    return {known->second.get(), place.substr(slash + 1)};
  s3_settings settings = read_s3_settings(name, endpoint_);
  std::string key = settings.prefix;
  std::shared_ptr<s3_client>& client = clients_[settings.bucket];
  client = std::make_shared<s3_client>(std::move(settings));
  return {client.get(), std::move(key)};
}

file_state s3_objects::state_of(const std::string& name) {
  const auto [client, key] = find(name);
  return state_in_s3(*client, key);
}

bool s3_objects::read(const std::string& name, std::uint64_t offset, std::span<std::byte> to) {
  const auto [client, key] = find(name);
  return read_from_s3(*client, key, offset, to);
}

#else

file_state s3_objects::state_of(const std::string&) { return {}; }
bool s3_objects::read(const std::string&, std::uint64_t, std::span<std::byte>) { return false; }

#endif

}  // namespace zarrbits::conversion
