// SPDX-License-Identifier: BSL-1.0
//
// Thrift's compact protocol, in which Parquet has its metadata: structs of numbered fields.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
//
//   thrift_writer w;
//   w.number(1, 2);
//   w.begin(2);  // a struct
//   w.text(4, "path");
//   w.end();
//   w.end();     // the outermost one
//
#ifndef ZARRBITS_IO_THRIFT_COMPACT_HPP
#define ZARRBITS_IO_THRIFT_COMPACT_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::io {

// Numbers of seven bits in each byte, the lowest first.
void append_varint(std::string& out, std::uint64_t value);
// Takes one from the front. Throws thrift_error.
std::uint64_t take_varint(std::span<const std::byte>& in);

class thrift_writer {
 public:
  enum class type : unsigned char { i32 = 5, i64 = 6, binary = 8, list = 9, structure = 12 };

  void number(int field, std::int32_t value);
  void large_number(int field, std::int64_t value);
  void text(int field, std::string_view value);
  void begin(int field);  // a struct, which end() ends
  void begin_list(int field, type elements, std::size_t count);
  // Elements of a list; a struct in it is ended, too.
  void element(std::int32_t value);
  void element(std::string_view value);
  void begin_element() { last_.push_back(0); }
  void end();

  const std::string& bytes() const { return bytes_; }

 private:
  void header(int field, type t);
  std::string bytes_;
  std::vector<int> last_{0};  // the last field of each struct that is open
};

// The bytes are not such a struct.
struct thrift_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A value: a number (a boolean, too), a text, or its fields or elements.
struct thrift_value {
  std::int64_t number = 0;
  std::string_view text = {};                             // in the bytes that were read
  std::vector<std::pair<int, thrift_value>> fields = {};  // of a struct, by number; of a list, all have the number 0

  // Null if absent.
  const thrift_value* find(int field) const;
  // Throws thrift_error if absent.
  const thrift_value& at(int field) const;
};

// A struct at the beginning of `bytes`, and how many bytes it takes. Throws thrift_error; takes no more memory than some hundred
// times the bytes.
std::pair<thrift_value, std::size_t> read_thrift(std::span<const std::byte> bytes);

}  // namespace zarrbits::io

#endif
