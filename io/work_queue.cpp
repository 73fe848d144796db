// SPDX-License-Identifier: BSL-1.0
#include "io/work_queue.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>

namespace zarrbits::io {

unsigned usable_processors() noexcept {
#ifdef __linux__
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1U, static_cast<unsigned>(CPU_COUNT(&set)));
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

work_queue::work_queue(unsigned threads, std::uint64_t memory, std::size_t ahead)
    : memory_(memory), most_waiting_(threads > 1 ? std::max<std::size_t>(ahead, 4 * threads) : ahead) {
  try {
    threads_.reserve(threads);
    for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system has no more threads, or no memory for one; fewer do it, too
  }
}

work_queue::~work_queue() {
  {
    const std::lock_guard held(mutex_);
    closing_ = true;
    waiting_.clear();
  }
  more_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void work_queue::run(item next, std::unique_lock<std::mutex>& held) {
  ++running_;
  const bool wanted = next.number < failed_;
  held.unlock();
  std::exception_ptr thrown;
  if (wanted) {
    try {
      next.task();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  next.task = nullptr;  // free the task's memory before it counts as free
  held.lock();
  if (thrown && next.number < failed_) {
    failed_ = next.number;
    failure_ = thrown;
  }
  --running_;
  under_way_ -= next.cost;
  done_.notify_all();
}

void work_queue::run_first(std::unique_lock<std::mutex>& held) {
  item first = std::move(waiting_.front());
  waiting_.pop_front();
  run(std::move(first), held);
}

// Runs a waiting task; if there is none, waits until one is done.
void work_queue::lend_a_hand(std::unique_lock<std::mutex>& held) {
  if (waiting_.empty()) done_.wait(held);
  else run_first(held);
}

void work_queue::work() {
  std::unique_lock held(mutex_);
  for (;;) {
    more_.wait(held, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    run_first(held);
  }
}

void work_queue::throw_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

// Too much is waiting: this thread works too.
void work_queue::wait_for_room(std::uint64_t cost, std::unique_lock<std::mutex>& held) {
  const auto room = [&] { return under_way_ == 0 || (under_way_ + cost <= memory_ && waiting_.size() < most_waiting_); };
  while (!room()) lend_a_hand(held);
}

void work_queue::make_room(std::uint64_t cost) {
  std::unique_lock held(mutex_);
  wait_for_room(cost, held);
}

void work_queue::submit(std::uint64_t cost, std::function<void()> task) {
  std::unique_lock held(mutex_);
  if (failure_) {  // an earlier task may still fail
    held.unlock();
    finish();
    return;
  }
  item next{next_number_++, cost, std::move(task)};
  if (threads_.empty() && most_waiting_ == 0) {
    under_way_ += cost;
    run(std::move(next), held);
    return throw_failure();
  }
  wait_for_room(cost, held);
  under_way_ += cost;
  waiting_.push_back(std::move(next));
  more_.notify_one();
}

void work_queue::finish() {
  std::unique_lock held(mutex_);
  while (!waiting_.empty() || running_ > 0) lend_a_hand(held);
  throw_failure();
}

}  // namespace zarrbits::io
