// SPDX-License-Identifier: BSL-1.0
#include "hdf5/variable_memory.hpp"

#include "text/words.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

// Header of each piece that libhdf5 gets.
struct alignas(std::max_align_t) variable_memory::block {
  block *before, *after;
  std::size_t size;
};

variable_memory::variable_memory(std::uint64_t most)
    : most_(most), transfer_(H5Pcreate(H5P_DATASET_XFER), "make a property list") {
  check(H5Pset_vlen_mem_manager(transfer_, allocate, this, give_back, this), "set how memory is allocated");
}

variable_memory::~variable_memory() { clear(); }

void variable_memory::clear() {
  while (blocks_) std::free(std::exchange(blocks_, blocks_->after));
  used_ = 0;
}

void* variable_memory::allocate(std::size_t size, void* self) {
  auto& us = *static_cast<variable_memory*>(self);
  const std::uint64_t all = std::uint64_t{size} + sizeof(block);
  us.exceeded_ = us.exceeded_ || all > us.most_ || us.used_ > us.most_ - all;
  auto* b = us.exceeded_ ? nullptr : static_cast<block*>(std::malloc(static_cast<std::size_t>(all)));
  if (!b) return nullptr;
  us.used_ += all;
  b->before = nullptr;
  b->after = us.blocks_;
  b->size = static_cast<std::size_t>(all);
  if (us.blocks_) us.blocks_->before = b;
  us.blocks_ = b;
  return b + 1;
}

char* variable_memory::copy(std::string_view text) {
  auto* const made = static_cast<char*>(allocate(text.size() + 1, this));
  if (!made) throw failure("there is no room for a string");
  std::copy(text.begin(), text.end(), made);
  made[text.size()] = '\0';
  return made;
}

void variable_memory::give_back(void* memory, void* self) {
  if (!memory) return;
  auto& us = *static_cast<variable_memory*>(self);
  block* b = static_cast<block*>(memory) - 1;
  (b->before ? b->before->after : us.blocks_) = b->after;
  if (b->after) b->after->before = b->before;
  us.used_ -= b->size;
  std::free(b);
}

namespace {

// H5Aread takes no property list, but uses our conversions: from variable length to opaque bytes of the same length, which count
// the bytes that pass.
struct counting {
  std::uint64_t most, total = 0;
  bool exceeded = false;
  std::vector<const type_tree*> types = {};  // the types that opaque bytes replace: their tag is the index
};
thread_local counting* current = nullptr;

herr_t count_values(hid_t from, hid_t to, H5T_cdata_t* state, std::size_t n, std::size_t stride, std::size_t, void* values, void*,
                    hid_t) {
  if (state->command == H5T_CONV_INIT) state->need_bkg = H5T_BKG_NO;
  if (state->command != H5T_CONV_CONV) return 0;
  if (!current) return -1;
  try {
    char* tag = H5Tget_tag(to);
    const std::size_t number = tag ? std::strtoul(tag, nullptr, 10) : current->types.size();
    H5free_memory(tag);
    if (number >= current->types.size()) return -1;
    const type_tree& type = *current->types[number];
    const std::size_t size = H5Tget_size(from);
    std::vector<std::byte> one(std::max(size, type.size)), background(one.size());
    variable_memory memory(current->most);
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(one.data(), static_cast<const std::byte*>(values) + i * (stride ? stride : size), size);
      std::fill(background.begin(), background.end(), std::byte{0});
      const bool converted = H5Tconvert(from, type.memory, 1, one.data(), background.data(), memory.transfer()) >= 0;
      current->total += memory.used();
      current->exceeded = memory.exceeded() || current->total > current->most;
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
  check(H5Tset_tag(t, std::to_string(number).c_str()), "make an opaque type");
  return t;
}

// As type.memory, with opaque bytes in place of variable lengths.
handle counted_type(const type_tree& type, std::size_t& size, counting& all) {
  if (type.kind == type_class::sequence || (type.kind == type_class::text && type.variable)) {
    size = sizeof(hvl_t);
    all.types.push_back(&type);
    return opaque_bytes(all.types.size() - 1);
  }
  if (!holds_variable(type) || (type.kind != type_class::array && type.kind != type_class::compound)) {
    size = type.size;
    return handle(H5Tcopy(type.memory), "copy a type");
  }
  if (type.kind == type_class::array) {
    const handle element = counted_type(type.element(), size, all);
    for (const hsize_t d : type.dims) size *= static_cast<std::size_t>(d);
    return handle(H5Tarray_create2(element, static_cast<unsigned>(type.dims.size()), type.dims.data()), "make an array type");
  }
  std::vector<handle> members;
  std::vector<std::size_t> sizes(type.parts.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) members.push_back(counted_type(type.parts[i], sizes[i], all));
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

bool holds_variable(const type_tree& t) {
  return t.kind == type_class::sequence || (t.kind == type_class::text && t.variable) ||
         std::any_of(t.parts.begin(), t.parts.end(), holds_variable);
}

std::uint64_t count_variable_bytes(hid_t attribute, const type_tree& type, std::uint64_t elements, std::uint64_t most) {
  static const bool registered = [] {
    const handle from(H5Tvlen_create(H5T_NATIVE_CHAR), "make a sequence type"), to = opaque_bytes(0);
    return H5Tregister(H5T_PERS_SOFT, "zarrbits_count", from, to, count_values) >= 0;
  }();
  if (!registered) fail("count the bytes of strings");
  counting all{.most = most};
  std::size_t size = 0;
  const handle memory = counted_type(type, size, all);
  if (elements > most / std::max<std::size_t>(size, 1)) throw failure("it takes more than " + text::human_bytes(most));
  std::vector<std::byte> values(static_cast<std::size_t>(elements) * size);
  current = &all;
  const herr_t status = H5Aread(attribute, memory, values.data());
  current = nullptr;
  if (all.exceeded) {
    H5Eclear2(H5E_DEFAULT);
    throw failure("its strings or sequences take more than " + text::human_bytes(most));
  }
  check(status, "read the attribute");
  return all.total;
}

}  // namespace zarrbits::hdf5
