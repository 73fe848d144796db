// SPDX-License-Identifier: BSL-1.0
#include "convert/store/s3_client.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <thread>

#include <curl/curl.h>
#include <openssl/evp.h>

namespace zarrbits::conversion {

namespace {

constexpr unsigned most_attempts = 10;
constexpr std::chrono::milliseconds first_pause{100}, longest_pause{10'000};
constexpr std::size_t longest_answer = 64 << 20;  // lists have 1,000 keys; objects that are read back are journals

// What another try may mend.
bool passes(int error) {
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
bool passes(long status, const std::string& body) {
  if (status == 429 || status == 408 || status >= 500) return status != 501;
  // a long copy begins its answer before it knows how it ends
  return status == 200 && body.find("<Error>") != std::string::npos;
}

std::size_t take_body(char* data, std::size_t, std::size_t n, void* to) {
  auto& body = static_cast<s3_client::response*>(to)->body;
  if (n > longest_answer - std::min(body.size(), longest_answer)) return 0;
  body.append(data, n);
  return n;
}

std::size_t take_header(char* data, std::size_t, std::size_t n, void* to) {
  constexpr std::string_view name = "etag:";
  std::string_view line(data, n);
  if (line.size() > name.size() && ::strncasecmp(line.data(), name.data(), name.size()) == 0) {
    line.remove_prefix(name.size());
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
    static_cast<s3_client::response*>(to)->etag = line;
  }
  return n;
}

std::string sha256(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1) throw convert_error("OpenSSL has no SHA-256, which S3 needs; choose a directory");
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

// Waits longer from try to try, and not as long as the other threads that failed at the same time.
void pause_before(unsigned attempt) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto most = std::min(longest_pause, first_pause * (1 << std::min(attempt, 10U)));
  std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<long>(most.count() / 4, most.count())(random)));
}

// The text between <name> and </name> of an error, for the sentence.
std::string element(const std::string& xml, const std::string& name) {
  const auto first = xml.find("<" + name + ">");
  const auto last = xml.find("</" + name + ">");
  if (first == std::string::npos || last == std::string::npos || last < first) return {};
  return xml.substr(first + name.size() + 2, last - first - name.size() - 2).substr(0, 200);
}

}  // namespace

std::string s3_client::percent_encoded(const std::string& text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
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
  if (ready != CURLE_OK) throw convert_error("libcurl cannot be used for S3; choose a directory");
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

s3_client::response s3_client::attempt(const request& r, const std::string& url, void* handle, int& transport_error, std::string& transport_reason) const {
  struct list_deleter {
    void operator()(curl_slist* l) const { curl_slist_free_all(l); }
  };
  response answer;
  std::unique_ptr<curl_slist, list_deleter> headers;
  const auto header = [&](const std::string& line) { headers.reset(curl_slist_append(headers.release(), line.c_str())); };
  const std::string signature = "aws:amz:" + settings_.region + ":s3", user = settings_.access_key + ":" + settings_.secret_key;
  char why[CURL_ERROR_SIZE] = {};
  curl_easy_reset(handle);  // its connections stay
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  if (!r.range.empty()) curl_easy_setopt(handle, CURLOPT_RANGE, r.range.c_str());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, why);
  curl_easy_setopt(handle, CURLOPT_USERPWD, user.c_str());
  curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, signature.c_str());
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, 20L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, 1000L);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &answer);
  const std::string_view method = r.method;
  if (method == "PUT" || method == "POST") {
    // as a form: curl sends it from memory, again where the connection was an old one
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(r.body.size()));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, r.body.empty() ? "" : reinterpret_cast<const char*>(r.body.data()));
    if (method == "PUT") curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "PUT");
    header("Content-Type: application/octet-stream");
  } else if (method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (method != "GET") {
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, r.method);
  }
  header("X-Amz-Content-Sha256: " + sha256(r.body));  // curl signs it, but does not make it before 8.0
  if (!settings_.session_token.empty()) header("X-Amz-Security-Token: " + settings_.session_token);
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  transport_error = curl_easy_perform(handle);
  if (transport_error != CURLE_OK) transport_reason = *why ? why : curl_easy_strerror(static_cast<CURLcode>(transport_error));
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  answer.length = length;
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, nullptr);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, nullptr);
  return answer;
}

s3_client::response s3_client::send(const request& r) {
  std::string url = settings_.url + "/" + percent_encoded(r.key, true);
  char separator = '?';
  for (const auto& [name, value] : r.query) {
    url += separator + percent_encoded(name, false) + "=" + percent_encoded(value, false);
    separator = '&';
  }
  struct loan {
    s3_client& client;
    void* handle;
    ~loan() { client.give_back(handle); }
  } borrowed{*this, take_handle()};
  for (unsigned n = 1;; ++n) {
    int error = 0;
    std::string why;
    response answer = attempt(r, url, borrowed.handle, error, why);
    answer.attempts = n;
    const bool again = error != CURLE_OK ? passes(error) : passes(answer.status, answer.body);
    if (error == CURLE_OK && !again && ((answer.status >= 200 && answer.status < 300) || answer.status == 404)) return answer;
    if (again && n < most_attempts) {
      pause_before(n);
      continue;
    }
    const std::string object = "\"s3://" + settings_.bucket + "/" + r.key + "\"";
    const std::string tries = n > 1 ? ", after " + std::to_string(n) + " attempts" : "";
    if (error != CURLE_OK) {
      throw convert_error("the S3 server at " + settings_.url + " cannot be reached for " + object + tries + ": " + why + "; check --endpoint and the network");
    }
    std::string code = element(answer.body, "Code");
    if (!code.empty()) code = " " + code;
    if (const std::string message = element(answer.body, "Message"); !message.empty()) code += " (" + message + ")";
    const bool forbidden = answer.status == 401 || answer.status == 403;
    throw convert_error("the S3 server refuses " + std::string(r.method) + " of " + object + tries + ": " + std::to_string(answer.status) + code +
                        (forbidden ? "; check the access key, the secret and what they may do" : "; check the bucket, the region and --endpoint"));
  }
}

}  // namespace zarrbits::conversion
