// SPDX-License-Identifier: BSL-1.0
//
// A file on a server. Small reads go through a cache of pages, which is read ahead where reads follow each other; chunks are
// downloaded beside each other, those that lie close together in one request.
//
//   const auto file = std::make_shared<const remote_file>("https://host/in.nc", remote, 64 << 20);
//   file->read(0, out);                                      // through pages
//   const auto chunks = file->fetch({{4096, 100}, {5000, 200}});  // begins, and returns at once
//   chunks->bytes({5000, 200});                              // waits for these
//
#ifndef ZARRBITS_REMOTE_REMOTE_FILE_HPP
#define ZARRBITS_REMOTE_REMOTE_FILE_HPP

#include "io/byte_range.hpp"
#include "io/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::remote {

class remote_file final : public io::byte_source {
 public:
  static constexpr std::size_t page_size = 1 << 20;

  // `cache`: bytes of pages that are kept. A file whose state is `expected` costs no request here. Throws zarrbits::error.
  remote_file(const std::string& name, const remote_access& remote, std::uint64_t cache,
              const std::optional<io::file_state>& expected = {}, io::access_hint hint = io::access_hint::partial);
  ~remote_file() override;

  const std::string& name() const;
  io::file_state state() const override;  // when it was opened
  // Asks the server. Not regular if the file is gone. Throws zarrbits::error.
  io::file_state state_now() const;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  // Like read(), for bytes whose neighbours are less likely to be read next than those of values are.
  void read_metadata(std::uint64_t offset, std::span<std::byte> out) const;
  // Like read(), for bytes whose neighbours are not read next: they are not downloaded.
  void read_alone(std::uint64_t offset, std::span<std::byte> out) const;
  const remote_file* remote() const noexcept override { return this; }

  // Ranges that are being downloaded.
  class pending_fetch {
   public:
    // The bytes of one of them, as long as this object exists; waits for them. Throws zarrbits::error. Callable from any thread.
    std::span<const std::byte> bytes(const io::byte_range& range) const;

    struct group;

   private:
    friend class remote_file;
    std::vector<std::shared_ptr<group>> groups_;  // by offset
  };
  // Throws read_error if the file does not have them.
  std::shared_ptr<const pending_fetch> fetch(std::vector<io::byte_range> ranges) const;

 private:
  void read_pages(std::uint64_t offset, std::span<std::byte> out, unsigned wait) const;

  struct impl;
  const std::shared_ptr<impl> in_;  // downloads hold it, too
};

// True for ranges that are downloaded by one request although there are `bytes` bytes between them.
bool is_small_gap(std::uint64_t bytes) noexcept;
// Whether a thread of this process waits for a server, whose answer nobody may want any more.
bool downloads_are_running();

// Downloads the beginning of a file, for its format: the next remote_file of this name needs no request of its own for that.
// Returns its state; nothing if there is no such file. Throws zarrbits::error.
std::optional<io::file_state> probe_remote_file(const std::string& name, const remote_access& remote,
                                                io::access_hint hint = io::access_hint::partial);
// Downloads nothing but the first 8 bytes, and keeps nothing else.
void probe_signature(const std::string& name, const remote_access& remote);
// The first 8 bytes of a file that was probed; "" if it was not.
std::string probed_signature(const std::string& name);
// A file, "s3://bucket/key" or "https://host/path", whose state is known: other content is an error. Null if a local file cannot
// be opened; errno says why. Throws zarrbits::error.
std::shared_ptr<const io::byte_source> open_bytes(const std::string& name, const remote_access& remote,
                                                  const io::file_state& expected);
// For a file whose state has no ETag.
std::string unnoticed_change_warning(const std::string& name, const remote_access& remote);

}  // namespace zarrbits::remote

#endif
