// SPDX-License-Identifier: BSL-1.0
#include "io/thread_pool.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::io {

thread_pool::thread_pool(unsigned threads, std::uint64_t memory, std::size_t backlog)
    : memory_(memory), max_waiting_(threads > 1 ? std::max<std::size_t>(backlog, 4 * threads) : backlog) {
  try {
    threads_.reserve(threads);
    for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {  // the system has no more threads, or no memory for one; fewer do it, too
  }
}

thread_pool::~thread_pool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    waiting_.clear();
  }
  work_available_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void thread_pool::run(item next, std::unique_lock<std::mutex>& lock) {
  ++running_;
  const bool should_run = next.number < failed_;
  lock.unlock();
  std::exception_ptr thrown;
  if (should_run) {
    try {
      next.task();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  next.task = nullptr;  // free the task's memory before it counts as free
  lock.lock();
  if (thrown && next.number < failed_) {
    failed_ = next.number;
    failure_ = thrown;
  }
  --running_;
  under_way_ -= next.cost;
  task_done_.notify_all();
}

void thread_pool::run_first(std::unique_lock<std::mutex>& lock) {
  item first = std::move(waiting_.front());
  waiting_.pop_front();
  run(std::move(first), lock);
}

// Runs a waiting task; without one, waits until a running one is done.
void thread_pool::run_one(std::unique_lock<std::mutex>& lock) {
  if (waiting_.empty()) task_done_.wait(lock);
  else run_first(lock);
}

void thread_pool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_available_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    run_first(lock);
  }
}

void thread_pool::throw_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

// Too much is waiting: this thread works too.
void thread_pool::wait_for_capacity(std::uint64_t cost, std::unique_lock<std::mutex>& lock) {
  const auto has_capacity = [&] { return under_way_ == 0 || (under_way_ + cost <= memory_ && waiting_.size() < max_waiting_); };
  while (!has_capacity()) run_one(lock);
}

void thread_pool::reserve(std::uint64_t cost) {
  std::unique_lock lock(mutex_);
  wait_for_capacity(cost, lock);
}

void thread_pool::submit(std::uint64_t cost, std::function<void()> task) {
  std::unique_lock lock(mutex_);
  if (failure_) {  // an earlier task may still fail
    lock.unlock();
    finish();
    return;
  }
  item next{next_number_++, cost, std::move(task)};
  if (threads_.empty() && max_waiting_ == 0) {
    under_way_ += cost;
    run(std::move(next), lock);
    return throw_failure();
  }
  wait_for_capacity(cost, lock);
  under_way_ += cost;
  waiting_.push_back(std::move(next));
  work_available_.notify_one();
}

void thread_pool::finish() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() || running_ > 0) run_one(lock);
  throw_failure();
}

}  // namespace zarrbits::io
