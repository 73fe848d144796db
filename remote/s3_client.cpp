// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_client.hpp"

#include "remote/azure_request.hpp"
#include "remote/s3_credentials.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <strings.h>
#include <utility>

namespace zarrbits::remote {

namespace {

constexpr std::string_view amazon_prefix = "x-amz-";
constexpr unsigned max_region_changes = 2;

std::string etag_of(const http_client::response& got) {
  std::string etag(got.header("etag"));
  if (etag.size() > 1000) return {};
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (etag.size() > 1 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return etag;
}

// The ETag of an object that is encrypted with its own key is not its MD5: "x-amz-server-side-encryption: aws:kms",
// "ibm-sse-kp-enabled: true".
bool has_md5_as_etag(const http_client::response& got) {
  return std::none_of(got.headers.begin(), got.headers.end(), [](const auto& header) {
    const auto& [name, value] = header;
    if (name.find("server-side-encryption") == std::string::npos && name.find("-sse-") == std::string::npos) return false;
    return name.find("customer") != std::string::npos || value != "AES256";
  });
}

bool looks_like_md5(std::string_view etag) {
  return etag.size() == 32 && etag.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// The message of an <Error>, for the sentence.
std::string error_text(const xml_element& error) {
  if (error.name != "Error") return {};
  const std::string code = error.text_of("Code").substr(0, 100);
  std::string message = error.text_of("Message").substr(0, 200);
  message.resize(std::min(message.find('\n'), message.size()));  // Azure adds lines with the request's number and time
  return (code.empty() ? "" : " " + code) + (message.empty() ? "" : " (" + message + ")");
}

bool is_amazon_header(std::string_view name) { return name.starts_with(amazon_prefix); }

std::string header_prefix(io::cloud kind) {
  return kind == io::cloud::azure ? "x-ms-" : kind == io::cloud::google ? "x-goog-" : std::string(amazon_prefix);
}

bool is_one_of(std::string_view code, std::initializer_list<std::string_view> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

bool is_transient_error(const xml_element& error) {
  const std::string code = error.text_of("Code");
  return code.empty() ||
         is_one_of(code, {"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "OperationAborted"});
}

bool is_expiry(const xml_element& error) {
  return error.name == "Error" && is_one_of(error.text_of("Code"), {"ExpiredToken", "ExpiredTokenException", "RequestExpired",
                                                                    "TokenRefreshRequired", "InvalidToken", "InvalidTokenId"});
}

// The server's own words for an object, or an upload, that is absent.
bool is_absence(const xml_element& error) {
  return error.name == "Error" &&
         is_one_of(error.text_of("Code"), {"NoSuchKey", "NoSuchUpload", "NoSuchVersion", "BlobNotFound"});
}

// The server's own words for a bucket that is absent.
bool is_absence_of_bucket(const xml_element& error) {
  return error.name == "Error" && is_one_of(error.text_of("Code"), {"NoSuchBucket", "ContainerNotFound"});
}

// What to do about an error that says what it is; "" for any other. Amazon's and Google's, then Azure's.
std::string remedy_of(const std::string& code) {
  static const std::map<std::string_view, const char*> remedies = {
      {"InvalidObjectState", "the object is in an archive (such as GLACIER): restore it first"},
      {"RequestTimeTooSkewed", "the clock of this machine is wrong: set it"},
      {"InvalidAccessKeyId", "the server does not know the access key: check it, and `endpoint`"},
      {"UserProjectMissing", "the requester pays: use `request_payer`"},
      {"BlobArchived", "the blob is in an archive: rehydrate it first"},
      {"AuthenticationFailed",
       "the signature is wrong, or has ended: check the account, its key or the shared access signature, and the clock of this "
       "machine"},
      {"AuthorizationFailure",
       "the account's network rules, its key, or the permissions of the signature do not allow it: check them"},
      {"AuthorizationPermissionMismatch",
       "the signature lacks the permission, or the login a role such as Storage Blob Data Contributor: add it"},
      {"KeyBasedAuthenticationNotPermitted", "the account accepts no keys: use a token (AZURE_STORAGE_TOKEN)"},
      {"PublicAccessNotPermitted", "the account has no public containers: use credentials"},
      {"SnapshotsPresent", "the blob has snapshots, which stay: remove them yourself, or choose another name"},
      {"ContainerBeingDeleted", "the container is being deleted: wait, or choose another one"}};
  const auto it = remedies.find(code);
  return it == remedies.end() ? "" : std::string("; ") + it->second;
}

// The error of a response from Azure without a body.
xml_element error_in_headers(const http_client::response& got) {
  const std::string code(got.header("x-ms-error-code"));
  if (code.empty()) return {};
  return {"Error", "", {{"Code", code, {}}}};
}

// True for a refusal that other credentials may change: they have ended, or were replaced in the profile.
bool may_be_renewed(const s3_client::request& r, const s3_client::response& result, const s3_credentials& keys) {
  if (keys.is_anonymous() || (result.status != 400 && result.status != 401 && result.status != 403)) return false;
  // the response to a HEAD has no body that says why
  if (!keys.bearer.empty()) return result.status == 401;
  if (std::string_view(r.method) == "HEAD") return !keys.session_token.empty();
  return is_expiry(result.xml) || (result.xml.name == "Error" && result.xml.text_of("Code") == "InvalidAccessKeyId");
}

// The region in which the server says that the bucket is; "" if it does not.
std::string region_in(const http_client::response& got, const xml_element& error) {
  if (!is_one_of(std::to_string(got.status), {"301", "302", "307", "400"})) return {};
  std::string region(got.header("x-amz-bucket-region"));
  if (region.empty() && error.name == "Error" &&
      is_one_of(error.text_of("Code"), {"AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect"})) {
    region = error.text_of("Region");
  }
  // it becomes part of a host's name
  const bool clean =
      region.size() <= 40 && region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  return clean ? region : "";
}

}  // namespace

validators s3_validators(const http_client::response& got) {
  return {.etag = etag_of(got), .modified = s3_validator("", std::string(got.header("last-modified")))};
}

std::optional<double> seconds_of(const std::string& time) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT"}) {
    std::tm utc{};
    if (::strptime(time.c_str(), form, &utc)) return static_cast<double>(::timegm(&utc));
  }
  return std::nullopt;
}

std::string s3_validator(const std::string& etag, const std::string& modified) {
  if (!etag.empty()) return etag;
  const auto seconds = seconds_of(modified);
  if (!seconds) return {};
  const auto time = static_cast<std::time_t>(*seconds);
  std::tm utc{};
  char text[64];
  if (!::gmtime_r(&time, &utc) || std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc) == 0) return {};
  return modified_prefix + std::string(text);
}

bool is_etag(const std::string& validator) { return !validator.empty() && !validator.starts_with(modified_prefix); }

s3_client::response s3_client::response_of(http_client::response& got) {
  const validators content = s3_validators(got);
  return {.status = got.status,
          .body = std::move(got.body),
          .etag = content.etag,
          .generation = std::string(got.header("x-goog-generation")),
          .etag_is_md5 = has_md5_as_etag(got),
          .md5 = std::string(got.header("content-md5")),
          .copy_status = std::string(got.header("x-ms-copy-status")),
          .copy_progress = std::string(got.header("x-ms-copy-progress")),
          .date = std::string(got.header("date")),
          .modified = content.modified,
          .length = got.length};
}

s3_client::s3_client(s3_settings settings)
    : settings_(std::move(settings)),
      http_(shared_http_client(settings_.ca_file)),
      place_(place_of(settings_.url, settings_.region)) {}

std::shared_ptr<const s3_client::place> s3_client::place_of(const std::string& url, const std::string& region) {
  const std::size_t host = url.find("://") + 3, path = std::min(url.find('/', host), url.size());
  return std::make_shared<const place>(place{region, url, url.substr(0, path), url.substr(host, path - host), url.substr(path)});
}

std::shared_ptr<const s3_client::place> s3_client::current_place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

// True if requests go to another region now than the one that was asked.
bool s3_client::move_to_region(const std::string& region, const place& previous) {
  if (region.empty() || region == previous.region) return false;
  auto next = place_of(settings_.is_amazon ? amazon_url(settings_.bucket, region, settings_.amazon) : settings_.url, region);
  const std::lock_guard lock(mutex_);
  place_ = std::move(next);
  return true;
}

http_client::response s3_client::attempt(const request& r, const place& location, const s3_credentials& keys, double patience) {
  std::string query;
  for (const auto& [name, value] : r.query)
    query += (query.empty() ? "" : "&") + percent_encoded(name, false) + "=" + percent_encoded(value, false);
  // a container of Azure's has no "/" at its end
  const std::string path = location.path + (r.key.empty() && settings_.is_azure() ? "" : "/" + percent_encoded(r.key, true));
  const std::string_view method = r.method;
  write_lease* const lease = method == "GET" || method == "HEAD" ? nullptr : lease_.load();
  const double send_before = lease ? lease->require() : 0;
  http_client::request sent{.method = r.method,
                            .url = location.server + path + (query.empty() ? "" : "?" + query),
                            .body = r.body,
                            .range = r.range,
                            .output = r.output,
                            .max_body_bytes = r.max_body_bytes,
                            .timeout = patience,
                            // a server may join many parts, or copy a large one, for minutes, and sends a blank from time to time
                            .begins_late = (method == "POST" || method == "PUT") && *r.expected_element,
                            .send_before = send_before,
                            .max_gap = lease ? lease->max_gap() : 0};
  std::map<std::string, std::string> headers = r.only_if;
  for (const auto& [name, value] : r.headers)
    headers[is_amazon_header(name) ? header_prefix(settings_.kind) + name.substr(amazon_prefix.size()) : name] = value;
  if (settings_.is_azure()) {
    sent.headers = azure_headers(
        {.method = r.method, .path = path, .query = r.query, .headers = std::move(headers), .body = r.body, .range = r.range},
        keys);
    if (!keys.sas.empty()) sent.url += (query.empty() ? "?" : "&") + keys.sas;
    return http_.send(sent);
  }
  if (settings_.is_google()) {
    const std::string& project = keys.quota_project.empty() && settings_.request_payer ? keys.project : keys.quota_project;
    if (project.empty() && settings_.request_payer) {
      throw zarrbits::error(errc::invalid_option,
                            "nobody pays for the requests to \"" + settings_.name_of("") +
                                "\": `request_payer` charges a project; name it in GS_USER_PROJECT or GOOGLE_CLOUD_PROJECT",
                            {settings_.name_of("")});
    }
    if (!project.empty()) headers["x-goog-user-project"] = project;
  } else if (settings_.request_payer) {
    headers["x-amz-request-payer"] = "requester";
  }
  if (method == "PUT" || method == "POST") headers["content-type"] = "application/octet-stream";
  sent.headers = signed_headers(
      {.method = r.method, .host = location.host, .path = path, .query = query, .headers = std::move(headers), .body = r.body},
      keys, location.region, settings_.is_google() ? "storage" : "s3");
  // else Google decompresses objects that were uploaded with a Content-Encoding, and ignores ranges; not signed, because its
  // front end changes this header
  if (settings_.is_google()) sent.headers.emplace_back("accept-encoding: gzip");
  return http_.send(sent);
}

void s3_client::require_secure_token(const s3_credentials& keys) const {
  if (!settings_.is_open() || (keys.bearer.empty() && keys.sas.empty())) return;
  const std::string secret = keys.bearer.empty() ? "a shared access signature" : "an access token",
                    variable = settings_.is_azure() ? "AZURE_STORAGE_KEY" : "GS_ACCESS_KEY_ID";
  throw zarrbits::error(errc::refused,
                        secret + " is not sent to \"" + settings_.url +
                            "\" by plain http, where it could be stolen; use https, or keys (" + variable + ")",
                        {settings_.url});
}

// One request, with the credentials and at the place of its last attempt.
class s3_client::exchange final : public request_loop {
 public:
  exchange(s3_client& client, const request& r)
      : request_loop(r.range, r.is_known_host, client.slowed_down_), client_(client), request_(r), method_(r.method) {}

  response result() {
    run();
    result_.attempts = attempts();
    return std::move(result_);
  }

 private:
  std::string server() const override { return client_.settings_.url; }

  http_client::response send(double timeout) override {
    location_ = client_.current_place();
    keys_ = client_.settings_.credentials->current();
    client_.require_secure_token(keys_);
    return client_.attempt(request_, *location_, keys_, timeout);
  }

  next_step judge(http_client::response& got) override {
    result_ = response_of(got);
    const bool good = !got.error && got.status >= 200 && got.status < 300;
    if (!(good && method_ == "GET" && !*request_.expected_element)) {  // an unexpected body may still be an <Error>
      if (auto xml = parse_xml(result_.body)) result_.xml = std::move(*xml);
    }
    if (client_.settings_.is_azure() && !good && result_.body.empty()) result_.xml = error_in_headers(got);
    if (request_.check && got.too_long && got.status == 200) return request_.check(got);  // the server ignores the range
    if (got.error) return got.transient ? next_step::retry : next_step::refuse;
    if (good) return judge_content(got);
    if (moves_ < max_region_changes && client_.move_to_region(region_in(got, result_.xml), *location_)) {
      ++moves_;
      return next_step::repeat;
    }
    if (!is_renewed_ && may_be_renewed(request_, result_, keys_) && client_.settings_.credentials->renew(keys_)) {
      is_renewed_ = true;
      return next_step::repeat;
    }
    if (got.status == 404) {
      const bool says_nothing = method_ == "HEAD" && result_.xml.name.empty();
      if (says_nothing) return client_.confirms_absence(request_) ? next_step::accept : next_step::mismatch;
      return is_absence(result_.xml) ? next_step::accept : next_step::refuse;
    }
    if (is_transient(got.status)) return next_step::retry;
    const bool no_such_range = request_.range.size > 0 && got.status == 416;
    if (no_such_range) return request_.check ? request_.check(got) : next_step::accept;
    const bool condition = !request_.only_if.empty() && (got.status == 409 || got.status == 412 ||
                                                         (method_ == "PUT" && (got.status == 400 || got.status == 501)));
    return condition ? next_step::accept : next_step::refuse;
  }

  // For a 2xx.
  next_step judge_content(const http_client::response& got) {
    // a server begins its response to a long operation before the result is known
    if (result_.xml.name == "Error") return is_transient_error(result_.xml) ? next_step::retry : next_step::refuse;
    if (*request_.expected_element && result_.xml.name != request_.expected_element) return next_step::mismatch;
    return request_.check ? request_.check(got) : next_step::accept;
  }

  std::string object_text() const { return "\"" + client_.settings_.name_of(request_.key) + "\""; }

  [[noreturn]] void refuse(const http_client::response& got) override {
    if (got.error) {
      throw zarrbits::error(errc::server_failed,
                            client_.settings_.server_name() + " at " + location_->url + " cannot be reached for " +
                                object_text() + attempts_text() + ": " + got.reason +
                                (got.certificate_remedy.empty() ? "; check `endpoint` and the network" : got.certificate_remedy),
                            {location_->url});
    }
    if (got.status == 404) client_.throw_not_found(request_, result_, keys_);
    if (got.status >= 200 && got.status < 300 && result_.xml.name != "Error") {
      throw zarrbits::error(errc::server_failed,
                            client_.settings_.server_name() + " at " + location_->url + " answers " + request_.method + " of " +
                                object_text() + attempts_text() + " with " + std::to_string(got.status) +
                                ", but without the response that belongs to this status; check `endpoint`",
                            {location_->url});
    }
    client_.throw_refused(request_, result_, keys_, attempts_text());
  }

  [[noreturn]] void refuse_range(const http_client::response&, const std::string& reason) override {
    throw zarrbits::error(errc::server_failed,
                          client_.settings_.server_name() + " at " + location_->url + " answers " + request_.method + " of " +
                              object_text() + " with " + reason + "; check `endpoint`",
                          {location_->url});
  }

  s3_client& client_;
  const request& request_;
  const std::string_view method_;
  std::shared_ptr<const place> location_;
  s3_credentials keys_;
  response result_;
  bool is_renewed_ = false;
  unsigned moves_ = 0;
};

s3_client::response s3_client::send(const request& r) { return exchange(*this, r).result(); }

// The response to a HEAD has no body, so that of a proxy, or of a server without the bucket, looks alike: a GET shows the
// server's words. False if there is an object now. Throws zarrbits::error if it is another 404.
bool s3_client::confirms_absence(const request& r) {
  std::byte first{};
  return send({.key = r.key, .query = r.query, .range = {0, 1}, .output = {&first, 1}, .max_body_bytes = 64U << 10}).status ==
         404;
}

void s3_client::throw_not_found(const request& r, const response& result, const s3_credentials& keys) const {
  if (is_absence_of_bucket(result.xml)) {
    throw zarrbits::error(errc::not_found,
                          "there is no " + settings_.bucket_kind() + " \"" + settings_.bucket + "\" at " + settings_.url +
                              "; create it, or check `endpoint`",
                          {settings_.name_of("")});
  }
  throw zarrbits::error(errc::server_failed,
                        settings_.server_name() + " at " + settings_.url + " answers " + r.method + " of \"" +
                            settings_.name_of(r.key) + "\" with 404" + error_text(result.xml) +
                            ", but does not say that the object is absent" +
                            (settings_.is_azure() && keys.is_anonymous()
                                 ? "; if the container is not public, use credentials instead of `no_sign_request`"
                                 : "; check `endpoint` and the proxy"),
                        {settings_.url});
}

// What to do about a refusal; `known` is what its code says.
std::string s3_client::remedy_for(const std::string& known, bool forbidden, bool ended, bool may_have_ended,
                                  const s3_credentials& keys) const {
  const bool azure = settings_.is_azure();
  const char* const anonymous = "; the request was anonymous (`no_sign_request`): use credentials instead";
  if (azure && forbidden && keys.is_anonymous()) return anonymous;
  if (!known.empty()) return known;
  if (!forbidden)
    return azure ? "; check the container, the account and `endpoint`" : "; check the bucket, the region and `endpoint`";
  if (keys.is_anonymous()) return anonymous;
  if (ended) return "; the credentials have ended: get new ones, and run the same command again";
  if (may_have_ended) return "; check the permissions of the access key, and that its session token has not ended";
  return azure ? "; check the account, its key, signature or token, and their permissions"
               : "; check the access key, the secret and their permissions";
}

void s3_client::throw_refused(const request& r, const response& result, const s3_credentials& keys,
                              const std::string& tries) const {
  const std::string object = settings_.name_of(r.key);
  // the response to a HEAD does not say why
  const bool ended = is_expiry(result.xml), may_have_ended = may_be_renewed(r, result, keys) && result.body.empty();
  const std::string code = result.xml.name == "Error" ? result.xml.text_of("Code") : "";
  const std::string known = remedy_of(code);
  const bool forbidden =
      result.status == 401 || result.status == 403 || ended || may_have_ended || code == "PublicAccessNotPermitted";
  const std::string remedy = remedy_for(known, forbidden, ended, may_have_ended, keys);
  throw zarrbits::error(forbidden ? errc::permission_denied : errc::server_failed,
                        settings_.server_name() + " refuses " + r.method + " of \"" + object + "\"" + tries + ": " +
                            std::to_string(result.status) + error_text(result.xml) + remedy,
                        {object});
}

std::map<std::string, std::string> s3_client::if_absent() const {
  if (settings_.is_google()) return {{"x-goog-if-generation-match", "0"}};
  return {{"if-none-match", "*"}};
}

std::map<std::string, std::string> s3_client::if_unchanged(const response& known) const {
  if (!settings_.is_google()) return {{"if-match", "\"" + known.etag + "\""}};
  if (known.generation.empty() || known.generation.find_first_not_of("0123456789") != std::string::npos) {
    throw zarrbits::error(errc::server_failed,
                          settings_.server_name() + " at " + settings_.url +
                              " does not say which generation an object is (x-goog-generation); check `endpoint` and the proxy",
                          {settings_.url});
  }
  return {{"x-goog-if-generation-match", known.generation}};
}

std::string s3_client::copy_source(const std::string& key) const {
  const std::string path = "/" + percent_encoded(key, true);
  if (!settings_.is_azure()) return "/" + settings_.bucket + path;
  const std::string sas = settings_.credentials->current().sas;  // Azure asks for it once more
  return settings_.url + path + (sas.empty() ? "" : "?" + sas);
}

s3_client::response s3_client::store(const request& r) {
  response result = send(r);
  if (result.status < 200 || result.status >= 300) return result;
  const std::string object = "\"" + settings_.name_of(r.key) + "\"";
  const auto require_equal = [&](const std::string& kind, const std::string& stored, const std::string& sent) {
    if (::strcasecmp(stored.c_str(), sent.c_str()) == 0) return;
    throw zarrbits::error(errc::server_failed,
                          settings_.server_name() + " stored different bytes for " + object + " than were sent (" + kind + " " +
                              stored + ", not " + sent + "); convert again",
                          {settings_.url});
  };
  if (settings_.is_azure()) {
    const std::string md5 = result.md5.empty() ? "" : base64_md5_of(r.body);
    if (!md5.empty()) require_equal("Content-MD5", result.md5, md5);
    // a block has no ETag; the server compared it with its MD5, and their list is checked
    if (!md5.empty() || r.query.contains("comp")) return result;
  }
  if (result.etag.empty()) {
    throw zarrbits::error(
        errc::server_failed,
        settings_.server_name() + " says that it stored " + object + ", but gives no ETag to confirm it; check `endpoint`",
        {settings_.url});
  }
  if (result.etag_is_md5 && looks_like_md5(result.etag)) {
    const std::string md5 = md5_of(r.body);
    if (!md5.empty()) require_equal("ETag", result.etag, md5);
  }
  return result;
}

}  // namespace zarrbits::remote
