// SPDX-License-Identifier: BSL-1.0
#include "convert/run/chunk_destination.hpp"

#include "hdf5/source_files.hpp"
#include "io/files.hpp"
#include "io/remote_file.hpp"
#include "zarr/write/node.hpp"

#include <zarrbits/convert.hpp>

#include <utility>

namespace zarrbits::conversion {

chunk_destination::chunk_destination(zarr::sink& out, const std::string& node, const array_plan& plan,
                                     std::shared_ptr<zarr::concurrent_shard> shard, std::uint64_t turn)
    : out_(out), node_(node), plan_(plan), shard_(std::move(shard)), turn_(turn) {}

void chunk_destination::put(const std::vector<hsize_t>& at, compressors::buffer bytes) {
  if (!shard_) out_.put(key(at), bytes);
  else waiting_.push_back({number_in_shard(at), std::move(bytes)});
}

void chunk_destination::put(const std::vector<hsize_t>& at, std::span<const std::byte> bytes) {
  if (!shard_) out_.put(key(at), bytes);
  else waiting_.push_back({number_in_shard(at), {bytes.begin(), bytes.end()}});
}

void chunk_destination::put_range(const std::vector<hsize_t>& at, const stored_range& range) {
  const auto from = plan_.data.bytes_of(range.file);
  if (const io::remote_file* remote = out_.refers() ? from->remote() : nullptr)
    return out_.refer(key(at), remote->name(), remote->state(), range.offset, range.size);
  if (!shard_) return out_.put_range(key(at), from->descriptor(), range.offset, range.size);
  io::require_range(from->descriptor(), range.offset, range.size);  // afterwards libhdf5 could no longer be asked for the chunk
  waiting_.push_back({number_in_shard(at), {}, range});
}

std::uint64_t chunk_destination::finish(bool whole) {
  if (!shard_) return 0;
  if (!whole) return shard_->take(turn_, {});
  return shard_->take(turn_, [&](zarr::shard_writer& shard) {
    for (std::size_t i = 0; i < waiting_.size();) {
      const waiting& first = waiting_[i];
      if (!first.in_file) {
        shard.add(first.at, first.bytes);
        ++i;
        continue;
      }
      const std::vector<std::uint64_t> sizes = run_from(i);
      try {
        shard.add_range(first.at, plan_.data.bytes_of(first.in_file->file)->descriptor(), first.in_file->offset, sizes);
      } catch (const io::unreadable_range& e) {  // the file was longer when it was opened
        throw zarrbits::error(errc::io_failed,
                              "the source \"" + plan_.data.file.path() + "\" cannot be read: " + e.what() +
                                  "; check that it still exists and is complete",
                              {plan_.data.file.path(), plan_.data.object.path});
      }
      i += sizes.size();
    }
  });
}

// Sizes of the chunks from waiting_[i] on that are contiguous both in the file and in the shard; at least one.
std::vector<std::uint64_t> chunk_destination::run_from(std::size_t i) const {
  std::vector<std::uint64_t> sizes{waiting_[i].in_file->size};
  for (++i; i < waiting_.size() && sizes.back() < zarr::shard_writer::worth_a_gap; ++i) {
    const waiting &before = waiting_[i - 1], &next = waiting_[i];
    const auto &from = before.in_file, &to = next.in_file;
    const bool follows = to && next.at == before.at + 1 && to->file == from->file && to->offset == from->offset + from->size;
    if (!follows || to->size >= zarr::shard_writer::worth_a_gap) break;
    sizes.push_back(to->size);
  }
  return sizes;
}

std::string chunk_destination::key(const std::vector<hsize_t>& at) const {
  return zarr::chunk_key(node_, hdf5::key_numbers(at), plan_.trailing);
}

std::size_t chunk_destination::number_in_shard(const std::vector<hsize_t>& at) const {
  return static_cast<std::size_t>(plan_.data.shards.number_in_chunk(at));
}

}  // namespace zarrbits::conversion
