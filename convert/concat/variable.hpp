// SPDX-License-Identifier: BSL-1.0
//
// A variable of several files, while their metadata is read: the forms in which it is stored, its parts, and the array that they
// make.
//
#ifndef ZARRBITS_CONVERT_CONCAT_VARIABLE_HPP
#define ZARRBITS_CONVERT_CONCAT_VARIABLE_HPP

#include "convert/concat/cf_encoding.hpp"
#include "convert/concat/joined_parts.hpp"
#include "hdf5/opened_dataset.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// The files can be read, but do not belong together.
struct unjoinable : error {
  explicit unjoinable(const std::string& message, error_place place = {})
      : error(errc::not_joinable, message, std::move(place)) {}
};

// Notes that are not about values, types or sizes come last.
void add_note(joined_source& source, std::string text, bool minor = false);

// One of the forms in which the files store a variable.
struct variant {
  cf_encoding encoding;
  hdf5::handle type;
  array::extents chunk;  // empty: not chunked
  std::string layout;    // filters and fill value
  std::string file;      // the first file that has this form
  std::uint64_t parts = 0;
};

// The form of a file's dataset; `file` is left empty. `lender`: as in read_cf_encoding().
variant form_of(const hdf5::opened_dataset& data, hid_t lender);

struct pending_part {
  std::size_t file = 0, variant = 0;
  haddr_t address = 0;
  std::uint64_t first = 0, count = 0;
  std::vector<hdf5::stored_place> chunks = {};
};

struct variable {
  std::size_t object = 0, axis = 0;
  std::string dimension;  // gives the length of a file: path of the dimension's scale, or the variable's own
  array::extents dims;
  std::vector<variant> variants;
  std::vector<pending_part> parts;
  std::uint64_t stored = 0;
  bool nothing_stored = true;
  std::shared_ptr<const append::existing_array> existing = {};  // for a growing store; else null
  const text::json* node = nullptr;                             // its zarr.json
  const text::json* units_source = nullptr;                     // that of the variable that it inherits units from

  // The index of this form among `variants`; adds it if it is new.
  std::size_t variant_of(variant form);
  // Makes `o`, the first file's object, represent all parts, with `length` along the axis. Adds notes to files whose values are
  // converted to other terms. `store`: the growing store. `added`: schema_override::new_dimension. Throws unjoinable,
  // zarrbits::error.
  void finish(hdf5::source_object& o, std::uint64_t length, const std::shared_ptr<const hdf5::source_files>& files,
              std::vector<joined_source>& sources, const std::string& store, const std::string& added);
};

}  // namespace zarrbits::conversion

#endif
