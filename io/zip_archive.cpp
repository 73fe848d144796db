// SPDX-License-Identifier: BSL-1.0
#include "io/zip_archive.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <libdeflate.h>
#include <memory>
#include <new>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::io {

namespace {

constexpr std::uint64_t limit32 = 0xFFFFFFFF;  // in a field of 32 bits: the value is in the zip64 field
constexpr std::uint64_t limit16 = 0xFFFF;
constexpr std::uint64_t max_directory_bytes = 1u << 30, max_inflated = 1u << 30;
constexpr std::size_t end_size = 22, locator_size = 20, end64_size = 56, entry_size = 46, header_size = 30;
constexpr std::uint32_t end_mark = 0x06054b50, locator_mark = 0x07064b50, end64_mark = 0x06064b50, entry_mark = 0x02014b50,
                        header_mark = 0x04034b50;

// Reads consecutive little-endian numbers; the caller has checked the length.
class fields {
 public:
  explicit fields(const std::byte* position) : position_(position) {}
  std::uint64_t u16() { return take(2); }
  std::uint64_t u32() { return take(4); }
  std::uint64_t u64() { return take(8); }
  fields& skip(std::size_t n) {
    position_ += n;
    return *this;
  }

 private:
  std::uint64_t take(unsigned n) {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < n; ++i) v |= std::to_integer<std::uint64_t>(*position_++) << (8 * i);
    return v;
  }
  const std::byte* position_;
};

}  // namespace

bool is_zip_file(const std::string& path) {
  const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char start[4] = {};
  return fd && ::pread(fd.get(), start, 4, 0) == 4 &&
         (std::memcmp(start, "PK\3\4", 4) == 0 || std::memcmp(start, "PK\5\6", 4) == 0);
}

zip_archive::zip_archive(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!fd_ && (errno == ENOENT || errno == ENOTDIR)) throw zip_error("cannot open \"" + path_ + "\": No such file or directory");
  if (!fd_) throw zip_error("cannot read " + path_ + ": " + std::generic_category().message(errno));
  struct stat s = {};
  if (::fstat(fd_.get(), &s) != 0 || !S_ISREG(s.st_mode)) throw zip_error(path_ + " is not a regular file");
  size_ = static_cast<std::uint64_t>(s.st_size);
  read_list();
}

std::optional<zip_archive::place> zip_archive::find(const std::string& key) const {
  const auto it = members_.find(key);
  if (it == members_.end()) return {};
  const member& m = it->second;
  if (m.encrypted)
    throw zip_not_supported("the member " + key + " of " + path_ + ", which is encrypted; make the .zip file without a password");
  if (!m.plain && !m.deflated)
    throw zip_not_supported("the member " + key + " of " + path_ +
                            ", which is compressed, and not by deflate; Zarr's .zip stores hold their objects uncompressed "
                            "(zip -0)");
  if (m.deflated && m.size > max_inflated)
    throw zip_not_supported("the member " + key + " of " + path_ +
                            ", which is compressed, and larger than 1 GiB; Zarr's .zip stores hold their objects uncompressed "
                            "(zip -0)");
  const std::vector<std::byte> header = bytes(m.header, header_size + key.size());
  fields f(header.data());
  if (f.u32() != header_mark) throw_corrupt("has no member " + key + " where its central directory says");
  f.skip(22);
  const std::uint64_t name = f.u16(), extra = f.u16();
  const std::uint64_t offset = m.header + header_size + name + extra;
  // Python's zipfile, and zarr-python with it, does not read a member of two names
  if (name != key.size() || std::memcmp(header.data() + header_size, key.data(), key.size()) != 0)
    throw_corrupt("has another name where its member " + key + " begins than in its central directory");
  if (offset > list_ || m.stored > list_ - offset) throw_corrupt("ends in the middle of its member " + key);
  return place{key, offset, m.size, m.stored, m.crc, m.deflated};
}

std::vector<std::byte> zip_archive::inflated(const place& of) const {
  constexpr std::uint64_t max_per_byte = 1032;  // what deflate can make of one
  if (of.size / max_per_byte > of.stored) throw_corrupt("has a false size for its member " + of.name);
  std::vector<std::byte> stored(static_cast<std::size_t>(of.stored)), out(static_cast<std::size_t>(of.size));
  read_file(of.offset, stored);
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflate(libdeflate_alloc_decompressor(),
                                                                                                  &libdeflate_free_decompressor);
  if (!inflate) throw std::bad_alloc();
  std::size_t size = 0;
  if (libdeflate_deflate_decompress(inflate.get(), stored.data(), stored.size(), out.data(), out.size(), &size) !=
          LIBDEFLATE_SUCCESS ||
      size != of.size)
    throw_corrupt("has a damaged member " + of.name);
  if (libdeflate_crc32(0, out.data(), out.size()) != of.crc)
    throw zip_error("the checksum of the member " + of.name + " of " + path_ + " is wrong");
  return out;
}

void zip_archive::read(const place& of, std::uint64_t offset, std::span<std::byte> out) const {
  read_file(of.offset + offset, out);
  // the checksum covers the whole member
  if (out.size() == of.size && libdeflate_crc32(0, out.data(), out.size()) != of.crc) {
    throw zip_error("the checksum of the member " + of.name + " of " + path_ + " is wrong");
  }
}

void zip_archive::throw_corrupt(const std::string& problem) const {
  throw zip_error("the .zip file " + path_ + " " + problem + "; it is damaged or was cut off");
}

void zip_archive::read_file(std::uint64_t offset, std::span<std::byte> out) const {
  try {
    read_range(fd_.get(), offset, out);
  } catch (const read_error& e) {
    throw zip_error("cannot read " + path_ + ": " + e.what());
  }
}

std::vector<std::byte> zip_archive::bytes(std::uint64_t offset, std::uint64_t size) const {
  if (offset > size_ || size > size_ - offset) throw_corrupt("ends before the data that it declares");
  if (size > max_directory_bytes) throw zip_not_supported("a .zip file whose central directory is larger than 1 GiB");
  std::vector<std::byte> out(static_cast<std::size_t>(size));
  read_file(offset, out);
  return out;
}

// The position of the record that ends the file: at its very end, or before a comment.
std::uint64_t zip_archive::find_end() const {
  const std::uint64_t searched = std::min<std::uint64_t>(size_, end_size + limit16);
  const std::vector<std::byte> tail = bytes(size_ - searched, searched);
  for (std::size_t offset = tail.size() < end_size ? 0 : tail.size() - end_size + 1; offset-- > 0;) {
    fields f(tail.data() + offset);
    if (f.u32() == end_mark && f.skip(16).u16() == tail.size() - offset - end_size) return size_ - searched + offset;
  }
  throw_corrupt("has no central directory");
}

void zip_archive::read_list() {
  const std::uint64_t end = find_end();
  const std::vector<std::byte> record = bytes(end, end_size);
  fields f(record.data() + 4);
  std::uint64_t disk = f.u16() | f.u16();
  f.u16();
  std::uint64_t count = f.u16(), size = f.u32();
  list_ = f.u32();
  std::uint64_t list_end = end;
  if (end >= locator_size) {
    const std::vector<std::byte> locator = bytes(end - locator_size, locator_size);
    fields l(locator.data());
    if (l.u32() == locator_mark) {
      disk |= l.u32();
      list_end = l.u64();
      const std::vector<std::byte> record64 = bytes(list_end, end64_size);
      fields f64(record64.data());
      if (f64.u32() != end64_mark) throw_corrupt("has no central directory where it says");
      disk |= f64.skip(12).u32();
      disk |= f64.u32();
      f64.u64();
      count = f64.u64();
      size = f64.u64();
      list_ = f64.u64();
    }
  }
  if (disk != 0) throw zip_not_supported("a .zip file in several parts");
  if (list_ > list_end || size > list_end - list_) throw_corrupt("has its central directory beyond its end");
  if (count > size / entry_size) throw_corrupt("has more members than its central directory has room for");
  const std::vector<std::byte> list = bytes(list_, size);
  std::size_t offset = 0;
  for (std::uint64_t i = 0; i < count; ++i) offset += read_entry(list, offset);
}

// Returns the length of the entry.
std::size_t zip_archive::read_entry(const std::vector<std::byte>& list, std::size_t offset) {
  const auto require = [&](std::size_t size) {
    if (size > list.size() - offset) throw_corrupt("has a central directory that ends early");
  };
  require(entry_size);
  fields f(list.data() + offset);
  if (f.u32() != entry_mark) throw_corrupt("has a central directory that cannot be read");
  const std::uint64_t flags = f.skip(4).u16(), method = f.u16();
  member m;
  m.crc = static_cast<std::uint32_t>(f.skip(4).u32());
  std::uint64_t stored = f.u32();
  m.size = f.u32();
  const std::uint64_t name_size = f.u16(), extra_size = f.u16(), comment_size = f.u16();
  m.header = f.skip(8).u32();
  const std::size_t length = entry_size + static_cast<std::size_t>(name_size + extra_size + comment_size);
  require(length);
  const std::string name(reinterpret_cast<const char*>(list.data()) + offset + entry_size, static_cast<std::size_t>(name_size));
  read_zip64({list.data() + offset + entry_size + name_size, static_cast<std::size_t>(extra_size)}, name, m, stored);
  m.encrypted = (flags & 1) != 0;
  m.plain = method == 0 && !m.encrypted;
  m.deflated = method == 8 && !m.encrypted;
  m.stored = stored;
  if (m.plain && stored != m.size) throw_corrupt("has two sizes for its member " + name);
  if (m.header > list_ || list_ - m.header < header_size) throw_corrupt("has its member " + name + " outside the file");
  // for a repeated name, the last one is the newest. Folders may have entries of their own; no key has an empty part.
  if (!name.empty() && name.front() != '/' && name.back() != '/' && name.find("//") == std::string::npos)
    members_.insert_or_assign(name, m);
  return length;
}

// Values that were too large for 32-bit fields, in the order of these fields.
void zip_archive::read_zip64(std::span<const std::byte> extra, const std::string& name, member& m, std::uint64_t& stored) const {
  while (extra.size() >= 4) {
    fields f(extra.data());
    const std::uint64_t id = f.u16();
    std::uint64_t size = f.u16();
    extra = extra.subspan(4);
    if (size > extra.size()) return;
    if (id == 1) {
      for (std::uint64_t* value : {&m.size, &stored, &m.header}) {
        if (*value != limit32) continue;
        if (size < 8) throw_corrupt("does not say where its member " + name + " is");
        *value = f.u64();
        size -= 8;
      }
      return;
    }
    extra = extra.subspan(static_cast<std::size_t>(size));
  }
}

}  // namespace zarrbits::io
