// SPDX-License-Identifier: BSL-1.0
//
// The public functions: convert, finalize, plan.
//
#include <zarrbits/convert.hpp>
#include <zarrbits/detail/convert_front_end.hpp>

#include "convert/from_hdf5/append_files.hpp"
#include "convert/from_zarr/zarr_source.hpp"
#include "convert/open_conversion.hpp"
#include "convert/pipeline/compression.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "convert/pipeline/journal.hpp"
#include "convert/plan/chunk_grid_choice.hpp"
#include "convert/plan/dimension_chunks.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"
#include "text/selection.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/reference_writer.hpp"
#include "zarr/write/store_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace zarrbits {

using namespace conversion;

namespace {

// The store decides the form of its arrays.
void check_append(const convert_options& options) {
  const bool sets_encoding = options.profile || options.compress || options.sets_chunks() || options.shard.bytes > 0 ||
                             !options.shard.shape.empty() || options.checksum != checksum::none ||
                             options.codec != array_codec::automatic || options.bits || !options.bits_of.empty() ||
                             options.convention || options.format;
  if (sets_encoding) {
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
  if (!options.concat && zarr::is_read_as_store(options.source, false))
    throw zarrbits::error(
        errc::invalid_option,
        "the `grid` rectilinear is for arrays that are joined from several stores; use `concat`, or remove `grid`");
  if (options.shard.bytes > 0 || !options.shard.shape.empty())
    throw zarrbits::error(errc::invalid_option,
                          "all chunks of a shard have one shape, and in a rectilinear grid the last one of each file is shorter; "
                          "leave out `shard` or `grid`");
}

// What chunks of Zarr v2 cannot have.
void check_v2_copy(const convert_options& options) {
  const auto refuse = [](bool is_set, const char* option, const char* reason) {
    if (is_set)
      throw zarrbits::error(errc::invalid_option, std::string(reason) + "; leave out `" + option + "`, or set `format` to 3");
  };
  refuse(options.shard.bytes > 1 || !options.shard.shape.empty(), "shard", "Zarr v2 has no shards");
  refuse(options.checksum != checksum::none, "checksum", "few readers of Zarr v2 know the codec crc32c");
  refuse(options.codec == array_codec::packbits, "codec", "few readers of Zarr v2 know the codec packbits");
  refuse(options.grid == grid_type::rectilinear, "grid", "all chunks of an array of Zarr v2 have one shape");
}

// Reads none of the files: there may be thousands, and who reads a damaged one knows its name.
void check_joined_files(const convert_options& options) {
  for (const std::string& name : options.concat->sources) {
    std::error_code e;
    const std::string file = split_source(name).file;
    if (std::filesystem::is_directory(file, e) || file.ends_with(".zip") || file.ends_with(".json"))
      throw zarrbits::error(errc::invalid_option,
                            "Zarr stores are joined with Zarr stores, and files with files: \"" + name + "\" is a store, and \"" +
                                options.source + "\" is not; make a store of it first",
                            {name});
  }
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
  if (zarr::is_hdf5_name(options.store)) {
    throw zarrbits::error(errc::invalid_option,
                          "\"" + io::redact_url(options.store) +
                              "\" is the name of an HDF5 file, and convert writes Zarr stores; " + "use \"zarrbits " +
                              (zarr::is_store_name(options.source) ? "export" : "repack") + "\", or a name such as OUT.zarr",
                          {io::redact_url(options.store)});
  }
  const bool grows = options.concat && options.concat->append;
  if (!grows && io::is_object_store(options.store) &&
      (options.store.ends_with(".zip") || options.store.ends_with(".json") || options.store.ends_with(".parquet")))
    throw zarrbits::error(errc::invalid_option,
                          "a store in one file, and references, are written to a local disk, not to \"" + options.store +
                              "\"; write it to a disk, and upload it from there, or use a name such as OUT.zarr",
                          {options.store});
  if (zarr::is_read_as_store(options.source, options.concat.has_value())) check_store_options(options);
  else if (options.concat) check_joined_files(options);
  if (options.base) check_base(options);
  if (options.references) check_references(options);
  if (!options.references && !grows && options.format == zarr_format::both)
    throw zarrbits::error(errc::invalid_option,
                          "a copy has one format, and only `references` have the metadata of both; set `format` to 2 or 3");
  if (options.is_v2_copy() && !grows) check_v2_copy(options);
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
  if (options.memory < min_memory) {
    throw zarrbits::error(errc::invalid_option, "`memory` is " + text::format_bytes(options.memory) +
                                                    ", too little to convert; use at least " + text::format_bytes(min_memory));
  }
  if (options.effective_profile() != profile::recode) {
    const std::string profile_name = to_string(options.effective_profile());
    if (options.compress)
      throw zarrbits::error(errc::invalid_option, "compression requires the profile recode, not " + profile_name);
    if (!options.chunk.empty())
      throw zarrbits::error(errc::invalid_option, "a different chunk shape requires the profile recode, not " + profile_name);
  }
  if (options.compress) check_compression(*options.compress);
  check_grid(options.chunk, options.shard);
  check_dimension_chunks(options.chunk_along);
  text::selection(options.include, options.exclude);
  if (!options.remote.endpoint.empty() && !io::any_in_object_store(given_sources(options.source, options.concat)) &&
      !io::any_in_object_store(options.external) && !io::is_object_store(options.store)) {
    throw zarrbits::error(
        errc::invalid_option,
        "an endpoint is only for a source or a store \"s3://...\", \"gs://...\" or \"az://...\"; remove `endpoint`");
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

// What follows from the others, and URLs whose secrets are remembered, and in no sentence, report or store.
convert_options effective_options(const convert_options& requested) {
  convert_options options = requested;
  if (options.is_v2_copy()) {  // also of a source that has others
    if (options.codec == array_codec::automatic) options.codec = array_codec::bytes;
    if (zarr::is_read_as_store(options.source, options.concat.has_value()) && options.shard.shape.empty())
      options.shard.bytes = std::max<std::uint64_t>(options.shard.bytes, 1);
  }
  options.source = io::redact_url(options.source);
  if (options.concat)
    std::transform(options.concat->sources.begin(), options.concat->sources.end(), options.concat->sources.begin(),
                   io::redact_url);
  return options;
}

// Calls `warning` once for each sentence. Thread-safe.
std::function<void(const std::string&)> without_repetition(const std::function<void(const std::string&)>& warning) {
  struct sentence_set {
    std::mutex mutex;
    std::set<std::string> sentences;
  };
  return [warning, previous = std::make_shared<sentence_set>()](const std::string& sentence) {
    const std::lock_guard lock(previous->mutex);
    if (previous->sentences.insert(sentence).second) warning(sentence);
  };
}

// Checks the options, and looks at a source on a server whose name does not say what it is.
convert_options prepared_options(const convert_options& requested, bool writes) {
  convert_options options = effective_options(requested);
  check_options(options);
  if (options.concat || !io::is_remote(options.source)) return options;
  if (options.warning) options.warning = without_repetition(options.warning);  // the conversion looks at the servers, too
  remote::init_s3({options.source}, writes ? options.store : "", options.remote, options.warning);
  const auto state = zarr::probe_source(options.source, options.remote);
  if (state && state->size > 0 && state->etag.empty() && options.warning && !options.share)
    options.warning(remote::unnoticed_change_warning(split_source(options.source).file, options.remote));
  options = effective_options(options);
  check_options(options);
  return options;
}

// Makes all chunks, and the metadata. A run that fails leaves what it has done, if that is of use.
convert_result run_conversion(converter& work) {
  try {
    work.run();
    return work.finish();
  } catch (const error& e) {
    const std::string resume_note = is_permanent(e) ? "" : work.keep_partial_store();
    if (resume_note.empty()) throw;
    throw error(e.kind(), std::string(e.what()) + ". " + resume_note, e.place());
  } catch (...) {
    work.keep_partial_store();
    throw;
  }
}

bool appends(const convert_options& options) { return options.concat && options.concat->append; }

}  // namespace

convert_result convert(const convert_options& requested) {
  const start_time started;
  const convert_options options = prepared_options(requested, true);
  const hdf5::silence quiet;
  return with_public_errors(options, [&] {
    if (appends(options)) {
      convert_result result = append_files(options, started.text());
      result.seconds = started.seconds();
      return result;
    }
    using mode = converter::mode;
    const auto work = open_conversion(options,
                                      options.share    ? mode::worker
                                      : options.resume ? mode::resume
                                                       : mode::full,
                                      started);
    if (!options.share) return run_conversion(*work);
    work->run_partition();
    return work->result(false);
  });
}

namespace {

// Free bytes in the file system of the store: that of the nearest folder that exists.
std::optional<std::uint64_t> free_bytes(const std::string& store) {
  if (store.empty() || io::is_remote(store)) return {};
  std::error_code e;
  std::filesystem::path folder = std::filesystem::absolute(store, e);
  while (!folder.empty() && folder != folder.root_path() && !std::filesystem::exists(folder, e)) folder = folder.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, e);
  if (e) return {};
  return space.available;
}

}  // namespace

convert_plan plan(const convert_options& requested, const plan_options& further) {
  const convert_options options = prepared_options(requested, false);
  const hdf5::silence quiet;
  convert_plan result = with_public_errors(options, [&] {
    return appends(options) ? plan_append(options, further) : open_conversion(options, converter::mode::dry_run)->plan(further);
  });
  result.free_bytes = free_bytes(options.store);
  return result;
}

convert_result finalize(const convert_options& requested) {
  const start_time started;
  const convert_options options = prepared_options(requested, true);
  const hdf5::silence quiet;
  return with_public_errors(options, [&] {
    const auto work = open_conversion(options, converter::mode::finalize, started);
    work->require_all_done();
    return work->finish();
  });
}

}  // namespace zarrbits
