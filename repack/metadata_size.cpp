// SPDX-License-Identifier: BSL-1.0
#include "repack/metadata_size.hpp"

#include "hdf5/file_driver.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <vector>

namespace zarrbits::repacking {

namespace {

constexpr std::size_t page_bytes = 64 << 10;

bool is_of_values(H5FD_mem_t type) { return type == H5FD_MEM_DRAW || type == H5FD_MEM_GHEAP; }

}  // namespace

struct metadata_counter::memory {
  std::map<haddr_t, std::vector<std::byte>> pages;
  std::uint64_t metadata = 0;
  haddr_t allocated = 0, written = 0;  // ends
  bool drops_values = false;

  // Calls `each(piece of a page, offset in [0, size), length)`.
  template <class Each>
  void for_each_piece(haddr_t address, std::size_t size, const Each& each) {
    for (std::size_t offset = 0; offset < size;) {
      const std::size_t within = static_cast<std::size_t>((address + offset) % page_bytes);
      const std::size_t length = std::min(size - offset, page_bytes - within);
      std::vector<std::byte>& page = pages[(address + offset) / page_bytes];
      if (page.empty()) page.resize(page_bytes);
      each(page.data() + within, offset, length);
      offset += length;
    }
  }
};

// The functions of a libhdf5 driver.
struct metadata_counter::driver {
  using settings = std::shared_ptr<memory>;
  struct file {
    H5FD_t base;  // libhdf5's; it comes first
    settings contents;
  };
  static memory& of(H5FD_t* f) { return *reinterpret_cast<file*>(f)->contents; }
  static const memory& of(const H5FD_t* f) { return *reinterpret_cast<const file*>(f)->contents; }

  static H5FD_t* open(const char*, unsigned, hid_t list, haddr_t) {
    const auto* contents = static_cast<const settings*>(H5Pget_driver_info(list));
    auto* f = contents ? new (std::nothrow) file{} : nullptr;
    if (f) f->contents = *contents;
    return reinterpret_cast<H5FD_t*>(f);
  }
  static void* get_settings(H5FD_t* f) { return copy_settings(&reinterpret_cast<file*>(f)->contents); }
  static void* copy_settings(const void* s) { return new (std::nothrow) settings(*static_cast<const settings*>(s)); }
  static herr_t free_settings(void* s) {
    delete static_cast<settings*>(s);
    return 0;
  }
  static herr_t close(H5FD_t* f) {
    delete reinterpret_cast<file*>(f);
    return 0;
  }
  static int compare(const H5FD_t* a, const H5FD_t* b) { return &of(a) == &of(b) ? 0 : std::less<>()(&of(a), &of(b)) ? -1 : 1; }
  static herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = 0;  // nothing is collected in blocks, so each allocation is seen
    return 0;
  }
  static haddr_t get_eoa(const H5FD_t* f, H5FD_mem_t) { return of(f).allocated; }
  static herr_t set_eoa(H5FD_t* f, H5FD_mem_t type, haddr_t end) {
    memory& m = of(f);
    if (!is_of_values(type)) m.metadata += end - m.allocated;  // less at the end: it was freed
    m.allocated = end;
    return 0;
  }
  static haddr_t get_eof(const H5FD_t* f, H5FD_mem_t) { return of(f).written; }
  static herr_t get_handle(H5FD_t* f, hid_t, void** handle) {
    *handle = f;
    return 0;
  }
  static herr_t read(H5FD_t* f, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* out) {
    try {
      of(f).for_each_piece(address, size, [&](const std::byte* page, std::size_t offset, std::size_t length) {
        std::memcpy(static_cast<std::byte*>(out) + offset, page, length);
      });
      return 0;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }
  static herr_t write(H5FD_t* f, H5FD_mem_t type, hid_t, haddr_t address, std::size_t size, const void* in) {
    of(f).written = std::max(of(f).written, address + size);
    if (type == H5FD_MEM_DRAW && of(f).drops_values) return 0;
    try {
      of(f).for_each_piece(address, size, [&](std::byte* page, std::size_t offset, std::size_t length) {
        std::memcpy(page, static_cast<const std::byte*>(in) + offset, length);
      });
      return 0;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }

  static hid_t id() {
    static const hid_t driver_id = [] {
      const H5FD_class_t c =
          hdf5::driver_class<driver>("zarrbits_metadata_counter", 510);  // of the values that libhdf5 does not assign
      return H5FDregister(&c);
    }();
    return driver_id;
  }
};

metadata_counter::metadata_counter() : memory_(std::make_shared<memory>()) {}

void metadata_counter::set_driver(hid_t access) const {
  if (driver::id() < 0 || H5Pset_driver(access, driver::id(), &memory_) < 0) hdf5::fail("set the file driver");
}

std::uint64_t metadata_counter::bytes() const noexcept { return memory_->metadata; }

void metadata_counter::drop_values() noexcept { memory_->drops_values = true; }

}  // namespace zarrbits::repacking
