// SPDX-License-Identifier: BSL-1.0
#include "convert/run/chunk_measurement.hpp"

#include "convert/run/work_unit_runner.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "io/thread_pool.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Strings of a million elements take about a second.
constexpr std::uint64_t max_elements = 1U << 20;

class counting_writer final : public zarr::store_writer {
 public:
  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override { count(key, bytes.size()); }
  std::unique_ptr<zarr::object_writer> begin(std::string_view key) override { return zarr::buffered_object(*this, key); }
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override {
    put(key, bytes);
    return true;
  }
  std::optional<std::vector<std::byte>> get(std::string_view) override { return {}; }
  std::vector<std::string> list(std::string_view) override { return {}; }
  void for_each(std::string_view, const std::function<void(std::string_view, std::uint64_t)>&) override {}
  void append(std::string_view, std::string_view) override {}
  void remove(std::string_view) override {}
  void finish() override {}
};

bool has_variable_size(const dataset_plan& dataset) {
  const auto is_variable = [](const dataset_part& part) {
    return part.kind != dataset_part::kind_type::group && hdf5::holds_references(*part.view.leaf);
  };
  return std::any_of(dataset.parts().begin(), dataset.parts().end(), is_variable);
}

}  // namespace

std::optional<std::uint64_t> measure_chunks(const std::shared_ptr<const dataset_plan>& dataset) {
  const hdf5::chunk_source& data = dataset->data;
  if (!has_variable_size(*dataset) || data.is_remote() || array::product(data.dims) > max_elements) return {};
  counting_writer out;
  std::uint64_t bytes = 0;
  bool skipped = false;
  io::thread_pool queue(1, dataset->options.memory / 2);
  work_unit_runner runner(out, dataset->options, queue,
                          {[&](const work_unit_id&, work_unit_result&& result) {
    skipped = skipped || !result.skipped.empty();
    for (const array_result& array : result.arrays) bytes += array.store_bytes;
                           },
                           [](std::uint64_t) {}});
  try {
    for (std::uint64_t unit = 0; unit < dataset->units(); ++unit) runner.run(dataset, {0, unit});
    runner.finish();
  } catch (const std::exception&) {  // convert says what cannot be read
    return {};
  }
  if (skipped) return {};
  return bytes;
}

}  // namespace zarrbits::conversion
