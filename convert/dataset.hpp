// SPDX-License-Identifier: BSL-1.0
//
// One HDF5 dataset to a Zarr array, or to a group of arrays where no array can hold it.
//
#ifndef ZARRBITS_CONVERT_DATASET_HPP
#define ZARRBITS_CONVERT_DATASET_HPP

#include "convert/dimensions.hpp"
#include "convert/node.hpp"
#include "convert/sink.hpp"
#include "convert/source.hpp"

#include <zarrbits/convert.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct conversion_context {
  const convert_options& options;
  source_file& source;
  sink& out;
  dimension_namer& dimensions;
  std::function<void(std::uint64_t stored_bytes)> advance;
};

// What stands in the way of one dataset; the rest of the file goes on. what() is the reason.
struct skip_dataset : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A part of a dataset's values that becomes one array: all of them, or one member of a compound.
struct value_view {
  const type_tree* leaf = nullptr;  // the type of one value, not an array type
  std::vector<hsize_t> extra;       // extents that array types add
  h5::handle memory;                // what H5Dread is asked for
  std::size_t size = 0;             // bytes of it for one element of the dataset
  bool whole = true;                // not a member

  std::uint64_t per_element() const { return product(extra); }
};

class dataset_job {
 public:
  dataset_job(conversion_context& context, const source_object& object);

  // Writes the node(s). Fills `entry` (outcome, chunks, reason) and `attributes_report`. What it throws has cost the dataset only
  // (skip_dataset, h5::failure), or the whole conversion (convert_error).
  void run(converted_object& entry, std::vector<converted_object>& attributes_report);

 private:
  struct step {
    const type_tree* array = nullptr;   // one of the two
    const type_tree* member = nullptr;
  };
  value_view make_view(const type_tree& type, std::vector<step> steps) const;

  void choose_grid();
  void write_null();
  void write_view(const value_view& view, const std::vector<step>& steps, const std::string& store_path, json attributes);
  void write_array(const value_view& view, const std::string& store_path, json attributes);
  void write_members(const type_tree& compound, const std::vector<step>& steps, const std::string& store_path, json attributes);
  void write_sequences(const value_view& view, const std::string& store_path, json attributes);

  json own_attributes() const;
  bool nothing_stored() const;
  std::function<bool(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count)> mapped_test() const;
  bool virtual_source_exists(std::size_t mapping) const;
  void read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                  const std::vector<hsize_t>& room, buffer& out) const;
  bool chunk_loses(const std::vector<hsize_t>& at) const;

  class array_writer;
  friend class array_writer;

  conversion_context& context_;
  const source_object& object_;
  h5::handle dataset_, stored_type_, space_, dcpl_;
  type_tree type_;
  std::vector<hsize_t> dims_, max_dims_;
  H5D_layout_t layout_ = H5D_CONTIGUOUS;
  pipeline pipeline_;
  chunk_grid grid_;
  bool external_ = false;
  converted_object* entry_ = nullptr;
};

// Values one after the other into 1-dimensional arrays; for what variable-length sequences hold.
class value_appender {
 public:
  virtual ~value_appender() = default;
  virtual void append(const std::byte* values, std::size_t count) = 0;
  virtual void finish() = 0;  // writes the metadata
  // Null where Zarr cannot hold values of this type.
  static std::unique_ptr<value_appender> make(conversion_context& context, const type_tree& type, const std::string& store_path,
                                              converted_object& entry);
};

}  // namespace zarrbits::conversion

#endif
