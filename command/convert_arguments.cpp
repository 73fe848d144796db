// SPDX-License-Identifier: BSL-1.0
//
// The options of convert, plan, finalize and zarrbits-mpi, in groups.
//
#include "command/convert_arguments.hpp"

#include "command/combined_source.hpp"
#include "command/command.hpp"
#include "command/command_line.hpp"
#include "command/heap.hpp"
#include "command/option_parsers.hpp"
#include "command/partition_option.hpp"
#include "command/remote_options.hpp"
#include "command/report_file.hpp"
#include "command/source_list.hpp"
#include "io/remote_url.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::command {

namespace {

const char* const examples_of_convert =
    "Examples:\n"
    "  zarrbits convert in.h5 out.zarr --report report.json\n"
    "  zarrbits convert --concat time 'data/*.nc' s3://bucket/all.zarr --shard 64M\n"
    "  zarrbits convert --concat time 'data/*.nc' all.nc\n"
    "  zarrbits convert in.zarr out.zarr --chunk 1000x1x1\n\n";
const char* const examples_of_plan =
    "Examples:\n"
    "  zarrbits plan in.h5\n"
    "  zarrbits plan in.h5 out.zarr --shard 64M --json | python3 -m json.tool\n\n";
const char* const examples_of_finalize =
    "Examples:\n"
    "  zarrbits finalize in.h5 out.zarr\n"
    "  zarrbits finalize --concat time 'data/*.nc' out.zarr --report report.json\n\n";
const char* const about_patterns =
    "Patterns: * any characters of a name, ? one, [a-z] one of these, ** across names, \\ takes the next as it is. A pattern "
    "without / in front may begin in any group. Quote patterns from the shell. One that matches nothing is an error.\n\n";
const char* const about_status =
    "Exit status: 0 nothing was lost, 1 failure, 2 wrong usage, 3 something was skipped or lossy (the report says what).";

const char* description_of(convert_kind kind) {
  switch (kind) {
    case convert_kind::plan:
      return "A dry run: say what convert would do with the same options. Writes nothing. "
             "Of values, it reads strings, to count their bytes, and samples.\n"
             "For each dataset, say how it is converted, and to how many files or objects and bytes.\n"
             "Where chunks are encoded again, the bytes in the store are an upper bound: numbers are not compressed to count "
             "them.";
    case convert_kind::finalize:
      return "Write the metadata of a store whose chunks were made by convert --partition, when all shares are done.\n"
             "The plan that the shares left in the store says what is converted, and how. Options of the shares may be given "
             "again,\n"
             "and are then compared with it.";
    case convert_kind::convert:
    case convert_kind::mpi: break;
  }
  return "Convert an HDF5 file, or a Zarr store, to a Zarr v3 store, with an account of every object.\n"
         "Chunks that already are Zarr chunks are copied; what cannot be converted is named, and the exit status is 3.";
}

// Values as they are written, to be parsed when all are known.
struct texts {
  bool overwrite = false, resume = false, references = false, cf_aggregation = false;
  std::string inline_bytes, threads, memory, partition, codec, profile, compress, shard, grid, checksum, convention, links;
  std::string format, base;
  std::vector<std::string> bits, chunk;
};

void add_work_options(CLI::App& app, convert_arguments& arguments, texts& t, convert_kind kind) {
  const char* const group = "Execution";
  convert_options& options = arguments.options;
  const bool finalizing = kind == convert_kind::finalize, planning = kind == convert_kind::plan;
  if (!finalizing && !planning) {
    app.add_flag("--overwrite", t.overwrite,
                 "Replace an existing Zarr store, or an unfinished one together with the work that is done")
        ->group(group);
    app.add_flag("--resume", t.resume,
                 "Continue an unfinished store, or begin one. Options that are not given are taken from its plan. If this run "
                 "fails, what is done is kept. Repeating the original command continues, too")
        ->group(group);
    if (kind != convert_kind::mpi)
      app.add_option("--partition", t.partition,
                     "Write the chunks of one share, but no metadata; finalize writes it when all shares are done. I/N: share I "
                     "of N, from 0; slurm: the task of a Slurm array, and the rank in it; mpi: the rank that mpirun or srun "
                     "assigns. Without it: the whole store, even under a launcher")
          ->type_name("slurm|mpi|I/N")
          ->group(group);
  }
  if (!planning)
    app.add_option("--threads", t.threads,
                   "Threads that make chunks, and processes that read the metadata of many files (default: the processors that "
                   "the process may use)")
        ->type_name("N")
        ->group(group);
  app.add_option(
         "--memory", t.memory,
         "Limit the memory of the process, such as 512M (the default), at least 16M; a chunk that needs more is processed "
         "alone, after a warning")
      ->type_name("BYTES")
      ->group(group);
  if (kind == convert_kind::convert || finalizing)
    app.add_option("--scratch", options.execution.scratch,
                   "The folder for a temporary file, which a Zarr store may need to get other chunks (default: that of OUT.zarr)")
        ->type_name("FOLDER")
        ->group(group);
  if (!planning)
    app.add_flag("--fsync", options.execution.fsync, "Flush everything to the disk (fsync) before it counts as done")
        ->group(group);
  app.add_flag("--keep-going", options.execution.keep_going,
               "Leave out chunks that cannot be read, and report them, instead of stopping")
      ->group(group);
  app.add_flag("--allow-expansion", options.execution.allow_expansion,
               "Allow chunks to decode to more than 1,000 times their size, beyond --memory")
      ->group(group);
  add_remote_options(app, options.remote, "Servers");
}

void add_choice_options(CLI::App& app, convert_arguments& arguments, texts& t) {
  const char* const group = "What is converted";
  convert_options& options = arguments.options;
  app.add_option("--include", options.selection.include,
                 "Convert only what this path pattern matches, with the groups above and everything below; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--with-coordinates", options.selection.with_coordinates,
               "With --include: also convert the coordinate variables of what it matches: dimension scales, and what the CF "
               "attributes coordinates, bounds and grid_mapping name")
      ->group(group);
  app.add_option("--exclude", options.selection.exclude,
                 "Leave out what this pattern matches, and everything below it; can be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--links", t.links,
                 "Soft links, links into other files and further hard links: copy (their targets), keep (as notes) or "
                 "refuse. Default: copy links into other files, and links that the convention's readers follow")
      ->type_name("keep|copy|refuse")
      ->group(group);
  add_external_option(app, options.source.external, group);
  add_no_lock_option(app, options.source.lock, group);
}

void add_form_options(CLI::App& app, convert_arguments& arguments, texts& t, convert_kind kind) {
  const char* const group = "Format of the store";
  convert_options& options = arguments.options;
  app.add_option("--codec", t.codec,
                 "bytes, or packbits for bool and integers (zarr-python reads it with the zarrbits package). Default: bytes, "
                 "but chunks "
                 "that the packbits filter made are copied as packbits")
      ->type_name("bytes|packbits")
      ->group(group);
  app.add_option("--bits", t.bits,
                 "With packbits. N: pack the integers of every dataset whose values all fit in N bits, others stay bytes. "
                 "PATTERN=N or PATTERN=FIRST-LAST: the bits of the datasets that the pattern matches (the last match counts), "
                 "where a value that does not fit is an error. auto: the bits that suggest finds. Can be repeated")
      ->type_name("[PATTERN=]N|auto")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--convention", t.convention, "What the store's readers expect; by default it is recognised from the file")
      ->type_name("none|netcdf|anndata|nwb|nexus|matlab|pytables")
      ->group(group);
  app.add_option("--profile", t.profile,
                 "portable (codecs that all readers have; the default), native (stored chunks copied as numcodecs.* codecs), or "
                 "recode")
      ->type_name("portable|native|recode")
      ->group(group);
  app.add_option("--compress", t.compress,
                 "Encode everything again: none, gzip:6, zstd:3, blosc:zstd:5, blosc:lz4:5:bitshuffle; implies --profile recode")
      ->type_name("none|gzip[:LEVEL]|zstd[:LEVEL]|blosc[:CODEC:LEVEL:SHUFFLE]")
      ->group(group);
  app.add_option(
         "--chunk", t.chunk,
         "Chunks of this shape for datasets of its rank, such as 100x200 or 100,200 (rank 1: 100); implies --profile "
         "recode. DIM:LENGTH: this length along the dimension of that name, in all datasets that have it; -1 is the whole "
         "dimension. PATTERN=DIM:LENGTH: only in those that the pattern matches, such as 't2m=time:768,lat:-1'. What is "
         "not named stays as it is. Can be repeated; the last one counts, and one with a pattern more")
      ->type_name("SHAPE|[PATTERN=]DIM:LENGTH")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--write-empty-chunks", options.encoding.write_empty_chunks,
               "With --chunk: write chunks that hold only the fill value, too. Without it they are left out, as readers expect")
      ->group(group);
  app.add_option("--shard", t.shard,
                 "Put many chunks into one file or object (a shard): a size before compression, such as 64M, or a shape, such "
                 "as 1000x2000, for datasets of its rank. none: chunks of a Zarr store leave their shards")
      ->type_name("BYTES|SHAPE|none")
      ->group(group);
  app.add_option("--grid", t.grid,
                 "With --concat or --append: regular (chunks of one shape; the default), or rectilinear, where it copies more: "
                 "chunks end where those of the files do. zarr-python 3.2, zarrs, Icechunk 2 and newer read it")
      ->type_name("regular|rectilinear")
      ->group(group);
  app.add_option("--checksum", t.checksum,
                 "Add the codec crc32c as the last one: each chunk ends with its checksum. All readers except GDAL check it")
      ->type_name("crc32c")
      ->group(group);
  if (kind != convert_kind::plan) {
    app.add_flag_callback(
           "--consolidate", [&options] { options.target.consolidate = true; },
           "Also put the metadata of all nodes into the root group's zarr.json; the default of the conventions netcdf and "
           "anndata")
        ->group(group);
    app.add_flag_callback(
           "--no-consolidate", [&options] { options.target.consolidate = false; }, "Do not consolidate metadata")
        ->group(group);
  }
  if (kind != convert_kind::mpi) {
    app.add_flag("--virtual", t.references,
                 "Write references in kerchunk's format, to a file OUT.json or a folder OUT.parquet: chunks stay in the source")
        ->group(group);
    if (kind == convert_kind::convert)
      app.add_flag(
             "--cf-aggregation", t.cf_aggregation,
             "With --virtual and --concat or --concat-new, to a file OUT.nc: write aggregation variables of CF-1.13 in place "
             "of HDF5 virtual datasets. Coordinates keep their values in the file")
          ->group(group);
    app.add_option("--zarr-format", t.format,
                   "Whose metadata the store has. 2: that of Zarr v2, without arrays that only Zarr v3 can have; 3: that of Zarr "
                   "v3, the default; both: with --virtual, its default")
        ->type_name("2|3|both")
        ->group(group);
    app.add_option("--base", t.base,
                   "With --virtual: what the references call local files, for readers who find them elsewhere. "
                   "https://host/path or s3://bucket/path in place of FOLDER, by default that of the first source; \".\": paths "
                   "from the folder of the references")
        ->type_name("[FOLDER=]URL")
        ->group(group);
    app.add_option("--inline", t.inline_bytes,
                   "With --virtual: objects of at most this size that are not chunks of the source are stored in the references, "
                   "up to a quarter of --memory in all (default: 1024)")
        ->type_name("BYTES")
        ->group(group);
  }
}

void add_output_options(CLI::App& app, convert_arguments& arguments, convert_kind kind) {
  const char* const group = "Output";
  const bool planning = kind == convert_kind::plan;
  app.add_option("--report", arguments.report,
                 planning ? "Write that JSON object to this file; FILE.html: tables for people, as one page"
                          : "Write a report on each object to this file, as JSON; FILE.html: tables for people, as one page")
      ->type_name("FILE")
      ->group(group);
  if (planning)
    app.add_flag("--time", arguments.measures_time,
                 "Also convert for about a second, without writing, and print how long all of it takes")
        ->group(group);
  app.add_flag("--json", arguments.print_json,
               planning ? "Print one JSON object, with the units, instead of a table" : "Print the report on standard output")
      ->group(group);
  if (kind == convert_kind::convert)
    app.add_flag("--digest", arguments.has_digest,
                 "Read source and store again, compare the digests of all values, and note them in the store and the report")
        ->group(group);
  app.add_flag("--allow-lossy", arguments.allow_lossy, "Exit status 0 even if something was skipped or rounded")->group(group);
  if (!planning)
    app.add_flag("--quiet,-q", arguments.quiet, "No progress, no table; only errors, warnings and what was left out")
        ->group(group);
  add_log_format_option(app, group);
}

void take_bits(const std::vector<std::string>& values, convert_arguments& arguments) {
  convert_options& options = arguments.options;
  if (!values.empty() && options.encoding.codec != array_codec::packbits) throw usage_error("--bits requires --codec packbits");
  for (const std::string& text : values) {
    if (text == "auto") {
      arguments.bits_auto = true;
      continue;
    }
    const std::size_t equals = text.rfind('=');
    const bit_range range = parse_bit_range("--bits", equals == text.npos ? text : text.substr(equals + 1));
    if (equals != text.npos) options.encoding.bits_of.push_back({text.substr(0, equals), range.first, range.last});
    else if (range.first > 0 || text.find('-') != text.npos)
      throw usage_error("--bits " + text + " is a range, which is for datasets by name: use --bits PATTERN=" + text);
    else if (options.encoding.bits)
      throw usage_error("--bits is given twice for all datasets; use PATTERN=" + text + " for some");
    else options.encoding.bits = range.last + 1;
  }
  if (arguments.bits_auto && options.encoding.bits)
    throw usage_error("--bits is auto, or a number for all datasets; use one of them");
}

void take_chunks(const std::vector<std::string>& values, convert_options& options) {
  for (const std::string& text : values) {
    if (text.find_first_of(":=") != text.npos) {
      options.encoding.chunk_along.push_back(parse_dimension_chunks("--chunk", text));
      continue;
    }
    if (!options.encoding.chunk.empty())
      throw usage_error("--chunk has two shapes; use one, and names of dimensions for other datasets");
    options.encoding.chunk = parse_shape("--chunk", text);
  }
}

void take_partition(const texts& t, convert_kind kind, convert_arguments& arguments) {
  convert_options& options = arguments.options;
  arguments.partition_origin = "--partition";
  if (!t.partition.empty()) {
    const named_partition parsed = parse_partition("--partition", t.partition);
    arguments.partition_origin = parsed.origin;
    if (parsed.partition.count > 1) options.execution.partition = parsed.partition;
  } else if (kind == convert_kind::convert && !arguments.quiet) {
    if (const auto hint = launcher_of_environment()) {
      print_error("note: " + hint->launcher + " started this process, which converts the whole file; with --partition " +
                  hint->partition + " it would make one share of it");
    }
  }
  if (t.overwrite && (t.resume || options.execution.partition)) {
    throw usage_error(std::string("a store is either started over or resumed: leave out --overwrite, or ") +
                      (t.resume ? "--resume" : "--partition"));
  }
  if (options.execution.partition && (!arguments.report.empty() || arguments.print_json))
    throw usage_error("a share has no report; zarrbits finalize writes it");
}

// The name of an option, such as --shard; empty if it is not one, or not in the command line.
std::string used_name(const CLI::Option& option) {
  return option.count() == 0 || option.get_lnames().empty() ? "" : "--" + option.get_lnames()[0];
}

// The options of export and repack, without help: sentences about a source and a target name them.
void add_hdf5_options(CLI::App& app) {
  for (const CLI::App* other : {&export_parser(), &repack_parser()}) {
    for (const CLI::Option* option : other->get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string name = "--" + option->get_lnames()[0];
      // those of repack for many files are not for a source and a target
      if (app.get_option_no_throw(name) || name == "--check" || name == "--in-place" || name == "--partition") continue;
      CLI::Option* const added =
          option->get_items_expected_max() == 0 ? app.add_flag(name) : app.add_option(name)->expected(1)->allow_extra_args(false);
      added->group("");
    }
  }
}

// What convert does for a store alone is not for an HDF5 file of several files.
void require_options_of_joined_file(const CLI::App& app, const std::string& target, bool is_virtual) {
  static const std::set<std::string> known = {"--concat",  "--concat-new", "--places",  "--order",     "--different",
                                              "--threads", "--memory",     "--fsync",   "--report",    "--json",
                                              "--quiet",   "--overwrite",  "--no-lock", "--log-format"};
  static const std::set<std::string> known_if_virtual = {"--virtual", "--cf-aggregation", "--base"};
  std::string names, names_of_repack;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = used_name(*option);
    if (name.empty() || known.contains(name) || option->get_group() == "Servers" ||
        (is_virtual && known_if_virtual.contains(name)))
      continue;
    std::string& list = option->get_group().empty() && repack_parser().get_option_no_throw(name) ? names_of_repack : names;
    list += (list.empty() ? "" : ", ") + name;
  }
  const std::string what = quote(io::redact_url(target)) + " is an HDF5 file of several files, which cannot have ";
  if (!names.empty())
    throw usage_error(what + names + "; remove that, or join the files in a store such as OUT.zarr, and export it");
  if (!names_of_repack.empty())
    throw usage_error(what + names_of_repack + "; join the files without, and \"zarrbits repack\" the result");
}

void refuse_hdf5_options(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty() || used_name(*option).empty()) continue;
    throw usage_error(used_name(*option) +
                      " is for a target OUT.h5 that gets the values of the source; remove it, or use such a target");
  }
}

// OUT.h5 is written by export or repack, which the options decide: those of this command line are not theirs.
[[noreturn]] void refuse_hdf5_target(const CLI::App& app, const convert_options& options, convert_kind kind) {
  const std::string target = quote(io::redact_url(options.target.name));
  if (kind == convert_kind::finalize || kind == convert_kind::mpi ||
      (kind == convert_kind::convert && app.count("--partition") > 0))
    throw usage_error(target + " is an HDF5 file, which one process writes at once; use a name such as OUT.zarr");
  const bool from_store = zarr::is_store_source(options.source.name, options.remote);
  if (options.source.concat && !from_store)
    throw usage_error(target + " is an HDF5 file of several files, which has no plan; use convert, or a name such as OUT.zarr");
  const std::string verb = from_store ? "export" : "repack";
  std::string names;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = used_name(*option);
    if (name.empty() || (from_store ? export_parser() : repack_parser()).get_option_no_throw(name)) continue;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw usage_error(target + " is an HDF5 file, which \"zarrbits " + verb + "\" writes" +
                    (names.empty() ? "" : ", and that does not have " + names) + "; \"zarrbits " + verb +
                    " --help\" lists its options, or use a name such as OUT.zarr");
}

// All options, for an HDF5 file of several files.
void take_joined_file(const CLI::App& app, const concat_arguments& joined, const texts& t, convert_arguments& arguments) {
  convert_options& options = arguments.options;
  if (options.source.concat->append)
    throw usage_error("an HDF5 file of several files is written at once, with --concat or --concat-new; remove --append");
  take_partition(t, convert_kind::convert, arguments);
  if (options.execution.partition || t.resume)
    throw usage_error("an HDF5 file of several files is written at once; remove --partition and --resume");
  if (joined.overlap)
    throw usage_error(
        "--allow-overlap is for OUT.zarr and OUT.json; in an HDF5 file of several files, these are where their coordinates say, "
        "or, with --order given, in that order");
  if (t.cf_aggregation && !t.references) throw usage_error("--cf-aggregation requires --virtual");
  arguments.combination = combination_of(joined, options.source.name, *options.source.concat);
  combine_options& combination = *arguments.combination;
  combination.cf_aggregation = t.cf_aggregation;
  combination.base = options.target.base;
  combination.copies = !t.references;
  combination.threads = parse_threads(t.threads);
  if (!t.memory.empty()) combination.memory = parse_bytes("--memory", t.memory);
  require_options_of_joined_file(app, options.target.name, t.references);
  tune_heap(combination.memory);
}

}  // namespace

std::optional<int> parse_convert_arguments(convert_arguments& arguments, convert_kind kind, int argc, char** argv) {
  const bool planning = kind == convert_kind::plan, finalizing = kind == convert_kind::finalize;
  CLI::App app{description_of(kind), planning                    ? "zarrbits plan"
                                     : finalizing                ? "zarrbits finalize"
                                     : kind == convert_kind::mpi ? "zarrbits-mpi convert"
                                                                 : "zarrbits convert"};
  convert_options& options = arguments.options;
  options.execution.command = without_header_values(argc, argv);
  options.execution.show_command = [name = app.get_name(), kind](const std::vector<std::string>& words) {
    // the other command may have been another verb
    const bool is_verb = kind != convert_kind::mpi && !words.empty() && (words[0] == "convert" || words[0] == "finalize");
    std::string line = is_verb ? "zarrbits " + words[0] : name;
    for (std::size_t i = 1; i < words.size(); ++i) line += " " + shell_quoted(words[i]);
    return quote(line);
  };
  texts t;
  app.add_option("source", options.source.name,
                 "HDF5 file to read, also s3://BUCKET/KEY; or a Zarr store, also IN.zip and s3://BUCKET/IN.zarr. IN.h5:/a/b is "
                 "one dataset "
                 "or group of it, which becomes the root of the store")
      ->required()
      ->type_name("IN.h5[:/PATH]");
  app.add_option(
         "store", options.target.name,
         "Zarr store to make: a directory, a file OUT.zip, s3://BUCKET/PREFIX, or OUT.json or OUT.parquet with --virtual. "
         "OUT.h5 or OUT.nc is written with the options of export, or, from an HDF5 file, those of repack; with --concat, it gets "
         "the values of all files, or virtual datasets with --virtual")
      ->required(!planning)
      ->type_name("OUT.zarr");
  concat_arguments joined;
  add_concat_options(app, joined, kind == convert_kind::convert || planning);
  add_choice_options(app, arguments, t);
  add_form_options(app, arguments, t, kind);
  add_work_options(app, arguments, t, kind);
  add_output_options(app, arguments, kind);
  app.footer(std::string(planning     ? examples_of_plan
                         : finalizing ? examples_of_finalize
                                      : examples_of_convert) +
             about_patterns + about_status);
  if (kind == convert_kind::convert || planning) add_hdf5_options(app);
  if (const auto status = parse_arguments(app, argc, argv)) return *status;
  check_remote_options(options.remote);
  options.source.concat = take_sources(joined, options.source.name, options.target.name, options.remote, planning);
  options.encoding.codec = parse_array_codec(t.codec);
  options.encoding.profile = parse_profile(t.profile);
  options.target.convention = parse_convention(t.convention);
  options.selection.links = parse_links(t.links);
  options.encoding.compress = parse_compression(t.compress);
  take_chunks(t.chunk, options);
  options.encoding.shard = parse_shard("--shard", t.shard);
  options.encoding.grid = parse_grid(t.grid);
  options.encoding.checksum = parse_checksum(t.checksum);
  options.target.existing = t.overwrite ? existing_store::overwrite : t.resume ? existing_store::resume : existing_store::refuse;
  options.target.references = t.references;
  if (!t.inline_bytes.empty()) options.target.inline_bytes = parse_bytes("--inline", t.inline_bytes);
  if (!t.inline_bytes.empty() && !t.references) throw usage_error("--inline requires --virtual");
  options.target.zarr_format = parse_zarr_format(t.format);
  options.target.base = parse_base(t.base);
  arguments.is_joined_file =
      kind == convert_kind::convert && options.source.concat && zarr::is_hdf5_name(options.target.name) &&
      !(zarr::is_store_source(options.source.name, options.remote) && zarr::is_read_as_store(options.source.name, true));
  if (arguments.is_joined_file) {
    take_joined_file(app, joined, t, arguments);
    return {};
  }
  if (t.cf_aggregation)
    throw usage_error(
        "--cf-aggregation is for a file OUT.nc of several files; use --virtual, --concat or --concat-new, and such a target");
  if (zarr::is_hdf5_name(options.target.name)) refuse_hdf5_target(app, options, kind);
  refuse_hdf5_options(app);
  arguments.combination = find_combination(joined, options.source.name, options.source.concat);
  if (options.source.concat && options.source.concat->append && !t.base.empty())
    require_single_dimension(arguments.combination, "--base");
  if (!t.memory.empty()) options.execution.memory = parse_bytes("--memory", t.memory);
  take_bits(t.bits, arguments);
  check_options(options);
  options.execution.threads = parse_threads(t.threads);
  options.execution.processes = kind == convert_kind::mpi ? 1 : options.execution.threads;  // ranks are processes enough
  tune_heap(options.execution.memory);
  options.execution.wording = [](const std::string& reason) { return with_flags(reason); };
  options.execution.warning = [](const std::string& sentence) { print_error("warning: " + sentence); };
  if (!arguments.quiet) options.execution.note = [](const std::string& sentence) { print_error("note: " + sentence); };
  take_partition(t, kind, arguments);
  if (arguments.has_digest && (options.execution.partition || options.source.concat || !t.convention.empty()))
    throw usage_error(
        "--digest compares one source with a whole store; remove it, or --partition, --concat, --append and --convention");
  if (!arguments.report.empty()) {
    require_distinct_path(arguments.report, options.source.name, options.target.name);
    try_report(arguments.report);
    if (kind == convert_kind::plan) return {};
    // before the store counts as complete: a complete store always has its report
    options.execution.before_done = [&arguments](const convert_result& result) {
      write_report(arguments.report, with_exit_status(result.report_json(), exit_status_of(arguments, result)));
    };
  }
  return {};
}

}  // namespace zarrbits::command
