// SPDX-License-Identifier: BSL-1.0
//
// libhdf5's identifiers as values that close themselves, and its errors as sentences.
//
//   handle file(H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), "open the file");   // throws failure
//
#ifndef ZARRBITS_HDF5_H5_HPP
#define ZARRBITS_HDF5_H5_HPP

#include "array/extents.hpp"
#include "text/coded_reason.hpp"

#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

// libhdf5 refused something. what() says what was attempted, and libhdf5's reason.
struct failure : text::coded_error {
  explicit failure(const std::string& sentence, reason_code kind = reason_code::unreadable) : coded_error(kind, sentence) {}
  explicit failure(const text::coded_reason& reason) : coded_error(reason) {}
};

// The reason from libhdf5's error stack, innermost first, on one line; clears the stack. `unsupported_feature`: libhdf5 is too
// old for the file; else `unreadable`.
text::coded_reason last_reason();
inline std::string last_error() { return last_reason().sentence; }

[[noreturn]] void fail(const char* action, const text::coded_reason& reason = last_reason());

// libhdf5 writes what it has cached when an object is closed, and a destructor cannot throw: what failed there is counted, for
// each thread, and the last reason kept. created_file looks.
struct failed_closes {
  std::uint64_t count = 0;
  std::string reason;
};
const failed_closes& closes_that_failed() noexcept;
void note_failed_close() noexcept;

// Only one thread at a time may call libhdf5. A thread holds this lock while it calls libhdf5 and reads the error, if other
// threads may call it too; never while bytes are packed, inflated or written. Handles take it when they close.
class lock {
 public:
  lock() {
    mutex().lock();
    ++depth;
  }
  ~lock() {
    --depth;
    mutex().unlock();
  }
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

  // Releases the lock for a while, if this thread holds it.
  class unlock_guard {
   public:
    unlock_guard() : depth_(std::exchange(depth, 0)) {
      for (unsigned i = 0; i < depth_; ++i) mutex().unlock();
    }
    ~unlock_guard() {
      for (unsigned i = 0; i < depth_; ++i) mutex().lock();
      depth = depth_;
    }
    unlock_guard(const unlock_guard&) = delete;
    unlock_guard& operator=(const unlock_guard&) = delete;

   private:
    unsigned depth_;
  };

 private:
  static std::recursive_mutex& mutex();
  static inline thread_local unsigned depth = 0;  // how many times this thread holds it
};

class handle {
 public:
  handle() = default;
  explicit handle(hid_t id) noexcept : id_(id) {}
  // Throws if the call that made the id failed.
  handle(hid_t id, const char* action) : id_(id) {
    if (id < 0) fail(action);
  }
  handle(handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  handle& operator=(handle&& other) noexcept {
    if (this != &other) {
      close();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
    }
    return *this;
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle() { close(); }

  hid_t get() const noexcept { return id_; }
  operator hid_t() const noexcept { return id_; }
  explicit operator bool() const noexcept { return id_ >= 0; }

 private:
  void close() noexcept {
    if (id_ >= 0) {
      const lock one_thread;
      if (H5Idec_ref(id_) < 0) note_failed_close();
    }
    id_ = H5I_INVALID_HID;
  }
  hid_t id_ = H5I_INVALID_HID;
};

// Throws if a call that returns no id failed.
inline void check(herr_t status, const char* action) {
  if (status < 0) fail(action);
}

// While it exists, libhdf5 prints nothing itself: in this thread or, without support for threads, in any. It takes the lock when
// it begins and ends.
class silence {
 public:
  silence() {
    const lock one_thread;
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~silence() {
    const lock one_thread;
    H5Eset_auto2(H5E_DEFAULT, function_, data_);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

// Numbers in libhdf5's type, which is another one than std::uint64_t in some of its versions although both have 64 bits.
inline std::vector<hsize_t> to_hsize(std::span<const std::uint64_t> numbers) { return {numbers.begin(), numbers.end()}; }

// Extent of a dataspace; empty for scalars.
array::extents extent(hid_t space);
array::extents maximum_extent(hid_t space);
// Shape of the chunks that a property list asks for; empty if it asks for none.
array::extents chunk_extent(hid_t properties);

// The name of a member, or of an enumeration's value, freed as libhdf5 requires.
std::string member_name(hid_t type, unsigned index);

}  // namespace zarrbits::hdf5

#endif
