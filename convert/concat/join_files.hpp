// SPDX-License-Identifier: BSL-1.0
//
// Lets the objects of the first file represent those of all files: reads the metadata of all, finds the datasets that have the
// dimension, and checks that everything else is equal. Values with other packing, missing values or epochs are converted to the
// first file's terms.
//
//   const auto names = ordered_sources(options, first_value);  // pipeline/joining_order.hpp
//   const auto open = [&] { ... };  // a source_file of names[0], after walk(), override_schema(), select()
//   const std::unique_ptr<hdf5::source_file> first = open();
//   const joined_store joined = join_files(*first, open, names, options, open_options, true);
//
#ifndef ZARRBITS_CONVERT_CONCAT_JOIN_FILES_HPP
#define ZARRBITS_CONVERT_CONCAT_JOIN_FILES_HPP

#include "append/append_target.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/source_files.hpp"
#include "text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct joined_store {
  std::vector<joined_source> sources;
  std::shared_ptr<const hdf5::source_files> files;
  std::string checksum;  // of the states of the files: it identifies them
};

// Opens the first file once more, up to select().
using open_function = std::function<std::unique_ptr<hdf5::source_file>()>;

// `sources`: from ordered_sources(); `first` is the first of them, after select(). Sets source_object::joined of its datasets.
// With convert_execution::processes other than 1, other processes read the files. With a store, the parts come after those of the
// store, in its terms. Other datasets must then be equal to those of the store, and are removed from `first`. Throws
// zarrbits::error.
joined_store join_files(hdf5::source_file& first, const open_function& open_first, const std::vector<std::string>& sources,
                        const convert_options& options, const hdf5::source_options& open_options, bool tells_case_apart,
                        const append::append_target* store = nullptr);

// For reports: adds nothing if the source is one file.
void add_sources(text::json& report, const std::vector<joined_source>& sources);

}  // namespace zarrbits::conversion

#endif
