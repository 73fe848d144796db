// SPDX-License-Identifier: BSL-1.0
#include "io/s3_client.hpp"

#include "text/names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <strings.h>
#include <thread>

#include <curl/curl.h>
#include <openssl/evp.h>

namespace zarrbits::conversion {

namespace {

constexpr unsigned most_attempts = 10, most_misunderstandings = 3;
constexpr std::chrono::milliseconds first_pause{100}, longest_pause{10'000};
constexpr std::size_t longest_headers = 256 << 10;

// True if the error may be temporary, so that another attempt may succeed.
bool is_transient(int error) {
  switch (error) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
  }
}
bool is_transient(long status) { return status == 429 || status == 408 || (status >= 500 && status != 501); }

// Once this is set, the first request that gets no response is the last one.
enum class hurry { none, asked, given_up };
std::atomic<hurry> haste = hurry::none;

// Filled by curl's callbacks.
struct arriving {
  s3_client::response& answer;
  std::size_t longest;
  std::size_t headers = 0;
  bool too_long = false;
};

std::size_t take_body(char* data, std::size_t, std::size_t n, void* to) {
  auto& in = *static_cast<arriving*>(to);
  if (n > in.longest - in.answer.body.size()) {
    in.too_long = true;
    return 0;
  }
  in.answer.body.append(data, n);
  return n;
}

// The value, if the line is a header of this name.
std::optional<std::string> header_value(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':' || ::strncasecmp(line.data(), name.data(), name.size()) != 0)
    return std::nullopt;
  line.remove_prefix(name.size() + 1);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  return line.size() > 1000 ? std::nullopt : std::optional<std::string>(line);
}

std::size_t take_header(char* data, std::size_t, std::size_t n, void* to) {
  auto& in = *static_cast<arriving*>(to);
  in.headers += n;
  if (in.headers > longest_headers) {
    in.too_long = true;
    return 0;
  }
  const std::string_view line(data, n);
  if (auto etag = header_value(line, "etag")) {
    if (etag->starts_with("W/")) etag->erase(0, 2);
    if (etag->size() > 1 && etag->front() == '"' && etag->back() == '"') *etag = etag->substr(1, etag->size() - 2);
    in.answer.etag = *etag;
  } else if (auto date = header_value(line, "date")) {
    in.answer.date = *date;
  } else {
    // the ETag of an object that is encrypted with its own key is not its MD5: "x-amz-server-side-encryption: aws:kms",
    // "ibm-sse-kp-enabled: true"
    std::string name(line.substr(0, line.find(':')));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name.find("server-side-encryption") == std::string::npos && name.find("-sse-") == std::string::npos) return n;
    const bool own_key = name.find("customer") != std::string::npos || header_value(line, name) != "AES256";
    if (own_key) in.answer.etag_is_md5 = false;
  }
  return n;
}

std::string hex_digits(const unsigned char* bytes, std::size_t n) {
  std::string hex;
  for (std::size_t i = 0; i < n; ++i) {
    hex += "0123456789abcdef"[bytes[i] >> 4];
    hex += "0123456789abcdef"[bytes[i] & 15];
  }
  return hex;
}

// "" if OpenSSL must not have this digest (MD5 in FIPS mode).
std::string digest_of(std::span<const std::byte> bytes, const EVP_MD* kind) {
  unsigned char result[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), result, &size, kind, nullptr) != 1) return {};
  return hex_digits(result, size);
}

std::string sha256_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text.data(), text.size())), EVP_sha256());
}

bool looks_like_md5(std::string_view etag) {
  return etag.size() == 32 && etag.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// Waits longer with each attempt, with a random part, so that threads that failed together do not retry together.
void pause_before(unsigned attempt) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const std::chrono::milliseconds longest(
      static_cast<long>(std::min(static_cast<double>(longest_pause.count()), s3_patience() * 1000 / 6)));
  const auto most = std::min(longest, first_pause * (1 << std::min(attempt, 10U)));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::uniform_int_distribution<long>(most.count() / 4, most.count())(random)));
}

// The message of an <Error>, for the sentence.
std::string said(const xml_element& error) {
  if (error.name != "Error") return {};
  const std::string code = error.text_of("Code").substr(0, 100), message = error.text_of("Message").substr(0, 200);
  return (code.empty() ? "" : " " + code) + (message.empty() ? "" : " (" + message + ")");
}

bool is_passing_error(const xml_element& error) {
  const std::string code = error.text_of("Code");
  for (const char* known : {"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "OperationAborted"}) {
    if (code == known) return true;
  }
  return code.empty();
}

}  // namespace

double s3_patience() {
  const char* given = std::getenv("ZARRBITS_S3_PATIENCE");
  const double seconds = given ? std::strtod(given, nullptr) : 0;
  return seconds >= 0.1 ? std::min(seconds, 3600.0) : 60;
}

std::string s3_client::percent_encoded(const std::string& text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    if (plain || (c == '/' && keep_slashes)) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
      out += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

s3_client::s3_client(s3_settings settings) : settings_(std::move(settings)) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) throw zarrbits::error(errc::unsupported, "libcurl cannot be used for S3; choose a directory");
  const std::size_t host = settings_.url.find("://") + 3, path = std::min(settings_.url.find('/', host), settings_.url.size());
  server_ = settings_.url.substr(0, path);
  host_ = settings_.url.substr(host, path - host);
  path_ = settings_.url.substr(path);
}

s3_client::~s3_client() {
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* s3_client::take_handle() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      void* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  void* handle = curl_easy_init();
  if (!handle) throw std::bad_alloc();
  return handle;
}

void s3_client::give_back(void* handle) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(handle);
}

s3_client::response s3_client::attempt(const request& r, const std::string& path, const std::string& query, void* handle,
                                       int& transport_error, std::string& transport_reason) const {
  struct list_deleter {
    void operator()(curl_slist* l) const { curl_slist_free_all(l); }
  };
  response answer;
  arriving in{answer, r.longest};
  std::map<std::string, std::string> headers = r.only_if;
  char why[CURL_ERROR_SIZE] = {};
  curl_easy_reset(handle);  // keeps its connections
  curl_easy_setopt(handle, CURLOPT_URL, (server_ + path + (query.empty() ? "" : "?" + query)).c_str());
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);  // a signature for one server is not valid for another
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  if (!settings_.ca_file.empty()) curl_easy_setopt(handle, CURLOPT_CAINFO, settings_.ca_file.c_str());
  if (!r.range.empty()) curl_easy_setopt(handle, CURLOPT_RANGE, r.range.c_str());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
  // a server may join many parts for minutes, and sends a blank from time to time
  const std::string_view method = r.method;
  const double patience = haste == hurry::none ? s3_patience() : std::min(1.0, s3_patience());
  const double quiet = patience * (method == "POST" && *r.answer ? 5 : 1);
  const auto bytes = static_cast<double>(r.body.size()) + (method == "GET" ? static_cast<double>(r.longest) : 0.0);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(1000 * std::min(20.0, patience)));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, method == "POST" ? 1L : 1000L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::max(1.0, quiet)));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(1000 * patience * (5 + bytes / 600'000)));
  curl_easy_setopt(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, 1000L);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &in);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &in);
  if (method == "PUT" || method == "POST") {
    // as a form: curl sends it from memory, and again if an old connection was closed
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(r.body.size()));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, r.body.empty() ? "" : reinterpret_cast<const char*>(r.body.data()));
    if (method == "PUT") curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "PUT");
    headers["content-type"] = "application/octet-stream";
  } else if (method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (method != "GET") {
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, r.method);
  }
  const std::unique_ptr<curl_slist, list_deleter> lines(
      static_cast<curl_slist*>(signed_headers(r, path, query, std::move(headers))));
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines.get());
  transport_error = curl_easy_perform(handle);
  if (transport_error != CURLE_OK) transport_reason = *why ? why : curl_easy_strerror(static_cast<CURLcode>(transport_error));
  if (in.too_long) transport_reason = "its response is too long";
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  answer.length = length;
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, nullptr);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
  return answer;
}

// AWS Signature Version 4. curl's own implementation copies the secret key into the heap, and leaves it there.
void* s3_client::signed_headers(const request& r, const std::string& path, const std::string& query,
                                std::map<std::string, std::string> headers) const {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char stamp[24];
  ::gmtime_r(&now, &utc);
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  const std::string day(stamp, 8), scope = day + "/" + settings_.region + "/s3/aws4_request",
                                   hash = digest_of(r.body, EVP_sha256());
  if (hash.empty()) throw zarrbits::error(errc::unsupported, "OpenSSL has no SHA-256, which S3 needs; choose a directory");
  headers["host"] = host_;
  headers["x-amz-content-sha256"] = hash;
  headers["x-amz-date"] = stamp;
  if (!settings_.session_token.empty()) headers["x-amz-security-token"] = settings_.session_token;
  std::string lines, names;
  for (const auto& [name, value] : headers) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical_request =
      std::string(r.method) + "\n" + path + "\n" + query + "\n" + lines + "\n" + names + "\n" + hash;
  headers["authorization"] =
      "AWS4-HMAC-SHA256 Credential=" + settings_.access_key + "/" + scope + ", SignedHeaders=" + names + ", Signature=" +
      settings_.keys->signature(day,
                                "AWS4-HMAC-SHA256\n" + std::string(stamp) + "\n" + scope + "\n" + sha256_of(canonical_request));
  curl_slist* list = nullptr;
  for (const auto& [name, value] : headers) {
    curl_slist* longer = curl_slist_append(list, (name + ": " + value).c_str());
    if (!longer) {
      curl_slist_free_all(list);
      throw std::bad_alloc();
    }
    list = longer;
  }
  return list;
}

std::string s3_client::why_unreached(const request& r, int transport_error, const std::string& reason) const {
  const bool certificate = transport_error == CURLE_PEER_FAILED_VERIFICATION || transport_error == CURLE_SSL_CACERT_BADFILE;
  return "the S3 server at " + settings_.url + " cannot be reached for \"s3://" + settings_.bucket + "/" + r.key + "\"" + reason +
         (certificate ? "; name the file of the certificates to trust in AWS_CA_BUNDLE" : "; check `endpoint` and the network");
}

s3_client::response s3_client::send(const request& r) {
  std::string query;
  for (const auto& [name, value] : r.query)
    query += (query.empty() ? "" : "&") + percent_encoded(name, false) + "=" + percent_encoded(value, false);
  const std::string path = path_ + "/" + percent_encoded(r.key, true);
  struct loan {
    s3_client& client;
    void* handle;
    ~loan() { client.give_back(handle); }
  } borrowed{*this, take_handle()};
  if (haste == hurry::given_up)
    throw zarrbits::error(errc::server_failed, "the S3 server at " + settings_.url + " does not answer", {settings_.url});
  const auto begun = std::chrono::steady_clock::now();
  for (unsigned n = 1, misunderstood = 0;; ++n) {
    int error = 0;
    std::string why;
    response answer = attempt(r, path, query, borrowed.handle, error, why);
    answer.attempts = n;
    bool again = error != CURLE_OK ? is_transient(error) : is_transient(answer.status);
    const bool good = error == CURLE_OK && answer.status >= 200 && answer.status < 300;
    bool understood = true;
    if (!(good && std::string_view(r.method) == "GET" && !*r.answer)) {  // an unexpected body may still be an <Error>
      if (auto xml = parse_xml(answer.body)) answer.xml = std::move(*xml);
    }
    if (good && (*r.answer ? answer.xml.name != r.answer : answer.xml.name == "Error")) {
      // a server begins its response to a long operation before the result is known
      understood = false;
      again = answer.xml.name == "Error" ? is_passing_error(answer.xml) : ++misunderstood < most_misunderstandings;
    }
    const bool condition =
        !r.only_if.empty() && (answer.status == 400 || answer.status == 409 || answer.status == 412 || answer.status == 501);
    if (error == CURLE_OK && !again && understood && (good || answer.status == 404 || condition)) return answer;
    if (haste != hurry::none && again) {
      haste = hurry::given_up;
      again = false;
    }
    const auto spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (again && n < most_attempts && spent < 10 * s3_patience()) {
      pause_before(n);
      continue;
    }
    const std::string tries = n > 1 ? ", after " + std::to_string(n) + " attempts" : "";
    if (error != CURLE_OK)
      throw zarrbits::error(errc::server_failed, why_unreached(r, error, tries + ": " + why), {settings_.url});
    const std::string object = "\"s3://" + settings_.bucket + "/" + r.key + "\"" + tries;
    if (!understood && answer.xml.name != "Error") {
      throw zarrbits::error(errc::server_failed,
                            "the S3 server at " + settings_.url + " answers " + r.method + " of " + object + " with " +
                                std::to_string(answer.status) +
                                ", but without the response that belongs to this status; check `endpoint`",
                            {settings_.url});
    }
    const bool forbidden = answer.status == 401 || answer.status == 403;
    throw zarrbits::error(forbidden ? errc::permission_denied : errc::server_failed,
                          "the S3 server refuses " + std::string(r.method) + " of " + object + ": " +
                              std::to_string(answer.status) + said(answer.xml) +
                              (forbidden ? "; check the access key, the secret and their permissions"
                                         : "; check the bucket, the region and `endpoint`"),
                          {"s3://" + settings_.bucket + "/" + r.key});
  }
}

s3_client::response s3_client::store(const request& r) {
  response answer = send(r);
  if (answer.status < 200 || answer.status >= 300) return answer;
  const std::string object = "\"s3://" + settings_.bucket + "/" + r.key + "\"";
  if (answer.etag.empty()) {
    throw zarrbits::error(errc::server_failed,
                          "the S3 server says that it stored " + object + ", but gives no ETag to confirm it; check `endpoint`",
                          {settings_.url});
  }
  if (answer.etag_is_md5 && looks_like_md5(answer.etag)) {
    const std::string md5 = digest_of(r.body, EVP_md5());
    if (!md5.empty() && ::strcasecmp(md5.c_str(), answer.etag.c_str()) != 0) {
      throw zarrbits::error(errc::server_failed,
                            "the S3 server stored different bytes for " + object + " than were sent (ETag " + answer.etag +
                                ", not " + md5 + "); convert again",
                            {settings_.url});
    }
  }
  return answer;
}

void hurry_s3() noexcept { haste = hurry::asked; }

}  // namespace zarrbits::conversion
