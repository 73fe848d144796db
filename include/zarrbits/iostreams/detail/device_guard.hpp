// SPDX-License-Identifier: BSL-1.0
//
// What the filters and checked() put between Boost and the device below: it checks every number that the device returns.
//
#ifndef ZARRBITS_IOSTREAMS_DETAIL_DEVICE_GUARD_HPP
#define ZARRBITS_IOSTREAMS_DETAIL_DEVICE_GUARD_HPP

#if !defined(__cpp_rtti) && !defined(_CPPRTTI)
#error "zarrbits asks Boost's stream buffers what they are: compile without -fno-rtti what includes its stream filters"
#include <zarrbits/the_error_above>  // ends the compilation here
#endif

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/close.hpp>
#include <boost/iostreams/flush.hpp>
#include <boost/iostreams/read.hpp>
#include <boost/iostreams/traits.hpp>
#include <boost/iostreams/write.hpp>

#include <exception>
#include <ios>
#include <ostream>
#include <streambuf>
#include <type_traits>

namespace zarrbits::iostreams::detail {

// A device that returns a number of bytes that it cannot have read or written. Boost would move its pointers by it.
[[noreturn]] void impossible_count(const char* function, std::streamsize got, std::streamsize requested);
// A device that accepts nothing: Boost would offer it the same bytes forever.
[[noreturn]] void takes_nothing(std::streamsize remaining);
// Called after each of `tries` in a row that took nothing: waits a little, or throws after a fifth of a second.
void wait_for_room(int tries, std::streamsize remaining);

// Throws if a stream buffer, or one of those below it in a chain, cannot hand on all that it was given. In a chain they forget
// that when they are closed, and what was thrown as well: it is the error that was recorded in the meantime, if there was one.
void hand_on(std::streambuf& buffer);
void note_error(const std::exception_ptr& error) noexcept;

// Boost closes a filter with the device in an adapter, whose write() does not end while the device takes nothing.
template <class Device>
Device& without_adapter(Device& device) {
  return device;
}
template <class Device>
Device& without_adapter(boost::iostreams::non_blocking_adapter<Device>& adapter) {
  return adapter.device_;
}

template <class Device>
class device_guard {
 public:
  using char_type = char;
  struct category : boost::iostreams::mode_of<Device>::type, boost::iostreams::device_tag {};

  explicit device_guard(Device& device) : device_(device) {}

  // All of them, or an exception.
  std::streamsize write(const char* in, std::streamsize n) {
    int tries = 0;
    for (std::streamsize written = 0; written != n;) {
      const std::streamsize got = boost::iostreams::write(device_, in + written, n - written);
      if (got < 0 || got > n - written) impossible_count("write", got, n - written);
      written += got;
      if (is_stream && written != n) takes_nothing(n - written);
      if (got != 0) tries = 0;
      else wait_for_room(++tries, n - written);
    }
    return n;
  }
  // As the device: -1 at the end, 0 if there is nothing at the moment.
  std::streamsize read(char* out, std::streamsize n) {
    const std::streamsize got = boost::iostreams::read(device_, out, n);
    if (got < -1 || got > n) impossible_count("read", got, n);
    return got;
  }
  // After the last write: throws if bytes were lost where the device, or a buffer in front of it, keeps them.
  void finish() {
    if constexpr (std::is_base_of_v<std::streambuf, Device>) hand_on(device_);
    else if constexpr (is_stream) hand_on(*device_.rdbuf());
    else if constexpr (std::is_convertible_v<category_below, boost::iostreams::flushable_tag> && !is_composition)
      if (!boost::iostreams::flush(device_)) takes_nothing(0);
  }

 private:
  using category_below = typename boost::iostreams::category_of<Device>::type;
  // In a stream, fewer bytes than given are a failure; in a device they are those for which there was room.
  static constexpr bool is_stream = boost::iostreams::is_std_io<Device>::value;
  // flush() of compose(filter, device) is false if the filter has no flush()
  static constexpr bool is_composition = requires(Device & device) { device.first(), device.second(); };

  Device& device_;
};

}  // namespace zarrbits::iostreams::detail

#endif
