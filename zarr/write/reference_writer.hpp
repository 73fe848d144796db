// SPDX-License-Identifier: BSL-1.0
//
// The forms in which references are stored: one JSON file, or a folder of Parquet files. Neither exists before it is complete.
//
//   const auto out = make_reference_writer("refs.json", options);  // or "refs.parquet"
//   out->begin(files, formats, arrays);
//   out->content("zarr.json", text);       // nodes first, then Zarr v2's metadata, then chunks, each sorted by key
//   out->v2(".zgroup", {{"zarr_format", 2}});
//   out->range("a/c/0", 0, 4096, 1000);    // of files[0]
//   out->finish();
//
#ifndef ZARRBITS_ZARR_WRITE_REFERENCE_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_REFERENCE_WRITER_HPP

#include "io/chunk_key_index.hpp"
#include "io/reference_table.hpp"
#include "zarr/write/store_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::zarr {

// All functions throw zarrbits::error.
class reference_writer {
 public:
  virtual ~reference_writer() = default;
  reference_writer() = default;
  reference_writer(const reference_writer&) = delete;
  reference_writer& operator=(const reference_writer&) = delete;

  // What ranges lead to; those with a state are the sources. Without v3 in `formats`, nodes are kept where no reader of Zarr
  // looks, for zarrbits itself. The arrays must be there until finish().
  virtual void begin(const std::vector<io::referenced_file>& files, io::zarr_formats formats,
                     const io::chunk_key_index& arrays) = 0;
  virtual void content(const std::string& key, std::string_view bytes) = 0;
  virtual void v2(const std::string& key, const text::json& document) = 0;
  virtual void range(const std::string& key, std::size_t file, std::uint64_t offset, std::uint64_t size) = 0;
  // Gives all of it its name.
  virtual void finish() = 0;
  // True once it has its name, even if finish() failed then.
  virtual bool in_place() const = 0;
};

std::unique_ptr<reference_writer> make_reference_writer(const std::string& path, const store_writer_options& options);
bool remove_unfinished_references(const std::string& path);

// Throws zarrbits::error if no reader finds this source by its name: a URL whose query names the file, which may be a secret.
void require_public_name(const std::string& url);

// The sources as JSON, without the brackets around: {"url":..,"size":..,"modified":..},..; in S3 "etag" in place of
// "modified".
std::string sources_json(const std::vector<io::referenced_file>& files);

std::unique_ptr<reference_writer> make_parquet_references(const std::string& path, const store_writer_options& options);

}  // namespace zarrbits::zarr

#endif
