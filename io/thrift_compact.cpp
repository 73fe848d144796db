// SPDX-License-Identifier: BSL-1.0
#include "io/thrift_compact.hpp"

#include <algorithm>

namespace zarrbits::io {

namespace {

// Small numbers of either sign become small ones without.
std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0);
}
std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ ((value & 1) ? ~std::uint64_t{0} : 0));
}

}  // namespace

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::uint64_t take_varint(std::span<const std::byte>& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (in.empty()) throw thrift_error("it ends too early");
    const auto b = std::to_integer<std::uint64_t>(in[0]);
    in = in.subspan(1);
    value |= (b & 0x7F) << shift;
    if (b < 0x80) return value;
  }
  throw thrift_error("a number is too long");
}

void thrift_writer::header(int field, type t) {
  const int step = field - last_.back();
  if (step > 0 && step < 16) {
    bytes_ += static_cast<char>(step << 4 | static_cast<int>(t));
  } else {
    bytes_ += static_cast<char>(t);
    append_varint(bytes_, zigzag(field));
  }
  last_.back() = field;
}

void thrift_writer::number(int field, std::int32_t value) {
  header(field, type::i32);
  append_varint(bytes_, zigzag(value));
}

void thrift_writer::large_number(int field, std::int64_t value) {
  header(field, type::i64);
  append_varint(bytes_, zigzag(value));
}

void thrift_writer::text(int field, std::string_view value) {
  header(field, type::binary);
  element(value);
}

void thrift_writer::begin(int field) {
  header(field, type::structure);
  begin_element();
}

void thrift_writer::begin_list(int field, type elements, std::size_t count) {
  header(field, type::list);
  const int kind = static_cast<int>(elements);
  bytes_ += static_cast<char>(count < 15 ? static_cast<int>(count) << 4 | kind : 0xF0 | kind);
  if (count >= 15) append_varint(bytes_, count);
}

void thrift_writer::element(std::int32_t value) { append_varint(bytes_, zigzag(value)); }

void thrift_writer::element(std::string_view value) {
  append_varint(bytes_, value.size());
  bytes_ += value;
}

void thrift_writer::end() {
  bytes_ += '\0';
  last_.pop_back();
}

const thrift_value* thrift_value::find(int field) const {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == field; });
  return it == fields.end() ? nullptr : &it->second;
}

const thrift_value& thrift_value::at(int field) const {
  const thrift_value* const result = find(field);
  if (!result) throw thrift_error("field " + std::to_string(field) + " is missing");
  return *result;
}

namespace {

class reader {
 public:
  explicit reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t used() const { return position_; }

  thrift_value structure(unsigned depth) {
    if (depth > 16) throw thrift_error("structs are nested too deeply");
    thrift_value v;
    int field = 0;
    for (;;) {
      const unsigned head = byte();
      if (head == 0) return v;
      field = (head >> 4) ? field + static_cast<int>(head >> 4) : static_cast<int>(unzigzag(varint()) & 0xFFFF);
      v.fields.emplace_back(field, value(head & 15, depth, true));
    }
  }

 private:
  unsigned byte() {
    if (position_ == bytes_.size()) throw thrift_error("it ends too early");
    return std::to_integer<unsigned>(bytes_[position_++]);
  }

  std::uint64_t varint() {
    auto remaining = bytes_.subspan(position_);
    const std::uint64_t value = take_varint(remaining);
    position_ = bytes_.size() - remaining.size();
    return value;
  }

  std::size_t length() {
    const std::uint64_t n = varint();
    if (n > bytes_.size() - position_) throw thrift_error("it ends too early");
    return static_cast<std::size_t>(n);
  }

  thrift_value value(unsigned type, unsigned depth, bool field) {
    thrift_value v;
    switch (type) {
      case 1:
      case 2:  // a boolean: a field's type holds it, in a list it is a byte
        v.number = field ? type == 1 : byte() == 1;
        return v;
      case 3: v.number = byte(); return v;
      case 4:
      case 5:
      case 6: v.number = unzigzag(varint()); return v;
      case 7: skip(8); return v;
      case 8: {
        const std::size_t n = length();
        v.text = {reinterpret_cast<const char*>(bytes_.data()) + position_, n};
        position_ += n;
        return v;
      }
      case 9:
      case 10: {
        const unsigned head = byte();
        if (depth > 16) throw thrift_error("lists are nested too deeply");
        // an element takes a byte at least, and so bounds the list
        for (std::uint64_t n = (head >> 4) == 15 ? length() : head >> 4; n > 0; --n)
          v.fields.emplace_back(0, value(head & 15, depth + 1, false));
        return v;
      }
      case 12: return structure(depth + 1);
      default: throw thrift_error("type " + std::to_string(type) + " is not known");
    }
  }

  void skip(std::size_t n) {
    if (n > bytes_.size() - position_) throw thrift_error("it ends too early");
    position_ += n;
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace

std::pair<thrift_value, std::size_t> read_thrift(std::span<const std::byte> bytes) {
  reader r(bytes);
  thrift_value v = r.structure(0);
  return {std::move(v), r.used()};
}

}  // namespace zarrbits::io
