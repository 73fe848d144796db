// SPDX-License-Identifier: BSL-1.0
//
// The public functions: convert, finalize, plan.
//
#include <zarrbits/convert.hpp>

#include "convert/from_hdf5/append_files.hpp"
#include "convert/from_zarr/zarr_source.hpp"
#include "convert/open_conversion.hpp"
#include "convert/pipeline/compression.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "convert/pipeline/journal.hpp"
#include "convert/plan/chunk_grid_choice.hpp"
#include "convert/plan/dimension_chunks.hpp"
#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "remote/remote_file.hpp"
#include "remote/s3_access.hpp"
#include "text/format.hpp"
#include "text/selection.hpp"
#include "zarr/read/store_reader.hpp"
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
  const bool sets_encoding = options.encoding.profile || options.encoding.compress || options.encoding.sets_chunks() ||
                             options.encoding.shard || options.encoding.checksum != checksum::none ||
                             options.encoding.codec != array_codec::automatic || options.encoding.bits ||
                             !options.encoding.bits_of.empty() || options.target.convention || options.target.zarr_format;
  if (sets_encoding) {
    throw zarrbits::error(
        errc::invalid_option,
        "the existing store determines how its chunks are made; leave out `profile`, `compress`, `chunk`, `shard`, "
        "`checksum`, `codec`, `bits`, `convention` and `zarr_format`");
  }
  if (options.target.existing == existing_store::overwrite)
    throw zarrbits::error(errc::invalid_option, "a store is either appended to or replaced; leave out `overwrite` or `append`");
  if (options.target.existing == existing_store::resume)
    throw zarrbits::error(errc::invalid_option, "the same command completes an append that was cut off; leave out `resume`");
  if (options.execution.partition)
    throw zarrbits::error(errc::invalid_option, "only one process can append to a store; leave out `partition`");
  if (io::kind_of_target(options.target.name) == io::store_kind::zip)
    throw zarrbits::error(errc::invalid_option,
                          "only a store in a directory or in S3, or references, can be appended to, not \"" +
                              options.target.name + "\"; make it again from all files with `concat`");
}

// Bytes that no source has are not worth a reference.
void check_references(const convert_options& options) {
  if (options.encoding.shard || options.encoding.checksum != checksum::none)
    throw zarrbits::error(
        errc::invalid_option,
        "references point to chunks in the source, which have no shards and no checksum; leave out `shard` and `checksum`");
}

void check_rectilinear(const convert_options& options) {
  if (!options.source.concat && zarr::is_read_as_store(options.source.name, false))
    throw zarrbits::error(
        errc::invalid_option,
        "the `grid` rectilinear is for arrays that are joined from several stores; use `concat`, or remove `grid`");
  if (options.encoding.makes_shards())
    throw zarrbits::error(errc::invalid_option,
                          "all chunks of a shard have one shape, and in a rectilinear grid the last one of each file is shorter; "
                          "leave out `shard` or `grid`");
}

// What chunks of Zarr v2 cannot have.
void check_v2_copy(const convert_options& options) {
  const auto refuse = [](bool is_set, const char* option, const char* reason) {
    if (is_set)
      throw zarrbits::error(errc::invalid_option,
                            std::string(reason) + "; leave out `" + option + "`, or set `zarr_format` to 3");
  };
  refuse(options.encoding.makes_shards(), "shard", "Zarr v2 has no shards");
  refuse(options.encoding.checksum != checksum::none, "checksum", "few readers of Zarr v2 know the codec crc32c");
  refuse(options.encoding.codec == array_codec::packbits, "codec", "few readers of Zarr v2 know the codec packbits");
  refuse(options.encoding.grid == grid_type::rectilinear, "grid", "all chunks of an array of Zarr v2 have one shape");
}

// Reads none of the files: there may be thousands, and who reads a damaged one knows its name.
void check_joined_files(const convert_options& options) {
  for (const std::string& name : options.source.concat->sources) {
    std::error_code e;
    const std::string file = split_source(name).file;
    if (std::filesystem::is_directory(file, e) || file.ends_with(".zip") || file.ends_with(".json"))
      throw zarrbits::error(errc::invalid_option,
                            "Zarr stores are joined with Zarr stores, and files with files: \"" + name + "\" is a store, and \"" +
                                options.source.name + "\" is not; make a store of it first",
                            {name});
  }
}

void check_base(const convert_options& options) {
  const bool grows = options.source.concat && options.source.concat->append;
  if (!options.target.references && !(grows && io::is_references(io::kind_of_target(options.target.name))))
    throw zarrbits::error(errc::invalid_option, "`base` is for the names in `references`; leave it out");
  if (grows && options.target.base->folder.empty() && options.target.base->url != ".")
    throw zarrbits::error(
        errc::invalid_option,
        "the files that are appended may be in another folder than the first ones; name the folder that the URL "
        "stands for: `base` FOLDER=URL");
}

}  // namespace

void check_options(const convert_options& options) {
  if (zarr::is_hdf5_name(options.target.name)) {
    throw zarrbits::error(errc::invalid_option,
                          "\"" + io::redact_url(options.target.name) +
                              "\" is the name of an HDF5 file, and convert writes Zarr stores; " + "use \"zarrbits " +
                              (zarr::is_store_name(options.source.name) ? "export" : "repack") + "\", or a name such as OUT.zarr",
                          {io::redact_url(options.target.name)});
  }
  const bool grows = options.source.concat && options.source.concat->append;
  if (!grows && io::is_object_store(options.target.name) &&
      (options.target.name.ends_with(".zip") || options.target.name.ends_with(".json") ||
       options.target.name.ends_with(".parquet")))
    throw zarrbits::error(errc::invalid_option,
                          "a store in one file, and references, are written to a local disk, not to \"" + options.target.name +
                              "\"; write it to a disk, and upload it from there, or use a name such as OUT.zarr",
                          {options.target.name});
  if (zarr::is_read_as_store(options.source.name, options.source.concat.has_value())) check_store_options(options);
  else if (options.source.concat) check_joined_files(options);
  if (options.target.base) check_base(options);
  if (options.target.references) check_references(options);
  if (!options.target.references && !grows && options.target.zarr_format == zarr_format::both)
    throw zarrbits::error(errc::invalid_option,
                          "a copy has one format, and only `references` have the metadata of both; set `zarr_format` to 2 or 3");
  if (options.target.is_v2_copy() && !grows) check_v2_copy(options);
  if ((options.encoding.bits || !options.encoding.bits_of.empty()) && options.encoding.codec != array_codec::packbits)
    throw zarrbits::error(errc::invalid_option, "`bits` requires the `codec` packbits");
  if (options.encoding.bits && (*options.encoding.bits < 1 || *options.encoding.bits > 64))
    throw zarrbits::error(errc::invalid_option, "the number of bits is 1 to 64, not " + std::to_string(*options.encoding.bits));
  for (const auto& of : options.encoding.bits_of) {
    if (of.last_bit > 63 || of.first_bit > of.last_bit)
      throw zarrbits::error(errc::invalid_option, "bits " + std::to_string(of.first_bit) + " to " + std::to_string(of.last_bit) +
                                                      " of \"" + of.pattern + "\" are not a range of the bits 0 to 63");
    text::selection({of.pattern}, {});
  }
  if (options.execution.memory < min_memory) {
    throw zarrbits::error(errc::invalid_option, "`memory` is " + text::format_bytes(options.execution.memory) +
                                                    ", too little to convert; use at least " + text::format_bytes(min_memory));
  }
  if (options.effective_profile() != profile::recode) {
    const std::string profile_name = to_string(options.effective_profile());
    if (options.encoding.compress)
      throw zarrbits::error(errc::invalid_option, "compression requires the profile recode, not " + profile_name);
    if (!options.encoding.chunk.empty())
      throw zarrbits::error(errc::invalid_option, "a different chunk shape requires the profile recode, not " + profile_name);
  }
  if (options.encoding.compress) check_compression(*options.encoding.compress);
  check_grid(options.encoding.chunk, options.encoding.shard.value_or(shard_size{}));
  check_dimension_chunks(options.encoding.chunk_along);
  text::selection(options.selection.include, options.selection.exclude);
  if (!options.remote.endpoint.empty() && !io::any_in_object_store(given_sources(options.source.name, options.source.concat)) &&
      !io::any_in_object_store(options.source.external) && !io::is_object_store(options.target.name)) {
    throw zarrbits::error(
        errc::invalid_option,
        "an endpoint is only for a source or a store \"s3://...\", \"gs://...\" or \"az://...\"; remove `endpoint`");
  }
  if (options.execution.partition &&
      (options.execution.partition->count == 0 || options.execution.partition->index >= options.execution.partition->count)) {
    throw zarrbits::error(errc::invalid_option, "partition " + std::to_string(options.execution.partition->index) + " of " +
                                                    std::to_string(options.execution.partition->count) +
                                                    " does not exist; the first is 0");
  }
  if (options.source.concat) {
    if (options.source.concat->is_new &&
        (options.source.concat->append || options.source.concat->dimension.find_first_of("/:") != std::string::npos))
      throw zarrbits::error(
          errc::invalid_option,
          "the name of a new dimension has no \"/\" and no \":\", and a new dimension needs a new store; leave out `append`");
    if (options.source.concat->dimension.empty())
      throw zarrbits::error(errc::invalid_option, "`concat` has no dimension; set its name, such as time");
  }
  if (options.encoding.grid == grid_type::rectilinear) check_rectilinear(options);
  if (options.source.concat && options.source.concat->append) check_append(options);
  if (options.source.concat && options.selection.links == link_policy::copy)
    throw zarrbits::error(errc::invalid_option, "links are not copied when files are joined; leave out `links` or `concat`");
  if (options.target.existing == existing_store::overwrite && options.execution.partition)
    throw zarrbits::error(errc::invalid_option,
                          "a part of a store is added to what other processes make; leave out `overwrite` or `partition`");
}

namespace {

// What follows from the others, and URLs whose secrets are remembered, and in no sentence, report or store.
convert_options effective_options(const convert_options& requested) {
  convert_options options = requested;
  if (options.target.is_v2_copy()) {  // also of a source that has others
    if (options.encoding.codec == array_codec::automatic) options.encoding.codec = array_codec::bytes;
    if (zarr::is_read_as_store(options.source.name, options.source.concat.has_value()) && !options.encoding.shard)
      options.encoding.shard = shard_size{};
  }
  options.source.name = io::redact_url(options.source.name);
  if (options.source.concat)
    std::transform(options.source.concat->sources.begin(), options.source.concat->sources.end(),
                   options.source.concat->sources.begin(), io::redact_url);
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
  if (options.source.concat || !io::is_remote(options.source.name)) return options;
  if (options.execution.warning)
    options.execution.warning = without_repetition(options.execution.warning);  // the conversion looks at the servers, too
  remote::init_s3({options.source.name}, writes ? options.target.name : "", options.remote, options.execution.warning);
  const auto state = zarr::probe_source(options.source.name, options.remote);
  if (state && state->size > 0 && state->etag.empty() && options.execution.warning && !options.execution.partition)
    options.execution.warning(remote::unnoticed_change_warning(split_source(options.source.name).file, options.remote));
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

bool appends(const convert_options& options) { return options.source.concat && options.source.concat->append; }

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
                                      options.execution.partition                         ? mode::worker
                                      : options.target.existing == existing_store::resume ? mode::resume
                                                                                          : mode::full,
                                      started);
    if (!options.execution.partition) return run_conversion(*work);
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
  result.free_bytes = free_bytes(options.target.name);
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
