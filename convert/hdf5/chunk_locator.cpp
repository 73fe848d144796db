// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/chunk_locator.hpp"

#include <limits>
#include <new>

#if H5_VERSION_GE(1, 13, 2)
#include <H5FDdevelop.h>
#endif

namespace zarrbits::conversion {

// The functions that a driver of libhdf5 consists of. Each hands on to the driver below.
struct chunk_locator::driver {
  struct file {
    H5FD_t base;  // libhdf5's; it comes first
    H5FD_t* below;
    bool locating, found, unsure;
    haddr_t address;
    std::size_t size;
  };
  // libhdf5's functions for users, which drivers are handed on with, forget the errors that came before: a file that cannot be opened is closed by one
  // of them, and why it could not be would be lost.
  struct kept_errors {
    hid_t stack = H5Eget_current_stack();
    ~kept_errors() {
      if (stack >= 0) H5Eset_current_stack(stack);
    }
  };
  static file& of(H5FD_t* f) { return *reinterpret_cast<file*>(f); }
  static H5FD_t* below(const H5FD_t* f) { return reinterpret_cast<const file*>(f)->below; }

  static H5FD_t* open(const char* name, unsigned flags, hid_t, haddr_t most) {
    if (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) return nullptr;  // for sources only
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5FD_t* under = access >= 0 && H5Pset_fapl_sec2(access) >= 0 ? H5FDopen(name, flags, access, most) : nullptr;
    if (access >= 0) {
      const kept_errors before;
      H5Pclose(access);
    }
    if (!under) return nullptr;
    auto* f = new (std::nothrow) file{};
    if (f) f->below = under;
    else H5FDclose(under);
    return reinterpret_cast<H5FD_t*>(f);
  }
  static herr_t close(H5FD_t* f) {
    const kept_errors before;
    const herr_t status = H5FDclose(below(f));
    delete &of(f);
    return status;
  }
  static int compare(const H5FD_t* a, const H5FD_t* b) { return H5FDcmp(below(a), below(b)); }
  static herr_t query(const H5FD_t* f, unsigned long* flags) {
    if (f) return H5FDquery(below(f), flags) < 0 ? -1 : 0;
    *flags = 0;  // before a file is open
    return 0;
  }
  static haddr_t get_eoa(const H5FD_t* f, H5FD_mem_t type) { return H5FDget_eoa(below(f), type); }
  static herr_t set_eoa(H5FD_t* f, H5FD_mem_t type, haddr_t address) { return H5FDset_eoa(below(f), type, address); }
  static haddr_t get_eof(const H5FD_t* f, H5FD_mem_t type) { return H5FDget_eof(below(f), type); }
  static herr_t get_handle(H5FD_t* f, hid_t, void** handle) {
    *handle = f;
    return 0;
  }
  static herr_t read(H5FD_t* f, H5FD_mem_t type, hid_t transfer, haddr_t address, std::size_t size, void* to) {
    file& us = of(f);
    if (!us.locating || type != H5FD_MEM_DRAW) return H5FDread(us.below, type, transfer, address, size, to);
    us.unsure = us.found;
    us.found = true;
    us.address = address;
    us.size = size;
    return 0;
  }
  static herr_t write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }
  static herr_t lock(H5FD_t* f, hbool_t exclusive) { return H5FDlock(below(f), exclusive); }
  static herr_t unlock(H5FD_t* f) {
    const kept_errors before;
    return H5FDunlock(below(f));
  }

  // Of this driver; negative where libhdf5 does not take it. Once for the process.
  static hid_t id() {
    static const hid_t known = [] {
      H5FD_class_t c{};
#if H5_VERSION_GE(1, 13, 2)
      c.version = H5FD_CLASS_VERSION;
      c.value = static_cast<H5FD_class_value_t>(511);  // the last of those that libhdf5 gives to nobody
#endif
      c.name = "zarrbits_chunk_locator";
      c.maxaddr = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());
      c.fc_degree = H5F_CLOSE_WEAK;
      c.open = open;
      c.close = close;
      c.cmp = compare;
      c.query = query;
      c.get_eoa = get_eoa;
      c.set_eoa = set_eoa;
      c.get_eof = get_eof;
      c.get_handle = get_handle;
      c.read = read;
      c.write = write;
      c.lock = lock;
      c.unlock = unlock;
      const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;  // as sec2 has it
      for (std::size_t i = 0; i < H5FD_MEM_NTYPES; ++i) c.fl_map[i] = map[i];
      return H5FDregister(&c);
    }();
    return known;
  }
};

void chunk_locator::set_driver(hid_t access) noexcept {
  const hid_t id = driver::id();
  if (id < 0 || H5Pset_driver(access, id, nullptr) < 0) H5Eclear2(H5E_DEFAULT);
}

chunk_locator::chunk_locator(hid_t file) noexcept {
  const h5::handle access(H5Fget_access_plist(file));
  if (access && driver::id() >= 0 && H5Pget_driver(access) == driver::id() && H5Fget_vfd_handle(file, H5P_DEFAULT, &file_) >= 0) return;
  file_ = nullptr;
  H5Eclear2(H5E_DEFAULT);
}

std::optional<std::uint64_t> chunk_locator::find(hid_t dataset, const hsize_t* first_element, std::uint64_t size, unsigned& mask) const noexcept {
  if (!file_) return {};
  auto& f = *static_cast<driver::file*>(file_);
  f.locating = true;
  f.found = f.unsure = false;
  char nothing_is_read = 0;
  const herr_t status = H5Dread_chunk(dataset, H5P_DEFAULT, first_element, &mask, &nothing_is_read);
  f.locating = false;
  if (status < 0) {
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
  if (!f.found || f.unsure || f.size != size) return {};
  return f.address;
}

}  // namespace zarrbits::conversion
