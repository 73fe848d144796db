// SPDX-License-Identifier: BSL-1.0
//
// The fuzzer's seeds, and simple mutations of them, with any compiler and its sanitizers: replay FOLDER MUTATIONS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int*, char***);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  LLVMFuzzerInitialize(nullptr, nullptr);
  std::vector<std::filesystem::path> names;
  for (const auto& e : std::filesystem::directory_iterator(argv[1])) names.push_back(e.path());
  std::sort(names.begin(), names.end());
  std::mt19937_64 bits(1);
  std::size_t runs = 0;
  for (const auto& name : names) {
    std::ifstream file(name, std::ios::binary);
    const std::vector<std::uint8_t> seed{std::istreambuf_iterator<char>(file), {}};
    for (long k = 0, n = std::atol(argv[2]); k <= n; ++k, ++runs) {
      std::vector<std::uint8_t> input = seed;
      for (std::uint64_t m = k == 0 ? 0 : 1 + bits() % 4; m > 0 && !input.empty(); --m) {
        const std::size_t at = bits() % input.size();
        switch (bits() % 5) {
          case 0: input[at] = static_cast<std::uint8_t>(bits()); break;
          case 1: input[at] = static_cast<std::uint8_t>(input[at] ^ 1u << bits() % 8); break;
          case 2: input.resize(at); break;
          case 3: input.insert(input.end(), bits() % 64, static_cast<std::uint8_t>(bits())); break;
          default: input[at] = bits() % 2 ? 0xff : 0; break;
        }
      }
      // a heap copy of exactly this size
      const std::vector<std::uint8_t> exact(input);
      LLVMFuzzerTestOneInput(exact.data(), exact.size());
    }
  }
  std::printf("replay: %zu runs of %zu seeds\n", runs, names.size());
  return names.empty() ? 1 : 0;
}
