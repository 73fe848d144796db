// SPDX-License-Identifier: BSL-1.0
#include "hdf5/vlen_allocator.hpp"

#include "text/format.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

// Header of each piece that libhdf5 gets.
struct alignas(std::max_align_t) vlen_allocator::block {
  block *previous, *next;
  std::size_t size;
};

vlen_allocator::vlen_allocator(std::uint64_t max_bytes)
    : max_bytes_(max_bytes), transfer_(H5Pcreate(H5P_DATASET_XFER), "make a property list") {
  check(H5Pset_vlen_mem_manager(transfer_, allocate, this, deallocate, this), "set how memory is allocated");
}

vlen_allocator::~vlen_allocator() { clear(); }

void vlen_allocator::clear() {
  while (blocks_) std::free(std::exchange(blocks_, blocks_->next));
  used_ = 0;
}

void* vlen_allocator::allocate(std::size_t size, void* self) {
  auto& us = *static_cast<vlen_allocator*>(self);
  const std::uint64_t total_size = std::uint64_t{size} + sizeof(block);
  us.exceeded_ = us.exceeded_ || total_size > us.max_bytes_ || us.used_ > us.max_bytes_ - total_size;
  auto* b = us.exceeded_ ? nullptr : static_cast<block*>(std::malloc(static_cast<std::size_t>(total_size)));
  if (!b) return nullptr;
  us.used_ += total_size;
  b->previous = nullptr;
  b->next = us.blocks_;
  b->size = static_cast<std::size_t>(total_size);
  if (us.blocks_) us.blocks_->previous = b;
  us.blocks_ = b;
  return b + 1;
}

char* vlen_allocator::copy(std::string_view text) {
  auto* const result = static_cast<char*>(allocate(text.size() + 1, this));
  if (!result) throw failure("there is no room for a string");
  std::copy(text.begin(), text.end(), result);
  result[text.size()] = '\0';
  return result;
}

void vlen_allocator::deallocate(void* memory, void* self) {
  if (!memory) return;
  auto& us = *static_cast<vlen_allocator*>(self);
  block* b = static_cast<block*>(memory) - 1;
  (b->previous ? b->previous->next : us.blocks_) = b->next;
  if (b->next) b->next->previous = b->previous;
  us.used_ -= b->size;
  std::free(b);
}

namespace {

// H5Aread takes no property list, but uses our conversions: from variable length to opaque bytes of the same length, which count
// the bytes that pass.
struct byte_counter {
  std::uint64_t max_bytes, total = 0;
  bool exceeded = false;
  std::vector<const type_description*> types = {};  // the types that opaque bytes replace: their tag is the index
};
thread_local byte_counter* current = nullptr;

constexpr std::string_view count_tag = "zarrbits_count:";

// The number after our tag; nothing for opaque bytes of others: h5py has conversions to such for its objects, which libhdf5 would
// replace by ours.
std::optional<std::size_t> counted_number(hid_t opaque) {
  char* const tag = H5Tget_tag(opaque);
  const std::string_view text = tag ? tag : "";
  std::optional<std::size_t> number;
  if (text.substr(0, count_tag.size()) == count_tag) number = std::strtoul(tag + count_tag.size(), nullptr, 10);
  H5free_memory(tag);
  return number;
}

herr_t count_values(hid_t source_type, hid_t target_type, H5T_cdata_t* state, std::size_t n, std::size_t stride, std::size_t,
                    void* values, void*, hid_t) {
  if (state->command == H5T_CONV_INIT) {
    state->need_bkg = H5T_BKG_NO;
    return counted_number(target_type) ? 0 : -1;
  }
  if (state->command != H5T_CONV_CONV) return 0;
  if (!current) return -1;
  try {
    const std::optional<std::size_t> number = counted_number(target_type);
    if (!number || *number >= current->types.size()) return -1;
    const type_description& type = *current->types[*number];
    const std::size_t size = H5Tget_size(source_type);
    std::vector<std::byte> one(std::max(size, type.size)), background(one.size());
    vlen_allocator memory(current->max_bytes);
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(one.data(), static_cast<const std::byte*>(values) + i * (stride ? stride : size), size);
      std::fill(background.begin(), background.end(), std::byte{0});
      const bool converted = H5Tconvert(source_type, type.memory, 1, one.data(), background.data(), memory.transfer()) >= 0;
      current->total += memory.used();
      current->exceeded = memory.exceeded() || current->total > current->max_bytes;
      if (!converted || current->exceeded) return -1;
      memory.clear();
    }
    return 0;
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
}

handle opaque_bytes(std::size_t number) {
  handle t(H5Tcreate(H5T_OPAQUE, sizeof(hvl_t)), "make an opaque type");
  check(H5Tset_tag(t, (std::string(count_tag) + std::to_string(number)).c_str()), "make an opaque type");
  return t;
}

// As type.memory, with opaque bytes in place of variable lengths.
handle counted_type(const type_description& type, std::size_t& size, byte_counter& counter) {
  if (type.kind == type_class::sequence || (type.kind == type_class::text && type.variable)) {
    size = sizeof(hvl_t);
    counter.types.push_back(&type);
    return opaque_bytes(counter.types.size() - 1);
  }
  if (!holds_variable(type) || (type.kind != type_class::array && type.kind != type_class::compound)) {
    size = type.size;
    return handle(H5Tcopy(type.memory), "copy a type");
  }
  if (type.kind == type_class::array) {
    const handle element = counted_type(type.element(), size, counter);
    for (const std::uint64_t d : type.dims) size *= static_cast<std::size_t>(d);
    return handle(H5Tarray_create2(element, static_cast<unsigned>(type.dims.size()), to_hsize(type.dims).data()),
                  "make an array type");
  }
  std::vector<handle> members;
  std::vector<std::size_t> sizes(type.parts.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) members.push_back(counted_type(type.parts[i], sizes[i], counter));
  size = 0;
  for (const std::size_t s : sizes) size += s;
  handle compound(H5Tcreate(H5T_COMPOUND, std::max<std::size_t>(size, 1)), "make a compound type");
  std::size_t offset = 0;
  for (std::size_t i = 0; i < sizes.size(); offset += sizes[i++]) {
    check(H5Tinsert(compound, type.parts[i].name.c_str(), offset, members[i]), "make a compound type");
  }
  return compound;
}

}  // namespace

bool holds_variable(const type_description& t) {
  return t.kind == type_class::sequence || (t.kind == type_class::text && t.variable) ||
         std::any_of(t.parts.begin(), t.parts.end(), holds_variable);
}

std::uint64_t count_variable_bytes(hid_t attribute, const type_description& type, std::uint64_t elements,
                                   std::uint64_t max_bytes) {
  static const bool registered = [] {
    const handle source_type(H5Tvlen_create(H5T_NATIVE_CHAR), "make a sequence type"), target_type = opaque_bytes(0);
    return H5Tregister(H5T_PERS_SOFT, "zarrbits_count", source_type, target_type, count_values) >= 0;
  }();
  if (!registered) fail("count the bytes of strings");
  byte_counter counter{.max_bytes = max_bytes};
  std::size_t size = 0;
  const handle memory = counted_type(type, size, counter);
  if (elements > max_bytes / std::max<std::size_t>(size, 1)) throw failure("it takes more than " + text::format_bytes(max_bytes));
  std::vector<std::byte> values(static_cast<std::size_t>(elements) * size);
  current = &counter;
  const herr_t status = H5Aread(attribute, memory, values.data());
  current = nullptr;
  if (counter.exceeded) {
    H5Eclear2(H5E_DEFAULT);
    throw failure("its strings or sequences take more than " + text::format_bytes(max_bytes));
  }
  check(status, "read the attribute");
  return counter.total;
}

}  // namespace zarrbits::hdf5
