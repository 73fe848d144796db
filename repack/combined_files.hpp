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

#include "hdf5/created_file.hpp"
#include "repack/coordinate_blocks.hpp"
#include "repack/opened_file.hpp"

#include <zarrbits/combine.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::repacking {

using block_values = coordinate_blocks::values;

// A dataset of all files that have it.
struct combined_dataset {
  struct file_part {
    std::size_t file = 0;
    std::vector<const block_values*> blocks;  // along the dimensions that the files have parts of
  };
  array::extents dims;                       // those of the first file
  std::vector<std::string> axes;             // paths of their coordinate variables; "": all files have all of the dimension
  std::map<std::string, std::string> terms;  // of its values
  bool is_copied = false;                    // its values are not mapped: it has no dimensions, or they lead to other objects
  std::vector<file_part> parts;
  std::map<array::extents, std::size_t> placed = {};  // which of them counts, by the index of its first value
  array::extents shape = {};                          // of the whole
  bool is_left_out = false;

  bool is_tiled() const {
    return std::any_of(axes.begin(), axes.end(), [](const std::string& axis) { return !axis.empty(); });
  }
  // Its values are those that say where parts lie, so that they are equal for one place. `path`: its own.
  bool is_coordinate(const std::string& path) const { return axes.size() == 1 && axes[0] == path; }
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

  std::shared_ptr<opened_file> open(std::size_t k) const;
  // Throws zarrbits::error if the file is another one than when it was read.
  void require_same(std::size_t k, const opened_file& file) const;
  void report_progress(std::size_t k) const;

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
  void read_file(std::size_t k);
  // The names of the dimensions, as paths of their scales; "" for those that are not among the options'.
  std::vector<std::string> axes_of(const opened_file& file, const tree_object& o, hid_t dataset, std::size_t rank) const;
  const block_values* block_of(std::size_t k, const opened_file& file, const std::string& path);
  void read_dataset(std::size_t k, const opened_file& file, const tree_object& o);
  void require_dimensions() const;
  void place(const std::string& path, combined_dataset& d);
  array::extents first_of(const combined_dataset& d, const combined_dataset::file_part& p) const;
  // Several files have values for one place.
  void compare_repeated();
  void add_note(std::string sentence);
  void describe();
  bool is_tiled_name(const std::string& name) const;

  const combine_options& options_;
  combine_report report_;
  std::vector<io::file_state> states_;
  std::map<std::string, coordinate_blocks> blocks_;                                   // by the path of the coordinate variable
  std::map<std::string, const block_values*> coordinates_;                            // of the file that is read, by path
  std::map<std::string, combined_dataset> datasets_;                                  // by path
  std::vector<std::string> order_;                                                    // their paths, as they were first read
  std::map<std::size_t, std::vector<std::pair<std::string, std::size_t>>> repeated_;  // by file: path, and the part before it
};

}  // namespace zarrbits::repacking

#endif
