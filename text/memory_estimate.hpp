// SPDX-License-Identifier: BSL-1.0
//
// What a run needs of memory, before it begins: of chunks, and of metadata.
//
#ifndef ZARRBITS_TEXT_MEMORY_ESTIMATE_HPP
#define ZARRBITS_TEXT_MEMORY_ESTIMATE_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace zarrbits::text {

// `subject`, such as an array, whose chunks have up to `chunk` bytes, of which each takes `required` to be processed.
struct chunk_memory {
  std::string subject;
  std::uint64_t chunk = 0, required = 0;
};
// The sentence that warns of it, with the `remedy`, an imperative; empty if `required` is within the `allowed` bytes.
std::string chunk_memory_warning(const chunk_memory& chunks, std::uint64_t allowed, const std::string& remedy);

// Also for the metadata of `count` groups and arrays that stay in memory.
std::string node_memory_warning(const std::string& store, std::uint64_t count, std::uint64_t allowed);

// About the bytes that JSON takes when it is parsed, with the copies that are made of it: short values such as [] take many times
// their text. It counts, and builds nothing, so the text may be untrusted.
std::uint64_t estimate_json_memory(std::string_view text) noexcept;
// "takes some 1.2 GiB of memory, more than ..." if that is more than `allowed`, else empty.
std::string json_memory_error(std::string_view text, std::uint64_t allowed);

}  // namespace zarrbits::text

#endif
