// SPDX-License-Identifier: BSL-1.0
//
// filter() from many threads at once, good chunks and bad, under ThreadSanitizer. Its own program, without Boost: everything in
// it is instrumented.
#include "filter/message.hpp"
#include "filter/packbits.hpp"
#include "filter/plugins.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

using namespace zarrbits::filter;

int main() {
  setenv("ZARRBITS_HDF5_LOG", "0", 1);
  constexpr unsigned n = 4096;
  element number;
  number.size = 2;
  number.precision = 16;
  number.components = 1;
  packbits_chunk chunk;
  sentence why;
  unsigned cd[packbits_stored];
  if (!resolve({12, 2 | 8, 0}, number, n, chunk, why)) return 2;
  store(chunk, cd);

  std::atomic<int> wrong{0}, filtered{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 100; ++i) {
        std::size_t size = 2 * n;
        void* buf = std::malloc(size);
        auto* values = static_cast<unsigned short*>(buf);
        for (unsigned k = 0; k < n; ++k) values[k] = static_cast<unsigned short>((k * 7 + t * 31 + i) & 0xfff);
        std::vector<unsigned short> kept(values, values + n);
        if (i % 4 == 3) {  // does not fit: nothing changes, and the sentence is this thread's
          kept[t] = values[t] = static_cast<unsigned short>(0x1000 + t);
          char expected[16];
          std::snprintf(expected, sizeof expected, "0x%x", 0x1000 + t);
          if (packbits_class.filter(0, packbits_stored, cd, size, &size, &buf) != 2 * n) ++wrong;
          if (std::memcmp(buf, kept.data(), 2 * n) != 0 || !std::strstr(last_error(), expected)) ++wrong;
        } else {
          const std::size_t packed = packbits_class.filter(0, packbits_stored, cd, size, &size, &buf);
          if (packed != chunk.encoded_size) ++wrong;
          if (packbits_class.filter(flag_reverse, packbits_stored, cd, packed, &size, &buf) != 2 * n) ++wrong;
          if (std::memcmp(buf, kept.data(), 2 * n) != 0) ++wrong;
        }
        ++filtered;
        std::free(buf);
      }
    });
  for (auto& t : threads) t.join();
  std::printf("threads: %d chunks in 4 threads, %d wrong\n", filtered.load(), wrong.load());
  return wrong ? 1 : 0;
}
