// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/file_identity.hpp"

#include "io/files.hpp"
#include "text/sha256.hpp"

#include <cerrno>
#include <cstddef>
#include <span>
#include <unistd.h>
#include <vector>

namespace zarrbits::conversion {

namespace {

// Enough to detect another file of the same name, size and time, and little enough to cost nothing beside the conversion: the
// result of the listing, the beginning of each object's header (type, shape, filters, chunk index), and the whole of a small file
// or samples of a large one. Remote files have an ETag.
std::string checksum_of(const hdf5::source_file& file) {
  constexpr std::uint64_t small = 1 << 20, samples = 64, sample = 4096, header = 512;
  text::sha256 sum;
  std::vector<std::byte> scratch(static_cast<std::size_t>(small));
  const auto add_bytes = [&](std::uint64_t offset, std::uint64_t size) {
    for (std::uint64_t bytes_read = 0; bytes_read < size;) {
      const ssize_t n = ::pread(file.bytes()->source()->descriptor(), scratch.data(), static_cast<std::size_t>(size - bytes_read),
                                static_cast<off_t>(offset + bytes_read));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) io::throw_errno("cannot read the source", file.path(), errno, "is it still there?");
      if (n == 0) break;
      sum.add(std::span(scratch).first(static_cast<std::size_t>(n)));
      bytes_read += static_cast<std::uint64_t>(n);
    }
  };
  const bool local = !file.bytes()->remote();
  for (const hdf5::source_object& o : file.objects()) {
    sum.add_number(static_cast<std::uint64_t>(o.kind));
    sum.add_number(o.place.file);
    sum.add_number(o.place.address);
    sum.add_field(o.store_path);
    sum.add_field(o.link_name);
    for (const hdf5::extra_link& l : o.links) {
      for (const std::string& text : {l.name, l.kind, l.target, l.file, l.detail}) sum.add_field(text);
    }
    if (local && o.place.file == 0 && o.place.address < std::uint64_t{1} << 62) add_bytes(o.place.address, header);
  }
  const std::uint64_t size = file.state().size;
  if (local && size <= small) add_bytes(0, size);
  for (std::uint64_t i = 0; local && size > small && i < samples; ++i) add_bytes((size - sample) / (samples - 1) * i, sample);
  return sum.hex();
}

}  // namespace

source_identity identity_of(const hdf5::source_file& file, const std::string& joined) {
  const io::file_state state = file.state();
  return {.size = state.size,
          .etag = state.etag,
          .seconds = state.seconds,
          .nanoseconds = state.nanoseconds,
          .checksum = checksum_of(file),
          .joined = joined};
}

}  // namespace zarrbits::conversion
