// SPDX-License-Identifier: BSL-1.0
//
// What kind of store a name means.
//
//   if (is_references(kind_of_target("out.json"))) ...
//
#ifndef ZARRBITS_IO_STORE_KIND_HPP
#define ZARRBITS_IO_STORE_KIND_HPP

#include <string>

namespace zarrbits::io {

enum class store_kind {
  none,  // a file that is not a store, such as an HDF5 file
  directory,
  zip,
  json,          // references in a JSON file
  parquet,       // references in a folder of Parquet files
  netcdf3,       // a netCDF-3 file, which is read as a store
  object_store,  // "s3://...", "gs://..." or "az://..."
  web,           // "https://..."
};

inline bool is_references(store_kind kind) { return kind == store_kind::json || kind == store_kind::parquet; }

// The kind of a store to write, by its name alone: "x.zip", "x.json", "x.parquet", or any other. None of the first three is on a
// server, where a prefix may have any name.
store_kind kind_of_target(const std::string& name);

}  // namespace zarrbits::io

#endif
