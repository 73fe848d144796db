// SPDX-License-Identifier: BSL-1.0
//
// zarrbits convert: options, progress, and what is told at the end.
//
#include "command/child_process.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/convert_arguments.hpp"
#include "command/convert_values.hpp"
#include "command/progress.hpp"
#include "command/share.hpp"
#include "command/source_list.hpp"
#include "command/summary.hpp"
#include "command/whole_store.hpp"
#include "text/words.hpp"

#include <zarrbits/convert.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace zarrbits::cli {

namespace {

// The report replaces an existing file. It must never replace the source or the store, under whatever name.
void require_place_of_its_own(const std::string& report, const convert_options& options) {
  namespace fs = std::filesystem;
  std::error_code e;
  const auto is = [&](const std::string& other) {
    return fs::equivalent(report, other, e) || fs::weakly_canonical(report, e) == fs::weakly_canonical(other, e);
  };
  const auto refuse = [&](const std::string& what) {
    throw convert_error("the report " + quote(report) + " " + what + "; give --report another place");
  };
  if (const std::string source = split_source(options.source).file; !source.starts_with("s3://") && is(source))
    refuse("is the source");
  if (options.store.starts_with("s3://")) return;
  if (is(options.store) || is(unfinished_zip(options.store))) refuse("is the store");
  const fs::path inside = fs::weakly_canonical(report, e).lexically_relative(fs::weakly_canonical(options.store, e));
  if (!inside.empty() && *inside.begin() != "..") refuse("lies in the store");
}

// A report that cannot be written is found before the conversion, not after it.
void try_report(const std::string& path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return;  // /dev/stdout, a pipe
  int error = there && S_ISDIR(info.st_mode) ? EISDIR : 0;
  const std::string beside = path + ".zarrbits-" + std::to_string(::getpid()) + ".try";
  if (!error) {
    const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) error = errno;
    else ::close(fd), ::unlink(beside.c_str());
  }
  if (error) {
    throw convert_error("cannot write the report \"" + path + "\": " + std::system_category().message(error) +
                        "; check the place given with --report");
  }
}

// It appears whole or not at all.
void write_report(const std::string& path, const std::string& text) {
  const auto fail = [&](int error) {
    throw command_error("cannot write the report \"" + path + "\": " + std::system_category().message(error) +
                        "; check the place given with --report");
  };
  struct stat info {};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);  // /dev/stdout, a pipe
  const std::string temporary = special ? path : path + ".zarrbits-" + std::to_string(::getpid()) + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | (special ? 0 : O_CREAT | O_EXCL), 0666);
  if (fd < 0) fail(errno);
  int error = 0;
  for (std::string_view left = text; !left.empty() && error == 0;) {
    const ssize_t n = ::write(fd, left.data(), left.size());
    if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
    else if (n == 0) error = ENOSPC;
    else if (errno != EINTR) error = errno;
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && !special && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (!special) ::unlink(temporary.c_str());
  fail(error);
}

// One heap for all threads: a heap of each thread would keep what was freed, with many threads more than the bound. The heap
// keeps a part of the bound. By default, glibc gives the buffers of each chunk back to the system and takes them anew, page by
// page: 1.4 times the CPU time with two threads.
void tune_heap([[maybe_unused]] std::uint64_t memory) {
#ifdef __GLIBC__
  constexpr std::uint64_t largest = 32 << 20;  // that M_MMAP_THRESHOLD takes
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min(memory / 8, 4 * largest)));
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(std::min(memory / 16, largest)));
#endif
}

}  // namespace

std::optional<int> parse_convert_arguments(convert_arguments& arguments, convert_kind kind, int argc, char** argv) {
  const bool finalizing = kind == convert_kind::finalize, ranks = kind == convert_kind::ranks,
             planning = kind == convert_kind::plan;
  const bool writing = !finalizing && !planning;
  CLI::App app{
      planning ? "A dry run: say what convert would do with the same options. Reads no values, writes nothing.\n"
                 "For each dataset, say how it is converted, and to how many files or objects and bytes.\n"
                 "Where chunks are encoded anew, the bytes in the store are an upper bound: nothing is compressed to count them."
      : finalizing
          ? "Write the metadata of a store whose chunks were made by convert --partition, when all shares are done.\n"
            "The plan that the shares left in the store says what is converted, and how: do not give these options again."
          : "Convert an HDF5 file to a Zarr v3 store, with an account of every object.\n"
            "Chunks that already are Zarr chunks are copied; what cannot be converted is named, and the exit status is 3.",
      planning     ? "zarrbits plan"
      : finalizing ? "zarrbits finalize"
      : ranks      ? "zarrbits-mpi convert"
                   : "zarrbits convert"};
  convert_options& options = arguments.options;
  std::string &report = arguments.report, &origin = arguments.share_origin;
  bool &quiet = arguments.quiet, &print_json = arguments.print_json;
  bool references = false;
  std::string inline_bytes;
  std::vector<std::string> bits;
  std::string threads, memory, partition, codec, profile_name, compress, chunk, shard, sum, convention, links;
  app.add_option(
         "source", options.source,
         "HDF5 file to read, also s3://BUCKET/KEY; IN.h5:/a/b is one dataset or group of it, which becomes the root of the store")
      ->required()
      ->type_name("IN.h5[:/PATH]");
  app.add_option("store", options.store,
                 "Zarr store to make: a directory, a file OUT.zip, s3://BUCKET/PREFIX, or OUT.json or OUT.parquet with --virtual")
      ->required(!planning)
      ->type_name("OUT.zarr");
  concat_arguments joined;
  add_concat_options(app, joined, kind == convert_kind::convert || planning);
  if (!planning)
    app.add_option("--report", report, "Write what became of each object to this file, as JSON")->type_name("FILE.json");
  if (writing) {
    app.add_flag("--overwrite", options.overwrite, "Replace a Zarr store that exists");
    app.add_flag("--resume", options.resume,
                 "Resume a store that a killed run left unfinished, or begin one; if this run fails, what is done stays");
    if (!ranks)
      app.add_option("--partition", partition,
                     "Make the chunks of share I of N (from 0) and write no metadata; when all shares are done, finalize does. "
                     "Default: the share that a Slurm array, srun or mpirun assigns; 0/1 is the whole store")
          ->type_name("I/N");
    app.add_option("--threads", threads,
                   "Threads that make chunks, and processes that read the metadata of many files (default: the processors that "
                   "the process may use)")
        ->type_name("N");
    app.add_option("--memory", memory,
                   "Limit the memory of the process, such as 512M (the default); a chunk that needs more is made alone, after a "
                   "warning")
        ->type_name("BYTES");
  }
  if (!planning) {
    app.add_flag("--fsync", options.sync, "Flush everything to the disk (fsync) before it counts as done");
    app.add_flag("--consolidate", options.consolidate, "Also put the metadata of all nodes into the root group's zarr.json");
  }
  if (kind == convert_kind::convert || planning) {
    app.add_flag("--virtual", references,
                 "Write references to a file OUT.json or a folder OUT.parquet: chunks stay in the source, and are not copied");
    app.add_option("--inline", inline_bytes,
                   "With --virtual: objects of at most this size that are not chunks of the source go among the references "
                   "(default: 1024)")
        ->type_name("BYTES");
  }
  app.add_option("--endpoint", options.endpoint,
                 "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)")
      ->type_name("URL");
  app.add_option("--include", options.include,
                 "Convert only what this pattern of paths matches, with the groups above and all below; may be given again")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--exclude", options.exclude, "Leave out what this pattern matches, with all below; may be given again")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  add_external_option(app, options.external);
  add_no_lock_option(app, options.lock);
  app.add_flag("--allow-lossy", arguments.allow_lossy, "Exit status 0 although something was skipped or rounded");
  app.add_flag("--keep-going", options.keep_going, "Leave out chunks that cannot be read, and name them, instead of stopping");
  app.add_flag("--allow-expansion", options.allow_expansion,
               "Decode chunks that become more than 1,000 times larger, beyond --memory");
  app.add_option("--codec", codec,
                 "bytes, or packbits for bool and integers (zarr-python reads it with our package). Default: bytes, but chunks "
                 "that the packbits filter made are copied as packbits")
      ->type_name("bytes|packbits");
  app.add_option(
         "--convention", convention,
         "What the store's readers expect: none, netcdf, anndata, nwb, nexus, matlab or pytables. Default: recognised from the "
         "file")
      ->type_name("NAME");
  app.add_option(
         "--links", links,
         "Soft links, links into other files and further hard links: copy (what they lead to), keep (as notes) or refuse. "
         "Default: copy links into other files, and links that the convention's readers follow")
      ->type_name("keep|copy|refuse");
  app.add_option(
         "--profile", profile_name,
         "portable (codecs that all readers have; the default), native (stored chunks copied as numcodecs.* codecs), or recode")
      ->type_name("NAME");
  app.add_option("--compress", compress,
                 "Encode everything anew: none, gzip:6, zstd:3, blosc:zstd:5, blosc:lz4:5:bitshuffle; implies --profile recode")
      ->type_name("HOW");
  app.add_option("--chunk", chunk,
                 "Chunks of this shape for datasets of its rank, such as 100,200 (rank 1: 100,); implies --profile recode")
      ->type_name("SHAPE");
  app.add_option("--shard", shard,
                 "Put many chunks into one file or object (a shard): a size before compression, such as 64M, or a shape, such as "
                 "1000,2000, for datasets of its rank")
      ->type_name("BYTES|SHAPE");
  app.add_option("--checksum", sum,
                 "Add the codec crc32c as the last one: each chunk ends with its checksum. All readers but GDAL check it")
      ->type_name("crc32c");
  app.add_option(
         "--bits", bits,
         "With packbits: bits to keep of each integer, or of those in the datasets that the pattern matches (the last one "
         "counts); a value that does not fit is an error. May be given again")
      ->type_name("[PATTERN=]N")
      ->allow_extra_args(false);
  if (!planning) app.add_flag("--quiet,-q", quiet, "No progress, no table; only errors, warnings and what was left out");
  app.add_flag("--json", print_json,
               planning ? "Print one JSON object, with the units, instead of a table" : "Print the report on standard output");
  app.footer(
      "Patterns: * any characters of a name, ? one, [a-z] one of these, ** across names, \\ takes the next as it is.\n"
      "A pattern without / in front may begin in any group. Quote patterns from the shell. One that matches nothing is an "
      "error.\n\n"
      "Exit status: 0 nothing was lost, 1 failure, 2 wrong usage, 3 something was skipped or lossy (the report tells what).");
  if (const auto status = parse_arguments(app, argc, argv)) return *status;
  options.concat = take_sources(joined, options.source, options.store, options.endpoint, planning);
  options.codec = parse_array_codec(codec);
  options.profile = parse_profile(profile_name);
  options.convention = parse_convention(convention);
  options.links = parse_links(links);
  options.compress = parse_compression(compress);
  options.chunk = parse_shape("--chunk", chunk);
  options.shard = parse_shard("--shard", shard);
  options.checksum = parse_checksum(sum);
  if (references) options.references = inline_bytes.empty() ? usual_inline_bytes : parse_bytes("--inline", inline_bytes);
  else if (!inline_bytes.empty()) throw usage_error("--inline goes with --virtual");
  if (!memory.empty()) options.memory = parse_bytes("--memory", memory);
  if (!bits.empty() && options.codec != array_codec::packbits) throw usage_error("--bits goes with --codec packbits");
  for (const std::string& text : bits) {
    const std::size_t equals = text.rfind('=');
    const std::string number = equals == text.npos ? text : text.substr(equals + 1);
    const std::uint64_t n = parse_count("--bits", number);
    if (n < 1 || n > 64) throw usage_error("--bits is 1 to 64, not " + number);
    if (equals != text.npos) options.bits_of.push_back({text.substr(0, equals), static_cast<unsigned>(n)});
    else if (options.bits) throw usage_error("--bits is given twice for all datasets; give PATTERN=" + number + " for some");
    else options.bits = static_cast<unsigned>(n);
  }
  try {
    check_options(options);
  } catch (const convert_error& e) {
    throw usage_error(e.what());
  }
  if (!threads.empty()) {
    const std::uint64_t n = parse_count("--threads", threads);
    if (n < 1 || n > 1024) throw usage_error("--threads is 1 to 1024, not " + threads);
    options.threads = static_cast<unsigned>(n);
  }
  options.processes = ranks ? 1 : options.threads;  // ranks are processes enough
  tune_heap(options.memory);
  options.wording = [](const std::string& reason) { return with_flags(reason); };
  options.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
  origin = "--partition";
  if (!partition.empty()) {
    options.share = parse_share("--partition", partition);
    if (options.share->count == 1) options.share.reset();
  } else if (kind == convert_kind::convert) {
    if (const auto found = share_of_environment()) {
      options.share = found->share;
      origin = found->origin;
    }
  }
  if (options.overwrite && (options.resume || options.share)) {
    throw usage_error(std::string("a store is either begun anew or resumed: leave --overwrite out, or ") +
                      (options.resume            ? "--resume"
                       : origin == "--partition" ? origin
                                                 : "give --partition 0/1, for " + origin + " makes this a share"));
  }
  if (options.share && (!report.empty() || print_json)) throw usage_error("a share has no report; zarrbits finalize writes it");
  if (!report.empty()) {
    require_place_of_its_own(report, options);
    try_report(report);
    // before the store counts as whole: who finds one may rely on its report
    options.before_done = [&arguments](const convert_result& result) {
      write_report(arguments.report, result.report_json(exit_status_of(arguments, result)));
    };
  }
  return {};
}

int exit_status_of(const convert_arguments& arguments, const convert_result& result) {
  return result.lost() && !arguments.allow_lossy ? exit_loss : exit_success;
}

bool nothing_to_resume(const convert_arguments& arguments, const std::function<void(const std::string&)>& at) {
  if (!arguments.options.resume) return false;
  const auto uncompared = compare_whole_store(arguments.options, at);
  if (!uncompared) return false;
  tidy_whole_store(arguments.options.store);
  if (!arguments.quiet) {
    print_error(quote(arguments.options.store) + " is whole and of this source" +
                (*uncompared == 0 ? "" : " (but for " + text::counted(*uncompared, "object") + ", not compared)") +
                ": there is nothing to resume" +
                (arguments.report.empty() && !arguments.print_json ? "" : ", and no report of it"));
  }
  return true;
}

int tell_result(const convert_arguments& arguments, const convert_result& result) {
  print_losses(result);
  if (arguments.print_json) std::cout << printable_json(result.report_json(exit_status_of(arguments, result))) << std::flush;
  if (!arguments.quiet) print_summary(result);
  return exit_status_of(arguments, result);
}

namespace {

// No other process on any machine has this name.
std::string unique_text() {
  std::random_device random;
  char text[32];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

int run(convert_kind kind, int argc, char** argv) {
  convert_arguments arguments;
  if (const auto over = parse_convert_arguments(arguments, kind, argc, argv)) return *over;
  convert_options& options = arguments.options;
  const bool finalizing = kind == convert_kind::finalize, keep = finalizing || options.resume || options.share;
  options.run = unique_text();
  return in_child(
      options.source,
      [&](const std::function<void(const std::string&)>& at_hand) {
    if (nothing_to_resume(arguments, at_hand)) return static_cast<int>(exit_success);
    convert_result result;
    {
      progress line(arguments.quiet);
      options.measure_first = line.shown();
      options.progress = [&](const convert_progress& p) {
        at_hand(p.path.empty() ? "/" : p.path);
        line.update({p.bytes_done, p.bytes, true, p.objects_done, p.objects, p.path});
      };
      result = finalizing ? finalize(options) : convert(options);
    }
    at_hand("");
    if (options.share) {
      if (!arguments.quiet) {
        std::fprintf(stderr, "share %u of %u (%s) is done: %llu files, %s, %.2f s; when all are, run: zarrbits finalize\n",
                     options.share->index, options.share->count, arguments.share_origin.c_str(),
                     static_cast<unsigned long long>(result.store_objects), text::human_bytes(result.store_bytes).c_str(),
                     result.seconds);
      }
      return 0;
    }
    return tell_result(arguments, result);
      },
      [&] {
    if (!keep) remove_unfinished_store(options.store, options.endpoint, options.run);
  });
}

}  // namespace

int convert_main(int argc, char** argv) { return run(convert_kind::convert, argc, argv); }
int finalize_main(int argc, char** argv) { return run(convert_kind::finalize, argc, argv); }

}  // namespace zarrbits::cli
