// SPDX-License-Identifier: BSL-1.0
//
// Comparisons on several threads, whose outcomes are taken in the order in which they were submitted: a report is the same for
// any number of threads. A caller that holds hdf5::lock gives it up while it waits here, for comparisons that close what they
// were given of libhdf5.
//
//   ordered_outcomes<outcome> queue(pool, [&](outcome& o) { ...; return !o.differs; });  // false: nothing after it counts
//   queue.reserve(cost);                                      // before the caller allocates much of it
//   queue.submit(cost, [chunk](outcome& o) { ... });          // false: an outcome was the last one
//   queue.finish();
//
#ifndef ZARRBITS_VERIFY_ORDERED_OUTCOMES_HPP
#define ZARRBITS_VERIFY_ORDERED_OUTCOMES_HPP

#include "hdf5/h5.hpp"
#include "io/thread_pool.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace zarrbits::verification {

template <class Outcome>
class ordered_outcomes {
 public:
  using work = std::function<void(Outcome&)>;

  // `merge` is called in the caller's thread. What a comparison throws is thrown in its place in the order.
  ordered_outcomes(io::thread_pool& pool, std::function<bool(Outcome&)> merge) : pool_(pool), merge_(std::move(merge)) {}
  ~ordered_outcomes() {
    *is_over_ = true;  // what still waits does nothing
    wait();            // the comparisons refer to objects of the caller; they throw nothing
  }
  ordered_outcomes(const ordered_outcomes&) = delete;
  ordered_outcomes& operator=(const ordered_outcomes&) = delete;

  void reserve(std::uint64_t cost) {
    const hdf5::lock::unlock_guard unlocked;
    pool_.reserve(cost);
  }

  bool submit(std::uint64_t cost, work compare) {
    if (*is_over_) return false;
    auto s = std::make_shared<slot>();
    slots_.push_back(s);
    {
      const hdf5::lock::unlock_guard unlocked;
      pool_.submit(cost, [s, is_over = is_over_, compare = std::move(compare)] {
        try {
          if (!*is_over) compare(s->outcome);
        } catch (...) {
          s->thrown = std::current_exception();
        }
        s->is_done = true;
      });
    }
    return merge_done();
  }

  // An outcome that takes no work.
  bool add(Outcome outcome) {
    if (*is_over_) return false;
    if (slots_.size() >= max_outcomes) wait();
    if (!merge_done()) return false;
    if (slots_.empty()) return take(outcome);
    auto s = std::make_shared<slot>();
    s->outcome = std::move(outcome);
    s->is_done = true;
    slots_.push_back(std::move(s));
    return true;
  }

  // Waits for all outcomes. False if one was the last.
  bool finish() {
    if (!*is_over_) wait();
    return merge_done();
  }

 private:
  static constexpr std::size_t max_outcomes = 4096;  // of which the first may take long

  struct slot {
    Outcome outcome;
    std::exception_ptr thrown;
    std::atomic<bool> is_done = false;
  };

  void wait() {
    const hdf5::lock::unlock_guard unlocked;
    pool_.finish();
  }
  bool take(Outcome& outcome) {
    if (!merge_(outcome)) *is_over_ = true;
    return !*is_over_;
  }
  bool merge_done() {
    while (!*is_over_ && !slots_.empty() && slots_.front()->is_done) {
      const std::shared_ptr<slot> s = std::move(slots_.front());
      slots_.pop_front();
      if (s->thrown) {
        *is_over_ = true;
        std::rethrow_exception(s->thrown);
      }
      take(s->outcome);
    }
    return !*is_over_;
  }

  io::thread_pool& pool_;
  const std::function<bool(Outcome&)> merge_;
  std::deque<std::shared_ptr<slot>> slots_;
  const std::shared_ptr<std::atomic<bool>> is_over_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace zarrbits::verification

#endif
