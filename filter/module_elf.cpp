// SPDX-License-Identifier: BSL-1.0
#include "filter/module.hpp"

#include <cstddef>
#include <dlfcn.h>
#include <link.h>

namespace zarrbits::filter {

namespace {

struct search {
  std::uintptr_t address;
  module* out;
  const char* path;  // "" for the main program; lives as long as the module
};

// dladdr() would work, but reads libhdf5's whole symbol table in each call.
int match(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& s = *static_cast<search*>(data);
  std::uintptr_t low = UINTPTR_MAX, high = 0;
  bool inside = false;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t segment_begin = info->dlpi_addr + segment.p_vaddr, segment_end = segment_begin + segment.p_memsz;
    if (segment_begin < low) low = segment_begin;
    if (segment_end > high) high = segment_end;
    inside = inside || (s.address >= segment_begin && s.address < segment_end);
  }
  if (!inside) return 0;
  s.out->low = low;
  s.out->high = high;
  s.path = info->dlpi_name;
  return 1;
}

}  // namespace

bool find_module(std::uintptr_t address, module& out) noexcept {
  out = module{};
  search s{address, &out, nullptr};
  if (!dl_iterate_phdr(match, &s)) return false;
  // a libhdf5 linked statically into the program: found if the program exports its symbols (-rdynamic)
  out.handle = s.path && *s.path ? dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD) : dlopen(nullptr, RTLD_LAZY);
  return true;
}

void* find_symbol(const module& m, const char* name) noexcept { return m.handle ? dlsym(m.handle, name) : nullptr; }

void* find_global_symbol(const char* name) noexcept { return dlsym(RTLD_DEFAULT, name); }

}  // namespace zarrbits::filter
