// SPDX-License-Identifier: BSL-1.0
//
// The shared libraries and the program of a process, as its loader knows them. Each system has its own file: module_elf.cpp
// (Linux and other ELF systems), module_macos.cpp, module_windows.cpp.
//
#ifndef ZARRBITS_FILTER_MODULE_HPP
#define ZARRBITS_FILTER_MODULE_HPP

#include <cstdint>

namespace zarrbits::filter {

struct module {
  std::uintptr_t low = 0, high = 0;  // its addresses
  void* handle = nullptr;
};

// The module of an address, which must be on the call stack. False if not found. `handle` may still be null: find_symbol()
// then finds nothing. The module is never unloaded from then on: a libhdf5 that a program has closed unloads its plugins last, in
// its own termination, and would vanish under its own feet if the plugin held the last handle and gave it back.
bool find_module(std::uintptr_t address, module& out) noexcept;

// Searches the module, and on some systems its dependencies. Null if there is no such symbol.
void* find_symbol(const module& m, const char* name) noexcept;

// Searches the symbols that the whole process sees.
void* find_global_symbol(const char* name) noexcept;

}  // namespace zarrbits::filter

#endif
