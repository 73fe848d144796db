// SPDX-License-Identifier: BSL-1.0
#include "digest/zarr_digest.hpp"

#include "array/extents.hpp"
#include "codecs/codec_chain.hpp"
#include "compressors/buffer.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "digest/array_sum.hpp"
#include "digest/conversion_source.hpp"
#include "io/s3_access.hpp"
#include "io/thread_pool.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "zarr/read/unreadable_node.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace zarrbits::digesting {

namespace {

class store_digest {
 public:
  explicit store_digest(const digest_options& options)
      : options_(options),
        threads_(options.threads ? options.threads : detail::usable_processors()),
        queue_(threads_, options.memory / 2) {}

  std::vector<array_digest> run() {
    const conversion::source_nodes nodes =
        conversion::read_nodes(conversion_source(options_), [&](const std::string& path) { set_path(path); });
    std::vector<array_digest> arrays;
    for (const conversion::source_node& node : nodes.nodes) {
      if (!node.selected || (!node.is_array && node.unreadable.empty())) continue;
      arrays.push_back(digest_of(node));
    }
    return arrays;
  }

 private:
  // That one task reads.
  static constexpr std::size_t max_objects = 16;

  // Some chunks of an object, which is a shard or, without shards, a chunk.
  struct object_range {
    array::extents object;
    std::uint64_t first = 0, count = 0;
  };

  struct array_job {
    array_job(zarr::zarr_array a, std::string p, bool any_nan)
        : array(std::move(a)), path(std::move(p)), sum({array.type(), any_nan}, array.shape(), array.fill()) {}
    const zarr::zarr_array array;
    const std::string path;
    array_sum sum;
  };

  array_digest digest_of(const conversion::source_node& node) {
    set_path(node.path);
    array_digest result{node.path, {}, {}, {}, node.unreadable};
    if (!node.unreadable.empty()) return result;
    std::optional<zarr::zarr_array> array;
    result.reason = zarr::reason_unreadable([&] {
      array.emplace(node.folder, codecs::make_decoder);
      array->require_decodable();
    });
    if (!result.reason.empty()) return result;
    const auto job = std::make_shared<array_job>(*array, node.path, options_.any_nan);
    const std::uint64_t cost = array::saturating_mul(3 * job->sum.form().size(), array::product(array->chunk_shape()));
    const std::uint64_t chunks = array::product(array->chunks_per_shard()), ranges = chunks < 4 * threads_ ? 1 : threads_;
    std::vector<object_range> objects;
    const auto submit = [&] {
      if (objects.empty()) return;
      queue_.submit(cost, [this, job, batch = std::exchange(objects, {})] {
        const zarr::zarr_array own = job->array;  // it keeps an open shard
        for (const object_range& range : batch) add_chunks(*job, own, range);
      });
    };
    array->for_each_object([&](const array::extents& index, const zarr::store_entry&) {
      for (std::uint64_t i = 0; i < ranges; ++i) {
        objects.push_back({index, chunks / ranges * i + std::min(i, chunks % ranges), chunks / ranges + (i < chunks % ranges)});
        if (ranges > 1 || objects.size() >= max_objects || cost >= 1U << 20) submit();
      }
      return true;
    });
    submit();
    queue_.finish();
    result.data_type = job->sum.form().name();
    result.shape = job->sum.shape();
    result.digest = job->sum.digest();
    return result;
  }

  void add_chunks(array_job& job, const zarr::zarr_array& array, const object_range& range) {
    const array::extents& per_shard = array.chunks_per_shard();
    for (std::uint64_t number = range.first; number < range.first + range.count; ++number) {
      array::extents chunk = array::unravel(number, per_shard);
      bool exists = true;
      for (std::size_t d = 0; d < chunk.size(); ++d) {
        chunk[d] += range.object[d] * per_shard[d];
        exists = exists && chunk[d] < array.chunks()[d];
      }
      if (exists) add_chunk(job, array, chunk);
    }
  }

  void add_chunk(array_job& job, const zarr::zarr_array& array, const array::extents& index) {
    array::box chunk{{}, array.shape_of(index)};
    for (std::size_t d = 0; d < index.size(); ++d) chunk.first.push_back(array.grid(d).start(index[d]));
    const auto damaged = [&](const std::string& reason) {
      const bool has_remedy = reason.find("; ") != std::string::npos;
      return error(errc::damaged_source,
                   "chunk [" + array::joined_text(index, ',') + "] of array \"" + job.path + "\" cannot be read: " + reason +
                       (has_remedy ? "" : "; get the store again, or set `exclude` to that array"),
                   {options_.source, job.path});
    };
    try {
      auto stored = array.read_stored(index);
      if (!stored) return;
      const std::uint64_t bytes = stored->size();
      zarr::element_buffer values;
      array.decode(index, std::move(*stored), values);
      job.sum.add(chunk, values);
      const std::lock_guard lock(mutex_);
      done_ += bytes;
      if (options_.progress) options_.progress(job.path, done_, 0);
    } catch (const zarr::store_error& e) {
      if (e.code != errc::damaged_store) throw;
      throw damaged(e.what());
    } catch (const compressors::corrupt_chunk& e) {
      throw damaged(e.what());
    }
  }

  void set_path(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (options_.progress) options_.progress(path, done_, 0);
  }

  const digest_options& options_;
  const unsigned threads_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  io::thread_pool queue_;
};

}  // namespace

std::vector<array_digest> digest_zarr(const digest_options& options) {
  io::init_s3({options.source}, "", options.remote, options.warning);
  return store_digest(options).run();
}

}  // namespace zarrbits::digesting
