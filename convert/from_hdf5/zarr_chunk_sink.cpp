// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/zarr_chunk_sink.hpp"

#include "hdf5/source_files.hpp"
#include "io/files.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "remote/remote_file.hpp"

#include <zarrbits/convert.hpp>

#include <utility>

namespace zarrbits::conversion {

zarr_chunk_sink::zarr_chunk_sink(zarr::store_writer& out, const std::string& node, const array_plan& plan,
                                 std::shared_ptr<zarr::concurrent_shard> shard, std::uint64_t turn)
    : out_(out), node_(node), plan_(plan), shard_(std::move(shard)), turn_(turn) {}

void zarr_chunk_sink::put(const array::extents& chunk_index, compressors::buffer bytes) {
  if (!shard_) out_.put(key(chunk_index), bytes);
  else pending_.push_back({number_in_shard(chunk_index), std::move(bytes)});
}

void zarr_chunk_sink::put(const array::extents& chunk_index, std::span<const std::byte> bytes) {
  if (!shard_) out_.put(key(chunk_index), bytes);
  else pending_.push_back({number_in_shard(chunk_index), {bytes.begin(), bytes.end()}});
}

void zarr_chunk_sink::put_range(const array::extents& chunk_index, const stored_range& range) {
  const auto source = plan_.data.bytes_of(range.file);
  if (const remote::remote_file* remote = out_.supports_references() ? source->remote() : nullptr)
    return out_.put_reference(key(chunk_index), remote->name(), remote->state(), range.offset, range.size);
  if (!shard_) return out_.put_range(key(chunk_index), source->descriptor(), range.offset, range.size);
  io::require_range(source->descriptor(), range.offset, range.size);  // afterwards libhdf5 could no longer be asked for the chunk
  pending_.push_back({number_in_shard(chunk_index), {}, range});
}

std::uint64_t zarr_chunk_sink::finish(bool is_complete) {
  if (!shard_) return 0;
  if (!is_complete) return shard_->run_turn(turn_, {});
  return shard_->run_turn(turn_, [&](zarr::shard_writer& shard) {
    for (std::size_t i = 0; i < pending_.size();) {
      const pending_chunk& first = pending_[i];
      if (!first.in_file) {
        shard.add(first.index_in_shard, first.bytes);
        ++i;
        continue;
      }
      const std::vector<std::uint64_t> sizes = contiguous_sizes(i);
      try {
        shard.add_range(first.index_in_shard, plan_.data.bytes_of(first.in_file->file)->descriptor(), first.in_file->offset,
                        sizes);
      } catch (const io::read_error& e) {  // the file was longer when it was opened
        throw zarrbits::error(errc::io_failed,
                              "the source \"" + plan_.data.file.path() + "\" cannot be read: " + e.what() +
                                  "; check that it still exists and is complete",
                              {plan_.data.file.path(), plan_.data.object.path});
      }
      i += sizes.size();
    }
  });
}

// Sizes of the chunks from pending_[i] on that are contiguous both in the file and in the shard; at least one.
std::vector<std::uint64_t> zarr_chunk_sink::contiguous_sizes(std::size_t i) const {
  std::vector<std::uint64_t> sizes{pending_[i].in_file->size};
  for (++i; i < pending_.size() && sizes.back() < zarr::shard_writer::worth_a_gap; ++i) {
    const pending_chunk &previous = pending_[i - 1], &next = pending_[i];
    const auto &previous_range = previous.in_file, &next_range = next.in_file;
    const bool follows = next_range && next.index_in_shard == previous.index_in_shard + 1 &&
                         next_range->file == previous_range->file &&
                         next_range->offset == previous_range->offset + previous_range->size;
    if (!follows || next_range->size >= zarr::shard_writer::worth_a_gap) break;
    sizes.push_back(next_range->size);
  }
  return sizes;
}

std::string zarr_chunk_sink::key(const array::extents& chunk_index) const {
  return metadata::chunk_key(node_, chunk_index, plan_.trailing);
}

std::size_t zarr_chunk_sink::number_in_shard(const array::extents& chunk_index) const {
  return static_cast<std::size_t>(plan_.data.shards.offset_in_chunk(chunk_index));
}

}  // namespace zarrbits::conversion
