// SPDX-License-Identifier: BSL-1.0
//
// The work on one array of a Zarr store: the array, what becomes of it, and the units in which that is done.
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_ARRAY_WORK_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_ARRAY_WORK_HPP

#include "convert/from_zarr/rechunker.hpp"
#include "convert/from_zarr/source_array.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "convert/from_zarr/zarr_array_plan.hpp"
#include "convert/pipeline/converter.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

class array_work final : public object_work {
 public:
  // Plans the array, and lists its chunks. `node` is the object of this number, and both live as long as this. Throws
  // zarrbits::error.
  array_work(converter& run, const source_node& node, std::size_t number);

  const text::coded_reason& skip_reason() const override { return skip_reason_; }
  std::uint64_t units() const override;
  chunk_range unit(std::uint64_t number) const override;
  std::optional<std::uint64_t> unit_of(std::string_view coordinates) const override;
  void make(std::span<const std::uint64_t> numbers) override;

  // Makes these items, which are a unit or a sample. If packed values do not fit, the array is one of bytes. Throws
  // zarrbits::error.
  work_unit_result make_items(const chunk_range& range) const;

  // Those below are there if skip_reason() is empty.
  const source_array& array() const { return *array_; }
  const zarr_array_plan& change() const { return *change_; }
  const rechunker& chunks() const { return *chunks_; }
  // Why the array has no metadata of Zarr v2, if references or a copy are to have them; empty if it does.
  std::string v3_only_reason() const;

  // Warns if a chunk may need more memory than is allowed.
  void warn_of_chunks() const;

 private:
  void list_chunks();
  std::uint64_t per_unit() const;
  void stage(std::span<const std::uint64_t> numbers, const std::shared_ptr<work_unit_result>& staged);

  converter& run_;
  const convert_options& options_;
  const source_node& node_;
  const std::size_t number_;
  std::unique_ptr<source_array> array_;
  std::unique_ptr<const zarr_array_plan> change_;
  std::unique_ptr<rechunker> chunks_;
  text::coded_reason skip_reason_;
  std::mutex mutex_;
};

}  // namespace zarrbits::conversion

#endif
