// SPDX-License-Identifier: BSL-1.0
//
// An HDF5 file as the source of a conversion, or several that are joined.
//
//   hdf5_conversion run(options, converter::mode::full);
//   run.run();
//   run.source().file().objects();
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_HDF5_SOURCE_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_HDF5_SOURCE_HPP

#include "conventions/convention_rules.hpp"
#include "convert/concat/join_files.hpp"
#include "convert/from_hdf5/work_unit_runner.hpp"
#include "convert/pipeline/converter.hpp"
#include "convert/plan/dataset_plan.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class hdf5_source final : public conversion_source {
 public:
  // `grown`: the store whose arrays grow; only new chunks are made then. Throws zarrbits::error.
  hdf5_source(converter& run, convert_options& options, std::shared_ptr<const append::append_target> grown);

  void open(bool is_case_sensitive) override;
  void report_warnings() const override;
  source_identity identity() override;
  void require_unchanged(change_check check) const override;
  bool is_consolidated() const override { return rules_ && rules_->consolidated; }
  std::size_t size() const override { return file_->objects().size(); }
  bool has_chunks(std::size_t object) const override {
    return file_->objects()[object].kind == hdf5::source_object::kind_type::dataset;
  }
  const std::string& path(std::size_t object) const override { return file_->objects()[object].path; }
  const std::string& store_path(std::size_t object) const override { return file_->objects()[object].store_path; }
  std::shared_ptr<object_work> work(std::size_t object) override;
  bool counts_units_quickly() const override;
  std::uint64_t begin_units(bool measure) override;
  void finish_units() override { runner_->finish(); }
  bool downloads_ahead() const override { return is_remote(); }
  std::vector<converted_object> write_metadata() override;
  std::vector<joined_source> joined_sources() const override { return joined_.sources; }
  void describe(convert_result& result, bool is_complete) override;
  void plan(convert_plan& result, const plan_options& further) override;
  bool has_local_metadata() const override { return !is_remote(); }

  converter& run() { return run_; }
  const convert_options& options() const { return options_; }
  work_unit_runner& runner() { return *runner_; }
  // The first of several files.
  hdf5::source_file& file() { return *file_; }
  const hdf5::source_files& files() const { return *joined_.files; }
  // The convention that the store follows; null: none.
  const conventions::convention_rules* rules() const { return rules_; }
  zarrbits::convention convention() const { return rules_ ? rules_->kind : zarrbits::convention::none; }

  // A dataset, planned. Later calls return the same one if it is still open: as many stay open until close() as the memory
  // allows. Throws unsupported_dataset, hdf5::failure. Only one thread may call it.
  std::shared_ptr<dataset_plan> planned(std::size_t index);
  // Like planned(), before dataset_plan::prepare(); its attributes can be read even if that throws.
  std::shared_ptr<dataset_plan> opened(std::size_t index);
  void close(std::size_t index) { open_datasets_.erase(index); }

 private:
  bool is_remote() const;
  void order_sources();
  std::unique_ptr<hdf5::source_file> open_first(bool is_case_sensitive);
  void warn_of_chunks(const hdf5::source_object& o, const dataset_plan& dataset) const;
  void estimate(std::size_t index, const std::shared_ptr<dataset_plan>& dataset, std::uint64_t sample_bytes, planned_dataset& p);
  std::optional<double> estimate_seconds(const convert_plan& plan);

  converter& run_;
  convert_options& options_;  // those of the converter
  hdf5::source_options source_options_;
  std::vector<std::string> sources_;  // of several files: all, in their order
  source_name name_;                  // the source or, of several files, the first
  std::unique_ptr<hdf5::source_file> file_;
  std::shared_ptr<const append::append_target> grown_;
  joined_store joined_;
  std::vector<std::string> coordinates_;  // variables of what `include` selects, and that it does not
  const conventions::convention_rules* rules_ = nullptr;
  std::map<std::size_t, std::shared_ptr<dataset_plan>> open_datasets_;
  std::unique_ptr<work_unit_runner> runner_;
};

// A conversion of HDF5 files.
class hdf5_conversion : public converter {
 public:
  // `grown`: see hdf5_source. Throws zarrbits::error.
  hdf5_conversion(const convert_options& options, mode run_mode, const std::shared_ptr<const append::append_target>& grown = {},
                  const start_time& started = {})
      : converter(
            options, run_mode,
            [&](converter& run, convert_options& all) { return std::make_unique<hdf5_source>(run, all, grown); }, started) {}

  hdf5_source& source() { return static_cast<hdf5_source&>(converter::source()); }
};

}  // namespace zarrbits::conversion

#endif
