// SPDX-License-Identifier: BSL-1.0
//
// Reads the metadata of one of many files, and compares it with the first one's. Each file is read by itself: what depends on
// the files before it is left to who joins them (join_files.cpp).
//
#ifndef ZARRBITS_CONVERT_CONCAT_FILE_READER_HPP
#define ZARRBITS_CONVERT_CONCAT_FILE_READER_HPP

#include "append/append_target.hpp"
#include "conventions/convention_rules.hpp"
#include "convert/concat/file_metadata.hpp"
#include "convert/concat/inherited_units.hpp"
#include "convert/concat/variable.hpp"
#include "hdf5/source_file.hpp"
#include "text/json_text.hpp"
#include "text/selection.hpp"

#include <zarrbits/convert.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace zarrbits::conversion {

class file_reader {
 public:
  struct setting {
    const std::vector<std::string>& names;
    const convert_options& options;
    const hdf5::source_files& files;  // opens them
    bool is_case_sensitive;
    const append::append_target* store;  // the store that grows; null if absent
    const std::vector<variable>& variables;
  };
  // `first`: the first file, after select(). It and the setting must outlive the reader.
  file_reader(hdf5::source_file& first, const setting& settings);

  // Reads the metadata of file `k`. Problems with the file are in the result.
  file_metadata read(std::size_t k);

 private:
  using objects = std::unordered_map<std::string, const hdf5::source_object*>;  // by path in the store

  void read_file(std::size_t k, file_metadata& result);
  std::string fill_of(const hdf5::source_object& model) const;
  void add_part(std::size_t k, std::size_t variable, hdf5::source_file& file, const objects& file_objects, file_metadata& result);
  void compare_rest(std::size_t k, hdf5::source_file& file, const objects& file_objects, file_metadata& result);
  void compare_with_store(std::size_t k, hdf5::source_file& file, file_metadata& result);
  void compare_attributes(const hdf5::source_object& model, hdf5::source_file& file, hid_t object,
                          const hdf5::type_description* leaf, bool joined, file_metadata& result);
  std::uint64_t memory() const;
  // The variable that lends its units of time to a dataset: as in the first file or the store, or else in this file. Invalid if
  // it needs none.
  hdf5::handle units_source(const std::string& store_path, hid_t dataset, const hdf5::source_file& file,
                            const objects& file_objects);

  hdf5::source_file& first_;
  setting settings_;
  const concatenation& concat_;
  text::selection selection_;
  std::set<std::string> joined_;                          // paths in the store
  std::set<std::string> left_out_;                        // those that differed in a file that was read here
  std::map<std::string, text::json> attributes_;          // of the first file's objects
  const conventions::convention_rules* rules_ = nullptr;  // of the file before
  inherited_units inherited_units_;                       // of the store, or of the first file
  std::optional<inherited_units> file_inherited_units_;   // of the file that is read
};

}  // namespace zarrbits::conversion

#endif
