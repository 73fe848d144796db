// SPDX-License-Identifier: BSL-1.0
//
// The shared libraries and the program that a process is made of, as its loader knows them. Each system has a file of its own:
// module_elf.cpp (Linux and other ELF systems), module_macos.cpp, module_windows.cpp.
//
#ifndef ZARRBITS_FILTER_MODULE_HPP
#define ZARRBITS_FILTER_MODULE_HPP

#include <cstdint>

namespace zarrbits::filter {

struct module {
  std::uintptr_t low = 0, high = 0;  // its addresses
  void* handle = nullptr;            // keeps it loaded until release_module()
};

// The module that holds the address, which must be on the call stack. False where there is none. `handle` may be null
// nevertheless: then nothing is found in it.
bool find_module(std::uintptr_t address, module& out) noexcept;

// Looks in the module, on some systems in its dependencies too. Null where there is no such symbol.
void* find_symbol(const module& m, const char* name) noexcept;

// Looks in what the whole process sees.
void* find_global_symbol(const char* name) noexcept;

void release_module(const module& m) noexcept;

}  // namespace zarrbits::filter

#endif
