// SPDX-License-Identifier: BSL-1.0
#include "bench/harness.hpp"

#include <benchmark/benchmark.h>

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace zarrbits::bench {

namespace {

struct sample {
  double seconds;       // of one call of the subject
  double base;          // of one call of the base
  double disagreement;  // of the two bases around it
  double probe;         // the slower one of the two around it
  bool own_base;        // row::base, not memcpy
};

struct measured {
  row what;
  std::function<subject(row&)> prepare;
  std::vector<sample> kept, rejected;
  bool verified = false;
};

// The time of memcpy of one size, or of the probe, when nothing disturbs it: the 4th fastest of 15 in a row, the best such in
// this run. (The very fastest may be a slip of the clock.)
struct reference {
  double seconds = INFINITY;
  std::vector<double> window;

  void see(double base) {
    window.push_back(base);
    if (window.size() < 15) return;
    std::nth_element(window.begin(), window.begin() + 3, window.end());
    seconds = std::min(seconds, window[3]);
    window.clear();
  }
  bool is_near(double base) const { return base <= 1.25 * seconds; }
};

// Adds, shifts and xors in registers, as many at once as a CPU does: slower by half and more while another thread of the same
// core works, which memcpy, bound by the caches, hardly notices. That thread may be another machine's.
ZARRBITS_BENCH_OPAQUE bool probe() {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
  for (unsigned i = 0; i < 8000; ++i) {
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    a += i, b ^= i, c -= i, d |= i, e += i, f ^= i, g -= i, h &= i;
    a <<= 1, b += i, c ^= i, d -= i, e <<= 1, f += i, g ^= i, h -= i;
  }
  return (a ^ b ^ c ^ d ^ e ^ f ^ g ^ h) != 1;
}

struct state {
  std::vector<std::unique_ptr<measured>> cases;
  std::vector<std::size_t> sizes{std::size_t{64} << 10, std::size_t{1} << 20, largest_size};
  std::map<std::size_t, reference> references;
  reference probe;
  std::string json;
  bool quick = false;
  bool failed = false;
};

state& the() {
  static state s;
  return s;
}

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

ZARRBITS_BENCH_OPAQUE bool call(const std::function<bool()>& f) { return f(); }

ZARRBITS_BENCH_OPAQUE bool copy(std::size_t bytes) {
  std::memcpy(other_buffer(), decoded_buffer(), bytes);
  asm volatile("" ::: "memory");
  return true;
}

constexpr double batch_seconds = 100e-6;
constexpr double reconciled_encoding = 0.12;  // of the two bases of a sample

// Seconds of one call, out of `calls`.
double seconds(const std::function<bool()>& f, unsigned calls, bool& good) {
  const double start = now();
  for (unsigned i = 0; i < calls; ++i) good &= call(f);
  return (now() - start) / calls;
}

unsigned calls_for(const std::function<bool()>& f, bool& good) {
  double once = seconds(f, 1, good);  // pages and caches
  if (once < batch_seconds) once = seconds(f, 1, good);
  if (once < batch_seconds / 4) once = seconds(f, 8, good);
  return static_cast<unsigned>(std::clamp(batch_seconds / std::max(once, 1e-9), 1.0, 1000.0));
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.size() % 2 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
}

// How many samples each repetition of a case takes, and how long it may try.
struct effort {
  unsigned samples;
  double at_most;
};

effort effort_for(std::size_t bytes, double seconds) {
  if (seconds > 0.25) return {the().quick ? 1u : 2u, 20.0};
  if (bytes >= std::size_t{16} << 20) return the().quick ? effort{3, 0.5} : effort{5, 1.0};
  return the().quick ? effort{5, 0.03} : effort{9, 0.15};
}

void run_case(benchmark::State& google, measured& m) {
  bool good = true;
  subject s;
  try {
    s = m.prepare(m.what);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s (%s): %s\n", m.what.name.c_str(), (m.what.kernels + m.what.peer).c_str(), e.what());
    the().failed = true;
    google.SkipWithError(e.what());
    return;
  }
  const std::size_t bytes = m.what.bytes;
  const bool own_base = static_cast<bool>(s.base);
  const std::function<bool()> base = own_base ? s.base : [bytes] { return copy(bytes); };
  const unsigned base_calls = calls_for(base, good);
  double begin = now();
  const unsigned calls = calls_for(s.run, good);
  const effort e = effort_for(bytes, calls == 1 ? now() - begin : 0);
  begin = now();
  reference own;
  reference& best = own_base ? own : the().references[bytes];
  const bool small = bytes < std::size_t{16} << 20;
  for (auto unused : google) {
    (void)unused;
    unsigned kept = 0;
    for (unsigned tries = 0; kept < e.samples && tries < 20 * e.samples; ++tries) {
      if (small) good &= call(base);  // what the subject left in the caches is not the base's
      const double probe_before = seconds(probe, 1, good);
      const double before = seconds(base, base_calls, good);
      if (small) good &= call(s.run);
      const double time = seconds(s.run, calls, good);
      if (small) good &= call(base);
      const double after = seconds(base, base_calls, good);
      const double probe_after = seconds(probe, 1, good);
      const double faster = std::min(before, after), slower = std::max(before, after);
      best.see(faster);
      the().probe.see(std::min(probe_before, probe_after));
      const sample taken{time, (before + after) / 2, slower / faster - 1, std::max(probe_before, probe_after), own_base};
      if (taken.disagreement <= reconciled_encoding && best.is_near(slower) && the().probe.is_near(taken.probe)) {
        m.kept.push_back(taken);
        ++kept;
      } else {
        m.rejected.push_back(taken);
      }
      if (now() - begin > e.at_most && tries + 1 >= e.samples) break;
    }
    google.SetIterationTime(now() - begin);
  }
  if (s.verify && !m.verified) {
    std::memset(other_buffer(), 0xEE, bytes);  // where memcpy has left what a decoder should write
    good &= call(s.run) && s.verify();
    m.verified = true;
  }
  if (!good) {
    std::fprintf(stderr, "%s (%s): wrong result\n", m.what.name.c_str(), (m.what.kernels + m.what.peer).c_str());
    the().failed = true;
    google.SkipWithError("wrong result");
  }
}

// Says nothing: the figures are in the JSON.
struct silent final : benchmark::BenchmarkReporter {
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

void write_json(const std::string& file) {
  std::ofstream out(file);
  out << "[";
  const char* separator = "\n";
  unsigned noisy = 0, written = 0;
  for (const auto& m : the().cases) {
    std::vector<sample> samples = m->kept;
    // a better base, or a better probe, may have been seen since
    const reference& best = the().references[m->what.bytes];
    std::erase_if(samples,
                  [&](const sample& s) { return !((s.own_base || best.is_near(s.base)) && the().probe.is_near(s.probe)); });
    const bool disturbed = samples.empty();
    if (disturbed) {
      // too much else was going on: the samples whose bases agreed best, rather than none
      samples = m->kept;
      samples.insert(samples.end(), m->rejected.begin(), m->rejected.end());
      if (samples.empty()) continue;  // not selected
      std::sort(samples.begin(), samples.end(), [](const sample& a, const sample& b) { return a.disagreement < b.disagreement; });
      samples.resize(std::min<std::size_t>(samples.size(), 3));
      ++noisy;
    }
    std::vector<double> speeds, ratios;
    for (const sample& s : samples) {
      speeds.push_back(static_cast<double>(m->what.bytes) / s.seconds / 1e9);
      ratios.push_back(s.base / s.seconds);
    }
    const row& r = m->what;
    char figures[160];
    std::snprintf(figures, sizeof figures, "\"bytes\": %zu, \"gbps\": %.4g, \"ratio\": %.4g", r.bytes, median(speeds),
                  median(ratios));
    out << separator << "  {\"name\": \"" << r.name << "\", "
        << (r.peer.empty() ? "\"kernels\": \"" + r.kernels : "\"peer\": \"" + r.peer) << "\", " << figures;
    if (!r.base.empty()) out << ", \"base\": \"" << r.base << "\"";
    if (r.stored != 0) out << ", \"stored\": " << r.stored;
    if (disturbed) out << ", \"disturbed\": true";
    out << "}";
    separator = ",\n";
    ++written;
  }
  out << "\n]\n";
  if (!out.flush()) {
    std::fprintf(stderr, "cannot write %s\n", file.c_str());
    the().failed = true;
  }
  if (noisy != 0)
    std::fprintf(stderr, "%u of %u figures are from a busy machine (no sample whose bases agreed)\n", noisy, written);
}

// In huge pages where the system has them: with small ones, figures of a process depend on which it was given, by up to a fifth.
struct aligned_buffer {
  static constexpr std::size_t huge = std::size_t{2} << 20, size = largest_size + huge;
  std::byte* data = static_cast<std::byte*>(std::aligned_alloc(huge, size));
  aligned_buffer() {
    if (!data) std::abort();
    madvise(data, size, MADV_HUGEPAGE);
    std::memset(data, 1, size);
  }
  ~aligned_buffer() { std::free(data); }
  aligned_buffer(const aligned_buffer&) = delete;
  aligned_buffer& operator=(const aligned_buffer&) = delete;
};

bool parse_sizes(std::string_view text) {
  the().sizes.clear();
  while (!text.empty()) {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || n == 0 || n > largest_size || n % 4096 != 0) return false;
    the().sizes.push_back(n);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && text[0] != ',') return false;
    text.remove_prefix(!text.empty());
  }
  return !the().sizes.empty();
}

}  // namespace

void add(row what, std::function<subject(row&)> prepare) {
  the().cases.push_back(std::make_unique<measured>(measured{std::move(what), std::move(prepare), {}, {}, false}));
}

std::byte* decoded_buffer() {
  static aligned_buffer b;
  return b.data;
}

std::byte* encoded_buffer() {
  static aligned_buffer b;
  return b.data;
}

std::byte* other_buffer() {
  static aligned_buffer b;
  return b.data;
}

std::span<const std::size_t> sizes() { return the().sizes; }

bool is_quick() { return the().quick; }

int main(int argc, char** argv, void (*registration)()) {
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--quick") {
      the().quick = true;
    } else if (option == "--json" && i + 1 < argc) {
      the().json = argv[++i];
    } else if (option.starts_with("--sizes=")) {
      if (!parse_sizes(option.substr(8))) {
        std::fprintf(stderr, "%s: --sizes takes multiples of 4096 up to %zu, with commas between\n", argv[0], largest_size);
        return 2;
      }
    } else {
      rest.push_back(argv[i]);
    }
  }
  // in random order, so that a bad minute hits cases that have nothing in common
  std::string shuffle = "--benchmark_enable_random_interleaving=true";
  rest.insert(rest.begin() + 1, shuffle.data());
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;

  registration();
  for (const auto& m : the().cases) {
    const std::string label = (m->what.kernels + m->what.peer) + "/" + m->what.name + "/" + std::to_string(m->what.bytes);
    benchmark::RegisterBenchmark(label.c_str(), [p = m.get()](benchmark::State& s) { run_case(s, *p); })
        ->UseManualTime()
        ->Iterations(1);
  }
  silent reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (!the().json.empty()) write_json(the().json);
  the().cases.clear();  // while the libraries that they use are still there
  return the().failed ? 1 : 0;
}

}  // namespace zarrbits::bench
