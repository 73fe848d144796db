// SPDX-License-Identifier: BSL-1.0
//
// What our drivers of libhdf5 (virtual file drivers) have in common.
//
//   static hid_t id() {
//     static const hid_t driver_id = [] {
//       const H5FD_class_t c = driver_class<driver>("name", 511);
//       return H5FDregister(&c);
//     }();
//     return driver_id;
//   }
//
#ifndef ZARRBITS_HDF5_FILE_DRIVER_HPP
#define ZARRBITS_HDF5_FILE_DRIVER_HPP

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#if H5_VERSION_GE(1, 13, 2)
#include <H5FDdevelop.h>
#endif

namespace zarrbits::hdf5 {

// The class of a driver whose functions are static members of `Driver`, and whose settings in a property list are a
// Driver::settings. `value`: of those that libhdf5 does not assign, another one for each driver.
template <class Driver>
H5FD_class_t driver_class(const char* name, [[maybe_unused]] int value) {
  H5FD_class_t c{};
#if H5_VERSION_GE(1, 13, 2)
  c.version = H5FD_CLASS_VERSION;
  c.value = static_cast<H5FD_class_value_t>(value);
#endif
  c.name = name;
  c.maxaddr = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());
  c.fc_degree = H5F_CLOSE_WEAK;
  c.fapl_size = sizeof(typename Driver::settings);
  c.fapl_get = Driver::get_settings;
  c.fapl_copy = Driver::copy_settings;
  c.fapl_free = Driver::free_settings;
  c.open = Driver::open;
  c.close = Driver::close;
  c.cmp = Driver::compare;
  c.query = Driver::query;
  c.get_eoa = Driver::get_eoa;
  c.set_eoa = Driver::set_eoa;
  c.get_eof = Driver::get_eof;
  c.get_handle = Driver::get_handle;
  c.read = Driver::read;
  c.write = Driver::write;
  const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;  // as sec2 has it
  for (std::size_t i = 0; i < H5FD_MEM_NTYPES; ++i) c.fl_map[i] = map[i];
  return c;
}

}  // namespace zarrbits::hdf5

#endif
