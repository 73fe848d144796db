// SPDX-License-Identifier: BSL-1.0
#include "remote/remote_file.hpp"

#include "io/remote_url.hpp"
#include "remote/remote_object.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>

namespace zarrbits::remote {

namespace {

constexpr std::uint64_t max_range_gap = 64U << 10;       // bytes that cost less than another request
constexpr std::uint64_t max_partial_request = 4U << 20;  // longer ranges are divided, over several connections
constexpr std::uint64_t max_full_request = 16U << 20;    // likewise, for a file that is read as a whole
constexpr const char* past_end_message = "the file ends before the range that was to be read";
constexpr unsigned max_read_ahead = 16;  // pages

// Threads that wait for servers, for all files of the process. A server that says that there are too many requests gets fewer for
// a while.
class download_pool {
 public:
  // After a fork there are no threads: the child has its own.
  static download_pool& instance() {
    static std::mutex mutex;
    static download_pool* pool = nullptr;
    const std::lock_guard lock(mutex);
    if (!pool || pool->process_ != ::getpid())
      pool = new download_pool();  // never ends: threads may wait for a server at the exit
    return *pool;
  }
  // Runs the task when fewer than `max_running` others run.
  void submit(unsigned max_running, std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    max_running_ = max_running;
    waiting_.push_back(std::move(task));
    if (waiting_.size() > idle_ && threads_ < max_running) {
      try {
        std::thread([this] { work(); }).detach();
        ++threads_;
      } catch (...) {  // the system has no more threads, or no memory for one; fewer do it, too
        if (threads_ == 0) {
          waiting_.pop_back();
          throw;
        }
      }
    }
    ready_.notify_one();
  }
  bool is_running() {
    const std::lock_guard lock(mutex_);
    return running_ > 0 || !waiting_.empty();
  }
  void slow_down() {
    const std::lock_guard lock(mutex_);
    allowed_ = std::max(1.0, std::min(allowed_, static_cast<double>(running_)) * 0.5);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      ready_.wait(lock, [&] { return !waiting_.empty() && static_cast<double>(running_) < allowed_; });
      --idle_;
      auto task = std::move(waiting_.front());
      waiting_.pop_front();
      ++running_;
      lock.unlock();
      task();  // which does not throw
      task = nullptr;
      lock.lock();
      --running_;
      if (allowed_ < max_running_) allowed_ += 1.0 / allowed_;  // one more after as many good ones as run now
      ready_.notify_all();
    }
  }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> waiting_;
  unsigned threads_ = 0, max_running_ = 1;
  std::size_t idle_ = 0, running_ = 0;
  double allowed_ = 1e9;
};

}  // namespace

bool downloads_are_running() { return download_pool::instance().is_running(); }

// Bytes that come by one or more requests.
struct remote_file::pending_fetch::group {
  group(std::uint64_t start, std::uint64_t size)
      : offset(start),
        memory(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size))),
        bytes(memory.get(), static_cast<std::size_t>(size)) {}
  const std::uint64_t offset;
  const std::unique_ptr<std::byte[]> memory;
  std::span<std::byte> bytes;
  std::size_t missing = 0;  // requests
  std::exception_ptr failure;
  std::mutex mutex;
  std::condition_variable completed;

  void wait() {
    std::unique_lock lock(mutex);
    completed.wait(lock, [&] { return missing == 0; });
    if (failure) std::rethrow_exception(failure);
  }
  bool is_complete() {
    const std::lock_guard lock(mutex);
    return missing == 0 && !failure;
  }
};

struct remote_file::impl : std::enable_shared_from_this<remote_file::impl> {
  using group = pending_fetch::group;

  std::string name;
  unsigned connections;
  std::uint64_t max_pages;
  std::uint64_t max_request_bytes = max_partial_request;  // bytes of a request
  bool is_full_read = false;
  std::unique_ptr<remote_object> object;
  io::file_state state;

  std::mutex mutex;  // for the pages
  // Pages that came in one request, and are kept or forgotten together: the last used ones first.
  struct run {
    std::shared_ptr<group> data;
    std::uint64_t first, count;
  };
  std::list<run> recent;
  std::map<std::uint64_t, std::list<run>::iterator> pages;  // by their numbers
  std::uint64_t expected = 0;                               // the page that a reader in order asks for next
  unsigned in_order = 0;                                    // pages that were read in order

  struct piece {
    std::size_t offset, size;  // in a group
  };

  // Fills in what the pages have already, and returns the rest: runs, divided where they are long.
  std::vector<piece> missing_pieces(group& g) {
    std::vector<piece> result;
    const std::lock_guard lock(mutex);
    const std::uint64_t last = g.offset + g.bytes.size();
    for (std::uint64_t begin = g.offset; begin < last;) {
      const std::uint64_t number = begin / page_size, end = std::min<std::uint64_t>(last, (number + 1) * page_size);
      const auto offset = static_cast<std::size_t>(begin - g.offset), size = static_cast<std::size_t>(end - begin);
      const auto it = pages.find(number);
      if (it != pages.end() && it->second->data->is_complete()) {
        const group& cached = *it->second->data;
        std::memcpy(g.bytes.data() + offset, cached.bytes.data() + (begin - cached.offset), size);
      } else if (!result.empty() && result.back().offset + result.back().size == offset &&
                 result.back().size + size <= max_request_bytes) {
        result.back().size += size;
      } else {
        result.push_back({offset, size});
      }
      begin = end;
    }
    return result;
  }

  // Downloads a group, in pieces beside each other.
  void begin(const std::shared_ptr<group>& g, const std::vector<piece>& pieces) {
    g->missing = pieces.size();
    for (const auto& [offset, size] : pieces) {
      download_pool::instance().submit(connections, [self = shared_from_this(), g, offset = offset, size = size] {
        std::exception_ptr failure;
        const std::uint64_t slowed = self->object->slowed_down();
        try {
          const bool proceed = [&] {
            const std::lock_guard lock(g->mutex);
            return !g->failure;
          }();
          if (proceed) self->object->read(self->state, g->offset + offset, g->bytes.subspan(offset, size));
        } catch (...) {
          failure = std::current_exception();
        }
        if (self->object->slowed_down() != slowed) download_pool::instance().slow_down();
        const std::lock_guard lock(g->mutex);
        if (failure && !g->failure) g->failure = failure;
        --g->missing;
        g->completed.notify_all();
      });
    }
  }

  std::uint64_t page_count() const { return (state.size + page_size - 1) / page_size; }

  // The page, which may still be coming. With the mutex held.
  std::shared_ptr<group> page_at(std::uint64_t number) {
    if (const auto it = pages.find(number); it != pages.end()) {
      recent.splice(recent.begin(), recent, it->second);
      return it->second->data;
    }
    if (is_full_read) {
      const std::uint64_t block = pages_at_once(), first = number / block * block;
      begin_missing(first, std::min(first + block, page_count()));
    } else {
      begin_missing(number, number + 1);
    }
    return pages.at(number)->data;
  }

  std::uint64_t pages_at_once() const { return max_request_bytes / page_size; }

  // Downloads the pages from `first` to before `end` that are not here, neighbours in one request. With the mutex held.
  void begin_missing(std::uint64_t first, std::uint64_t end) {
    while (first < end) {
      std::uint64_t last = first;
      while (last < end && last - first < pages_at_once() && !pages.contains(last)) ++last;
      if (last > first) {
        const std::uint64_t offset = first * page_size;
        auto data = std::make_shared<group>(offset, std::min((last - first) * page_size, state.size - offset));
        add({data, first, last - first});
        begin(data, {{0, data->bytes.size()}});
      }
      first = std::max(last, first + 1);
    }
  }

  // Pages after `last`, after this many that were read in order. With the mutex held.
  void read_ahead(std::uint64_t last, unsigned run_up) {
    const std::uint64_t block = pages_at_once();
    if (is_full_read) {  // the next request, when half of this one's bytes are used
      const std::uint64_t next = (last / block + 1) * block;
      if (next - last <= block / 2) begin_missing(next, std::min(next + block, page_count()));
      return;
    }
    // with each page twice as many as before, as many as the cache has room for
    const std::uint64_t window =
        std::min<std::uint64_t>({std::uint64_t{1} << std::min(run_up, 10U), max_read_ahead, max_pages / 2});
    std::uint64_t first = last + 1;
    const std::uint64_t end = std::min(page_count(), first + window);
    while (first < end && pages.contains(first)) ++first;
    if (first >= end || (first - last - 1) * 2 > window) return;  // enough is coming: the next ones share a request
    const std::uint64_t count = end - first;
    begin_missing(first, first + (end < page_count() && count > block ? count - count % block : count));
  }

  void add(run r) {
    recent.push_front(std::move(r));
    const auto added = recent.begin();
    for (std::uint64_t n = added->first; n < added->first + added->count; ++n) pages[n] = added;
    while (pages.size() > max_pages && std::next(added) != recent.end()) forget(std::prev(recent.end()));
  }

  void forget(std::list<run>::iterator r) {
    for (std::uint64_t n = r->first; n < r->first + r->count; ++n) pages.erase(n);
    recent.erase(r);
  }

  // Forgets a page that failed, and those that came with it, so that a later read asks again.
  void drop(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    if (const auto it = pages.find(number); it != pages.end()) forget(it->second);
  }

  static void copy(const std::vector<std::shared_ptr<group>>& groups, std::uint64_t offset, std::span<std::byte> out) {
    for (const auto& g : groups) {
      const std::uint64_t begin = std::max(offset, g->offset), end = std::min(offset + out.size(), g->offset + g->bytes.size());
      if (begin < end) std::memcpy(out.data() + (begin - offset), g->bytes.data() + (begin - g->offset), end - begin);
    }
  }

  void require(std::uint64_t offset, std::uint64_t size) const {
    if (offset > state.size || size > state.size - offset) throw io::read_error(past_end_message);
  }
};

namespace {

constexpr std::size_t signature_bytes = 8;

// The beginning of a file that is opened next.
struct probe {
  std::unique_ptr<remote_object> object;
  io::file_state state;
  std::shared_ptr<remote_file::pending_fetch::group> head;
};

struct probe_registry {
  std::mutex mutex;
  std::map<std::string, probe> probes;
  std::map<std::string, std::string> signatures;  // by name
};

probe_registry& probed() {
  static probe_registry instance;
  return instance;
}

// The request that finds a file brings its first pages: the superblock, and all metadata of many files.
probe open_head(const std::string& name, const remote_access& remote, std::uint64_t head_bytes) {
  probe result{find_object(name, remote), {}, std::make_shared<remote_file::pending_fetch::group>(0, head_bytes)};
  std::span<std::byte>& bytes = result.head->bytes;
  result.state = result.object->open(bytes);
  bytes = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), result.state.size)));
  return result;
}

std::string signature_in(const probe& p) {
  std::string signature(std::min(p.head->bytes.size(), signature_bytes), '\0');
  std::memcpy(signature.data(), p.head->bytes.data(), signature.size());
  return signature;
}

// What probe_remote_file() brought; else a request.
probe take_head(const std::string& name, const remote_access& remote, std::uint64_t head_bytes) {
  {
    const std::lock_guard lock(probed().mutex);
    if (auto node = probed().probes.extract(name)) return std::move(node.mapped());
  }
  return open_head(name, remote, head_bytes);
}

}  // namespace

remote_file::remote_file(const std::string& name, const remote_access& remote, std::uint64_t cache,
                         const std::optional<io::file_state>& expected, io::access_hint hint)
    : in_(std::make_shared<impl>()) {
  in_->name = name;
  in_->connections = std::max(1U, remote.connections);
  in_->max_pages = std::max<std::uint64_t>(4, cache / page_size);
  in_->is_full_read = hint == io::access_hint::full;
  // a request for a part of the cache, so that a few places of the file have room in it
  if (in_->is_full_read)
    in_->max_request_bytes = std::min(max_full_request, std::max<std::uint64_t>(1, in_->max_pages / 4) * page_size);
  if (expected) {
    in_->object = find_object(name, remote);
    in_->state = *expected;
    return;
  }
  probe first = take_head(name, remote, in_->is_full_read ? in_->max_request_bytes : page_size);
  in_->object = std::move(first.object);
  in_->state = first.state;
  const std::uint64_t count = std::max<std::uint64_t>(1, (first.head->bytes.size() + page_size - 1) / page_size);
  in_->add({std::move(first.head), 0, count});
  in_->expected = 1;
}

remote_file::~remote_file() = default;

const std::string& remote_file::name() const { return in_->name; }
io::file_state remote_file::state() const { return in_->state; }
io::file_state remote_file::state_now() const { return in_->object->current_state(); }

void remote_file::read(std::uint64_t offset, std::span<std::byte> out) const { read_pages(offset, out, 1); }

void remote_file::read_metadata(std::uint64_t offset, std::span<std::byte> out) const { read_pages(offset, out, 3); }

void remote_file::read_alone(std::uint64_t offset, std::span<std::byte> out) const {
  const auto direct = fetch({{offset, out.size()}});
  const auto bytes = direct->bytes({offset, out.size()});
  std::memcpy(out.data(), bytes.data(), bytes.size());
}

// Reads ahead when `wait` pages were read in order.
void remote_file::read_pages(std::uint64_t offset, std::span<std::byte> out, unsigned wait) const {
  in_->require(offset, out.size());
  if (out.empty()) return;
  if (out.size() > in_->max_request_bytes) return read_alone(offset, out);
  const std::uint64_t first = offset / page_size, last = (offset + out.size() - 1) / page_size;
  std::vector<std::shared_ptr<pending_fetch::group>> groups;
  {
    const std::lock_guard lock(in_->mutex);
    if (!in_->is_full_read) in_->begin_missing(first, last + 1);  // all of them in one request
    for (std::uint64_t n = first; n <= last; ++n) groups.push_back(in_->page_at(n));
    if (first == in_->expected || last == in_->expected) ++in_->in_order;
    else if (last + 1 != in_->expected) in_->in_order = 0;
    if (last + 1 != in_->expected && in_->in_order >= wait) in_->read_ahead(last, in_->in_order - wait);
    in_->expected = last + 1;
  }
  for (std::uint64_t n = first; n <= last; ++n) {
    try {
      groups[static_cast<std::size_t>(n - first)]->wait();
    } catch (...) {
      in_->drop(n);
      throw;
    }
  }
  impl::copy(groups, offset, out);
}

std::shared_ptr<const remote_file::pending_fetch> remote_file::fetch(std::vector<io::byte_range> ranges) const {
  for (const io::byte_range& r : ranges) in_->require(r.offset, r.size);
  std::sort(ranges.begin(), ranges.end(), [](const io::byte_range& a, const io::byte_range& b) { return a.offset < b.offset; });
  auto result = std::make_shared<pending_fetch>();
  for (std::size_t i = 0; i < ranges.size();) {
    const std::uint64_t begin = ranges[i].offset;
    std::uint64_t end = begin + ranges[i].size;
    // neighbours as long as the request stays small; an overlap is always one of them
    for (++i; i < ranges.size(); ++i) {
      const std::uint64_t next = std::max(end, ranges[i].offset + ranges[i].size);
      const bool overlaps = ranges[i].offset < end,
                 is_close = !overlaps && is_small_gap(ranges[i].offset - end) && next - begin <= max_partial_request;
      if (!overlaps && !is_close) break;
      end = next;
    }
    auto group = std::make_shared<pending_fetch::group>(begin, end - begin);
    in_->begin(group, in_->missing_pieces(*group));
    result->groups_.push_back(std::move(group));
  }
  return result;
}

// What was not asked for is what lies beyond the end: callers ask for all else.
std::span<const std::byte> remote_file::pending_fetch::bytes(const io::byte_range& range) const {
  const auto next_group = std::upper_bound(groups_.begin(), groups_.end(), range.offset,
                                           [](std::uint64_t offset, const auto& g) { return offset < g->offset; });
  if (next_group == groups_.begin()) throw io::read_error(past_end_message);
  group& g = **std::prev(next_group);
  if (range.offset - g.offset > g.bytes.size() || range.size > g.bytes.size() - (range.offset - g.offset))
    throw io::read_error(past_end_message);
  g.wait();
  return g.bytes.subspan(static_cast<std::size_t>(range.offset - g.offset), static_cast<std::size_t>(range.size));
}

bool is_small_gap(std::uint64_t bytes) noexcept { return bytes <= max_range_gap; }

std::optional<io::file_state> probe_remote_file(const std::string& name, const remote_access& remote, io::access_hint hint) {
  try {
    probe p = open_head(name, remote, hint == io::access_hint::full ? max_full_request : remote_file::page_size);
    const io::file_state state = p.state;
    std::string signature = signature_in(p);
    const std::lock_guard lock(probed().mutex);
    probed().signatures[name] = std::move(signature);
    probed().probes[name] = std::move(p);
    return state;
  } catch (const zarrbits::error& e) {
    const std::lock_guard lock(probed().mutex);
    probed().signatures.erase(name);
    probed().probes.erase(name);
    if (e.kind() != errc::not_found) throw;
    return {};
  }
}

void probe_signature(const std::string& name, const remote_access& remote) {
  try {
    std::string signature = signature_in(open_head(name, remote, signature_bytes));
    const std::lock_guard lock(probed().mutex);
    probed().signatures[name] = std::move(signature);
  } catch (const zarrbits::error& e) {
    if (e.kind() != errc::not_found) throw;
  }
}

std::string probed_signature(const std::string& name) {
  const std::lock_guard lock(probed().mutex);
  const auto entry = probed().signatures.find(name);
  return entry == probed().signatures.end() ? "" : entry->second;
}

std::string unnoticed_change_warning(const std::string& name, const remote_access& remote) {
  return (remote.no_etag ? "with `no_etag`, neither the ETag of \"" + name + "\" nor the time of its last change is compared"
                         : "the server of \"" + name + "\" sends neither an ETag nor a time of the last change") +
         ": a change that keeps the file's length while it is read goes unnoticed; make sure that no process writes to it";
}

std::shared_ptr<const io::byte_source> open_bytes(const std::string& name, const remote_access& remote,
                                                  const io::file_state& expected) {
  if (io::is_remote(name)) return std::make_shared<const remote_file>(name, remote, 16U << 20, expected);
  io::file_descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? std::make_shared<const io::local_bytes>(std::move(file)) : nullptr;
}

}  // namespace zarrbits::remote
