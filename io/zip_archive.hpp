// SPDX-License-Identifier: BSL-1.0
//
// The members of a .zip file, as they are stored. Reads its central directory at the end once, and checks all of it against the
// file's size. The keys of a store are the members' names.
//
//   const zip_archive zip("out.zip");
//   if (const auto found = zip.find("a/zarr.json")) zip.read(*found, 0, bytes);
//
#ifndef ZARRBITS_IO_ZIP_ARCHIVE_HPP
#define ZARRBITS_IO_ZIP_ARCHIVE_HPP

#include "io/files.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::io {

// The file cannot be read, or is damaged; what() is a sentence.
struct zip_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The file may be valid, but uses a feature that this reader does not support: what() names it.
struct zip_not_supported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All functions throw zip_error or zip_not_supported. They may be called from several threads at once.
class zip_archive {
 public:
  struct member {
    std::uint64_t header = 0;            // offset of its header
    std::uint64_t size = 0, stored = 0;  // `stored`: in the file
    std::uint32_t crc = 0;
    bool plain = true;  // neither compressed nor encrypted
    bool deflated = false;
    bool encrypted = false;
  };
  // The position of a member's bytes.
  struct place {
    std::string name;
    std::uint64_t offset = 0, size = 0, stored = 0;
    std::uint32_t crc = 0;
    bool deflated = false;
  };
  using member_map = std::map<std::string, member, std::less<>>;

  explicit zip_archive(const std::string& path);

  // By name. No member is a folder, or has an empty part in its name.
  const member_map& members() const noexcept { return members_; }
  // Empty if there is no such member.
  std::optional<place> find(const std::string& name) const;
  // All bytes of a member that is deflated.
  std::vector<std::byte> inflated(const place& of) const;
  // Reads bytes of another member from `offset` on, which must be within it. The checksum is checked only if all bytes
  // are read.
  void read(const place& of, std::uint64_t offset, std::span<std::byte> out) const;
  // The open file's.
  int descriptor() const noexcept { return fd_.get(); }

 private:
  [[noreturn]] void throw_corrupt(const std::string& problem) const;
  void read_file(std::uint64_t offset, std::span<std::byte> out) const;
  std::vector<std::byte> bytes(std::uint64_t offset, std::uint64_t size) const;
  std::uint64_t find_end() const;
  void read_list();
  std::size_t read_entry(const std::vector<std::byte>& list, std::size_t offset);
  void read_zip64(std::span<const std::byte> extra, const std::string& name, member& m, std::uint64_t& stored) const;

  std::string path_;
  file_descriptor fd_;
  std::uint64_t size_ = 0;
  std::uint64_t list_ = 0;  // offset of the central directory: all members are before it
  member_map members_;
};

// True if a file begins like a .zip file.
bool is_zip_file(const std::string& path);

}  // namespace zarrbits::io

#endif
