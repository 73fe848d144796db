// SPDX-License-Identifier: BSL-1.0
#include "hdf5/heap_strings.hpp"

#include "io/byte_source.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace zarrbits::hdf5 {

// If anything is odd, libhdf5 is not asked either: it may crash on damaged heaps.

namespace {

[[noreturn]] void damaged(std::uint64_t address, const std::string& reason) {
  throw compressors::corrupt_chunk("the texts of the global heap at byte " + std::to_string(address) + " " + reason);
}

constexpr std::uint64_t max_cached_bytes = 16U << 20;  // bytes of collections to keep
constexpr std::size_t first_look = 4096;               // smallest size of a collection that libhdf5 writes
constexpr std::size_t arena_size = 64U << 10;          // bytes to allocate for texts at once

std::uint64_t number(const std::byte* p, std::size_t size) {
  std::uint64_t n = 0;
  for (std::size_t i = size; i-- > 0;) n = n << 8 | std::to_integer<std::uint64_t>(p[i]);
  return n;
}

std::size_t aligned(std::size_t size) { return (size + 7) / 8 * 8; }

}  // namespace

void heap_strings::load(std::uint64_t address, collection& c) {
  if (address > format_.file_size || format_.base > format_.file_size - address)
    damaged(address, "lie beyond the end of the file");
  const std::uint64_t begin = format_.base + address, max_size = format_.file_size - begin;
  const std::size_t header = aligned(8 + format_.length_size);  // of the collection, and of each object
  if (max_size < header) damaged(begin, "are cut off");
  c.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(max_size, first_look)));
  format_.file->read(begin, c.bytes);
  if (std::memcmp(c.bytes.data(), "GCOL\1", 5) != 0) damaged(begin, "cannot be read: there is no global heap of version 1");
  const std::uint64_t size = number(c.bytes.data() + 8, format_.length_size);
  if (size < header || size > max_size) damaged(begin, "are said to take " + text::pluralize(size, "byte"));
  read_ += size;
  if (read_ > 4 * format_.file_size + max_cached_bytes)
    damaged(begin, "are read again and again, more than 4 times the whole file");
  const std::size_t loaded = std::min(c.bytes.size(), static_cast<std::size_t>(size));
  c.bytes.resize(static_cast<std::size_t>(size));
  if (loaded < c.bytes.size()) format_.file->read(begin + loaded, std::span(c.bytes).subspan(loaded));
  for (std::size_t offset = header; c.bytes.size() - offset >= header;) {
    const std::uint64_t index = number(c.bytes.data() + offset, 2),
                        length = number(c.bytes.data() + offset + 8, format_.length_size);
    if (index == 0) break;  // free space up to the end
    const std::size_t remaining = c.bytes.size() - offset - header;
    if (length > remaining) damaged(begin, "do not fit into it");
    c.objects.push_back({index, offset + header, static_cast<std::size_t>(length)});
    offset += header + std::min(aligned(static_cast<std::size_t>(length)), remaining);
  }
  const auto by_number = [](const object& a, const object& b) { return a.number < b.number; };
  if (!std::is_sorted(c.objects.begin(), c.objects.end(), by_number))
    std::stable_sort(c.objects.begin(), c.objects.end(), by_number);
}

const heap_strings::object* heap_strings::collection::find(std::uint64_t number) const {
  // mostly they have the numbers 1, 2, 3 ...
  if (number > 0 && number <= objects.size() && objects[static_cast<std::size_t>(number) - 1].number == number)
    return &objects[static_cast<std::size_t>(number) - 1];
  const auto position =
      std::lower_bound(objects.begin(), objects.end(), number, [](const object& o, std::uint64_t n) { return o.number < n; });
  return position == objects.end() || position->number != number ? nullptr : &*position;
}

const heap_strings::collection& heap_strings::find(std::uint64_t address) {
  if (last_ && address == last_address_) return *last_;
  auto entry = collections_.find(address);
  if (entry == collections_.end()) {
    collection c;
    load(address, c);
    const std::uint64_t size = c.bytes.size() + c.objects.size() * sizeof c.objects[0];
    if (cached_bytes_ > max_cached_bytes) {
      last_ = nullptr;
      collections_.clear();
      cached_bytes_ = 0;
    }
    cached_bytes_ += size;
    entry = collections_.emplace(address, std::move(c)).first;
  }
  last_address_ = address;
  last_ = &entry->second;
  return *last_;
}

char* heap_strings::take(std::size_t size, vlen_allocator& memory) {
  if (size > arena_.size()) {
    const std::size_t block_size = std::max(size, arena_size);
    auto* const fresh = static_cast<char*>(memory.take(block_size));
    if (!fresh) return nullptr;
    arena_ = {fresh, block_size};
  }
  char* const text = arena_.data();
  arena_ = arena_.subspan(size);
  return text;
}

bool heap_strings::read(std::span<const std::byte> elements, std::span<char*> texts, vlen_allocator& memory) {
  const std::size_t element = format_.element_size();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::byte* const p = elements.data() + i * element;
    const std::uint64_t address = number(p + 4, format_.address_size);
    texts[i] = nullptr;
    if (address == 0) continue;
    const auto length = static_cast<std::size_t>(number(p, 4));
    const std::uint64_t index = number(p + 4 + format_.address_size, 4);
    char* const text = take(length + 1, memory);
    if (!text) return false;
    text[length] = '\0';
    if (length > 0) {
      const collection& c = find(address);
      const object* const entry = c.find(index);
      if (!entry || entry->size < length) {
        damaged(address, "have no entry " + std::to_string(index) + " of " + text::pluralize(length, "byte"));
      }
      std::memcpy(text, c.bytes.data() + entry->offset, length);
    }
    texts[i] = text;
  }
  return true;
}

}  // namespace zarrbits::hdf5
