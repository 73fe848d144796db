// SPDX-License-Identifier: BSL-1.0
//
// Not part of any test: cross-compiled with MinGW and run by hand under Wine, with HDF5 1.14.2.
#include "filter/module.hpp"

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <cstring>

namespace zarrbits::filter {

bool find_module(std::uintptr_t address, module& out) noexcept {
  out = module{};
  HMODULE found = nullptr;
  // counts one more use of the module, which keeps it loaded
  if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, reinterpret_cast<LPCSTR>(address), &found)) return false;
  const auto base = reinterpret_cast<std::uintptr_t>(found);
  IMAGE_DOS_HEADER dos;
  IMAGE_NT_HEADERS headers;
  std::memcpy(&dos, reinterpret_cast<const void*>(base), sizeof dos);
  std::memcpy(&headers, reinterpret_cast<const void*>(base + static_cast<std::uintptr_t>(dos.e_lfanew)), sizeof headers);
  out.low = base;
  out.high = base + headers.OptionalHeader.SizeOfImage;
  out.handle = found;
  return true;
}

void* find_symbol(const module& m, const char* name) noexcept {
  if (!m.handle) return nullptr;
  const auto found = GetProcAddress(static_cast<HMODULE>(m.handle), name);
  void* result = nullptr;
  std::memcpy(&result, &found, sizeof result);
  return result;
}

// On Windows a program has no copies of a library's variables.
void* find_global_symbol(const char*) noexcept { return nullptr; }

}  // namespace zarrbits::filter
