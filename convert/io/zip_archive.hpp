// SPDX-License-Identifier: BSL-1.0
//
// The members of a .zip file, as they are stored. Its list of members at the end is read once; nothing in it is believed before
// it was held against the file's size. Of a store, keys are the members' names.
//
//   const zip_archive zip("out.zip");
//   if (const auto found = zip.find("a/zarr.json")) zip.read(*found, 0, bytes);
//
#ifndef ZARRBITS_CONVERT_IO_ZIP_ARCHIVE_HPP
#define ZARRBITS_CONVERT_IO_ZIP_ARCHIVE_HPP

#include "convert/io/files.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// The file cannot be read, or is damaged; what() is a sentence.
struct zip_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The file may be right, but has what this reader does not know: what() names it.
struct zip_not_supported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All functions throw zip_error or zip_not_supported. They may be called from several threads at once.
class zip_archive {
 public:
  struct member {
    std::uint64_t header = 0;  // where it begins
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
    bool plain = true;  // neither compressed nor encrypted
  };
  // Where the bytes of a member are.
  struct place {
    std::string name;
    std::uint64_t offset = 0, size = 0;
    std::uint32_t crc = 0;
  };
  using member_map = std::map<std::string, member, std::less<>>;

  explicit zip_archive(const std::string& path);

  // By name. No member is a folder, or has an empty part in its name.
  const member_map& members() const noexcept { return members_; }
  // Nothing where there is no such member.
  std::optional<place> find(const std::string& name) const;
  // Bytes of a member from `offset` on, which the caller knows to lie within it. Its checksum is held against all of them alone.
  void read(const place& of, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  [[noreturn]] void broken(const std::string& what) const;
  void read_file(std::uint64_t offset, std::span<std::byte> out) const;
  std::vector<std::byte> bytes(std::uint64_t offset, std::uint64_t size) const;
  std::uint64_t find_end() const;
  void read_list();
  std::size_t read_entry(const std::vector<std::byte>& list, std::size_t at);
  void read_zip64(std::span<const std::byte> extra, const std::string& name, member& m, std::uint64_t& stored) const;

  std::string path_;
  file_descriptor fd_;
  std::uint64_t size_ = 0;
  std::uint64_t list_ = 0;  // where the list of members begins: what is in them lies before it
  member_map members_;
};

// Whether a file begins as .zip files do.
bool is_zip_file(const std::string& path);

}  // namespace zarrbits::conversion

#endif
