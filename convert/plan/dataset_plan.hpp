// SPDX-License-Identifier: BSL-1.0
//
// The plan for one HDF5 dataset: a Zarr array, or a group of arrays if no array can hold it; and the units in which its chunks
// are made.
//
#ifndef ZARRBITS_CONVERT_PLAN_DATASET_PLAN_HPP
#define ZARRBITS_CONVERT_PLAN_DATASET_PLAN_HPP

#include "convert/plan/array_plan.hpp"
#include "hdf5/chunk_source.hpp"

#include <zarrbits/convert.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

// One of the nodes that a dataset becomes.
struct dataset_part {
  enum class kind_type { array, sequences, group } kind = kind_type::array;
  std::string store_path;
  field_view view = {};                          // array, sequences
  text::json attributes = text::json::object();  // attributes of a member
};

class dataset_plan {
  const std::unique_ptr<hdf5::chunk_source> source_;

 public:
  // Opens the dataset. Throws hdf5::failure.
  dataset_plan(hdf5::source_file& file, const hdf5::source_object& object, const convert_options& options);
  dataset_plan(const dataset_plan&) = delete;
  dataset_plan& operator=(const dataset_plan&) = delete;

  // Finds the parts, once. Throws unsupported_dataset, hdf5::failure; the plan must not be used then.
  void prepare();

  // After prepare(): each chunk is an object, as of an array without shards.
  void remove_shards();

  const hdf5::chunk_source& data;
  const convert_options& options;

  // After prepare(): the nodes, in the order in which they are written; the last one is at the dataset's own path. None for a
  // null dataspace.
  const std::vector<dataset_part>& parts() const { return parts_; }
  // The plan of the array that such a part becomes; made once for each set of assumptions. Call it after prepare(), under
  // hdf5::lock or alone. Throws unsupported_dataset.
  std::shared_ptr<const array_plan> array(std::size_t part, const assumptions& assumed = {}) const;
  std::uint64_t units() const { return units_; }
  // False if the dataset is a single unit: one chunk may change how all are made.
  bool divisible() const { return divisible_; }
  chunk_range unit(std::uint64_t number) const;
  // For a divisible dataset: the unit of the chunk or shard whose key ends in this, "3/0". Empty if absent.
  std::optional<std::uint64_t> unit_of(std::string_view coordinates) const;

  // Attributes for facts that Zarr has no place for.
  text::json own_attributes() const;

 private:
  struct step {
    const hdf5::type_description* array = nullptr;  // one of the two
    const hdf5::type_description* member = nullptr;
  };
  field_view make_view(const hdf5::type_description& type, std::vector<step> steps) const;
  void add_parts(const hdf5::type_description& type, const std::vector<step>& steps, const std::string& store_path,
                 text::json attributes);
  void choose_units();

  struct cached_plan {
    std::size_t part;
    assumptions assumed;
    std::shared_ptr<const array_plan> plan;
  };

  std::vector<dataset_part> parts_;
  mutable std::vector<cached_plan> plans_;
  std::uint64_t units_ = 0, per_unit_ = 0;
  bool divisible_ = false, prepared_ = false;
};

}  // namespace zarrbits::conversion

#endif
