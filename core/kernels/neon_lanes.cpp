// SPDX-License-Identifier: BSL-1.0
//
// NEON for components of one and two bytes with any number of bits: 16 bytes of components at a time.
//
// Encoding moves the odd lane of each pair down to the even one, in lanes of 16, 32 and 64 bits, as the portable kernels do; then
// the bytes of both 64-bit lanes are put side by side by vqtbl1q_u8. 16 bits to 11:
//
//   |.....ddddddddddd|.....ccccccccccc|.....bbbbbbbbbbb|.....aaaaaaaaaaa|     first_bit taken off
//   |..........dddddddddddccccccccccc|..........bbbbbbbbbbbaaaaaaaaaaa|       vshl of 32-bit lanes by 11 - 16, vbsl
//   |....................dddddddddddcccccccccccbbbbbbbbbbbaaaaaaaaaaa|       vshl of 64-bit lanes by 22 - 32, vbsl
//   |....................hhhhh...eeee0000|..............dddd...aaaaaa|        the upper lane by 4: it begins in the middle of a
//   byte
//   |..........|hhhhh ... eeee|dddd ... aaaaaaaaaaa|                          the byte that both have is or-ed
//
// Decoding gives each lane the bytes of its field (a *window*): 2 bytes, and the third in a separate vector. Shifts with a count
// per lane (vshl; negative counts go down, and bits that leave the lane are lost) move both to the top of the lane, and one shift
// of all lanes moves the field down to first_bit, with zeros or copies of the sign above it:
//
//   |bbbbbaaaaaaaaaaa|   |..........bbbbbb|     windows of a and, its third byte, of b (11 bits)
//   |aaaaaaaaaaa.....|   |bbbbbbbbbbb.....|     at the top
//   |.....aaaaaaaaaaa|   |.....bbbbbbbbbbb|     down
//
#include "core/kernels/neon.hpp"

#ifdef ZARRBITS_NEON_KERNELS

#include <array>

namespace zarrbits::detail::neon {

namespace {

// An index for which vqtbl1q_u8 gives zero.
constexpr std::uint8_t nothing = 0xff;

// The sources of the 16 encoded bytes: those of the lower lane, and those of the upper one if it begins inside a byte.
struct encode_plan {
  std::uint8_t lower[16], upper[16];
};

// `m`: bits of a 64-bit lane; 4 or 8 times the bits of a component.
constexpr encode_plan make_encode_plan(unsigned m) {
  encode_plan p{};
  for (unsigned i = 0; i < 16; ++i) p.lower[i] = p.upper[i] = nothing;
  for (unsigned i = 0; 8 * i < m; ++i) p.lower[i] = static_cast<std::uint8_t>(i);
  for (unsigned i = 0; 8 * i < m + m % 8; ++i) (m % 8 == 0 ? p.lower : p.upper)[m / 8 + i] = static_cast<std::uint8_t>(8 + i);
  return p;
}

constexpr auto encode_plans = [] {
  std::array<encode_plan, 16> plans{};
  for (unsigned i = 1; i < 16; ++i) plans[i] = make_encode_plan(4 * i);
  return plans;
}();

// split: the upper 64-bit lane begins inside a byte; only for components of 16 bits of which an odd number is kept.
template <unsigned width, bool split>
class pack {
 public:
  static constexpr std::size_t components = 128 / width, bytes_in = 16;
  std::size_t bytes_out() const noexcept { return bytes_out_; }

  explicit pack(const packing& p) noexcept {
    const unsigned bits = p.bits, pair = width == 8 ? 2 * bits : bits, quad = 2 * pair;
    const loss what = what_is_lost(p);
    bytes_out_ = components * bits / 8;
    bias_ = broadcast(what.bias);
    dropped_ = broadcast(what.dropped);
    down8_ = count8(-p.first_bit);
    down16_ = count16(-p.first_bit);
    if constexpr (width == 8) mask_ = broadcast8(low_bits(bits));
    if constexpr (width == 16) mask_ = broadcast16(low_bits(bits));
    close16_ = count16(static_cast<int>(bits) - 8);
    close32_ = vdupq_n_s32(static_cast<int>(pair) - 16);
    close64_ = vdupq_n_s64(static_cast<int>(quad) - 32);
    low16_ = vdupq_n_u16(static_cast<std::uint16_t>(low_bits(bits)));
    low32_ = vdupq_n_u32(static_cast<std::uint32_t>(low_bits(pair)));
    low64_ = vdupq_n_u64(low_bits(quad));
    turn_ = vcombine_s64(vdup_n_s64(0), vdup_n_s64(4));
    const encode_plan& l = encode_plans[width == 8 ? 2 * bits : bits];
    lower_ = load(l.lower);
    upper_ = load(l.upper);
  }

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out, uint8x16_t& seen) const noexcept {
    const uint8x16_t x = load(in);
    seen = vorrq_u8(seen, biased(x));
    uint64x2_t y = vreinterpretq_u64_u32(quads(pairs(vandq_u8(down(x), mask_))));
    y = vbslq_u64(low64_, y, vshlq_u64(y, close64_));
    if constexpr (split) y = vshlq_u64(y, turn_);
    const uint8x16_t bytes = vreinterpretq_u8_u64(y);
    uint8x16_t encoded = vqtbl1q_u8(bytes, lower_);
    if constexpr (split) encoded = vorrq_u8(encoded, vqtbl1q_u8(bytes, upper_));
    store(out, encoded);
  }

  bool lossless(uint8x16_t seen) const noexcept { return vmaxvq_u8(vandq_u8(seen, dropped_)) == 0; }

 private:
  static uint8x16_t broadcast(std::uint64_t value) noexcept { return width == 8 ? broadcast8(value) : broadcast16(value); }

  ZARRBITS_NEON_INLINE uint8x16_t biased(uint8x16_t x) const noexcept {
    if constexpr (width == 8) return vaddq_u8(x, bias_);
    return vreinterpretq_u8_u16(vaddq_u16(vreinterpretq_u16_u8(x), vreinterpretq_u16_u8(bias_)));
  }
  ZARRBITS_NEON_INLINE uint8x16_t down(uint8x16_t x) const noexcept {
    if constexpr (width == 8) return vshlq_u8(x, down8_);
    return vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(x), down16_));
  }
  // Lanes of 16 bits with two components of 8, or one of 16.
  ZARRBITS_NEON_INLINE uint16x8_t pairs(uint8x16_t x) const noexcept {
    const uint16x8_t y = vreinterpretq_u16_u8(x);
    return width == 8 ? vbslq_u16(low16_, y, vshlq_u16(y, close16_)) : y;
  }
  // Two of these in lanes of 32 bits.
  ZARRBITS_NEON_INLINE uint32x4_t quads(uint16x8_t x) const noexcept {
    const uint32x4_t y = vreinterpretq_u32_u16(x);
    return vbslq_u32(low32_, y, vshlq_u32(y, close32_));
  }

  uint8x16_t bias_, dropped_, mask_, lower_, upper_;
  int8x16_t down8_;
  int16x8_t down16_, close16_;
  int32x4_t close32_;
  int64x2_t close64_, turn_;
  uint16x8_t low16_;
  uint32x4_t low32_;
  uint64x2_t low64_;
  std::size_t bytes_out_;
};

// Windows of 16 bytes of components, in lanes of 8 or 16 bits: their bytes, the byte after these, and the distance of fields to
// the top.
template <class Count>
struct decode_plan {
  std::uint8_t window[16], behind[16];
  Count up[16 / sizeof(Count)], behind_up[16 / sizeof(Count)];
};

template <class Count>
constexpr decode_plan<Count> make_decode_plan(unsigned bits) {
  constexpr unsigned size = sizeof(Count), width = 8 * size;
  decode_plan<Count> p{};
  for (unsigned i = 0; i < 16 / size; ++i) {
    const unsigned byte = i * bits / 8, below = i * bits % 8;
    for (unsigned b = 0; b < size; ++b) {
      p.window[size * i + b] = static_cast<std::uint8_t>(byte + b < 16 ? byte + b : nothing);
      p.behind[size * i + b] = static_cast<std::uint8_t>(b == 0 && byte + size < 16 ? byte + size : nothing);
    }
    const int up = static_cast<int>(width) - static_cast<int>(below + bits);
    p.up[i] = static_cast<Count>(up);
    p.behind_up[i] = static_cast<Count>(up + static_cast<int>(width));
  }
  return p;
}

template <class Count>
constexpr auto decode_plans = [] {
  std::array<decode_plan<Count>, 8 * sizeof(Count)> plans{};
  for (unsigned bits = 1; bits < plans.size(); ++bits) plans[bits] = make_decode_plan<Count>(bits);
  return plans;
}();

// True if all windows hold their fields without the next byte.
constexpr bool fits(unsigned width, unsigned bits) noexcept {
  for (unsigned i = 0; i < 8; ++i)
    if (i * bits % 8 + bits > width) return false;
  return true;
}

template <bool is_signed, bool wide>
class unpack_16 {
 public:
  static constexpr std::size_t components = 8, bytes_out = 16;
  std::size_t bytes_in() const noexcept { return bytes_in_; }

  explicit unpack_16(const packing& p) noexcept {
    const decode_plan<std::int16_t>& l = decode_plans<std::int16_t>[p.bits];
    window_ = load(l.window);
    behind_ = load(l.behind);
    up_ = vld1q_s16(l.up);
    behind_up_ = vld1q_s16(l.behind_up);
    down_ = count16(static_cast<int>(p.first_bit) + p.bits - 16);
    possible_ = vreinterpretq_u16_u8(broadcast16(possible_bits(p)));
    bytes_in_ = p.bits;
  }

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const uint8x16_t x = load(in);
    uint16x8_t y = vshlq_u16(vreinterpretq_u16_u8(vqtbl1q_u8(x, window_)), up_);
    if constexpr (wide) y = vorrq_u16(y, vshlq_u16(vreinterpretq_u16_u8(vqtbl1q_u8(x, behind_)), behind_up_));
    y = is_signed ? vreinterpretq_u16_s16(vshlq_s16(vreinterpretq_s16_u16(y), down_)) : vshlq_u16(y, down_);
    store(out, vreinterpretq_u8_u16(vandq_u16(y, possible_)));
  }

 private:
  uint8x16_t window_, behind_;
  int16x8_t up_, behind_up_, down_;
  uint16x8_t possible_;
  std::size_t bytes_in_;
};

// Unpacks in lanes of 8 bits; 3, 5, 6 and 7 bits always need the next byte.
template <bool is_signed>
class unpack_8 {
 public:
  static constexpr std::size_t components = 16, bytes_out = 16;
  std::size_t bytes_in() const noexcept { return bytes_in_; }

  explicit unpack_8(const packing& p) noexcept {
    const decode_plan<std::int8_t>& l = decode_plans<std::int8_t>[p.bits];
    window_ = load(l.window);
    behind_ = load(l.behind);
    up_ = vld1q_s8(l.up);
    behind_up_ = vld1q_s8(l.behind_up);
    down_ = count8(static_cast<int>(p.first_bit) + p.bits - 8);
    possible_ = broadcast8(possible_bits(p));
    bytes_in_ = 2u * p.bits;
  }

  ZARRBITS_NEON_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const uint8x16_t x = load(in);
    uint8x16_t y = vorrq_u8(vshlq_u8(vqtbl1q_u8(x, window_), up_), vshlq_u8(vqtbl1q_u8(x, behind_), behind_up_));
    y = is_signed ? vreinterpretq_u8_s8(vshlq_s8(vreinterpretq_s8_u8(y), down_)) : vshlq_u8(y, down_);
    store(out, vandq_u8(y, possible_));
  }

 private:
  uint8x16_t window_, behind_, possible_;
  int8x16_t up_, behind_up_, down_;
  std::size_t bytes_in_;
};

}  // namespace

bool encode8_any(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return encode_steps<pack<8, false>>(p, in, out, n);
}

void decode8_any(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return p.is_signed ? decode_steps<unpack_8<true>>(p, in, out, n) : decode_steps<unpack_8<false>>(p, in, out, n);
}

bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode[1](p, in, out, n);
  return p.bits % 2 == 0 ? encode_steps<pack<16, false>>(p, in, out, n) : encode_steps<pack<16, true>>(p, in, out, n);
}

void decode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.decode[1](p, in, out, n);
  if (fits(16, p.bits))
    return p.is_signed ? decode_steps<unpack_16<true, false>>(p, in, out, n)
                       : decode_steps<unpack_16<false, false>>(p, in, out, n);
  return p.is_signed ? decode_steps<unpack_16<true, true>>(p, in, out, n) : decode_steps<unpack_16<false, true>>(p, in, out, n);
}

}  // namespace zarrbits::detail::neon

#endif
