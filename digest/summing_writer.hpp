// SPDX-License-Identifier: BSL-1.0
//
// A store writer that adds the chunks of arrays to sums, and keeps nothing.
//
#ifndef ZARRBITS_DIGEST_SUMMING_WRITER_HPP
#define ZARRBITS_DIGEST_SUMMING_WRITER_HPP

#include "digest/array_sum.hpp"
#include "metadata/array_metadata.hpp"
#include "zarr/read/chunk_decoder.hpp"
#include "zarr/write/discarding_writer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

namespace zarrbits::digesting {

class summing_writer final : public zarr::discarding_writer {
 public:
  summing_writer(bool any_nan, std::uint64_t max_string_bytes) : any_nan_(any_nan), max_string_bytes_(max_string_bytes) {}

  // Chunks of this array follow. If it began before with other metadata, what was added is forgotten. Throws zarr::store_error,
  // zarr::not_supported.
  void begin_array(const std::string& store_path, const metadata::array_metadata& m);
  // An array that has its length only now.
  void end_derived(const std::string& store_path, const metadata::array_metadata& m);
  // Forgets the arrays at this path and below.
  void drop(const std::string& store_path);
  // The arrays by their paths.
  std::map<std::string, std::shared_ptr<const array_sum>> finished();

  using zarr::discarding_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;

 private:
  struct array_state {
    std::string store_path;
    text::json data_type, codecs;
    array::extents chunk;
    std::shared_ptr<const zarr::chunk_decoder> decoder;
    std::shared_ptr<array_sum> sum;
    bool is_plain = false;   // chunks need no decoder
    bool has_length = true;  // false: the last chunk may be short
    bool is_variable = false;
  };

  const bool any_nan_;
  const std::uint64_t max_string_bytes_;
  std::shared_mutex mutex_;
  std::map<std::string, array_state, std::less<>> arrays_;  // by what the keys of their chunks begin with
};

}  // namespace zarrbits::digesting

#endif
