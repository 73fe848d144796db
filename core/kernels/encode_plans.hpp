// SPDX-License-Identifier: BSL-1.0
//
// How AVX2 encodes 2 bits and more (avx2_encode.cpp), and its tables: for each number of bits, the destination of bytes and the
// shift of lanes.
//
// All widths follow the same steps: neighbours are joined until a lane of 32 or 64 bits holds whole bytes, or has no more
// neighbours; then the bytes of the lanes are moved together. 16-bit components, 10 bits kept:
//
//   |......dddddddddd|......cccccccccc|......bbbbbbbbbb|......aaaaaaaaaa|   a lane of 64 bits
//   |............ddddddddddcccccccccc|............bbbbbbbbbbaaaaaaaaaa|     neighbours joined: vpmaddwd by (1, 2^10)
//   |........................ddddddddddccccccccccbbbbbbbbbbaaaaaaaaaa|     and again: vpsllvd up in the even lanes, vpsrlq down
//   |hhhhhhhhhhggggggggggffffffffffeeeeeeeeeeddddddddddccccccccccbbbb ..   the 5 bytes of each lane together: vpshufb
//
// The last step depends on m, the bits that a 64-bit lane has in the end:
//
//   whole bytes: vpshufb; a half of the vector is then a multiple of 4 bytes (vpermd, two vectors at a time) or not (two stores
//   of 16 bytes, or two vectors at a time, see below)
//
//   m % 8 == 4: the odd lane begins in the middle of a byte; shifted there, lanes moved apart, or-ed
//
//   other m: the upper half begins within a byte too; that byte is carried from one half to the next. 59 and 61 to 63 bits that
//   begin late in a byte end in a ninth one, which is shifted and shuffled apart
//
//   few bits of wide components: bytes are made first, and encoded
//
// Two vectors at a time: loads put 16 bytes in each half, so that bytes that will be together are in the same half of both
// vectors. Stores of 32 bytes are half as many as stores of 16, and stores limit these kernels (16 bytes that become 10, two of
// them a letter):
//
//   in    |AAAAA...|BBBBB...|CCCCC...|DDDDD...|
//   u v   |CCCCC...|AAAAA...|        |DDDDD...|BBBBB...|
//   w z   |DDDCCCCC|BBBAAAAA|        |......DD|......BB|        vpshufb, or-ed
//   out   |......BB|BBBAAAAA|  then  |......DD|DDDCCCCC|        vperm2i128; the second store begins where the Bs end
//
// For short pairs, w has all bytes, and vpermd brings its halves together.
//
// If 8, 16 or 24 bytes of a vector are kept, the bytes of two vectors are stored without overlap: overlapping stores cross a
// border of cache lines more often, which takes two more cycles. 8 of 16 bits, in quarters:
//
//   |..x1|..x0|  |y1..|y0..|        vpshufb
//   |y1x1|y0x0|                     or-ed
//   |y1y0|x1x0|                     vpermq
//
// 12 of 16 bits, in dwords:
//
//   x y   |. x5 x4 x3|. x2 x1 x0|        |. y5 y4 y3|. y2 y1 y0|        vpshufb
//         |. . x5 x4|x3 x2 x1 x0|        |y1 y0 . .|y5 y4 y3 y2|        vpermd
//   out   |y1 y0 x5 x4|x3 x2 x1 x0| then            |y5 y4 y3 y2|       vpblendd
//
#ifndef ZARRBITS_CORE_KERNELS_ENCODE_PLANS_HPP
#define ZARRBITS_CORE_KERNELS_ENCODE_PLANS_HPP

#include <array>
#include <cstdint>

namespace zarrbits::detail {

// Where bytes go, and by how much lanes are turned, for 2 vectors of 4 lanes. A byte 0x80 of a vpshufb index gives zero.
struct plan {
  alignas(32) std::uint8_t even[64];   // of the lower lane of a half, or of all lanes if these are whole bytes (of pairs: to w)
  alignas(32) std::uint8_t odd[64];    // of the upper lane (of pairs, in the second vector: to z)
  alignas(32) std::uint8_t carry[64];  // byte 0: the last byte of a half's upper lane, if the next half begins in it
  alignas(32) std::uint64_t turn[8];   // bit of its first byte at which a lane begins
  std::uint8_t start[4];               // byte at which each half begins
};

// `lane_bytes`: 4 if 32-bit lanes are whole bytes, else 8; `m`: bits of a lane; `in_pairs`: two vectors at a time.
constexpr plan make_plan(unsigned lane_bytes, unsigned m, bool in_pairs) {
  plan p{};
  for (unsigned half = 0; half < 4; ++half) {
    std::uint8_t *even = p.even + 16 * half, *odd = p.odd + 16 * half, *carry = p.carry + 16 * half;
    for (unsigned i = 0; i < 16; ++i) even[i] = odd[i] = carry[i] = 0x80;
    const unsigned lanes = 16 / lane_bytes;
    p.start[half] = static_cast<std::uint8_t>(half * lanes * m / 8);
    if (m % 8 == 0) {
      const unsigned bytes = lanes * m / 8;
      for (unsigned i = 0; i < bytes; ++i) {
        const unsigned position = in_pairs && half >= 2 ? bytes + i : i;
        (position < 16 ? even : odd)[position % 16] = static_cast<std::uint8_t>(i / (m / 8) * lane_bytes + i % (m / 8));
      }
      continue;
    }
    const unsigned first = half * 2 * m % 8, second = first + m, end = first + 2 * m;
    p.turn[2 * half] = first;
    p.turn[2 * half + 1] = second % 8;
    for (unsigned i = 0; i * 8 < second; ++i) even[i] = static_cast<std::uint8_t>(i);
    for (unsigned i = second / 8; i * 8 < end; ++i) odd[i] = static_cast<std::uint8_t>(8 + i - second / 8);
    if (end % 8 != 0) carry[0] = static_cast<std::uint8_t>(8 + end / 8 - second / 8);
  }
  return p;
}

// For components of `width` bits: true if a 32-bit lane is whole bytes, so that it need not be joined with the next.
constexpr bool short_lanes(unsigned width, unsigned bits) { return width < 64 && 32 / width * bits % 8 == 0; }

// How lanes become bytes.
enum class finish {
  of_8_bytes,   // short lanes, or 64-bit lanes, 8 bytes of a vector; two vectors, whose halves vpermd moves together
  of_16_bytes,  // the same, 16 bytes of a vector
  of_24_bytes,  // the same, 24 bytes
  two_stores,   // 64-bit lanes of whole bytes, one store for each half
  short_pairs,  // 64-bit lanes of whole bytes, two vectors, less than 8 bytes of each half
  long_pairs,   // the same, more than 8 bytes
  half_bytes,   // 64-bit lanes of bytes and a half
  carry,        // 64-bit lanes of any bits, two vectors
  wide_carry,   // the same, but a lane may begin so late in its first byte that it ends in a ninth
  from_bytes,   // components are first turned into bytes
};

constexpr bool are_pairs(finish method) { return method == finish::short_pairs || method == finish::long_pairs; }

// The fastest in measurements: pairs cost more instructions, and kernels that already have many have no room for them.
constexpr finish finish_of(unsigned width, unsigned bits) {
  const unsigned m = 64 / width * bits;
  if (m % 16 == 0) return m == 16 ? finish::of_8_bytes : m == 32 ? finish::of_16_bytes : finish::of_24_bytes;
  if (m % 8 == 4) return finish::half_bytes;
  if (m % 8 != 0) return bits < 8 ? finish::from_bytes : m == 59 || m > 60 ? finish::wide_carry : finish::carry;
  if (width == 8 || (width == 16 && bits > 8)) return finish::two_stores;
  return 2 * bits < width ? finish::short_pairs : finish::long_pairs;
}

// For turned 64-bit lanes: true if their bits leave no room in a lane of 32 bits for a weight, or in one of 64 for their turn.
constexpr bool is_wide(unsigned width, unsigned bits) {
  return width < 64 && 32 / width * bits > (finish_of(width, bits) == finish::half_bytes ? 28 : 26);
}

// Additional tables for lanes of 59, 61, 62 and 63 bits.
struct wide_plan {
  plan common;
  alignas(32) std::uint8_t ninth[64];  // for lanes shifted down by 64 - turn, whose first byte is then the ninth
  alignas(32) std::uint64_t last[8];   // shifts a lane down to the byte that is carried
};

constexpr wide_plan make_wide_plan(unsigned m) {
  wide_plan w{make_plan(8, m, false), {}, {}};
  for (unsigned half = 0; half < 4; ++half) {
    std::uint8_t *even = w.common.even + 16 * half, *odd = w.common.odd + 16 * half, *ninth = w.ninth + 16 * half;
    for (unsigned i = 0; i < 16; ++i) ninth[i] = 0x80;
    const unsigned second = half * 2 * m % 8 + m, end = second + m;
    for (unsigned lane = 0; lane < 2; ++lane) {
      const unsigned next_byte = (lane == 0 ? 0 : second / 8) + 8;  // the byte after the lane's first eight
      std::uint8_t* eight = lane == 0 ? even : odd;
      if (next_byte < 16 && eight[next_byte] != 0x80) {
        eight[next_byte] = 0x80;
        ninth[next_byte] = static_cast<std::uint8_t>(8 * lane);
      }
    }
    if (end % 8 != 0) w.common.carry[16 * half] = 8;
    w.last[2 * half + 1] = m - end % 8;
  }
  return w;
}

inline constexpr std::array<wide_plan, 5> wide_plans = {make_wide_plan(59), wide_plan{}, make_wide_plan(61), make_wide_plan(62),
                                                        make_wide_plan(63)};

template <unsigned width>
constexpr auto make_plans() {
  std::array<plan, width> plans{};
  for (unsigned bits = 1; bits < width; ++bits) {
    const finish method = finish_of(width, bits);
    const bool in_pairs = are_pairs(method) || method == finish::of_8_bytes || method == finish::of_16_bytes;
    plans[bits] =
        short_lanes(width, bits) ? make_plan(4, 32 / width * bits, in_pairs) : make_plan(8, 64 / width * bits, in_pairs);
  }
  return plans;
}

template <unsigned width>
inline constexpr auto plans = make_plans<width>();

// The plan for this many bits of a component.
template <unsigned width, finish method>
constexpr const plan& plan_of(unsigned bits) {
  return method == finish::wide_carry ? wide_plans[64 / width * bits - 59].common : plans<width>[bits];
}

}  // namespace zarrbits::detail

#endif
