// SPDX-License-Identifier: BSL-1.0
#include "filter/element.hpp"

namespace zarrbits::filter {

namespace {

// A datatype that we opened, and must close.
class opened_type {
 public:
  opened_type(const library& h5, hid raw) noexcept : h5_(h5), id_(h5.id(raw)) {}
  opened_type(const opened_type&) = delete;
  opened_type& operator=(const opened_type&) = delete;
  ~opened_type() { close(); }
  hid id() const noexcept { return id_; }
  // Replaces the type by this one.
  void become(hid raw) noexcept {
    close();
    id_ = h5_.id(raw);
  }

 private:
  void close() const noexcept {
    if (id_ >= 0) h5_.call.type_close(id_);
  }
  const library& h5_;
  hid id_;
};

const char* class_name(int type_class) noexcept {
  static constexpr const char* names[] = {"integer",  "floating-point", "time",       "string",          "bitfield", "opaque",
                                          "compound", "reference",      "enumerated", "variable-length", "array",    "complex"};
  return type_class >= 0 && type_class < 12 ? names[type_class] : "unknown";
}

// Parts have the usual names: r and i, re and im, real and imag. A compound of, for example, x and y is a struct in Zarr.
bool begins_with(const library& h5, hid type, unsigned member, char letter) noexcept {
  char* name = h5.call.type_member_name(type, member);
  if (!name) return false;
  const bool matches = (*name | 0x20) == letter;
  h5.release(name);
  return matches;
}

// HDF5 before 2.0 stores complex numbers as a compound of exactly two equal numbers, real part first.
bool is_complex_compound(const library& h5, hid type) noexcept {
  if (h5.call.type_nmembers(type) != 2) return false;
  const opened_type real(h5, h5.call.type_member_type(type, 0)), imaginary(h5, h5.call.type_member_type(type, 1));
  if (real.id() < 0 || imaginary.id() < 0 || h5.call.type_equal(real.id(), imaginary.id()) <= 0) return false;
  const int part = h5.call.type_class(real.id());
  const std::size_t size = h5.call.type_size(real.id());
  return (part == class_integer || part == class_float) && size != 0 && h5.call.type_size(type) == 2 * size &&
         h5.call.type_member_offset(type, 0) == 0 && h5.call.type_member_offset(type, 1) == size &&
         begins_with(h5, type, 0, 'r') && begins_with(h5, type, 1, 'i');
}

unsigned bits_of(std::uint64_t value) noexcept {
  unsigned n = 0;
  for (; value != 0; value >>= 1) ++n;
  return n;
}

// Reads the members' values. Negative values make an enumeration signed; without any, it is unsigned, whatever its base type.
bool describe_members(const library& h5, hid type, const char* codec, element& e, sentence& reason) noexcept {
  const int members = h5.call.type_nmembers(type);
  if (members <= 0)
    return reason.set(minor::bad_type, "zarrbits: %s: the enumerated datatype has no members, so that no bits can be chosen",
                      codec);
  std::uint64_t highest = 0, combined = 0;
  bool negative = false, zero = false, one = false;
  unsigned signed_bits = 1;
  for (int i = 0; i < members; ++i) {
    unsigned char bytes[8] = {};
    if (h5.call.type_member_value(type, static_cast<unsigned>(i), bytes) < 0)
      return reason.set(minor::bad_type, "zarrbits: %s: HDF5 does not return the value of member %d of the enumerated datatype",
                        codec, i);
    std::uint64_t value = 0;
    for (std::uint64_t b = 0; b < e.size; ++b) value = value << 8 | bytes[e.big_endian ? b : e.size - 1 - b];
    zero = zero || value == 0;
    one = one || value == 1;
    combined |= value;
    const bool below_zero = e.is_signed && (value >> (8 * e.size - 1)) != 0;
    negative = negative || below_zero;
    // two's complement: bits of the magnitude and the sign
    const std::uint64_t magnitude = below_zero ? ~value & (~std::uint64_t{0} >> (64 - 8 * e.size)) : value;
    const unsigned needed = bits_of(magnitude) + 1;
    if (needed > signed_bits) signed_bits = needed;
    if (!below_zero && value > highest) highest = value;
  }
  e.is_signed = negative;
  e.enum_bits = negative ? signed_bits : bits_of(highest);
  if (e.enum_bits == 0) e.enum_bits = 1;
  if (e.size == 1 && e.offset == 0 && zero && one && combined == 1) e.type_class = kind::boolean;
  return true;
}

// The bits of an integer, a bitfield or a float.
bool describe_bits(const library& h5, hid type, const char* codec, element& e, sentence& reason) noexcept {
  const int order = h5.call.type_order(type);
  if (e.size > 1 && order != order_le && order != order_be)
    return reason.set(minor::bad_type,
                      "zarrbits: %s: the datatype's byte order is neither little nor big endian; store it in one of these",
                      codec);
  e.big_endian = e.size > 1 && order == order_be;
  e.precision = h5.call.type_precision(type);
  const int offset = h5.call.type_offset(type);
  if (offset < 0 || e.precision == 0 || e.precision > 8 * e.size || static_cast<unsigned>(offset) > 8 * e.size - e.precision)
    return reason.set(minor::bad_type, "zarrbits: %s: the datatype's precision and offset do not fit in its %llu bytes", codec,
                      static_cast<unsigned long long>(e.size));
  e.offset = static_cast<unsigned>(offset);
  int low = pad_zero, high = pad_zero;
  // if the library cannot be asked, chunks with nonzero pad bits are still not lost: they do not fit, and are stored raw
  if (e.reduced() && h5.call.type_pad && h5.call.type_pad(type, &low, &high) < 0)
    return reason.set(minor::bad_type, "zarrbits: %s: HDF5 does not say how the datatype is padded", codec);
  const bool has_high_padding = e.offset + e.precision < 8 * e.size;
  e.zero_padded = (e.offset == 0 || low == pad_zero) && (!has_high_padding || high == pad_zero);
  return true;
}

}  // namespace

bool holds_pointers(const library& h5, hid type) noexcept {
  switch (type < 0 ? -1 : h5.call.type_class(type)) {
    case class_vlen: return true;
    case class_string: return h5.call.type_is_variable_string && h5.call.type_is_variable_string(type) > 0;
    case class_reference: return h5.call.type_size(type) != object_reference_size;
    case class_array: return holds_pointers(h5, opened_type(h5, h5.call.type_super(type)).id());
    case class_compound:
      for (int i = h5.call.type_nmembers(type); i-- > 0;)
        if (holds_pointers(h5, opened_type(h5, h5.call.type_member_type(type, static_cast<unsigned>(i))).id())) return true;
      return false;
    default: return false;
  }
}

bool describe(const library& h5, hid type, const char* codec, element& out, sentence& reason) noexcept {
  out = element{};
  const std::size_t total_size = h5.call.type_size(type);
  opened_type opened(h5, -1);
  hid current = type;
  int type_class = h5.call.type_class(current);
  const auto go_down = [&](hid raw) noexcept {
    opened.become(raw);
    current = opened.id();
    type_class = current < 0 ? -1 : h5.call.type_class(current);
  };

  for (unsigned depth = 0; type_class == class_array && depth < max_rank; ++depth) go_down(h5.call.type_super(current));
  if (type_class == class_complex) go_down(h5.call.type_super(current));
  else if (type_class == class_compound && is_complex_compound(h5, current)) go_down(h5.call.type_member_type(current, 0));

  if (current < 0 || type_class < 0)
    return reason.set(minor::bad_type, "zarrbits: %s: HDF5 does not describe the datatype", codec);
  if (type_class == class_compound)
    return reason.set(
        minor::bad_type,
        "zarrbits: %s: a compound datatype cannot be encoded, except two equal numbers named r and i (a complex number); "
        "store its members as datasets of their own",
        codec);

  out.size = h5.call.type_size(current);
  if (out.size == 0 || total_size == 0 || total_size % out.size != 0)
    return reason.set(minor::bad_type, "zarrbits: %s: the datatype's size of %llu bytes is not a whole number of components",
                      codec, static_cast<unsigned long long>(total_size));
  out.components = total_size / out.size;

  switch (type_class) {
    case class_opaque:
      out.type_class = kind::opaque;
      out.precision = 8 * out.size;
      return true;
    case class_integer:
      out.type_class = kind::integer;
      out.is_signed = h5.call.type_sign(current) == sign_2;
      return describe_bits(h5, current, codec, out, reason);
    case class_float: out.type_class = kind::real; return describe_bits(h5, current, codec, out, reason);
    case class_bitfield: out.type_class = kind::bitfield; return describe_bits(h5, current, codec, out, reason);
    case class_enum: {
      const opened_type base(h5, h5.call.type_super(current));
      if (base.id() < 0)
        return reason.set(minor::bad_type, "zarrbits: %s: HDF5 does not return the enumerated datatype's base", codec);
      out.type_class = kind::enumeration;
      out.is_signed = h5.call.type_sign(base.id()) == sign_2;
      if (!describe_bits(h5, base.id(), codec, out, reason)) return false;
      if (!h5.call.type_member_value) {  // the user then gives the number of bits, for values from 0 on
        out.is_signed = false;
        return true;
      }
      // members of other sizes are described by these
      if (out.size != 1 && out.size != 2 && out.size != 4 && out.size != 8) return true;
      return out.reduced() && out.precision != 1 ? true : describe_members(h5, current, codec, out, reason);
    }
    default: break;
  }
  return reason.set(
      minor::bad_type,
      "zarrbits: %s: a datatype of class %s cannot be encoded; integers, floating-point numbers, enumerations, bitfields, "
      "complex numbers and arrays of these can",
      codec, class_name(type_class));
}

}  // namespace zarrbits::filter
