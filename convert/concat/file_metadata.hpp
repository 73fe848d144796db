// SPDX-License-Identifier: BSL-1.0
//
// What a joined store needs to know of one of its files, and the same as bytes: another process may have read the file.
//
#ifndef ZARRBITS_CONVERT_CONCAT_FILE_METADATA_HPP
#define ZARRBITS_CONVERT_CONCAT_FILE_METADATA_HPP

#include "convert/concat/variable.hpp"
#include "text/coded_reason.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

// A variable in one file.
struct variable_part {
  std::size_t variable = 0;  // index in the list of variables
  variant form;
  haddr_t address = 0;                     // address of the dataset in the file
  std::uint64_t count = 0;                 // length along the axis
  std::uint64_t dimension_length = 0;      // length of its dimension in the file, at least `count`
  std::uint64_t stored = 0;                // bytes
  bool nothing_stored = false;             // as chunk_source::nothing_stored()
  std::vector<hdf5::stored_place> chunks;  // as in joined_part
  std::vector<double> values;              // of a dimension's own variable, if the order of its values matters
};

struct file_note {
  std::string text;
  std::string object = {};  // path in the store of the object that it is about; empty: of one that is joined, or of none
  bool is_omitted = false;  // the object is left out of the store
  bool is_minor = false;    // it is not about values, types or sizes
};

struct file_metadata {
  std::optional<io::file_state> state;       // empty: it could not be opened
  std::optional<text::coded_reason> reason;  // why it cannot be joined
  bool is_fatal = false;                     // ... and no file can
  std::vector<file_note> notes;
  std::vector<variable_part> parts;
};

std::string to_bytes(const file_metadata& file);
// Throws json::exception, hdf5::failure.
file_metadata from_bytes(std::string_view bytes);

}  // namespace zarrbits::conversion

#endif
