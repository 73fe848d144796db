// SPDX-License-Identifier: BSL-1.0
//
// A Zarr store as the source of a conversion, or several that are joined: v2 or v3, a directory, a .zip file, references, or in
// S3.
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_ZARR_SOURCE_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_ZARR_SOURCE_HPP

#include "convert/from_zarr/array_work.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "convert/pipeline/conversion_source.hpp"
#include "convert/pipeline/converter.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class zarr_source final : public conversion_source {
 public:
  // Throws zarrbits::error.
  zarr_source(converter& run, convert_options& options);

  void open(bool is_case_sensitive) override;
  void report_warnings() const override;
  source_identity identity() override;
  void require_unchanged(change_check check) const override;
  bool is_consolidated() const override { return source_.consolidated; }
  std::size_t size() const override { return source_.nodes.size(); }
  bool has_chunks(std::size_t object) const override { return source_.nodes[object].is_array && source_.nodes[object].selected; }
  const std::string& path(std::size_t object) const override { return source_.nodes[object].path; }
  const std::string& store_path(std::size_t object) const override { return path(object); }
  std::shared_ptr<object_work> work(std::size_t object) override { return array(object); }
  // All chunks are listed for identity().
  bool counts_units_quickly() const override { return true; }
  std::uint64_t begin_units(bool measure) override;
  void finish_units() override { run_.queue().finish(); }
  bool downloads_ahead() const override { return false; }
  std::vector<converted_object> write_metadata() override;
  std::vector<joined_source> joined_sources() const override;
  void describe(convert_result& result, bool is_complete) override;
  void plan(convert_plan& result, const plan_options& further) override;
  bool has_local_metadata() const override { return true; }

 private:
  std::shared_ptr<array_work> array(std::size_t node);
  void require_applicable_options() const;
  converted_object write_node(std::size_t node);
  planned_dataset planned(std::size_t node);
  std::optional<std::uint64_t> estimate(std::size_t node);

  converter& run_;
  convert_options& options_;  // those of the converter
  source_nodes source_;
  std::map<std::size_t, std::shared_ptr<array_work>> works_;
};

// Throws zarrbits::error for options that have no meaning for a Zarr store.
void check_store_options(const convert_options& options);

}  // namespace zarrbits::conversion

#endif
