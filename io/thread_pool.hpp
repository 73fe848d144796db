// SPDX-License-Identifier: BSL-1.0
//
// Work for several threads, in bounded memory: one thread submits tasks, and runs some itself if too many are waiting.
//
//   thread_pool pool(4, 512 << 20);
//   pool.submit(cost, [chunk = std::move(chunk)] { ... });   // waits until there is room
//   pool.finish();                                           // until all is done; throws what a task threw
//
#ifndef ZARRBITS_IO_THREAD_POOL_HPP
#define ZARRBITS_IO_THREAD_POOL_HPP

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace zarrbits::io {

class thread_pool {
 public:
  // `threads` includes the submitting thread; with 1 it does all the work itself, in the order of the tasks. `backlog`: tasks
  // that may wait although no thread is free, because something else begins with them.
  thread_pool(unsigned threads, std::uint64_t memory, std::size_t backlog = 0);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  // Runs the task, now or later, when the `cost` of all running tasks, with this one, is within `memory` (or nothing else runs).
  // Throws what a task threw before; if several did, the exception of the task that was submitted first.
  void submit(std::uint64_t cost, std::function<void()> task);
  // Waits until a task of this cost may run: for a caller that allocates much of it before submit().
  void reserve(std::uint64_t cost);
  void finish();

 private:
  struct item {
    std::uint64_t number = 0, cost = 0;
    std::function<void()> task;
  };
  void work();
  void run(item next, std::unique_lock<std::mutex>& lock);
  void run_first(std::unique_lock<std::mutex>& lock);
  void run_one(std::unique_lock<std::mutex>& lock);
  void wait_for_capacity(std::uint64_t cost, std::unique_lock<std::mutex>& lock);
  void throw_failure();

  const std::uint64_t memory_;
  std::size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable work_available_, task_done_;
  std::deque<item> waiting_;
  std::uint64_t under_way_ = 0, running_ = 0, next_number_ = 0;
  std::uint64_t failed_ = static_cast<std::uint64_t>(-1);  // number of the first submitted task that threw
  std::exception_ptr failure_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace zarrbits::io

#endif
