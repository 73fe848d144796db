// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/chunk_measurement.hpp"

#include "convert/from_hdf5/work_unit_runner.hpp"
#include "convert/pipeline/counting_writer.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "io/thread_pool.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

namespace {

// Strings of a million elements take about a second.
constexpr std::uint64_t max_elements = 1U << 20;
constexpr std::uint64_t max_chunk_bytes = 64U << 20;  // of one in a sample
constexpr std::uint64_t max_samples = 256;
constexpr std::size_t sparse_samples = 8;  // where chunks at regular distances are all absent

bool has_variable_size(const dataset_plan& dataset) {
  const auto is_variable = [](const dataset_part& part) {
    return part.kind != dataset_part::kind_type::group && hdf5::holds_references(*part.view.leaf);
  };
  return std::any_of(dataset.parts().begin(), dataset.parts().end(), is_variable);
}

bool can_be_sampled(const dataset_plan& dataset) {
  const auto is_array = [](const dataset_part& part) { return part.kind != dataset_part::kind_type::sequences; };
  const hdf5::chunk_source& data = dataset.data;
  return !data.is_remote() && std::all_of(dataset.parts().begin(), dataset.parts().end(), is_array) &&
         array::saturating_mul(data.grid.chunk_elements(), data.element_size) <= max_chunk_bytes;
}

// Makes chunks of one dataset, which go nowhere.
class chunk_sampler {
 public:
  chunk_sampler(const std::shared_ptr<const dataset_plan>& dataset, unsigned threads)
      : dataset_(dataset),
        queue_(threads, dataset->options.execution.memory / 2),
        runner_(*out_, dataset->options, queue_,
                {[this](const work_unit_id&, work_unit_result&& unit) { result_.add(std::move(unit)); },
                 [this](std::uint64_t bytes) { source_bytes_ += bytes; }}) {}

  void make(const work_unit_id& id) { runner_.run(dataset_, id); }
  // Shards from `first` on, or chunks without shards.
  void make(std::uint64_t first, std::uint64_t count) {
    const hdf5::chunk_source& data = dataset_->data;
    const double part = static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(1, data.shards.chunks()));
    runner_.run(dataset_, {0, first},
                chunk_range{first, count, static_cast<std::uint64_t>(part * static_cast<double>(data.stored_bytes))});
    chunks_ += count;
  }
  void finish() { runner_.finish(); }

  bool is_skipped() const { return !result_.skipped.empty(); }
  std::uint64_t source_bytes() const { return source_bytes_; }
  std::uint64_t store_bytes() const {
    std::uint64_t bytes = 0;
    for (const array_result& array : result_.arrays) bytes += array.store_bytes;
    return bytes;
  }
  // The factor from what was made to all chunks. Absent chunks take neither time nor space, so stored bytes are counted if there
  // are any, and chunks otherwise.
  double scale() const {
    const hdf5::chunk_source& data = dataset_->data;
    if (chunks_ >= data.shards.chunks()) return 1;
    if (source_bytes_ > 0 && data.stored_bytes > 0)  // each part reads them
      return static_cast<double>(data.stored_bytes) * static_cast<double>(count_arrays()) / static_cast<double>(source_bytes_);
    return static_cast<double>(data.shards.chunks()) / static_cast<double>(std::max<std::uint64_t>(1, chunks_));
  }
  work_unit_result take_result() { return std::move(result_); }

 private:
  std::ptrdiff_t count_arrays() const {
    return std::count_if(dataset_->parts().begin(), dataset_->parts().end(),
                         [](const dataset_part& part) { return part.kind == dataset_part::kind_type::array; });
  }

  const std::shared_ptr<const dataset_plan>& dataset_;
  const std::unique_ptr<zarr::store_writer> out_ = make_counting_writer();
  work_unit_result result_;
  std::uint64_t source_bytes_ = 0, chunks_ = 0;
  io::thread_pool queue_;
  work_unit_runner runner_;
};

// Numbers of the first stored chunks, for an array most of whose chunks are absent.
std::vector<std::uint64_t> first_stored_chunks(const dataset_plan& dataset) {
  const hdf5::chunk_source& data = dataset.data;
  std::vector<std::uint64_t> numbers;
  if (!data.can_reuse_chunks() || data.nothing_stored()) return numbers;
  data.visit_stored(0, data.shards.chunks(), [&](const array::extents& index, std::optional<std::uint64_t>) {
    numbers.push_back(array::ravel(index, data.grid.counts()));
    return numbers.size() < sparse_samples;
  });
  return numbers;
}

chunk_measurement measurement_of(chunk_sampler& sampler) {
  const double bytes = static_cast<double>(sampler.store_bytes()) * sampler.scale();
  return {static_cast<std::uint64_t>(bytes), sampler.take_result()};
}

}  // namespace

std::optional<chunk_measurement> measure_chunks(const std::shared_ptr<const dataset_plan>& dataset) {
  const hdf5::chunk_source& data = dataset->data;
  if (!has_variable_size(*dataset) || data.is_remote() || array::product(data.dims) > max_elements) return {};
  chunk_sampler sampler(dataset, 1);
  try {
    for (std::uint64_t unit = 0; unit < dataset->units(); ++unit) sampler.make({0, unit});
    sampler.finish();
  } catch (const std::exception&) {  // convert says what cannot be read
    return {};
  }
  if (sampler.is_skipped()) return {};
  const std::uint64_t bytes = sampler.store_bytes();
  return chunk_measurement{bytes, sampler.take_result()};
}

std::optional<chunk_measurement> sample_chunks(const std::shared_ptr<const dataset_plan>& dataset, std::uint64_t sample_bytes) {
  if (!can_be_sampled(*dataset)) return {};
  const hdf5::chunk_source& data = dataset->data;
  const std::uint64_t total = data.shards.chunks(),
                      chunk = std::max<std::uint64_t>(1, array::saturating_mul(data.grid.chunk_elements(), data.element_size)),
                      count = std::min(total, std::clamp<std::uint64_t>(sample_bytes / chunk, 1, max_samples));
  chunk_sampler sampler(dataset, 1);
  try {
    if (count == total) {
      if (total > 0) sampler.make(0, total);
    } else {
      // the middle of each of `count` equal parts
      for (std::uint64_t i = 0; i < count; ++i) sampler.make(total / count * i + total / count / 2, 1);
    }
    sampler.finish();
    if (count < total && sampler.store_bytes() == 0) {
      for (const std::uint64_t number : first_stored_chunks(*dataset)) sampler.make(number, 1);
      sampler.finish();
    }
  } catch (const std::exception&) {
    return {};
  }
  const bool shows_nothing = count < total && sampler.store_bytes() == 0 && data.stored_bytes > 0;
  if (sampler.is_skipped() || shows_nothing) return {};
  return measurement_of(sampler);
}

std::optional<double> measure_seconds(const std::shared_ptr<const dataset_plan>& dataset, unsigned threads, double seconds) {
  if (!can_be_sampled(*dataset)) return {};
  using clock = std::chrono::steady_clock;
  const std::uint64_t total = dataset->data.shards.chunks();
  chunk_sampler sampler(dataset, threads);
  const clock::time_point begin = clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
  try {
    // the next position is far from all before it, and no position comes twice: the step has no common divisor with the total
    std::uint64_t step = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(total) * 0.6180339887));
    while (std::gcd(step, total) > 1) ++step;
    std::uint64_t position = 0, made = 0;
    for (std::uint64_t round = threads; made < total && elapsed() < seconds; round *= 2) {
      for (std::uint64_t i = 0; i < round && made < total; ++i, ++made) {
        sampler.make(position, 1);
        position = (position + step) % total;
        if (elapsed() >= seconds) break;
      }
      sampler.finish();
    }
  } catch (const std::exception&) {
    return {};
  }
  if (sampler.is_skipped()) return {};
  return elapsed() * sampler.scale();
}

}  // namespace zarrbits::conversion
