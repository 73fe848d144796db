// SPDX-License-Identifier: BSL-1.0
#include "hdf5/created_file.hpp"

namespace zarrbits::hdf5 {

created_file::created_file(const std::string& name, hid_t creation, hid_t access) {
#if H5_VERSION_GE(1, 10, 7)
  check(H5Pset_file_locking(access, false, true), "leave the lock to its owner");
#endif
  file_ = handle(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation, access), "create the file");
}

void created_file::finish() {
  if (H5Fget_obj_count(file_, H5F_OBJ_ALL) > 1) throw failure("objects of the file are still open");
  check(H5Fflush(file_, H5F_SCOPE_GLOBAL), "write the file");
  file_ = handle();
  if (closes_that_failed().count > failed_before_) throw failure("HDF5 cannot write the file: " + closes_that_failed().reason);
}

}  // namespace zarrbits::hdf5
