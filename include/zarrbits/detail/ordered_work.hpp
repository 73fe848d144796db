// SPDX-License-Identifier: BSL-1.0
//
// Work on many things in several threads, of which one step is done by the calling thread alone, in order. For
// <zarrbits/hdf5.hpp>.
//
#ifndef ZARRBITS_DETAIL_ORDERED_WORK_HPP
#define ZARRBITS_DETAIL_ORDERED_WORK_HPP

#include <zarrbits/detail/processors.hpp>
#include <zarrbits/detail/requirements.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace zarrbits::hdf5::detail {

// At most places() things are in work at a time; thing i is in place i % places().
class ordered_work {
 public:
  // `threads`: with the calling one.
  ordered_work(std::size_t count, std::size_t threads)
      : count_(count),
        helpers_((threads < count ? threads : count) - (count != 0)),
        places_(2 * helpers_ + 2),
        states_(places_) {}

  std::size_t places() const { return places_; }

  // make(thing, place) in any thread, then use(thing, place) in this one, in order.
  template <class Make, class Use>
  void make_then_use(const Make& make, const Use& use) {
    initial_state_ = state::empty;
    final_state_ = state::ready;
    with_helpers(make, [&](std::unique_lock<std::mutex>& lock) {
      for (std::size_t next = 0; next < count_ && !failed_;) {
        if (states_[next % places_] == state::ready) {
          in_turn(lock, use, next, state::empty);
          ++next;
        } else if (!make_one(lock, make)) {
          changed_.wait(lock);
        }
      }
    });
  }

  // use(thing, place) in this thread, in order, then make(thing, place) in any.
  template <class Use, class Make>
  void use_then_make(const Use& use, const Make& make) {
    initial_state_ = state::used;
    final_state_ = state::empty;
    with_helpers(make, [&](std::unique_lock<std::mutex>& lock) {
      for (std::size_t next = 0; completed_ < count_ && !failed_;) {
        if (next < count_ && states_[next % places_] == state::empty) {
          in_turn(lock, use, next, state::used);
          ++next;
        } else if (!make_one(lock, make)) {
          changed_.wait(lock);
        }
      }
    });
  }

 private:
  enum class state : unsigned char { empty, used, busy, ready };  // of a place

  template <class Use>
  void in_turn(std::unique_lock<std::mutex>& lock, const Use& use, std::size_t thing, state next_state) {
    lock.unlock();
    use(thing, thing % places_);
    lock.lock();
    states_[thing % places_] = next_state;
    changed_.notify_all();
  }

  // Makes the next thing. False if it cannot be begun yet, or there is none.
  template <class Make>
  bool make_one(std::unique_lock<std::mutex>& lock, const Make& make) {
    const std::size_t thing = started_, place = thing % places_;
    if (failed_ || thing == count_ || states_[place] != initial_state_) return false;
    ++started_;
    states_[place] = state::busy;
    lock.unlock();
    std::exception_ptr failure;
    try {
      make(thing, place);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    ++completed_;
    states_[place] = final_state_;
    if (failure && !failed_) failed_ = failure;
    changed_.notify_all();
    return true;
  }

  template <class Make, class MainLoop>
  void with_helpers(const Make& make, const MainLoop& main_loop) {
    std::vector<std::thread> helpers;
    helpers.reserve(helpers_);
    try {
      while (helpers.size() < helpers_) {
        helpers.emplace_back([this, &make] {
          std::unique_lock lock(mutex_);
          while (!over_ && !failed_ && started_ < count_)
            if (!make_one(lock, make)) changed_.wait(lock);
        });
      }
    } catch (...) {  // the system has no more threads, or no memory for one; fewer do it, too
    }
    std::unique_lock lock(mutex_);
    try {
      main_loop(lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      if (!failed_) failed_ = std::current_exception();
    }
    over_ = true;
    changed_.notify_all();
    lock.unlock();
    for (std::thread& helper : helpers) helper.join();
    if (failed_) std::rethrow_exception(failed_);
  }

  const std::size_t count_, helpers_, places_;
  std::vector<state> states_;
  state initial_state_ = state::empty, final_state_ = state::ready;  // of a place, around make()
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t started_ = 0, completed_ = 0;
  bool over_ = false;
  std::exception_ptr failed_;
};

inline unsigned threads_or_all(unsigned threads) { return threads != 0 ? threads : zarrbits::detail::usable_processors(); }

}  // namespace zarrbits::hdf5::detail

#endif
