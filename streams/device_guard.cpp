// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/iostreams/checked.hpp>
#include <zarrbits/iostreams/codec_error.hpp>
#include <zarrbits/iostreams/detail/device_guard.hpp>

#include "streams/chain_link.hpp"

#include <boost/iostreams/device/array.hpp>
#include <boost/iostreams/device/mapped_file.hpp>

#include <chrono>
#include <exception>
#include <ios>
#include <streambuf>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace zarrbits::iostreams {

namespace {

[[noreturn]] void fail(const std::string& sentence) {
  throw codec_error({.code = std::make_error_code(std::errc::io_error)}, sentence);
}

// Members of stream buffers that a derived class may use, on any of them.
struct buffered : std::streambuf {
  static bool has_pending(const std::streambuf& b) { return (b.*&buffered::pptr)() != (b.*&buffered::pbase)(); }
};

// Boost's devices that are memory: a stream buffer on them has no other buffer, so what it took is where it belongs.
bool is_in_memory(const boost::iostreams::detail::linked_streambuf<char>& b) {
  namespace io = boost::iostreams;
  const boost::core::typeinfo& device = detail::chain_link::type(b);
  return device == BOOST_CORE_TYPEID(io::array_sink) || device == BOOST_CORE_TYPEID(io::array) ||
         device == BOOST_CORE_TYPEID(io::mapped_file_sink) || device == BOOST_CORE_TYPEID(io::mapped_file);
}

bool loses_bytes(std::streambuf& buffer) {
  auto* chain = dynamic_cast<boost::iostreams::detail::linked_streambuf<char>*>(&buffer);
  if (!chain) return buffer.pubsync() == -1;
  const bool flushed = detail::chain_link::sync(*chain);
  if (is_in_memory(*chain)) return false;
  if (buffered::has_pending(buffer)) return true;
  if (flushed) return false;
  // It is false as well for a filter that has no flush(). That cannot move, and throws; a file that lost bytes returns -1. It is
  // asked to move to its end, because many files report their position without trying to write what they hold.
  try {
    return buffer.pubseekoff(0, std::ios_base::end, std::ios_base::out) == std::streampos(-1);
  } catch (const std::ios_base::failure&) {
    return false;
  }
}

// What a filter or a checked sink below threw last, for the one above it.
thread_local std::exception_ptr noted;

}  // namespace

namespace detail {

void impossible_count(const char* function, std::streamsize got, std::streamsize requested) {
  fail(std::string(function) + "() of the device below the filter returned " + std::to_string(got) + " for " +
       std::to_string(requested) + " bytes; it must return how many it wrote or read" +
       (function[0] == 'r' ? ", or -1 at the end" : ", and to throw if it cannot"));
}

void takes_nothing(std::streamsize remaining) {
  fail("the device below the filter " +
       (remaining == 0 ? "lost bytes that it had accepted" : "does not accept the next " + std::to_string(remaining) + " bytes") +
       ": it is not open, the disk is full, or the file may not grow; what was written is incomplete, so remove it");
}

void wait_for_room(int tries, std::streamsize remaining) {
  if (tries > 200) takes_nothing(remaining);
  if (tries > 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void note_error(const std::exception_ptr& error) noexcept {
  if (!noted) noted = error;
}

void hand_on(std::streambuf& buffer) {
  noted = nullptr;
  const bool has_loss = loses_bytes(buffer);
  if (const std::exception_ptr error = std::exchange(noted, nullptr); error && has_loss) std::rethrow_exception(error);
  if (has_loss) takes_nothing(0);
}

void not_open() {
  fail("the file or stream that is to be written is not open: its folder does not exist, or may not be written to");
}

}  // namespace detail

}  // namespace zarrbits::iostreams
