// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_credentials.hpp"

#include "io/remote_url.hpp"
#include "remote/aws_config.hpp"
#include "remote/azure_account.hpp"
#include "remote/azure_credentials.hpp"
#include "remote/google_credentials.hpp"
#include "remote/s3_credential_chain.hpp"

#include <zarrbits/error.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <unistd.h>
#include <utility>

namespace zarrbits::remote {

namespace {

using wall_clock = std::chrono::system_clock;

// Temporary credentials are replaced when they have less than this left: EC2 and ECS have new ones by then.
constexpr std::chrono::seconds early{300};
// After an attempt that brought nothing new, as long as the old ones last.
constexpr std::chrono::seconds between_attempts{30};

bool same_keys(const s3_credentials& a, const s3_credentials& b) {
  return a.access_key == b.access_key && a.secret_key == b.secret_key && a.session_token == b.session_token &&
         a.bearer == b.bearer && a.sas == b.sas;
}

}  // namespace

class credential_source::shared {
 public:
  shared(remote_access remote, std::string region, std::string ca_file)
      : remote_(std::move(remote)), region_(std::move(region)), ca_file_(std::move(ca_file)) {}

  s3_credentials current(const std::string& target) {
    std::unique_lock lock(mutex_);
    const auto remaining = [&] { return *current_->expires - wall_clock::now(); };
    if (!current_ || (current_->expires && remaining() <= std::chrono::seconds(0))) {
      find(lock, target);
    } else if (current_->expires && remaining() < early && !asking_ && wall_clock::now() >= next_attempt_) {
      next_attempt_ = wall_clock::now() + between_attempts;
      try {
        find(lock, target);
      } catch (const zarrbits::error&) {  // the old ones are still good; the next attempts, or their end, will tell
      }
    }
    return *current_;
  }

  bool renew(const s3_credentials& refused, const std::string& target) {
    std::unique_lock lock(mutex_);
    if (current_ && same_keys(*current_, refused)) find(lock, target);
    return current_ && !same_keys(*current_, refused);
  }

 private:
  // One thread asks, without the lock, and the others wait for what it finds.
  void find(std::unique_lock<std::mutex>& lock, const std::string& target) {
    if (asking_) {
      const auto round = round_;
      updated_.wait(lock, [&] { return round_ != round; });
    } else {
      asking_ = true;
      lock.unlock();
      std::optional<s3_credentials> result;
      std::exception_ptr failure;
      try {
        switch (io::cloud_of(target)) {
          case io::cloud::s3: result = find_credentials(target, remote_, region_, ca_file_); break;
          case io::cloud::google: result = find_google_credentials(target, remote_, ca_file_); break;
          case io::cloud::azure: result = find_azure_credentials(target, remote_, ca_file_); break;
        }
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      asking_ = false;
      ++round_;
      failure_ = failure;
      if (result) current_ = std::move(result);
      updated_.notify_all();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  const remote_access remote_;
  const std::string region_, ca_file_;
  std::mutex mutex_;
  std::condition_variable updated_;
  std::optional<s3_credentials> current_;
  wall_clock::time_point next_attempt_{};
  bool asking_ = false;
  unsigned round_ = 0;
  std::exception_ptr failure_;  // of the last round
};

credential_source::credential_source(std::string target, remote_access remote, std::string region, std::string ca_file)
    : target_(std::move(target)), remote_(std::move(remote)), region_(std::move(region)), ca_file_(std::move(ca_file)) {}

credential_source::shared& credential_source::of_process() {
  std::call_once(init_flag_, [this] {
    // all settings that the search depends on, except the content of files
    // a name at Azure may have the account
    std::string settings =
        (io::is_azure(target_) ? target_.substr(0, target_.find('/', target_.find("://") + 3)) : target_.substr(0, 2)) + '\n' +
        remote_.endpoint + '\n' + region_ + '\n' + ca_file_ + '\n' + remote_.profile + '\n' +
        (remote_.no_sign_request ? "anonymous" : "");
    for (const char* name : {"AWS_ACCESS_KEY_ID",
                             "AWS_SECRET_ACCESS_KEY",
                             "AWS_SESSION_TOKEN",
                             "AWS_PROFILE",
                             "AWS_DEFAULT_PROFILE",
                             "AWS_SHARED_CREDENTIALS_FILE",
                             "AWS_CONFIG_FILE",
                             "AWS_NO_SIGN_REQUEST",
                             "AWS_SKIP_SIGNATURE",
                             "AWS_WEB_IDENTITY_TOKEN_FILE",
                             "AWS_ROLE_ARN",
                             "AWS_ENDPOINT_URL",
                             "AWS_ENDPOINT_URL_STS",
                             "AWS_ENDPOINT_URL_SSO",
                             "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
                             "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                             "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                             "HOME",
                             "GS_ACCESS_KEY_ID",
                             "GS_SECRET_ACCESS_KEY",
                             "GS_NO_SIGN_REQUEST",
                             "GOOGLE_SKIP_SIGNATURE",
                             "GOOGLE_OAUTH_ACCESS_TOKEN",
                             "GOOGLE_APPLICATION_CREDENTIALS",
                             "CLOUDSDK_CONFIG",
                             "GS_USER_PROJECT",
                             "GOOGLE_CLOUD_QUOTA_PROJECT",
                             "GOOGLE_CLOUD_PROJECT",
                             "GCLOUD_PROJECT",
                             "NO_GCE_CHECK",
                             "GCE_METADATA_HOST",
                             "GCE_METADATA_ROOT",
                             "GCE_METADATA_IP",
                             "STORAGE_EMULATOR_HOST"}) {
      settings += '\n' + environment_value(name);
    }
    for (const char* name : azure_variables) {
      settings += '\n' + environment_value(name);
    }
    // after a fork, a thread that is not there any more may hold a lock, or be asking
    settings += '\n' + std::to_string(::getpid());
    static std::mutex mutex;
    static auto& registry = *new std::map<std::string, std::shared_ptr<shared>>();
    const std::lock_guard lock(mutex);
    std::shared_ptr<shared>& entry = registry[settings];
    if (!entry) entry = std::make_shared<shared>(remote_, region_, ca_file_);
    shared_ = entry;
  });
  return *shared_;
}

s3_credentials credential_source::current() { return of_process().current(target_); }

bool credential_source::renew(const s3_credentials& refused) { return of_process().renew(refused, target_); }

}  // namespace zarrbits::remote
