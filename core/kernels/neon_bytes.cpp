// SPDX-License-Identifier: BSL-1.0
//
// NEON for components of one byte with 1, 2 or 4 bits. Loads of 2 and 4 vectors take every second or fourth byte, so components
// that share a byte are in the same lane of different vectors; vsli (shift left and insert) puts them together. 2 bits:
//
//   in memory  .. aa|..bb|..cc|..dd|..ee|..ff|..gg|..hh|  ...        8 components of 2 bits, each in its byte
//   vld4q_u8   |..aa|..ee|    |..bb|..ff|    |..cc|..gg|    |..dd|..hh|
//   vsliq_n_u8 |ddccbbaa|hhggffee|                                   the bits above the kept ones are shifted out
//
// Decoding does the same in reverse.
//
#include "core/kernels/neon.hpp"

#ifdef ZARRBITS_NEON_KERNELS

namespace zarrbits::detail::neon {

namespace {

// Puts kept bits at the bottom of each component, for vsli; any bits may be above. A loss is detected before.
class low_fields {
 public:
  explicit low_fields(const packing& p) noexcept {
    const loss what = what_is_lost(p);
    bias_ = broadcast8(what.bias);
    dropped_ = broadcast8(what.dropped);
    down_ = count8(-p.first_bit);
  }
  ZARRBITS_NEON_INLINE uint8x16_t operator()(uint8x16_t x, uint8x16_t& seen) const noexcept {
    seen = vorrq_u8(seen, vaddq_u8(x, bias_));
    return vshlq_u8(x, down_);
  }
  bool lossless(uint8x16_t seen) const noexcept { return vmaxvq_u8(vandq_u8(seen, dropped_)) == 0; }

 private:
  uint8x16_t bias_, dropped_;
  int8x16_t down_;
};

class pack_2 {
 public:
  static constexpr std::size_t components = 64, bytes_in = 64;
  static constexpr std::size_t bytes_out() noexcept { return 16; }
  explicit pack_2(const packing& p) noexcept : low_(p) {}

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out, uint8x16_t& seen) const noexcept {
    const uint8x16x4_t x = vld4q_u8(reinterpret_cast<const std::uint8_t*>(in));
    uint8x16_t y = low_(x.val[3], seen);
    y = vsliq_n_u8(low_(x.val[2], seen), y, 2);
    y = vsliq_n_u8(low_(x.val[1], seen), y, 2);
    y = vsliq_n_u8(low_(x.val[0], seen), y, 2);
    store(out, y);
  }
  bool lossless(uint8x16_t seen) const noexcept { return low_.lossless(seen); }

 private:
  low_fields low_;
};

class pack_4 {
 public:
  static constexpr std::size_t components = 32, bytes_in = 32;
  static constexpr std::size_t bytes_out() noexcept { return 16; }
  explicit pack_4(const packing& p) noexcept : low_(p) {}

  //   |..aaaa|..cccc|    |..bbbb|..dddd|     vld2q_u8
  //   |bbbbaaaa|ddddcccc|                    vsliq_n_u8 by 4
  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out, uint8x16_t& seen) const noexcept {
    const uint8x16x2_t x = vld2q_u8(reinterpret_cast<const std::uint8_t*>(in));
    const uint8x16_t upper = low_(x.val[1], seen);
    store(out, vsliq_n_u8(low_(x.val[0], seen), upper, 4));
  }
  bool lossless(uint8x16_t seen) const noexcept { return low_.lossless(seen); }

 private:
  low_fields low_;
};

// Fields at the top of each byte -> components: moves them down to first_bit, with zeros or copies of the sign above.
template <bool is_signed>
class components_of {
 public:
  explicit components_of(const packing& p) noexcept {
    down_ = count8(static_cast<int>(p.first_bit) + p.bits - 8);
    possible_ = broadcast8(possible_bits(p));
  }
  ZARRBITS_NEON_INLINE uint8x16_t operator()(uint8x16_t top) const noexcept {
    const uint8x16_t x = is_signed ? vreinterpretq_u8_s8(vshlq_s8(vreinterpretq_s8_u8(top), down_)) : vshlq_u8(top, down_);
    return vandq_u8(x, possible_);  // the bits below a field belong to earlier fields
  }

 private:
  int8x16_t down_;
  uint8x16_t possible_;
};

template <bool is_signed>
class unpack_2 {
 public:
  static constexpr std::size_t components = 64, bytes_out = 64;
  static constexpr std::size_t bytes_in() noexcept { return 16; }
  explicit unpack_2(const packing& p) noexcept : components_(p) {}

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const uint8x16_t x = load(in);
    uint8x16x4_t y;
    y.val[0] = components_(vshlq_n_u8(x, 6));
    y.val[1] = components_(vshlq_n_u8(x, 4));
    y.val[2] = components_(vshlq_n_u8(x, 2));
    y.val[3] = components_(x);
    vst4q_u8(reinterpret_cast<std::uint8_t*>(out), y);
  }

 private:
  components_of<is_signed> components_;
};

template <bool is_signed>
class unpack_4 {
 public:
  static constexpr std::size_t components = 32, bytes_out = 32;
  static constexpr std::size_t bytes_in() noexcept { return 16; }
  explicit unpack_4(const packing& p) noexcept : components_(p) {}

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const uint8x16_t x = load(in);
    uint8x16x2_t y;
    y.val[0] = components_(vshlq_n_u8(x, 4));
    y.val[1] = components_(x);
    vst2q_u8(reinterpret_cast<std::uint8_t*>(out), y);
  }

 private:
  components_of<is_signed> components_;
};

// The bit of each of 8 components in its byte.
ZARRBITS_NEON_INLINE uint8x16_t places(bool msb_first) noexcept {
  return vreinterpretq_u8_u64(vdupq_n_u64(msb_first ? 0x0102040810204080 : 0x8040201008040201));
}

// One bit, encoding: each component becomes its place in the byte or 0; adding neighbours three times makes a byte of eight.
//   |       h|   ...   |       c|       b|       a|     components
//   |h.......|   ...   |.....c..|......b.|.......a|     vtst, and
//   |hg......|..fe....|....dc..|......ba|              vpaddq_u8: pairs, then quads, then bytes
template <bool nonzero>
class pack_1 {
 public:
  static constexpr std::size_t components = 128, bytes_in = 128;
  static constexpr std::size_t bytes_out() noexcept { return 16; }

  explicit pack_1(const packing& p) noexcept {
    const loss what = what_is_lost(p);
    bias_ = broadcast8(what.bias);
    dropped_ = broadcast8(what.dropped);
    bit_ = broadcast8(nonzero ? 0xff : 1u << p.first_bit);
    places_ = places(p.msb_first);
  }

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out, uint8x16_t& seen) const noexcept {
    uint8x16_t quads[4];
    for (int i = 0; i < 4; ++i) quads[i] = vpaddq_u8(placed(in + 32 * i, seen), placed(in + 32 * i + 16, seen));
    store(out, vpaddq_u8(vpaddq_u8(quads[0], quads[1]), vpaddq_u8(quads[2], quads[3])));
  }
  bool lossless(uint8x16_t seen) const noexcept { return vmaxvq_u8(vandq_u8(seen, dropped_)) == 0; }

 private:
  ZARRBITS_NEON_INLINE uint8x16_t placed(const std::byte* in, uint8x16_t& seen) const noexcept {
    const uint8x16_t x = load(in);
    seen = vorrq_u8(seen, vaddq_u8(x, bias_));
    return vandq_u8(vtstq_u8(x, bit_), places_);
  }

  uint8x16_t bias_, dropped_, bit_, places_;
};

// One bit, decoding: copies each byte to the 8 bytes of its bits, and tests one bit in each.
class unpack_1 {
 public:
  static constexpr std::size_t components = 128, bytes_out = 128;
  static constexpr std::size_t bytes_in() noexcept { return 16; }

  explicit unpack_1(const packing& p) noexcept {
    places_ = places(p.msb_first);
    value_ = broadcast8((p.is_signed ? ~std::uint64_t{0} : std::uint64_t{1} << p.first_bit) & possible_bits(p));
  }

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const uint8x16_t x = load(in);
    uint8x16_t index = vcombine_u8(vdup_n_u8(0), vdup_n_u8(1));
    for (int i = 0; i < 8; ++i, index = vaddq_u8(index, vdupq_n_u8(2)))
      store(out + 16 * i, vandq_u8(vtstq_u8(vqtbl1q_u8(x, index), places_), value_));
  }

 private:
  uint8x16_t places_, value_;
};

}  // namespace

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode_bool(p, in, out, n);
  return p.nonzero_is_true ? encode_steps<pack_1<true>>(p, in, out, n) : encode_steps<pack_1<false>>(p, in, out, n);
}

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.decode_bool(p, in, out, n);
  decode_steps<unpack_1>(p, in, out, n);
}

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode[0](p, in, out, n);
  switch (p.bits) {
    case 1: return encode_steps<pack_1<false>>(p, in, out, n);
    case 2: return encode_steps<pack_2>(p, in, out, n);
    case 4: return encode_steps<pack_4>(p, in, out, n);
    default: return encode8_any(p, in, out, n);
  }
}

void decode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.decode[0](p, in, out, n);
  switch (p.bits) {
    case 1: return decode_steps<unpack_1>(p, in, out, n);
    case 2: return p.is_signed ? decode_steps<unpack_2<true>>(p, in, out, n) : decode_steps<unpack_2<false>>(p, in, out, n);
    case 4: return p.is_signed ? decode_steps<unpack_4<true>>(p, in, out, n) : decode_steps<unpack_4<false>>(p, in, out, n);
    default: return decode8_any(p, in, out, n);
  }
}

}  // namespace zarrbits::detail::neon

#endif
