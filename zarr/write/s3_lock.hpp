// SPDX-License-Identifier: BSL-1.0
//
// The owner of a target in S3 while it is written: the object `begun` in a folder of our own. It is a lease: the client writes
// only as long as `begun` is known to be this run's, and reads it again before a write if it was last seen a while ago. A process
// that was stopped, or whose machine slept, so writes nothing into what another one made of the target in the meantime.
//
//   s3_lock lock(client, "prefix/out.zarr/.zarrbits-unfinished/", "s3://bucket/prefix/out.zarr", s3_lock::work::conversion);
//   lock.require_idle(remote::list_objects(client, lock.folder(), false, remote::no_limit));
//   lock.set_run(run, true);
//   const bool exclusive = lock.acquire(taken_over);  // false: the server ignores conditions
//   lock.start_heartbeat([&] { return objects(); });
//
#ifndef ZARRBITS_ZARR_WRITE_S3_LOCK_HPP
#define ZARRBITS_ZARR_WRITE_S3_LOCK_HPP

#include "remote/s3_client.hpp"
#include "remote/s3_listing.hpp"

#include <zarrbits/error.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace zarrbits::zarr {

constexpr const char* s3_begun = "begun";   // next to the plan and the journal: says that a store was begun, and by which run
constexpr const char* s3_alive = "alive-";  // and a sign of life, for a run that has nothing else to show

// A change within this many seconds means that a conversion still runs.
double s3_lock_seconds();

// The content of `begun`, and of signs of life. `run`: the run that made all there is, and may remove it; else empty.
struct s3_mark {
  std::string run, holder, sink;  // `holder`: the run that writes; `sink`: its writer
  bool shared = false;            // other runs write to the target, too
};
std::string mark_text(const s3_mark& mark);
// Its members are empty if the text is not one.
s3_mark parse_mark(std::string_view text);
bool s3_is_mark(std::string_view text);
bool s3_is_mark_of(std::string_view text, std::string_view run);

// The key of one of our own objects.
std::string unfinished_key(std::string_view name);

// Shows other processes that this run is alive: while it makes one large chunk, nothing else changes in the store. Stops after an
// hour without any `progress`, so that a run that hangs does not look alive.
class s3_heartbeat {
 public:
  s3_heartbeat(remote::s3_client& client, std::string whole_key, std::string text, std::function<std::uint64_t()> progress);

 private:
  std::mutex mutex_;
  std::condition_variable_any ends_;
  std::jthread thread_;
};

class s3_lock final : public remote::write_lease {
 public:
  enum class work { conversion, append };  // for sentences
  // `folder`: a whole key that ends with "/". `target`: as the user wrote it.
  s3_lock(remote::s3_client& client, std::string folder, std::string target, work of);
  ~s3_lock() override { end_lease(); }

  const std::string& folder() const { return folder_; }
  const std::string& token() const { return token_; }
  std::string mark_key() const { return folder_ + s3_begun; }
  // The content of the mark if this run made it.
  const std::string& mark() const { return mark_; }
  // `owns`: all that is there is this run's.
  void set_run(const std::string& run, bool owns) { set_mark({owns ? run : "", run, token_}); }

  // Throws zarrbits::error if one of these objects, those in the folder, was written a moment ago. A killed run leaves the same
  // objects as a run that still writes: only their age by the server's clock distinguishes them. A run that ended by itself has
  // removed its mark or, of those that share a target, its sign of life; what else it left may be new.
  void require_idle(const std::vector<remote::s3_entry>& objects);
  // Makes the mark, or replaces that of a run that ended. Throws zarrbits::error if another run has it. Returns false if the
  // server does not respect If-None-Match: another run may then have it, too.
  bool acquire(bool taken_over);
  // Makes the mark unless there is one already, for runs that share a target, and a sign of life.
  void mark_shared(bool has_mark);
  // Holds the lease by the mark that is there, which others made: for runs that share a target, or clean up. False if there is
  // none.
  bool share();
  // Whether the server respects If-Match. Call with the lock acquired.
  bool supports_if_match();
  bool is_owner();
  zarrbits::error busy_error() const;

  double require() override;
  double max_gap() const override { return s3_lock_seconds() / 6; }
  // Before the mark is removed: what follows is written without it.
  void end_lease() { client_.set_lease(nullptr); }

  // Shows that this run is alive, until stop(), release() or the end of this object.
  void start_heartbeat(std::function<std::uint64_t()> progress);
  void stop() { heartbeat_.reset(); }
  // Removes the sign of life, and the mark if it is ours.
  void release();
  // Like release(), for a run that was killed.
  void release(const std::string& holder);
  void remove_sign_of_life();

 private:
  void set_mark(s3_mark mark) { mark_ = mark_text(state_ = std::move(mark)); }

  remote::s3_client& client_;
  const std::string folder_, target_, token_;
  const work work_;
  s3_mark state_;
  std::string mark_;
  std::mutex lease_mutex_;
  std::string leased_mark_;  // the content of `begun` as long as nobody else has the target
  double seen_ = 0;          // the uptime() of the last look at it
  bool lost_ = false;
  std::unique_ptr<s3_heartbeat> heartbeat_;
};

}  // namespace zarrbits::zarr

#endif
