// SPDX-License-Identifier: BSL-1.0
//
// The public functions: convert, finalize, plan.
//
#include <zarrbits/convert.hpp>
#include <zarrbits/detail/convert_front_end.hpp>

#include "convert/concat/file_order.hpp"
#include "convert/from_zarr/store_job.hpp"
#include "convert/plan/compression.hpp"
#include "convert/plan/grid_request.hpp"
#include "convert/plan/plan_report.hpp"
#include "convert/run/append_files.hpp"
#include "convert/run/job.hpp"
#include "convert/run/journal.hpp"
#include "convert/run/link_policy.hpp"
#include "convert/run/metadata.hpp"
#include "convert/run/planned_units.hpp"
#include "io/remote_name.hpp"
#include "io/s3_access.hpp"
#include "text/selection.hpp"
#include "text/words.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/sink.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string_view>
#include <tuple>
#include <utility>

namespace zarrbits {

using namespace conversion;

namespace {

// The store decides the form of its arrays.
void check_append(const convert_options& options) {
  const bool asked = options.profile || options.compress || !options.chunk.empty() || options.shard.bytes > 0 ||
                     !options.shard.shape.empty() || options.checksum != checksum::none ||
                     options.codec != array_codec::automatic || options.bits || !options.bits_of.empty() || options.convention ||
                     options.format;
  if (asked) {
    throw zarrbits::error(
        errc::invalid_option,
        "the existing store determines how its chunks are made; leave out `profile`, `compress`, `chunk`, `shard`, "
        "`checksum`, `codec`, `bits`, `convention` and `format`");
  }
  if (options.overwrite)
    throw zarrbits::error(errc::invalid_option, "a store is either appended to or replaced; leave out `overwrite` or `append`");
  if (options.resume)
    throw zarrbits::error(errc::invalid_option, "the same command completes an append that was cut off; leave out `resume`");
  if (options.share) throw zarrbits::error(errc::invalid_option, "only one process can append to a store; leave out `share`");
  if (zarr::is_one_file(options.store) && !zarr::is_reference_target(options.store))
    throw zarrbits::error(errc::invalid_option,
                          "only a store in a directory or in S3, or references, can be appended to, not \"" + options.store +
                              "\"; make it again from all files with `concat`");
}

// Bytes that no source has are not worth a reference.
void check_references(const convert_options& options) {
  if (options.shard.bytes > 0 || !options.shard.shape.empty() || options.checksum != checksum::none)
    throw zarrbits::error(
        errc::invalid_option,
        "references point to chunks in the source, which have no shards and no checksum; leave out `shard` and `checksum`");
}

void check_rectilinear(const convert_options& options) {
  if (!options.concat)
    throw zarrbits::error(
        errc::invalid_option,
        "the `grid` rectilinear is for arrays that are joined from several files; use `concat`, or remove `grid`");
  if (options.shard.bytes > 0 || !options.shard.shape.empty())
    throw zarrbits::error(errc::invalid_option,
                          "all chunks of a shard have one shape, and in a rectilinear grid the last one of each file is shorter; "
                          "leave out `shard` or `grid`");
}

void check_base(const convert_options& options) {
  const bool grows = options.concat && options.concat->append;
  if (!options.references && !(grows && zarr::is_reference_target(options.store)))
    throw zarrbits::error(errc::invalid_option, "`base` is for the names in `references`; leave it out");
  if (grows && options.base->folder.empty() && options.base->url != ".")
    throw zarrbits::error(
        errc::invalid_option,
        "the files that are appended may be in another folder than the first ones; name the folder that the URL "
        "stands for: `base` FOLDER=URL");
}

}  // namespace

void check_options(const convert_options& options) {
  if (zarr::is_store_name(options.source)) check_store_options(options);
  if (options.base) check_base(options);
  if (options.references) check_references(options);
  if (!options.references && options.format.value_or(zarr_format::v3) != zarr_format::v3)
    throw zarrbits::error(
        errc::invalid_option,
        "a copy is a Zarr v3 store, and only `references` can have the metadata of Zarr v2; leave out `format`");
  if ((options.bits || !options.bits_of.empty()) && options.codec != array_codec::packbits)
    throw zarrbits::error(errc::invalid_option, "`bits` requires the `codec` packbits");
  if (options.bits && (*options.bits < 1 || *options.bits > 64))
    throw zarrbits::error(errc::invalid_option, "the number of bits is 1 to 64, not " + std::to_string(*options.bits));
  for (const auto& of : options.bits_of) {
    if (of.last_bit > 63 || of.first_bit > of.last_bit)
      throw zarrbits::error(errc::invalid_option, "bits " + std::to_string(of.first_bit) + " to " + std::to_string(of.last_bit) +
                                                      " of \"" + of.pattern + "\" are not a range of the bits 0 to 63");
    text::selection({of.pattern}, {});
  }
  if (options.memory < least_memory) {
    throw zarrbits::error(errc::invalid_option, "`memory` is " + text::human_bytes(options.memory) +
                                                    ", too little to convert; use at least " + text::human_bytes(least_memory));
  }
  if (options.effective_profile() != profile::recode) {
    const std::string other = to_string(options.effective_profile());
    if (options.compress) throw zarrbits::error(errc::invalid_option, "compression requires the profile recode, not " + other);
    if (!options.chunk.empty())
      throw zarrbits::error(errc::invalid_option, "a different chunk shape requires the profile recode, not " + other);
  }
  if (options.compress) check_compression(*options.compress);
  check_grid(options.chunk, options.shard);
  text::selection(options.include, options.exclude);
  if (!options.remote.endpoint.empty() && !io::any_in_s3(given_sources(options.source, options.concat)) && !io::is_s3(options.store)) {
    throw zarrbits::error(errc::invalid_option, "an endpoint is only for a source or a store \"s3://...\"; leave out `endpoint`");
  }
  if (options.share && (options.share->count == 0 || options.share->index >= options.share->count)) {
    throw zarrbits::error(errc::invalid_option, "share " + std::to_string(options.share->index) + " of " +
                                                    std::to_string(options.share->count) + " does not exist; the first is 0");
  }
  if (options.concat) {
    if (options.concat->is_new && (options.concat->append || options.concat->dimension.find_first_of("/:") != std::string::npos))
      throw zarrbits::error(
          errc::invalid_option,
          "the name of a new dimension has no \"/\" and no \":\", and a new dimension needs a new store; leave out `append`");
    if (options.concat->dimension.empty())
      throw zarrbits::error(errc::invalid_option, "`concat` has no dimension; set its name, such as time");
  }
  if (options.grid == grid_type::rectilinear) check_rectilinear(options);
  if (options.concat && options.concat->append) check_append(options);
  if (options.concat && options.links == link_policy::copy)
    throw zarrbits::error(errc::invalid_option, "links are not copied when files are joined; leave out `links` or `concat`");
  if (options.overwrite && (options.resume || options.share)) {
    throw zarrbits::error(errc::invalid_option,
                          "a store is either resumed or started over; leave out `overwrite`, or `resume` and `share`");
  }
}

namespace {

// With URLs whose secrets are remembered, and in no sentence, report or store.
convert_options with_public_names(const convert_options& given) {
  convert_options options = given;
  options.source = io::public_name(options.source);
  if (options.concat)
    std::transform(options.concat->sources.begin(), options.concat->sources.end(), options.concat->sources.begin(), io::public_name);
  return options;
}

// When a conversion began, on both clocks.
struct start {
  std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
  std::time_t utc = std::time(nullptr);

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - steady).count(); }
  std::string text() const {
    std::tm parts{};
    ::gmtime_r(&utc, &parts);
    char out[32];
    return {out, std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &parts)};
  }
};

convert_result result_for(const convert_options& options, const start& started) {
  convert_result result;
  result.source = options.source;
  result.store = options.store;
  result.profile = options.effective_profile();
  result.started = started.text();
  return result;
}

// `whole`: also what other processes and earlier runs wrote.
void count(convert_result& result, job& all, const start& started, bool whole) {
  result.convention = all.convention();
  result.links = count_links(all.source());
  count_source(all, result);
  result.store_objects = all.out().objects();
  result.store_bytes = all.out().bytes();
  result.referred_objects = all.out().referred_objects();
  result.referred_bytes = all.out().referred_bytes();
  // an object that was made again counts once
  if (whole && !zarr::is_reference_target(result.store) && (!io::is_s3(result.store) || all.out().found_unfinished())) {
    result.store_objects = result.store_bytes = 0;
    all.out().each("", [&](std::string_view key, std::uint64_t size) {
      if (zarr::in_unfinished_folder(key)) return;
      ++result.store_objects;
      result.store_bytes += size;
    });
  }
  result.seconds = started.seconds();
}

// The references themselves are written at the very end.
void count_references(convert_result& result) {
  if (zarr::is_reference_target(result.store)) std::tie(result.store_objects, result.store_bytes) = zarr::count_reference_files(result.store);
}

convert_result finished(job& all, const start& started) {
  convert_result result = result_for(all.options(), started);
  all.units_done();
  result.objects = write_metadata(all);
  result.sources = all.joined_sources();
  list_other_files(all.source().others(), result.other_files, result.refused_files);
  for (auto& refused : result.refused_files) refused.reason = all.worded(refused.reason);
  count(result, all, started, true);
  if (const auto& call = front_end_of(all.options()).before_done) call(result);
  all.require_unchanged();
  all.out().finish();
  count_references(result);
  return result;
}

}  // namespace

convert_result convert(const convert_options& given) {
  const convert_options options = with_public_names(given);
  check_options(options);
  const start started;
  if (zarr::is_store_name(options.source)) return convert_store(options, started.text());
  const hdf5::silence quiet;
  if (options.concat && options.concat->append) {
    convert_result result = append_files(options, started.text());
    result.seconds = started.seconds();
    return result;
  }
  using mode = job::mode;
  job all(options, options.share ? mode::join : options.resume ? mode::resume : mode::all);
  if (!options.share) {
    try {
      all.run();
      return finished(all, started);
    } catch (const error& e) {
      const std::string kept = fails_again(e) ? "" : all.keep();
      if (kept.empty()) throw;
      throw error(e.kind(), std::string(e.what()) + ". " + kept, e.place());
    } catch (...) {
      all.keep();
      throw;
    }
  }
  all.run_share();
  convert_result result = result_for(all.options(), started);
  count(result, all, started, false);
  return result;
}

convert_plan plan(const convert_options& given) {
  const convert_options options = with_public_names(given);
  check_options(options);
  if (zarr::is_store_name(options.source)) return plan_store(options);
  const hdf5::silence quiet;
  if (options.concat && options.concat->append) return plan_append(options);
  return job(options, job::mode::look).plan();
}

convert_result finalize(const convert_options& given) {
  const convert_options options = with_public_names(given);
  check_options(options);
  const start started;
  if (zarr::is_store_name(options.source)) return finalize_store(options, started.text());
  const hdf5::silence quiet;
  job all(options, job::mode::finish);
  require_all_done(
      all.units(), [&](const unit_id& id) { return all.done(id); }, all.shares(), options.store);
  return finished(all, started);
}

}  // namespace zarrbits
