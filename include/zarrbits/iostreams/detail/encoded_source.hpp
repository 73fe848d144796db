// SPDX-License-Identifier: BSL-1.0
//
// The device below a seekable_decoder, whatever its type.
//
#ifndef ZARRBITS_IOSTREAMS_DETAIL_ENCODED_SOURCE_HPP
#define ZARRBITS_IOSTREAMS_DETAIL_ENCODED_SOURCE_HPP

#include <zarrbits/iostreams/detail/device_guard.hpp>

#include <boost/iostreams/operations.hpp>
#include <boost/iostreams/positioning.hpp>

#include <ios>

namespace zarrbits::iostreams::detail {

class encoded_source {
 public:
  virtual std::streamsize read(char* out, std::streamsize n) = 0;
  virtual boost::iostreams::stream_offset seek(boost::iostreams::stream_offset offset, std::ios_base::seekdir direction) = 0;

 protected:
  ~encoded_source() = default;
};

template <class Source>
class encoded_source_of final : public encoded_source {
 public:
  explicit encoded_source_of(Source& source) : source_(source) {}

  std::streamsize read(char* out, std::streamsize n) override { return device_guard<Source>(source_).read(out, n); }
  boost::iostreams::stream_offset seek(boost::iostreams::stream_offset offset, std::ios_base::seekdir direction) override {
    return boost::iostreams::position_to_offset(boost::iostreams::seek(source_, offset, direction, std::ios_base::in));
  }

 private:
  Source& source_;
};

}  // namespace zarrbits::iostreams::detail

#endif
