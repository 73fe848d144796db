// SPDX-License-Identifier: BSL-1.0
//
// Untested: written after Apple's <mach-o/dyld.h> and dlopen(3), and not run.
#include "filter/module.hpp"

#include <dlfcn.h>
#include <mach-o/dyld.h>
#include <mach-o/loader.h>

#include <cstring>

namespace zarrbits::filter {

namespace {

// The extent of an image. __PAGEZERO is the four gigabytes that a program keeps free, and all system libraries share one
// __LINKEDIT.
bool extent(const mach_header_64* header, std::intptr_t slide, std::uintptr_t address, module& out) noexcept {
  if (header->magic != MH_MAGIC_64) return false;
  std::uintptr_t low = UINTPTR_MAX, high = 0;
  bool inside = false;
  const auto* at = reinterpret_cast<const char*>(header + 1);
  for (std::uint32_t i = 0; i < header->ncmds; ++i) {
    load_command command;
    std::memcpy(&command, at, sizeof command);
    if (command.cmd == LC_SEGMENT_64) {
      segment_command_64 segment;
      std::memcpy(&segment, at, sizeof segment);
      if (std::strcmp(segment.segname, SEG_PAGEZERO) != 0 && std::strcmp(segment.segname, SEG_LINKEDIT) != 0 &&
          segment.vmsize != 0) {
        const std::uintptr_t from = static_cast<std::uintptr_t>(segment.vmaddr) + static_cast<std::uintptr_t>(slide);
        const std::uintptr_t to = from + static_cast<std::uintptr_t>(segment.vmsize);
        if (from < low) low = from;
        if (to > high) high = to;
        inside = inside || (address >= from && address < to);
      }
    }
    at += command.cmdsize;
  }
  out.low = low;
  out.high = high;
  return inside;
}

}  // namespace

bool find_module(std::uintptr_t address, module& out) noexcept {
  // other threads may load and unload images in the meantime, but not the one on our call stack
  for (std::uint32_t i = 0, n = _dyld_image_count(); i < n; ++i) {
    const auto* header = reinterpret_cast<const mach_header_64*>(_dyld_get_image_header(i));
    const char* path = _dyld_get_image_name(i);
    out = module{};
    if (!header || !path || !extent(header, _dyld_get_image_vmaddr_slide(i), address, out)) continue;
    out.handle = header->filetype == MH_EXECUTE ? dlopen(nullptr, RTLD_LAZY) : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    return true;
  }
  out = module{};
  return false;
}

void* find_symbol(const module& m, const char* name) noexcept { return m.handle ? dlsym(m.handle, name) : nullptr; }

void* find_global_symbol(const char* name) noexcept { return dlsym(RTLD_DEFAULT, name); }

}  // namespace zarrbits::filter
