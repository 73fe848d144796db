// SPDX-License-Identifier: BSL-1.0
//
// A camera's frames into HDF5 and back: <zarrbits/hdf5.hpp> beside H5Dwrite and H5Dread through filters. Prints a table in
// Markdown.
//
//   HDF5_PLUGIN_PATH=build/bench/plugins build/bench/bin/bench_rows [ROUNDS]
//
// 48 frames of 4 MiB with 12 bits in 16, each one chunk, into a new file in memory each time. The ways take turns; each figure is
// the median of the rounds. CPU time is of all threads.
//
#include "bench/hdf5_dataset.hpp"

#include <zarrbits/hdf5.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

using zarrbits::bench::handle;

constexpr std::size_t frames = 48, height = 1024, width = 2048, frame = height * width;

struct way {
  std::string name;
  unsigned threads;  // 0: through H5Dwrite and H5Dread
  std::function<herr_t(hid_t)> filters;
};

struct sample {
  double elapsed = 0, cpu = 0;
};

double cpu() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

template <class Work>
sample timed(const Work& work) {
  const double before = cpu();
  const auto begin = std::chrono::steady_clock::now();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), cpu() - before};
}

void require(bool ok) {
  if (!ok) throw std::runtime_error("HDF5 failed, or the values differ");
}

// Frame by frame, as a recorder does.
herr_t transfer(hid_t d, std::uint16_t* values, bool write) {
  const hsize_t one[] = {1, height, width};
  const handle memory(H5Screate_simple(3, one, nullptr), H5Sclose), file(H5Dget_space(d), H5Sclose);
  for (hsize_t i = 0; i < frames; ++i) {
    const hsize_t at[] = {i, 0, 0};
    H5Sselect_hyperslab(file, H5S_SELECT_SET, at, nullptr, one, nullptr);
    if ((write ? H5Dwrite(d, H5T_NATIVE_UINT16, memory, file, H5P_DEFAULT, values + i * frame)
               : H5Dread(d, H5T_NATIVE_UINT16, memory, file, H5P_DEFAULT, values + i * frame)) < 0)
      return -1;
  }
  return 0;
}

void measure(const way& w, std::vector<std::uint16_t>& values, std::vector<std::uint16_t>& back, sample& first, sample& again,
             sample& read) {
  const handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, std::size_t{64} << 20, false);
  const handle file(H5Fcreate("rows.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
  const hsize_t shape[] = {frames, height, width}, chunk[] = {1, height, width};
  const handle space(H5Screate_simple(3, shape, nullptr), H5Sclose), creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(creation, 3, chunk);
  require(!w.filters || w.filters(creation) >= 0);
  const handle d(H5Dcreate2(file, "camera", H5T_STD_U16LE, space, H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose);
  const auto write = [&] {
    if (w.threads != 0) zarrbits::hdf5::write_chunks(d, 0, values, {.threads = w.threads});
    else require(transfer(d, values.data(), true) >= 0 && H5Dflush(d) >= 0);
  };
  first = timed(write);
  again = timed(write);
  std::fill(back.begin(), back.end(), std::uint16_t{0});
  read = timed([&] {
    if (w.threads != 0) zarrbits::hdf5::read_chunks(d, 0, back, {.threads = w.threads});
    else require(transfer(d, back.data(), false) >= 0);
  });
  require(back == values);
}

double median(std::vector<sample>& samples, double sample::*of) {
  std::sort(samples.begin(), samples.end(), [&](const sample& a, const sample& b) { return a.*of < b.*of; });
  return samples[samples.size() / 2].*of;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
    std::vector<std::uint16_t> values(frames * frame), back(values.size());
    std::mt19937 random(1);
    for (auto& v : values) v = static_cast<std::uint16_t>(random() & 0xfff);
    const auto packed = [](hid_t p) { return H5Pset_zarrbits_packbits(p, 12, 0, 0); };
    const auto deflated = [&](hid_t p) { return packed(p) < 0 ? -1 : H5Pset_deflate(p, 1); };
    const auto checked = [&](hid_t p) { return packed(p) < 0 ? -1 : H5Pset_fletcher32(p); };
    std::vector<way> ways = {{"packbits, the plugin", 0, packed},
                             {"packbits, rows in 1 thread", 1, packed},
                             {"packbits, rows in 2 threads", 2, packed},
                             {"no filter", 0, nullptr},
                             {"no filter, rows in 1 thread", 1, nullptr},
                             {"packbits and fletcher32, the plugin", 0, checked},
                             {"packbits and fletcher32, rows in 1 thread", 1, checked},
                             {"packbits and fletcher32, rows in 2 threads", 2, checked},
                             {"packbits and deflate 1, the plugin", 0, deflated},
                             {"packbits and deflate 1, rows in 1 thread", 1, deflated},
                             {"packbits and deflate 1, rows in 2 threads", 2, deflated}};
    for (const auto& [name, id, cd] :
         {std::tuple<const char*, H5Z_filter_t, std::vector<unsigned>>{"bitshuffle with LZ4", 32008, {0, 2}},
          {"blosc, LZ4 with bitshuffle", 32001, {0, 0, 0, 0, 1, 2, 1}},
          {"blosc2, LZ4 with bitshuffle", 32026, {0, 0, 0, 0, 1, 2, 1}}}) {
      if (H5Zfilter_avail(id) > 0)
        ways.push_back(
            {name, 0, [id = id, cd = cd](hid_t p) { return H5Pset_filter(p, id, H5Z_FLAG_MANDATORY, cd.size(), cd.data()); }});
      else std::fprintf(stderr, "SKIPPED: %s: HDF5 does not find its plugin\n", name);
    }
    std::vector<std::vector<sample>> first(ways.size()), again(ways.size()), read(ways.size());
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < ways.size(); ++i) {
        for (auto* samples : {&first[i], &again[i], &read[i]}) samples->emplace_back();
        measure(ways[i], values, back, first[i].back(), again[i].back(), read[i].back());
      }
    const double gb = static_cast<double>(values.size() * 2) / 1e9;
    std::printf("| | write, GB/s | CPU s | write again, GB/s | CPU s | read, GB/s | CPU s |\n|---|---|---|---|---|---|---|\n");
    for (std::size_t i = 0; i < ways.size(); ++i) {
      std::printf("| %s |", ways[i].name.c_str());
      for (auto* samples : {&first[i], &again[i], &read[i]})
        std::printf(" %.2f | %.3f |", gb / median(*samples, &sample::elapsed), median(*samples, &sample::cpu));
      std::printf("\n");
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
