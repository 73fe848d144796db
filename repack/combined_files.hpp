// SPDX-License-Identifier: BSL-1.0
//
// Files that have parts of several dimensions: their datasets, and where the coordinates put each part.
//
//   combined_files files(options);
//   files.read();
//   files.datasets().at("/tas").shape;   // of all parts together
//
#ifndef ZARRBITS_REPACK_COMBINED_FILES_HPP
#define ZARRBITS_REPACK_COMBINED_FILES_HPP

#include "array/box.hpp"
#include "convert/concat/cf_encoding.hpp"
#include "hdf5/created_file.hpp"
#include "repack/coordinate_blocks.hpp"
#include "repack/opened_file.hpp"

#include <zarrbits/combine.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

using block = coordinate_blocks::block;

constexpr std::uint64_t max_stored_bytes = 256U << 20;  // of a dataset that the new file has itself

// A dataset of all files that have it.
struct combined_dataset {
  struct file_part {
    std::size_t file = 0;
    std::vector<const block*> blocks;  // along the dimensions that the files have parts of
    std::size_t encoding = 0;          // which one of time_encodings
  };
  array::extents dims;             // those of the first file, with the new dimension
  std::vector<std::string> axes;   // paths of their coordinate variables; "": all files have all of the dimension
  bool has_new_dimension = false;  // the first one
  std::uint64_t element_bytes = 0;
  // The first file's that has chunks, else the first one's; with the new dimension. Its counts are those of all files.
  dataset_layout layout = {};
  std::uint64_t largest_chunk_bytes = 0;     // of all files
  std::map<std::string, std::string> terms;  // of its values
  bool is_copied = false;                    // its values are not mapped: it has no dimensions, or they lead to other objects
  bool is_dimension_without_values = false;
  std::vector<file_part> parts;
  std::map<array::extents, std::size_t> placed = {};  // which of them counts, by the index of its first value
  array::extents shape = {};                          // of the whole
  bool is_left_out = false;

  // Adds that of the next file that has the dataset.
  void add_layout(const combined_dataset& in_file);
  bool is_tiled() const {
    return std::any_of(axes.begin(), axes.end(), [](const std::string& axis) { return !axis.empty(); });
  }
  // Its values are those that say where parts lie. `path`: its own.
  bool is_coordinate(const std::string& path) const { return axes.size() == 1 && axes[0] == path; }

  std::vector<conversion::cf_encoding> time_encodings = {};          // of times: those that differ in units or calendar
  std::map<std::string, std::size_t> time_units = {};                // which one of them has these units and calendar
  std::optional<conversion::reconciled_encoding> stored_times = {};  // set if they differ: what the new file has
  hid_t stored_type = H5I_INVALID_HID;                               // of those, if it is another one than in the files

  // It has no values, or other ones than the files.
  bool is_stored_by_library() const { return stored_times || is_dimension_without_values; }
  // The new file has the values itself: a virtual dataset cannot convert times, nor map what has no dimensions.
  bool is_stored() const { return is_stored_by_library() || (has_new_dimension && dims.size() == 1); }
};

class combined_files {
 public:
  // The options live as long as this.
  explicit combined_files(const combine_options& options) : options_(options) {}

  // Reads the metadata and the coordinates of all files, and compares what several have for one place. Throws zarrbits::error.
  void read();
  const std::map<std::string, combined_dataset>& datasets() const { return datasets_; }
  // Their paths, as they were first read.
  const std::vector<std::string>& order() const { return order_; }
  combine_report& report() { return report_; }
  array::extents shape_of(const combined_dataset& d, const combined_dataset::file_part& p) const;
  array::box place_of(const combined_dataset& d, const combined_dataset::file_part& p) const {
    return {first_of(d, p), shape_of(d, p)};
  }
  // The path of the new dimension; "" without one.
  std::string new_dimension_path() const { return options_.new_dimension.empty() ? "" : "/" + options_.new_dimension; }
  std::uint64_t length_of(const std::string& axis) const { return blocks_.at(axis).length(); }
  // The values of a dataset that the new file stores, as it has them: in memory, of the type that is returned. Throws
  // zarrbits::error, hdf5::failure.
  struct loaded_values {
    hdf5::handle type;
    std::vector<std::byte> bytes;
  };
  loaded_values load(const opened_file& file, const std::string& path, const combined_dataset::file_part& p) const;

  std::shared_ptr<opened_file> open(std::size_t k) const;
  // Without its tree. Throws what open() and require_same() throw.
  std::shared_ptr<const hdf5::source_file> open_source(std::size_t k) const;
  // Throws zarrbits::error if the file is another one than when it was read.
  void require_same(std::size_t k, const hdf5::source_file& file) const;
  void report_progress(std::size_t k) const;
  void add_note(std::string sentence);

  // Runs `use` for a file; its errors name it.
  template <class Use>
  void with_file(std::size_t k, const Use& use) const {
    const std::string& name = options_.sources[k];
    try {
      use(name);
    } catch (const hdf5::failure& e) {
      if (hdf5::is_of_system(e.what())) throw;  // of the new file
      throw error(errc::damaged_source, "\"" + name + "\" cannot be combined with the other files: " + e.what(), {name});
    } catch (const io::read_error& e) {
      throw error(errc::io_failed, "\"" + name + "\" cannot be read: " + e.what(), {name});
    }
  }

 private:
  hdf5::source_options source_options() const;
  // What is known while the datasets of a file are read.
  struct opened_part {
    std::size_t number;
    const opened_file& file;
    std::map<std::string, const tree_object*> lenders;  // of the datasets that say no units of time themselves, by path
    std::map<std::string, const block*> coordinates{};  // by path
    std::optional<conversion::cf_encoding> times_of(const std::string& path, hid_t dataset) const;
  };

  // A part of a dataset for a place that another one has.
  struct repeated_part {
    std::string path;
    std::size_t first, part;  // which of its parts
  };

  void number_steps();
  void read_file(std::size_t k);
  // The names of the dimensions, as paths of their scales; "" for those that are not among the options'.
  std::vector<std::string> axes_of(const opened_file& file, const tree_object& o, hid_t dataset, std::size_t rank) const;
  const block* block_of(opened_part& part, const std::string& path, std::uint64_t length);
  coordinate_blocks::values coordinates_of(const opened_part& part, const std::string& path);
  const block* add_block(opened_part& part, const std::string& path, std::uint64_t length);
  combined_dataset describe_dataset(const opened_part& part, const tree_object& o, hid_t dataset) const;
  void require_same_terms(std::size_t k, const std::string& path, const combined_dataset& d, const combined_dataset& other) const;
  void read_dataset(opened_part& part, const tree_object& o);
  void require_dimensions() const;
  void reconcile_times(const std::string& path, combined_dataset& d) const;
  void place(const std::string& path, combined_dataset& d);
  array::extents first_of(const combined_dataset& d, const combined_dataset::file_part& p) const;
  // Several files have values for one place.
  void compare_repeated();
  void describe();
  bool is_tiled_name(const std::string& name) const;

  const combine_options& options_;
  combine_report report_;
  std::vector<io::file_state> states_;
  std::map<std::string, coordinate_blocks> blocks_;                                // by the path of the coordinate variable
  std::map<std::string, conversion::cf_encoding> first_times_;                     // of coordinate variables, by path
  std::vector<std::uint64_t> steps_;                                               // of the files along the new dimension
  std::vector<std::vector<std::pair<std::string, const block*>>> blocks_of_file_;  // with the paths of their dimensions
  std::map<std::string, combined_dataset> datasets_;                               // by path
  std::vector<std::string> order_;                                                 // their paths, as they were first read
  std::map<std::size_t, std::vector<repeated_part>> repeated_;                     // by file
};

}  // namespace zarrbits::repacking

#endif
