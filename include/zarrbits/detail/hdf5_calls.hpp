// SPDX-License-Identifier: BSL-1.0
//
// Calls of libhdf5 for <zarrbits/hdf5.hpp>: what they return is closed, and what fails is a sentence.
//
#ifndef ZARRBITS_DETAIL_HDF5_CALLS_HPP
#define ZARRBITS_DETAIL_HDF5_CALLS_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/hdf5.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace zarrbits::hdf5::detail {

class handle {
 public:
  using closer = herr_t (*)(hid_t);
  handle(hid_t id, closer close) : id_(id), close_(close) {}
  handle(handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  handle& operator=(handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  closer close_;
};

// HDF5 prints no errors where they are looked for.
class silence {
 public:
  silence() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;
  ~silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// The innermost message on HDF5's error stack, or the outermost one.
inline std::string reason(H5E_direction_t way = H5E_WALK_UPWARD) {
  std::string text;
  const auto first = [](unsigned n, const H5E_error2_t* e, void* out) -> herr_t {
    if (n == 0 && e->desc) *static_cast<std::string*>(out) = e->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, way, first, &text);
  return text.empty() ? "HDF5 gives no reason" : text;
}

// What H5Iget_name() or H5Fget_name() says; empty if it says nothing.
template <class Get>
std::string name_of(hid_t object, const Get& get) {
  std::string name(1024, '\0');
  const ssize_t size = get(object, name.data(), name.size());
  name.resize(size > 0 ? (std::min)(static_cast<std::size_t>(size), name.size() - 1) : 0);
  return name;
}

[[noreturn]] inline void fail(errc code, hid_t dataset, const std::string& what) {
  const std::string name = name_of(dataset, H5Iget_name), file = name_of(dataset, H5Fget_name);
  const std::string which = name.empty() ? std::string("without a name") : "\"" + name + "\"";
  throw error(code, "dataset " + which + (file.empty() ? "" : " of \"" + file + "\"") + ": " + what, {file, name});
}

inline void check(herr_t status, hid_t dataset, const char* doing) {
  if (status < 0) fail(errc::io_failed, dataset, std::string("HDF5 cannot ") + doing + ": " + reason());
}

}  // namespace zarrbits::hdf5::detail

#endif
