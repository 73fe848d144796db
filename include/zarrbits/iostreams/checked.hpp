// SPDX-License-Identifier: BSL-1.0
//
// A sink that loses nothing silently: on a full disk, reset() throws.
//
//   io::filtering_ostream out;
//   out.push(zarrbits::iostreams::encoder(camera));
//   out.push(zarrbits::iostreams::checked(io::file_sink("frame.bits", std::ios::binary)));   // throws if it is not open
//   zarrbits::iostreams::write_elements(out, frame);
//   out.reset();               // throws if a byte did not reach the file
//
#ifndef ZARRBITS_IOSTREAMS_CHECKED_HPP
#define ZARRBITS_IOSTREAMS_CHECKED_HPP

#include <zarrbits/iostreams/codec_error.hpp>
#include <zarrbits/iostreams/detail/device_guard.hpp>

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/close.hpp>
#include <boost/iostreams/traits.hpp>

#include <exception>
#include <ios>
#include <memory>
#include <ostream>
#include <type_traits>
#include <utility>

namespace zarrbits::iostreams {

namespace detail {
[[noreturn]] void not_open();
}

// A sink that hands everything on to another one, and throws if that does not accept it. Boost's stream buffers ignore what a
// sink throws, or does not take, while they are closed. So the first error is kept, and thrown again by close(): reset() always
// reports it. This also stops third-party filters that would offer the same bytes to a full sink forever, such as Boost's
// compressors.
template <class Sink>
class checked_sink {
  static constexpr bool is_stream = boost::iostreams::is_std_io<Sink>::value;
  static_assert(!boost::iostreams::is_direct<Sink>::value, "a sink that is memory throws if it is full; it needs no checked()");

 public:
  using char_type = char;  // Required by Boost.Iostreams.
  // Required by Boost.Iostreams.
  struct category : boost::iostreams::output,
                    boost::iostreams::device_tag,
                    boost::iostreams::closable_tag,
                    boost::iostreams::flushable_tag,
                    boost::iostreams::optimally_buffered_tag {};

  // A copy of the sink; of a std::ostream, a reference. Throws codec_error if it is not open.
  explicit checked_sink(std::conditional_t<is_stream, Sink&, const Sink&> sink) : state_(new state{sink}) {
    if constexpr (is_stream) {
      if (!sink) detail::not_open();
    } else if constexpr (requires { sink.is_open(); }) {
      if (!sink.is_open()) detail::not_open();
    }
  }

  // Called by Boost.Iostreams: writes all bytes, or throws.
  std::streamsize write(const char* in, std::streamsize n) {
    return record_errors([&] { return guard().write(in, n); });
  }
  // Called by Boost.Iostreams: true, or throws.
  bool flush() {
    return record_errors([&] { return guard().finish(), true; });
  }
  // Called by Boost.Iostreams: throws the first error; closes the sink, unless it is a stream.
  void close() {
    std::exception_ptr error = std::exchange(state_->error, nullptr);
    const auto first = [&](auto&& f) {
      try {
        f();
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    };
    if (!error) first([&] { guard().finish(); });
    if constexpr (!is_stream) first([&] { boost::iostreams::close(state_->sink, std::ios_base::out); });
    if (error) std::rethrow_exception(error);
  }
  std::streamsize optimal_buffer_size() const { return 8192; }  // size in bytes of the stream buffer in front of the sink

 private:
  struct state {
    std::conditional_t<is_stream, Sink&, Sink> sink;
    std::exception_ptr error = {};
  };

  detail::device_guard<Sink> guard() { return detail::device_guard<Sink>(state_->sink); }
  template <class F>
  auto record_errors(F&& f) -> decltype(f()) {
    if (state_->error) {
      detail::note_error(state_->error);
      std::rethrow_exception(state_->error);
    }
    try {
      return f();
    } catch (...) {
      state_->error = std::current_exception();
      detail::note_error(state_->error);
      throw;
    }
  }

  std::shared_ptr<state> state_;  // Boost copies devices
};

// The sink, which throws if it does not take all bytes. Throws codec_error if the sink is not open (file_sink, whose constructor
// does not say so). Not for memory (array_sink, mapped_file_sink), which throws by itself.
template <class Sink>
requires(!boost::iostreams::is_std_io<Sink>::value) checked_sink<Sink> checked(const Sink& sink) {
  return checked_sink<Sink>(sink);
}
// The same for a stream (std::ofstream), which must outlive the chain, and stays open.
inline checked_sink<std::ostream> checked(std::ostream& stream) { return checked_sink<std::ostream>(stream); }

}  // namespace zarrbits::iostreams

#endif
