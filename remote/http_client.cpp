// SPDX-License-Identifier: BSL-1.0
#include "remote/http_client.hpp"

#include "remote/aws_config.hpp"
#include "remote/s3_access.hpp"
#include "text/node_names.hpp"
#include "text/percent.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <unistd.h>

namespace zarrbits::remote {

namespace {

constexpr std::chrono::milliseconds first_pause{100}, longest_pause{10'000};
constexpr const char* private_address_text = "it has a private address";
constexpr const char* proxy_login_text = "the proxy requires a user and a password (407), which its URL may have";
constexpr std::size_t max_header_bytes = 256 << 10;

// Once this is set, the first request that gets no response is the last one.
enum class cancellation { none, requested, aborted };
std::atomic<cancellation> cancellation_state = cancellation::none;

constexpr double silent_seconds = 3;  // that a request may wait before people are told

struct wait_listener {
  std::mutex mutex;
  std::function<void(const std::string&)> call;
  // Never ends: threads may wait for a server at the exit.
  static wait_listener& instance() {
    static auto* const listener = new wait_listener();
    return *listener;
  }
};

void report_wait(const std::string& reason, long milliseconds, unsigned attempt) {
  wait_listener& listener = wait_listener::instance();
  const std::lock_guard lock(listener.mutex);
  if (!listener.call) return;
  const std::string seconds = milliseconds < 1000 ? "less than 1" : std::to_string((milliseconds + 500) / 1000);
  listener.call(reason + ", again in " + seconds + " s, attempt " + std::to_string(attempt) + " of " +
                std::to_string(retry_policy::max_attempts));
}

// True if the error may be temporary, so that another attempt may succeed.
bool is_transient_error(int error) {
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

// Filled by curl's callbacks.
struct transfer {
  const http_client::request& request;
  http_client::response& result;
  CURL* handle;
  std::size_t headers = 0;
  double last_progress = uptime();
  bool too_late = false;
  bool is_direct = false;  // no private address, and no proxy: the address of the connection is the server's
};

std::size_t take_body(char* data, std::size_t, std::size_t n, void* user_data) {
  auto& in = *static_cast<transfer*>(user_data);
  long status = 0;
  curl_easy_getinfo(in.handle, CURLINFO_RESPONSE_CODE, &status);
  const bool directly = !in.request.output.empty() && status >= 200 && status < 300;
  const std::size_t capacity =
      directly ? in.request.output.size() - in.result.received : in.request.max_body_bytes - in.result.body.size();
  if (n > capacity) {
    in.result.too_long = true;
    return 0;
  }
  if (directly) {
    std::memcpy(in.request.output.data() + in.result.received, data, n);
    in.result.received += n;
  } else {
    in.result.body.append(data, n);
  }
  return n;
}

std::size_t take_header(char* data, std::size_t, std::size_t n, void* user_data) {
  auto& in = *static_cast<transfer*>(user_data);
  in.headers += n;
  if (in.headers > max_header_bytes) {
    in.result.too_long = true;
    return 0;
  }
  std::string_view line(data, n);
  if (line.starts_with("HTTP/")) in.result.headers.clear();  // those before were of "100 Continue"
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return n;
  std::string name = text::case_fold(line.substr(0, colon));
  line.remove_prefix(colon + 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && std::strchr("\r\n \t", line.back())) line.remove_suffix(1);
  in.result.headers[std::move(name)] = line;
  return n;
}

bool is_private(const std::array<unsigned char, 4>& a) {
  return a[0] == 0 || a[0] == 10 || a[0] == 127 || (a[0] == 100 && (a[1] & 0xC0) == 64) || (a[0] == 169 && a[1] == 254) ||
         (a[0] == 172 && (a[1] & 0xF0) == 16) || (a[0] == 192 && a[1] == 168) || a[0] >= 224;
}

// For the text of an IP address. Any other text counts as private.
bool is_private(const char* text) {
  std::array<unsigned char, 4> four{};
  if (::inet_pton(AF_INET, text, four.data()) == 1) return is_private(four);
  std::array<unsigned char, 16> six{};
  std::string plain = text;
  if (const auto zone = plain.find('%'); zone != std::string::npos) plain.erase(zone);
  if (::inet_pton(AF_INET6, plain.c_str(), six.data()) != 1) return true;
  static constexpr std::array<unsigned char, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, compatible{},
      translated{0, 0x64, 0xFF, 0x9B};
  for (const auto& prefix : {mapped, compatible, translated}) {
    if (std::equal(prefix.begin(), prefix.end(), six.begin())) {
      std::copy(six.begin() + 12, six.end(), four.begin());
      return is_private(four);
    }
  }
  return (six[0] & 0xFE) == 0xFC || (six[0] == 0xFE && (six[1] & 0xC0) == 0x80) || six[0] == 0xFF;
}

// The host of a URL as libcurl reads it: "127.0.0.1" of "http://0x7f.1/x"; "" if it reads none.
std::string host_in(const std::string& url) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parts(curl_url(), curl_url_cleanup);
  char* name = nullptr;
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parts.get(), CURLUPART_HOST, &name, 0) != CURLUE_OK)
    return {};
  std::string host = text::case_fold(name);
  curl_free(name);
  if (host.ends_with('.')) host.pop_back();
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// True for a private address that a URL has in place of a name, and for the name of this machine.
bool is_private_host(const std::string& host) {
  std::array<unsigned char, 16> address{};
  const bool literal = ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 || host.find(':') != std::string::npos;
  return host.empty() || host == "localhost" || host.ends_with(".localhost") || (literal && is_private(host.c_str()));
}

// True if the host, or a domain that it belongs to, is in a list such as "example.org, .internal, *".
bool is_in_no_proxy(std::string_view list, std::string_view host) {
  while (!list.empty()) {
    const std::size_t begin = std::min(list.find_first_not_of(", \t"), list.size());
    list.remove_prefix(begin);
    std::string domain = text::case_fold(list.substr(0, list.find_first_of(", \t")));
    list.remove_prefix(domain.size());
    if (domain == "*") return true;
    if (domain.starts_with('.')) domain.erase(0, 1);
    if (domain.ends_with('.')) domain.pop_back();
    if (!domain.empty() && (host == domain || host.ends_with("." + domain))) return true;
  }
  return false;
}

// The proxy that the environment names for a URL, by libcurl's rules; "" for none.
std::string proxy_for(std::string_view url, const std::string& host) {
  const bool is_https = url.starts_with("https:");
  std::string proxy;
  for (const char* name : {is_https ? "https_proxy" : "http_proxy", is_https ? "HTTPS_PROXY" : "", "all_proxy", "ALL_PROXY"}) {
    if (proxy.empty() && *name) proxy = environment_value(name);
  }
  std::string exceptions = environment_value("no_proxy");
  if (exceptions.empty()) exceptions = environment_value("NO_PROXY");
  return is_in_no_proxy(exceptions, host) ? "" : proxy;
}

// libcurl's own text may repeat a proxy's URL.
bool has_proxy_password() {
  for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    if (environment_value(name).find('@') != std::string::npos) return true;
  }
  return false;
}

curl_socket_t open_socket(void* user_data, curlsocktype, curl_sockaddr* address) {
  auto& in = *static_cast<transfer*>(user_data);
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = address->family == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&address->addr)->sin6_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&address->addr)->sin_addr);
  if (!::inet_ntop(address->family, bytes, text, sizeof text) || is_private(text)) {
    in.result.private_address = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// Called when there is a connection, which may be an old one.
int before_request(void* user_data, char* address, char*, int, int) {
  auto& in = *static_cast<transfer*>(user_data);
  in.last_progress = uptime();
  if (in.request.send_before > 0 && in.last_progress > in.request.send_before) {
    in.too_late = true;
    return CURL_PREREQFUNC_ABORT;
  }
  if (!in.is_direct) return CURL_PREREQFUNC_OK;
  if (!is_private(address)) return CURL_PREREQFUNC_OK;
  in.result.private_address = true;
  return CURL_PREREQFUNC_ABORT;
}

// Called at least once a second.
int on_progress(void* user_data, curl_off_t, curl_off_t, curl_off_t upload_bytes, curl_off_t uploaded) {
  auto& in = *static_cast<transfer*>(user_data);
  const double now = uptime(), gap = now - std::exchange(in.last_progress, now);
  in.too_late |= uploaded < upload_bytes && gap > in.request.max_gap;
  return in.too_late ? 1 : 0;
}

content_range parse_content_range(std::string_view text) {
  content_range r;
  const auto number = [&]() -> std::optional<std::uint64_t> {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return n;
  };
  if (!text.starts_with("bytes ")) return r;
  text.remove_prefix(6);
  if (text.starts_with("*")) {
    text.remove_prefix(1);
  } else {
    r.first = number();
    if (!text.starts_with("-")) return {};
    text.remove_prefix(1);
    r.last = number();
  }
  if (!text.starts_with("/")) return {};
  text.remove_prefix(1);
  if (text == "*") return r;
  r.total = number();
  return text.empty() && r.total ? r : content_range{};
}

// For a libcurl that was built without a path of certificates, as that of the wheel is; "" if it has one, or no file is found:
// then OpenSSL looks into SSL_CERT_DIR, or /etc/ssl/certs.
std::string system_certificates() {
  const curl_version_info_data* curl = curl_version_info(CURLVERSION_NOW);
  if (curl->cainfo || curl->capath || std::getenv("SSL_CERT_DIR")) return {};
  const char* certifi = std::getenv("ZARRBITS_CERTIFI");  // set by the Python package, if certifi is installed
  for (const char* file : {certifi,
                           "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch
                           "/etc/pki/tls/certs/ca-bundle.crt",                   // RHEL 8 and 9
                           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL 10
                           "/etc/ssl/ca-bundle.pem",                             // SUSE
                           "/etc/ssl/cert.pem"}) {                               // Alpine
    if (file && ::access(file, R_OK) == 0) return file;
  }
  return {};
}

const char* certificate_remedy(CURL* handle, CURLcode error) {
  constexpr long unspecified = 1, not_yet_valid = 9, expired = 10;  // OpenSSL's X509_V_ERR_...
  long verdict = unspecified;
  curl_easy_getinfo(handle, CURLINFO_SSL_VERIFYRESULT, &verdict);
  if (verdict == expired || verdict == not_yet_valid)
    return "; check the clock of this machine, or ask the server's operator for a certificate that is valid today";
  // libcurl compares the name itself, after OpenSSL has accepted the certificate, and before it takes over OpenSSL's verdict
  if (error == CURLE_PEER_FAILED_VERIFICATION && verdict <= unspecified)
    return "; use the name that the server's certificate has";
  return "; name the file of the certificates to trust as `ca_file` or in AWS_CA_BUNDLE";
}

struct list_deleter {
  void operator()(curl_slist* l) const { curl_slist_free_all(l); }
};
using header_list = std::unique_ptr<curl_slist, list_deleter>;

void append(header_list& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (!longer) throw std::bad_alloc();
  (void)list.release();
  list.reset(longer);
}

}  // namespace

void cancel_s3_retries() noexcept { cancellation_state = cancellation::requested; }

double http_timeout() {
  const char* value = std::getenv("ZARRBITS_S3_PATIENCE");
  const double seconds = value ? std::strtod(value, nullptr) : 0;
  return seconds >= 0.1 ? std::min(seconds, 3600.0) : 60;
}

bool is_transient(long status) { return status == 429 || status == 408 || (status >= 500 && status != 501); }

double uptime() {
  timespec now{};
#ifdef CLOCK_BOOTTIME
  ::clock_gettime(CLOCK_BOOTTIME, &now);
#else
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // which counts sleep on systems without the other
#endif
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double retry_policy::timeout() const {
  return cancellation_state == cancellation::none ? http_timeout() : std::min(1.0, http_timeout());
}

void set_wait_listener(std::function<void(const std::string&)> listener) {
  wait_listener& current = wait_listener::instance();
  const std::lock_guard lock(current.mutex);
  current.call = std::move(listener);
}

bool retry_policy::wait(const std::string& reason, double wish) {
  if (cancellation_state != cancellation::none) {
    cancellation_state = cancellation::aborted;
    return false;
  }
  const auto spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  if (attempts_ >= max_attempts || spent >= 10 * http_timeout()) return false;
  thread_local std::minstd_rand random{std::random_device{}()};
  const std::chrono::milliseconds longest(
      static_cast<long>(std::min(static_cast<double>(longest_pause.count()), http_timeout() * 1000 / 6)));
  const auto max_pause = std::min(longest, first_pause * (1 << std::min(attempts_, 10U)));
  const long requested = static_cast<long>(1000 * std::min(std::max(wish, 0.0), http_timeout()));
  const long pause = std::max(requested, std::uniform_int_distribution<long>(max_pause.count() / 4, max_pause.count())(random));
  ++attempts_;
  if (spent + static_cast<double>(pause) / 1000 > silent_seconds) report_wait(reason, pause, attempts_);
  std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  return true;
}

std::string retry_policy::attempts_text() const {
  return attempts_ > 1 ? ", after " + std::to_string(attempts_) + " attempts" : "";
}

void retry_policy::throw_if_cancelled(const std::string& server) {
  if (cancellation_state == cancellation::aborted)
    throw zarrbits::error(errc::server_failed, "the server at " + server + " does not answer", {server});
}

std::string percent_encoded(const std::string& text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    if (plain || (c == '/' && keep_slashes)) {
      out += c;
    } else {
      text::append_percent_escape(out, c);
    }
  }
  return out;
}

std::string_view http_client::response::header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? std::string_view() : it->second;
}

double http_client::response::retry_after() const {
  const std::string text(header("retry-after"));
  if (text.empty()) return 0;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (!*end) return std::isfinite(seconds) ? seconds : 0;
  const std::time_t then = curl_getdate(text.c_str(), nullptr),
                    server_time = curl_getdate(std::string(header("date")).c_str(), nullptr);
  if (then == -1) return 0;
  return std::max(0.0, std::difftime(then, server_time == -1 ? std::time(nullptr) : server_time));
}

bool http_client::response::has(const io::byte_range& requested) const {
  if (status != 206 || received == 0 || range.first != requested.offset || range.last != requested.offset + received - 1)
    return false;
  if (!range.total) return received == requested.size;
  return *range.total > *range.last && received == std::min(requested.size, *range.total - requested.offset);
}

// Cookies that all connections have in common.
struct http_client::shared_cookies {
  CURLSH* handle = curl_share_init();
  std::mutex mutex;

  shared_cookies() {
    if (!handle) throw std::bad_alloc();
    curl_share_setopt(handle, CURLSHOPT_USERDATA, &mutex);
    curl_share_setopt(handle, CURLSHOPT_LOCKFUNC, lock);
    curl_share_setopt(handle, CURLSHOPT_UNLOCKFUNC, unlock);
    curl_share_setopt(handle, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
  }
  ~shared_cookies() { curl_share_cleanup(handle); }
  shared_cookies(const shared_cookies&) = delete;
  shared_cookies& operator=(const shared_cookies&) = delete;
  static void lock(CURL*, curl_lock_data, curl_lock_access, void* mutex) { static_cast<std::mutex*>(mutex)->lock(); }
  static void unlock(CURL*, curl_lock_data, void* mutex) { static_cast<std::mutex*>(mutex)->unlock(); }
};

http_client::http_client(std::string ca_file) : ca_file_(std::move(ca_file)) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) throw zarrbits::error(errc::unsupported, "libcurl cannot be used; choose a local file");
  cookies_ = std::make_unique<shared_cookies>();
  if (ca_file_.empty()) ca_file_ = system_certificates();
}

http_client::~http_client() {
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

http_client& shared_http_client(const std::string& ca_file) {
  struct clients {
    pid_t process = ::getpid();
    const clients* of_parent = nullptr;  // whose connections are not ours to close
    std::map<std::string, http_client> by_ca = {};
  };
  static std::mutex mutex;
  static clients* instance = nullptr;
  const std::lock_guard lock(mutex);
  if (!instance || instance->process != ::getpid()) instance = new clients{.of_parent = instance};
  return instance->by_ca.try_emplace(ca_file, ca_file).first->second;
}

void* http_client::take_handle() {
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

void http_client::give_back(void* handle) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(handle);
}

http_client::response http_client::send(const request& r) {
  struct loan {
    http_client& client;
    CURL* handle;
    ~loan() { client.give_back(handle); }
  } const borrowed{*this, take_handle()};
  CURL* const handle = borrowed.handle;
  response result;
  transfer in{r, result, handle};
  char error_buffer[CURL_ERROR_SIZE] = {};
  header_list lines;
  for (const std::string& line : r.headers) append(lines, line);
  const auto set = [&](auto option, auto value) { curl_easy_setopt(handle, option, value); };
  set(CURLOPT_COOKIEFILE, static_cast<const char*>(nullptr));  // curl_easy_reset() of libcurl 7.88 leaks the list of such files
  curl_easy_reset(handle);                                     // keeps its connections
  set(CURLOPT_URL, r.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(r.newer_http ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, error_buffer);
  set(CURLOPT_BUFFERSIZE, 256L << 10);
  if (!ca_file_.empty()) set(CURLOPT_CAINFO, ca_file_.c_str());
  if (r.direct) set(CURLOPT_PROXY, "");
  if (r.range.size > 0) set(CURLOPT_RANGE, io::range_text(r.range).c_str());
  if (r.netrc) {
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
    if (const char* file = std::getenv("NETRC"); file && *file) set(CURLOPT_NETRC_FILE, file);
  }
  if (r.cookies) {
    set(CURLOPT_SHARE, cookies_->handle);
    set(CURLOPT_COOKIEFILE, "");  // keeps them in memory
  }
  if (r.no_private_address) {
    const std::string host = host_in(r.url);
    if (is_private_host(host)) {  // a proxy would connect to it
      result.error = result.private_address = true;
      result.reason = private_address_text;
      return result;
    }
    // libcurl is told whether to use a proxy, so that the check is about the connection that it makes
    const std::string proxy = proxy_for(r.url, host);
    set(CURLOPT_PROXY, proxy.c_str());
    set(CURLOPT_NOPROXY, "");
    in.is_direct = proxy.empty();
  }
  if (in.is_direct) {
    set(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set(CURLOPT_OPENSOCKETDATA, &in);
  }
  set(CURLOPT_PREREQFUNCTION, before_request);
  set(CURLOPT_PREREQDATA, &in);
  if (r.max_gap > 0) {
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, on_progress);
    set(CURLOPT_XFERINFODATA, &in);
  }
  const std::string_view method = r.method;
  const double patience = r.timeout > 0 ? r.timeout : http_timeout();
  const auto bytes = static_cast<double>(
      r.body.size() +
      (method == "GET" ? (r.output.empty() ? r.max_body_bytes : std::max<std::size_t>(r.output.size(), 1 << 20)) : 0));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(1000 * std::min(20.0, patience)));
  set(CURLOPT_LOW_SPEED_LIMIT, method == "POST" ? 1L : 1000L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::max(1.0, patience * (r.begins_late ? 5 : 1))));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(1000 * patience * (5 + bytes / 600'000)));
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1000L);
  set(CURLOPT_WRITEFUNCTION, take_body);
  set(CURLOPT_WRITEDATA, &in);
  set(CURLOPT_HEADERFUNCTION, take_header);
  set(CURLOPT_HEADERDATA, &in);
  if (method == "PUT" || method == "POST") {
    // as a form: curl sends it from memory, and again if an old connection was closed
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(r.body.size()));
    set(CURLOPT_POSTFIELDS, r.body.empty() ? "" : reinterpret_cast<const char*>(r.body.data()));
    if (method == "PUT") set(CURLOPT_CUSTOMREQUEST, "PUT");
  } else if (method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, r.method);
  }
  set(CURLOPT_HTTPHEADER, lines.get());
  const CURLcode error = curl_easy_perform(handle);
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &result.status);
  curl_off_t length = -1;
  curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  result.length = length;
  const char* redirect = nullptr;
  curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect) result.redirect = redirect;
  if (result.status == 206 || result.status == 416) result.range = parse_content_range(result.header("content-range"));
  long proxy_status = 0;  // of a proxy's response to CONNECT
  curl_easy_getinfo(handle, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
  const bool needs_proxy_login = proxy_status == 407 || result.status == 407;
  result.error = error != CURLE_OK || needs_proxy_login;
  constexpr int too_large = 100;  // CURLE_TOO_LARGE, of curl 8.6: more headers than it takes; older ones call that out of memory
  if (error == too_large || error == CURLE_OUT_OF_MEMORY) result.too_long = true;
  if (result.error) {
    result.transient =
        !result.too_long && !result.private_address && !needs_proxy_login && (in.too_late || is_transient_error(error));
    result.no_such_host = error == CURLE_COULDNT_RESOLVE_HOST;
    if (error == CURLE_PEER_FAILED_VERIFICATION || error == CURLE_SSL_CACERT_BADFILE)
      result.certificate_remedy = certificate_remedy(handle, error);
    result.reason = result.too_long                          ? "its response is too long"
                    : result.private_address                 ? private_address_text
                    : needs_proxy_login                      ? proxy_login_text
                    : in.too_late                            ? "this process was stopped before it had sent the request"
                    : *error_buffer && !has_proxy_password() ? error_buffer
                                                             : curl_easy_strerror(error);
  }
  set(CURLOPT_HTTPHEADER, nullptr);
  set(CURLOPT_ERRORBUFFER, nullptr);
  if (r.cookies) set(CURLOPT_SHARE, nullptr);
  return result;
}

}  // namespace zarrbits::remote
