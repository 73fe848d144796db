// SPDX-License-Identifier: BSL-1.0
#include "streams/range_reader.hpp"

namespace zarrbits::iostreams {

seekable_decoder::seekable_decoder(const zarrbits::codec& c, const std::optional<std::uint64_t>& elements,
                                   std::streamsize buffer_size)
    : reader_(std::make_shared<detail::range_reader>(c, elements, buffer_size)) {}

std::streamsize seekable_decoder::optimal_buffer_size() const { return reader_->buffer_size(); }
const zarrbits::codec& seekable_decoder::codec() const { return reader_->codec(); }
std::uint64_t seekable_decoder::total_in() const { return reader_->total_in(); }
std::uint64_t seekable_decoder::total_out() const { return reader_->total_out(); }
std::optional<std::uint64_t> seekable_decoder::elements() const { return reader_->elements(); }

std::streamsize seekable_decoder::read_from(detail::encoded_source& device, char* out, std::streamsize n) {
  return reader_->read(device, out, n);
}

boost::iostreams::stream_offset seekable_decoder::seek_in(detail::encoded_source& device, boost::iostreams::stream_offset offset,
                                                          std::ios_base::seekdir direction) {
  return reader_->seek(device, offset, direction);
}

void seekable_decoder::close_reader() { reader_->close(); }

}  // namespace zarrbits::iostreams
