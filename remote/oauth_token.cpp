// SPDX-License-Identifier: BSL-1.0
#include "remote/oauth_token.hpp"

#include "text/json_text.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace zarrbits::remote {

namespace {

constexpr std::size_t max_token_bytes = 32 << 10;

// A number, or one as text, as the server of a machine at Microsoft has it; 0 if absent.
double seconds_in(const text::json& document) {
  const auto member = document.is_object() ? document.find("expires_in") : document.end();
  if (!document.is_object() || member == document.end()) return 0;
  if (member->is_number()) return member->get<double>();
  return std::strtod(text::text_member(document, "expires_in").c_str(), nullptr);
}

}  // namespace

s3_credentials token_in(const http_client::response& got, const std::string& server_name, const std::string& ended,
                        const std::string& remedy) {
  const text::json document = text::parse_untrusted_json(got.body);
  if (got.status != 200) {
    // the description could repeat what was sent
    const std::string code = text::text_member(document, "error").substr(0, 100);
    throw zarrbits::error(errc::permission_denied, server_name + " answers " + std::to_string(got.status) +
                                                       (code.empty() ? "" : " " + code) + "; " +
                                                       (code == "invalid_grant" ? ended : remedy));
  }
  s3_credentials keys;
  keys.bearer = text::text_member(document, "access_token");
  const double life = seconds_in(document);
  if (keys.bearer.empty() || keys.bearer.size() > max_token_bytes || !is_header_value(keys.bearer) || !(life > 0)) {
    throw zarrbits::error(errc::permission_denied,
                          server_name + " did not return an access token with its time; ask who runs it");
  }
  keys.expires = std::chrono::system_clock::now() + std::chrono::seconds(static_cast<long>(std::min(life, 86'400.0)));
  return keys;
}

}  // namespace zarrbits::remote
