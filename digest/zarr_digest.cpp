// SPDX-License-Identifier: BSL-1.0
#include "digest/zarr_digest.hpp"

#include "array/extents.hpp"
#include "array/work_partition.hpp"
#include "codecs/codec_chain.hpp"
#include "compressors/buffer.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "digest/array_sum.hpp"
#include "digest/canonical_attributes.hpp"
#include "digest/digest_source.hpp"
#include "digest/partial_digests.hpp"
#include "io/thread_pool.hpp"
#include "metadata/node.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "zarr/read/unreadable_node.hpp"

#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <map>
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

  void run(digest_report& report) {
    const conversion::source_nodes nodes =
        conversion::read_nodes(conversion_source(options_), [&](const std::string& path) { set_path(path); });
    if (options_.partition) count_work(nodes);
    for (const conversion::source_node& node : nodes.nodes) {
      if (!node.selected) continue;
      if (report.attributes && node.unreadable.empty()) {
        const std::string attributes = digest_attributes(metadata::attributes_of(node.document));
        if (!attributes.empty()) report.attributes->push_back({node.path, attributes});
      }
      if (node.is_array || !node.unreadable.empty()) report.arrays.push_back(digest_of(node));
    }
  }

 private:
  // That one task reads.
  static constexpr std::size_t max_objects = 16;

  // Some chunks of an object, which is a shard or, without shards, a chunk.
  struct object_range {
    array::extents object;
    std::uint64_t first = 0, count = 0;
    std::uint64_t state = 0;  // its fingerprint
  };

  // Where the objects of an array are among all of the source: the shares are ranges of these of about equal work.
  struct work_range {
    array::extents objects;
    double preceding = 0, per_object = 0;
  };

  struct array_job {
    array_job(zarr::zarr_array a, std::string p, bool any_nan)
        : array(std::move(a)), path(std::move(p)), sum({array.type(), any_nan}, array.shape(), array.fill()) {}
    const zarr::zarr_array array;
    const std::string path;
    array_sum sum;
  };

  // Empty with the reason.
  static std::optional<zarr::zarr_array> open_array(const conversion::source_node& node, text::coded_reason& reason) {
    std::optional<zarr::zarr_array> array;
    reason = !node.unreadable.empty() ? node.unreadable : zarr::reason_unreadable([&] {
      array.emplace(node.folder, codecs::make_decoder);
      array->require_decodable();
    });
    if (!reason.empty()) array.reset();
    return array;
  }

  void count_work(const conversion::source_nodes& nodes) {
    std::map<std::string, const conversion::source_node*> arrays;  // in an order that is the same for all processes
    for (const conversion::source_node& node : nodes.nodes) {
      if (node.selected && node.is_array) arrays.emplace(node.path, &node);
    }
    for (const auto& [path, node] : arrays) {
      text::coded_reason reason;
      const auto array = open_array(*node, reason);
      if (!array) continue;
      work_range range{{}, work_, array::work_per_object};
      double objects = 1;
      for (std::size_t d = 0; d < array->chunks().size(); ++d) {
        const std::uint64_t per_object = array->chunks_per_shard()[d];
        range.objects.push_back(array->chunks()[d] / per_object + (array->chunks()[d] % per_object != 0));
        objects *= static_cast<double>(range.objects.back());
      }
      range.per_object += static_cast<double>(
          array::saturating_mul(array::saturating_mul(array->type().size, array::product(array->chunk_shape())),
                                array::product(array->chunks_per_shard())));
      work_ += objects * range.per_object;
      work_ranges_.emplace(path, std::move(range));
    }
  }

  bool is_own(const std::string& path, const array::extents& object) const {
    if (!options_.partition) return true;
    const work_range& range = work_ranges_.at(path);
    double preceding = range.preceding + static_cast<double>(array::ravel(object, range.objects)) * range.per_object;
    return array::partition_of(preceding, range.per_object, work_, options_.partition->count) == options_.partition->index;
  }

  array_digest digest_of(const conversion::source_node& node) {
    set_path(node.path);
    text::coded_reason reason;
    const auto array = open_array(node, reason);
    if (!array) return skipped_array(node.path, reason);
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
    const auto add_object = [&](const array::extents& index, const zarr::store_entry& object) {
      if (!is_own(node.path, index)) return true;
      for (std::uint64_t i = 0; i < ranges; ++i) {
        objects.push_back({index, chunks / ranges * i + std::min(i, chunks % ranges), chunks / ranges + (i < chunks % ranges),
                           zarr::fingerprint(object.state)});
        if (ranges > 1 || objects.size() >= max_objects || cost >= 1U << 20) submit();
      }
      return true;
    };
    // no reader finds "c/00", which is not the chunk "c/0" again
    array->for_each_object(add_object, [](const auto&, const auto&, const auto&) {});
    submit();
    queue_.finish();
    return summed_array(node.path, job->sum, options_.partition.has_value());
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
      if (exists) add_chunk(job, array, chunk, range);
    }
  }

  // The object is in the state in which it was listed.
  void require_unchanged(const array_job& job, const zarr::stored_object* object, const object_range& range) const {
    if (object && zarr::fingerprint(object->state()) == range.state) return;
    throw error(errc::changed,
                "array \"" + job.path + "\" of \"" + options_.source +
                    "\" was changed while it was read; make the digest when no other process writes to it",
                {options_.source, job.path});
  }

  void add_chunk(array_job& job, const zarr::zarr_array& array, const array::extents& index, const object_range& range) {
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
      const auto stored = array.find_stored(index);
      require_unchanged(job, stored ? stored->object.get() : array.open_object(range.object).get(), range);
      if (!stored) return;
      std::vector<std::byte> bytes_of_chunk = zarr::zarr_array::read(*stored);
      require_unchanged(job, stored->object.get(), range);  // it may have been written in place meanwhile
      const std::uint64_t bytes = bytes_of_chunk.size();
      zarr::element_buffer values;
      array.decode(index, std::move(bytes_of_chunk), values);
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
  double work_ = 0;                                // of all arrays, in bytes
  std::map<std::string, work_range> work_ranges_;  // of each that can be read
  io::thread_pool queue_;
};

}  // namespace

void digest_zarr(const digest_options& options, digest_report& report) { store_digest(options).run(report); }

}  // namespace zarrbits::digesting
