// SPDX-License-Identifier: BSL-1.0
//
// Compares one dataset of the source with its node of the store.
//
#ifndef ZARRBITS_VERIFY_COMPARE_DATASET_HPP
#define ZARRBITS_VERIFY_COMPARE_DATASET_HPP

#include "verify/cf_meaning.hpp"
#include "verify/compare_values.hpp"
#include "verify/joined_files.hpp"
#include "verify/source_values.hpp"

#include <zarrbits/verify.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace zarrbits::io {
class thread_pool;
}

namespace zarrbits::verification {

class source_chunks;
template <class Outcome>
class ordered_outcomes;

class dataset_comparison {
 public:
  // `lengths`: of its dimensions, if a convention makes them longer than in HDF5; the rest is then fill value. `progress` is
  // called repeatedly, with the bytes that were compared since. `memory`: that of `pool`, whose threads read, decode and compare
  // chunks, and never call libhdf5.
  dataset_comparison(hid_t dataset, const source_objects& objects, std::vector<std::uint64_t> lengths,
                     std::function<void(std::uint64_t bytes)> progress, io::thread_pool& pool, std::uint64_t memory, finding& f)
      : dataset_(dataset),
        objects_(objects),
        lengths_(std::move(lengths)),
        progress_(std::move(progress)),
        pool_(pool),
        memory_(memory),
        finding_(f) {}

  // The dataset is one of several files: it is at `place` in the array, and the array may have other numbers of equal meaning.
  void set_place(const joined_place& place) { place_ = place; }

  // The file is netCDF: int8 whose attribute "dtype" is "bool", as xarray writes it, may be booleans in the store.
  void set_netcdf() { netcdf_ = true; }
  // `export` made it: it may have other types, too.
  void set_exported() { exported_ = true; }

  // `warn` is called with each array before its values are compared.
  void set_warning_callback(std::function<void(const zarr::zarr_array&)> warn) { warn_ = std::move(warn); }

  void run(const zarr::store_folder& folder);

  // For a joined array: its length along the axis, and whether it has other numbers of equal meaning.
  std::uint64_t joined_length() const noexcept { return joined_length_; }
  bool by_meaning() const noexcept { return source_meaning_.has_value(); }

  std::uint64_t elements() const noexcept { return elements_; }
  std::uint64_t elements_unchecked() const noexcept { return unchecked_; }
  const std::vector<zarr::store_folder>& only_in_store() const noexcept { return only_in_store_; }  // if the dataset is a group

 private:
  using index = std::vector<std::uint64_t>;

  // One step inward from an element: to a member of a compound, or through an array type.
  struct step {
    std::string member;
    std::vector<std::uint64_t> dims;  // not empty: an array type
  };
  // What is compared: the dataset's elements, or one member of them.
  struct view {
    const source_type& type;  // includes the array types around a member
    hid_t file_type;          // without these array types
    hid_t memory_type;
    std::vector<step> steps;  // to that member, outermost first; empty: the whole element

    std::string member() const;  // "a.b"
  };
  struct layout;
  struct array_context;
  struct chunk_part;
  struct block;
  struct outcome;
  // The elements of the source from `start` on, in the dimensions of the array; valid until the next call. Throws source_error.
  using block_reader = std::function<const std::byte*(const index& start, const index& count)>;
  // compare_sequences.cpp
  class values;
  class fixed_values;
  class sequence_values;
  class member_values;
  std::unique_ptr<values> make_values(const view& v, const source_type& type, const zarr::store_folder& folder);

  template <class F>
  void guarded(const std::string& member, F&& f);
  void compare(const zarr::store_folder& folder);
  void read_properties();
  void node(const view& v, const zarr::store_folder& folder);
  void members(const view& v, const zarr::store_folder& folder);
  void sequences(const view& v, const zarr::store_folder& folder);
  void add_rest(const zarr::child_nodes& children);
  void check_older(const zarr::store_folder& folder, const std::string& member);
  void array(const view& v, const zarr::store_folder& folder);
  bool by_value() const { return place_ || is_stored_bool_ || characters_ > 0 || fill_is_written_; }
  bool take_characters(const view& v, const zarr::zarr_array& a);
  likeness fill_value(const view& v, const layout& l, const comparison& c);
  std::optional<std::vector<index>> chunks_to_visit(const layout& l, bool& is_complete);
  static bool can_run_in_threads(const view& v, const zarr::zarr_type& stored);
  std::shared_ptr<const source_chunks> source_chunks_of(const view& v) const;
  index to_source_dims(const index& coordinates, std::size_t last) const;
  bool merge(const array_context& x, outcome& o);
  static std::string decoders_disagree(const index& start);
  chunk_part part_of(const layout& l, const index& chunk_index) const;
  bool chunk(array_context& x, const index& chunk_index, ordered_outcomes<outcome>& queue);
  static std::optional<zarr::zarr_array::object_range> find_stored(const layout& l, const index& chunk_index);
  static zarr::store_error in_chunk(const index& chunk_index, const zarr::store_error& e);
  block_reader reader(const array_context& x) const;
  void compare_part(const array_context& x, const chunk_part& p, const block_reader& read, outcome& o) const;
  bool beyond_is_fill(const array_context& x, const index& chunk_index, const zarr::element_buffer* chunk, outcome& o) const;
  bool elements_of(const block& b, const comparison& c, outcome& o) const;
  bool stored_in_source(const layout& l, const index& chunk) const;
  void conclude(verdict v, const std::string& reason, const std::string& member);
  bool report_difference(const view& v, const index& coordinates, const difference& d);

  hid_t dataset_;
  const source_objects& objects_;
  std::vector<std::uint64_t> lengths_;
  std::function<void(std::uint64_t bytes)> progress_;
  std::function<void(const zarr::zarr_array&)> warn_;
  io::thread_pool& pool_;
  const std::uint64_t memory_;
  finding& finding_;
  std::vector<zarr::store_folder> only_in_store_;
  std::uint64_t elements_ = 0;
  std::uint64_t unchecked_ = 0;

  index source_index_of(const index& in_store) const;
  void find_meaning(const zarr::zarr_array& a, const zarr::store_folder& folder);
  likeness compare_meaning(const source_type& t, const std::byte* source, const zarr::zarr_type& type, const zarr_element& store,
                           difference& d) const;

  index dims_;
  std::optional<joined_place> place_;
  std::uint64_t joined_length_ = 0;
  std::optional<cf_meaning> source_meaning_, store_meaning_;  // both set, or neither: then numbers are compared as they are
  hdf5::handle properties_;
  std::vector<std::uint64_t> source_chunk_;  // chunk shape of the source; empty: not chunked
  bool nothing_stored_ = false;              // no element was ever written
  bool may_be_undefined_ = false;            // elements never written have no defined value
  bool netcdf_ = false;
  bool exported_ = false;
  std::size_t characters_ = 0;  // texts of this length are characters along a last dimension, which dims_ does not have
  bool is_v2_ = false;          // the store
  std::shared_ptr<source_values> source_fill_;  // null, or that of the source: Zarr v2 has another one
  bool fill_is_written_ = false;                // in all chunks that the store does not have
  bool is_stored_bool_ = false;                 // it is such an int8: its fill value need not be a boolean
  bool index_unreliable_ = false;               // libhdf5 may list chunks at wrong coordinates
};

}  // namespace zarrbits::verification

#endif
