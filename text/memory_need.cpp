// SPDX-License-Identifier: BSL-1.0
#include "text/memory_need.hpp"

#include "text/words.hpp"

namespace zarrbits::text {

std::string warning_of_chunks(const chunk_need& chunks, std::uint64_t allowed, const std::string& remedy) {
  if (chunks.need <= allowed) return "";
  return chunks.what + " has chunks of " + human_bytes(chunks.chunk) + ", each of which may take " + human_bytes(chunks.need) +
         " of memory, more than the " + human_bytes(allowed) +
         " that are allowed; they are made one at a time: make sure that there is enough, or " + remedy;
}

std::string warning_of_nodes(const std::string& store, std::uint64_t count, std::uint64_t allowed) {
  constexpr std::uint64_t each = 8U << 10;  // measured with 100,000 small arrays
  if (count <= allowed / each) return "";
  return "\"" + store + "\" has " + counted(count, "node") + ", whose metadata may take " + human_bytes(each * count) +
         " of memory, more than the " + human_bytes(allowed) +
         " that are allowed: make sure that there is enough, or take parts of it, with `include`";
}

// Measured with lists of [], of numbers, and objects of many members, in the two forms that readers have them in.
std::uint64_t memory_of_json(std::string_view text) noexcept {
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

std::string reason_against_json(std::string_view text, std::uint64_t allowed) {
  constexpr std::uint64_t max_per_byte = 128;
  if (text.size() < allowed / max_per_byte) return "";
  const std::uint64_t need = memory_of_json(text);
  if (need <= allowed) return "";
  return "takes some " + human_bytes(need) + " of memory, more than the " + human_bytes(allowed) +
         " that are allowed for the metadata of a node; increase `memory`";
}

}  // namespace zarrbits::text
