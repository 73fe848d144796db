// SPDX-License-Identifier: BSL-1.0
#include "text/memory_estimate.hpp"

#include "text/format.hpp"

namespace zarrbits::text {

std::string chunk_memory_warning(const chunk_memory& chunks, std::uint64_t allowed, const std::string& remedy) {
  if (chunks.required <= allowed) return "";
  return chunks.subject + " has chunks of " + format_bytes(chunks.chunk) + ", each of which may take " +
         format_bytes(chunks.required) + " of memory, more than the " + format_bytes(allowed) +
         " that are allowed; they are made one at a time: make sure that there is enough, or " + remedy;
}

std::string node_memory_warning(const std::string& store, std::uint64_t count, std::uint64_t allowed) {
  constexpr std::uint64_t bytes_per_node = 8U << 10;  // measured with 100,000 small arrays
  if (count <= allowed / bytes_per_node) return "";
  return "\"" + store + "\" has " + pluralize(count, "node") + ", whose metadata may take " +
         format_bytes(bytes_per_node * count) + " of memory, more than the " + format_bytes(allowed) +
         " that are allowed: make sure that there is enough, or take parts of it, with `include`";
}

// Measured with lists of [], of numbers, and objects of many members, in the two forms that readers have them in.
std::uint64_t estimate_json_memory(std::string_view text) noexcept {
  constexpr std::uint64_t each_value = 96, each_container = 128, each_member = 400;
  std::uint64_t bytes = 2 * text.size();
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    else if (c == '"') quoted = !quoted;
    else if (quoted) continue;
    else if (c == ',') bytes += each_value;
    else if (c == '[' || c == '{') bytes += each_container;
    else if (c == ':') bytes += each_member;
  }
  return bytes;
}

std::string json_memory_error(std::string_view text, std::uint64_t allowed) {
  constexpr std::uint64_t max_per_byte = 128;
  if (text.size() < allowed / max_per_byte) return "";
  const std::uint64_t required = estimate_json_memory(text);
  if (required <= allowed) return "";
  return "takes some " + format_bytes(required) + " of memory, more than the " + format_bytes(allowed) +
         " that are allowed for the metadata of a node; increase `memory`";
}

}  // namespace zarrbits::text
