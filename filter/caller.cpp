// SPDX-License-Identifier: BSL-1.0
#include "filter/caller.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace zarrbits::filter {

namespace {

struct symbol {
  const char* name;
  std::size_t place;  // in `functions`
  bool required;
};

constexpr symbol symbols[] = {
    {"H5get_libversion", offsetof(functions, get_libversion), true},
    {"H5Epush2", offsetof(functions, push_error), true},
    {"H5Pget_nfilters", offsetof(functions, plist_nfilters), true},
    {"H5Pget_filter2", offsetof(functions, plist_filter), true},
    {"H5Pget_filter_by_id2", offsetof(functions, plist_filter_by_id), true},
    {"H5Pmodify_filter", offsetof(functions, plist_modify_filter), true},
    {"H5Sget_simple_extent_type", offsetof(functions, space_class), true},
    {"H5Sget_simple_extent_ndims", offsetof(functions, space_rank), true},
    {"H5Sget_simple_extent_dims", offsetof(functions, space_dims), true},
    {"H5Tget_class", offsetof(functions, type_class), true},
    {"H5Tget_size", offsetof(functions, type_size), true},
    {"H5Tget_order", offsetof(functions, type_order), true},
    {"H5Tget_precision", offsetof(functions, type_precision), true},
    {"H5Tget_offset", offsetof(functions, type_offset), true},
    {"H5Tget_pad", offsetof(functions, type_pad), false},
    {"H5Tget_sign", offsetof(functions, type_sign), true},
    {"H5Tget_super", offsetof(functions, type_super), true},
    {"H5Tget_nmembers", offsetof(functions, type_nmembers), true},
    {"H5Tget_member_value", offsetof(functions, type_member_value), false},
    {"H5Tis_variable_str", offsetof(functions, type_is_variable_string), false},
    {"H5Tget_member_type", offsetof(functions, type_member_type), true},
    {"H5Tget_member_offset", offsetof(functions, type_member_offset), true},
    {"H5Tget_member_name", offsetof(functions, type_member_name), true},
    {"H5Tequal", offsetof(functions, type_equal), true},
    {"H5Tclose", offsetof(functions, type_close), true},
    {"H5allocate_memory", offsetof(functions, allocate_memory), false},
    {"H5resize_memory", offsetof(functions, resize_memory), false},
    {"H5free_memory", offsetof(functions, free_memory), false},
};

void resolve(library& l) noexcept {
  l.complete = true;
  for (const symbol& s : symbols) {
    void* function = find_symbol(l.image, s.name);
    // The search may have included the module's dependencies. Those are another library's: when libnetcdf calls a filter itself,
    // its buffers are malloc's, although the libhdf5 that it links has H5free_memory.
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    if (address < l.image.low || address >= l.image.high) function = nullptr;
    if (!function && s.required) l.complete = false;
    std::memcpy(reinterpret_cast<char*>(&l.call) + s.place, &function, sizeof function);
  }
  if (!l.call.allocate_memory || !l.call.resize_memory || !l.call.free_memory) {
    l.call.allocate_memory = nullptr;
    l.call.resize_memory = nullptr;
    l.call.free_memory = nullptr;
  }
  unsigned major = 0, minor = 0, release = 0;
  if (l.complete && l.call.get_libversion(&major, &minor, &release) >= 0) {
    l.narrow_ids = major == 1 && minor < 10;
    // 1.15 to 1.17 were development versions of 2.0
    l.loses_filter_errors = (major == 2 && minor < 2) || (major == 1 && (minor >= 15 || (minor == 14 && release >= 5)));
  }
}

// Append-only and lock-free: HDF5 may call from several threads, and two libraries have two locks. Entries stay valid, because
// each module stays loaded: its address range cannot be reused.
constexpr unsigned cache_size = 16;
std::atomic<const library*> cache[cache_size];

// HDF5 unloads plugins when it closes. None of our code runs after this.
__attribute__((destructor)) void free_cache() noexcept {
  for (auto& slot : cache) std::free(const_cast<library*>(slot.exchange(nullptr)));
}

const library* cached(std::uintptr_t address) noexcept {
  for (auto& slot : cache) {
    const library* l = slot.load(std::memory_order_acquire);
    if (!l) return nullptr;
    if (address >= l->image.low && address < l->image.high) return l;
  }
  return nullptr;
}

// False if the cache is full. Two threads may add the same module: harmless.
bool append(const library* l) noexcept {
  for (auto& slot : cache) {
    const library* empty = nullptr;
    if (slot.compare_exchange_strong(empty, l, std::memory_order_acq_rel)) return true;
  }
  return false;
}

}  // namespace

const library* find_library(void* return_address, library& scratch) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (const library* l = cached(address)) return l;

  scratch = library{};
  if (!find_module(address, scratch.image)) return &scratch;
  resolve(scratch);

  if (auto* copy = static_cast<library*>(std::malloc(sizeof(library)))) {
    std::memcpy(static_cast<void*>(copy), &scratch, sizeof scratch);
    if (append(copy)) return copy;
    std::free(copy);
  }
  return &scratch;
}

void* library::allocate(std::size_t size) const noexcept {
  return call.allocate_memory ? call.allocate_memory(size, 0) : std::malloc(size);
}

void* library::resize(void* memory, std::size_t size) const noexcept {
  return call.resize_memory ? call.resize_memory(memory, size) : std::realloc(memory, size);
}

void library::release(void* memory) const noexcept {
  if (call.free_memory) call.free_memory(memory);
  else std::free(memory);
}

hid library::error_id(const char* name) const noexcept {
  const auto value = [this](const void* variable) noexcept {
    if (!variable) return hid{-1};
    if (!narrow_ids) return *static_cast<const hid*>(variable);
    return hid{*static_cast<const std::int32_t*>(variable)};
  };
  // read at each use: the ids change when HDF5 is closed and opened again
  hid id = value(find_symbol(image, name));
  // if the program was linked with a copy relocation of this variable, the library uses the program's copy
  if (id <= 0) id = value(find_global_symbol(name));
  return id > 0 ? id : -1;
}

}  // namespace zarrbits::filter
