// SPDX-License-Identifier: BSL-1.0
//
// zarrbits convert: options, progress, and what is told at the end.
//
#include "convert/command.hpp"
#include "convert/command_line.hpp"
#include "convert/names.hpp"
#include "convert/sink.hpp"

#include <zarrbits/convert.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace zarrbits::cli {

namespace {

using conversion::human_bytes;

// One line on a terminal, drawn again in place.
class progress_bar {
 public:
  explicit progress_bar(bool on) : on_(on) {}
  void operator()(const convert_progress& p) {
    const auto now = std::chrono::steady_clock::now();
    if (!on_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const double done = p.bytes ? static_cast<double>(p.bytes_done) / static_cast<double>(p.bytes)
                                : static_cast<double>(p.objects_done) / static_cast<double>(p.objects ? p.objects : 1);
    const double part = done > 1 ? 1 : done;
    std::string bar(20, '.');
    for (std::size_t i = 0; i < static_cast<std::size_t>(part * 20); ++i) bar[i] = '#';
    std::string path = p.path;
    if (path.size() > 30) path = "..." + path.substr(path.size() - 27);
    for (char& c : path) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
    }
    char line[200];
    const double left = part > 0.01 ? seconds / part - seconds : 0;
    std::snprintf(line, sizeof line, "\r[%s] %3.0f%% %llu/%llu objects, %s, %s/s, %.0f s left  %s\x1b[K", bar.c_str(), part * 100,
                  static_cast<unsigned long long>(p.objects_done), static_cast<unsigned long long>(p.objects), human_bytes(p.bytes_done).c_str(),
                  human_bytes(static_cast<std::uint64_t>(static_cast<double>(p.bytes_done) / (seconds + 1e-9))).c_str(), left, path.c_str());
    std::fputs(line, stderr);
    std::fflush(stderr);
    drawn_ = true;
  }
  ~progress_bar() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

 private:
  bool on_, drawn_ = false;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now(), last_{};
};

std::string name_of(const converted_object& o) { return o.kind + " " + quote(o.path) + (o.attribute.empty() ? "" : " attribute " + quote(o.attribute)); }

void print_losses(const convert_result& r) {
  for (const converted_object& o : r.objects) {
    if (o.outcome == outcome::skipped) print_error("skipped " + name_of(o) + ": " + o.reason);
    else if (o.lossy) print_error("lossy " + name_of(o) + ": " + o.reason);
  }
}

void print_table(const convert_result& r) {
  struct row {
    std::uint64_t objects = 0, source = 0, store = 0;
  };
  row rows[5];
  std::uint64_t lossy = 0;
  for (const converted_object& o : r.objects) {
    row& x = rows[static_cast<std::size_t>(o.outcome)];
    ++x.objects;
    x.source += o.source_bytes;
    x.store += o.store_bytes;
    if (o.lossy) ++lossy;
  }
  std::fprintf(stderr, "%-10s %9s %12s %12s\n", "outcome", "objects", "in source", "in store");
  for (const auto o : {outcome::raw, outcome::rewrapped, outcome::recoded, outcome::mapped, outcome::skipped}) {
    const row& x = rows[static_cast<std::size_t>(o)];
    if (x.objects) {
      std::fprintf(stderr, "%-10s %9llu %12s %12s\n", to_string(o), static_cast<unsigned long long>(x.objects), human_bytes(x.source).c_str(),
                   human_bytes(x.store).c_str());
    }
  }
  if (lossy) std::fprintf(stderr, "%-10s %9llu\n", "lossy", static_cast<unsigned long long>(lossy));
  std::fprintf(stderr, "%llu files, %s, %.2f s\n", static_cast<unsigned long long>(r.store_objects), human_bytes(r.store_bytes).c_str(), r.seconds);
}

// Damaged files make libhdf5 itself crash. The conversion runs in a child process that may die so: then the object at hand is named
// and what was written is removed.
int in_child(const convert_options& options, const std::function<int(const std::function<void(const std::string&)>&)>& run) {
  constexpr std::size_t room = 4096;
  void* shared = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char* path = shared == MAP_FAILED ? nullptr : static_cast<char*>(shared);
  const pid_t child = ::fork();
  if (child < 0) return run([](const std::string&) {});
  if (child == 0) {
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    return run([path](const std::string& p) {
      if (!path) return;
      const std::size_t n = std::min(p.size(), room - 1);
      std::memcpy(path, p.data(), n);
      path[n] = '\0';
    });
  }
  // an interrupt from the terminal reaches both; the child's end decides
  std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  remove_unfinished_store(options.store);
  const int signal = WTERMSIG(status);
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGPIPE) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  const std::string at = path ? path : "";
  throw command_error("libhdf5 or zarrbits crashed (signal " + std::to_string(signal) + ")" + (at.empty() ? "" : " at object " + quote(at)) + " of " +
                      quote(options.source) + "; the file is damaged, or this libhdf5 cannot read it: try a newer one");
}

}  // namespace

int convert_main(int argc, char** argv) {
  CLI::App app{"Convert an HDF5 file to a Zarr v3 store, with an account of every object.\n"
               "Chunks that already are Zarr chunks are copied; what cannot be converted is named, and the exit status is 3.",
               "zarrbits convert"};
  convert_options options;
  std::string report, bits;
  bool quiet = false, print_json = false;
  app.add_option("source", options.source, "HDF5 file to read")->required()->type_name("IN.h5");
  app.add_option("store", options.store, "Zarr store (a directory) to make")->required()->type_name("OUT.zarr");
  app.add_option("--report", report, "Write what became of each object to this file, as JSON")->type_name("FILE.json");
  app.add_flag("--overwrite", options.overwrite, "Replace a Zarr store that exists");
  app.add_flag("--allow-lossy", options.allow_lossy, "Exit status 0 although something was skipped or rounded");
  app.add_flag("--keep-going", options.keep_going, "Leave out chunks that cannot be read, and name them, instead of stopping");
  app.add_option("--codec", options.codec, "bytes, or packbits for bool and integers (not read by zarr-python); without it, bytes, but chunks that the packbits "
                                             "filter made are copied as packbits")
      ->type_name("bytes|packbits");
  app.add_option("--bits", bits, "With packbits: bits to keep of each integer; a value that does not fit is an error")->type_name("N");
  app.add_flag("--quiet,-q", quiet, "No progress bar, no table; only errors and what was left out");
  app.add_flag("--json", print_json, "Print the report on standard output");
  app.footer("Exit status: 0 nothing was lost, 1 failure, 2 wrong usage, 3 something was skipped or lossy (the report tells what).");
  if (const auto status = parse_arguments(app, argc, argv)) return *status;
  if (!options.codec.empty() && options.codec != "bytes" && options.codec != "packbits") {
    throw usage_error("--codec " + quote(options.codec) + " is no codec that convert writes; give bytes or packbits");
  }
  if (!bits.empty()) {
    const std::uint64_t n = parse_count("--bits", bits);
    if (options.codec != "packbits") throw usage_error("--bits goes with --codec packbits");
    if (n < 1 || n > 64) throw usage_error("--bits is 1 to 64, not " + bits);
    options.bits = static_cast<unsigned>(n);
  }
  return in_child(options, [&](const std::function<void(const std::string&)>& at_hand) {
    convert_result result;
    {
      const bool on = !quiet && ::isatty(STDERR_FILENO);
      progress_bar bar(on);
      options.measure_first = on;
      options.progress = [&](const convert_progress& p) {
        at_hand(p.path);
        bar(p);
      };
      result = convert(options);
    }
    print_losses(result);
    if (!report.empty()) conversion::write_whole_file(report, result.report_json());
    if (print_json) std::cout << result.report_json() << std::flush;
    if (!quiet) print_table(result);
    return result.exit_status;
  });
}

}  // namespace zarrbits::cli
