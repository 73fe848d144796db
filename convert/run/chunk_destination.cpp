// SPDX-License-Identifier: BSL-1.0
#include "convert/run/chunk_destination.hpp"

#include "convert/io/files.hpp"
#include "convert/store/node.hpp"

#include <zarrbits/convert.hpp>

#include <utility>

namespace zarrbits::conversion {

chunk_destination::chunk_destination(sink& out, const source_file& source, const std::string& node, const array_plan& plan,
                                     std::shared_ptr<concurrent_shard> shard, std::uint64_t turn)
    : out_(out), source_(source), node_(node), plan_(plan), shard_(std::move(shard)), turn_(turn) {}

void chunk_destination::put(const std::vector<hsize_t>& at, buffer bytes) {
  if (!shard_) out_.put(key(at), bytes);
  else waiting_.push_back({number_in_shard(at), std::move(bytes)});
}

void chunk_destination::put_range(const std::vector<hsize_t>& at, std::uint64_t offset, std::uint64_t size) {
  if (!shard_) return out_.put_range(key(at), source_.descriptor(), offset, size);
  source_.require_range(offset, size);  // later, libhdf5 could no longer be asked for the chunk
  waiting_.push_back({number_in_shard(at), {}, true, offset, size});
}

std::uint64_t chunk_destination::finish(bool whole) {
  if (!shard_) return 0;
  if (!whole) return shard_->take(turn_, {});
  return shard_->take(turn_, [&](shard_writer& shard) {
    for (std::size_t i = 0; i < waiting_.size();) {
      const waiting& first = waiting_[i];
      if (!first.in_file) {
        shard.add(first.at, first.bytes);
        ++i;
        continue;
      }
      const std::vector<std::uint64_t> sizes = run_from(i);
      try {
        shard.add_range(first.at, source_.descriptor(), first.offset, sizes);
      } catch (const unreadable_range& e) {  // it was there when the file was opened
        throw convert_error("the source \"" + source_.path() + "\" cannot be read: " + e.what() +
                            "; is it still there, and whole?");
      }
      i += sizes.size();
    }
  });
}

// Sizes of chunks, from waiting_[i] on, that follow each other in the file and in the shard and are one range; at least one.
std::vector<std::uint64_t> chunk_destination::run_from(std::size_t i) const {
  std::vector<std::uint64_t> sizes{waiting_[i].size};
  for (++i; i < waiting_.size() && sizes.back() < shard_writer::worth_a_gap; ++i) {
    const waiting &before = waiting_[i - 1], &next = waiting_[i];
    const bool follows = next.in_file && next.at == before.at + 1 && next.offset == before.offset + before.size;
    if (!follows || next.size >= shard_writer::worth_a_gap) break;
    sizes.push_back(next.size);
  }
  return sizes;
}

std::string chunk_destination::key(const std::vector<hsize_t>& at) const {
  return chunk_key(node_, key_numbers(at), plan_.trailing);
}

std::size_t chunk_destination::number_in_shard(const std::vector<hsize_t>& at) const {
  return static_cast<std::size_t>(plan_.data.shards.number_in_chunk(at));
}

}  // namespace zarrbits::conversion
