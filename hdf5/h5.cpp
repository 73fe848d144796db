// SPDX-License-Identifier: BSL-1.0
#include "hdf5/h5.hpp"

#include "hdf5/fork_guard.hpp"

#include <algorithm>
#include <new>
#include <pthread.h>
#include <string>

namespace zarrbits::hdf5 {

namespace {

struct reasons {
  std::string innermost;
  std::string plain;
};

// libhdf5 walks from the outermost call to the innermost; the last description is the cause. Filter plugins prefix theirs.
herr_t collect(unsigned, const H5E_error2_t* e, void* data) {
  auto& r = *static_cast<reasons*>(data);
  if (e->desc && *e->desc) {
    const std::string text = e->desc;
    if (r.plain.empty()) r.plain = text;
    r.innermost = text;
  }
  return 0;
}

}  // namespace

namespace {

std::recursive_mutex& mutex_of_libhdf5() {
  static std::recursive_mutex the_one;
  return the_one;
}

}  // namespace

std::recursive_mutex& lock::mutex() { return mutex_of_libhdf5(); }

void guard_forks() {
  // the child's thread has another number than the one that took the mutex, and could not release it
  static const int registered = ::pthread_atfork([] { mutex_of_libhdf5().lock(); }, [] { mutex_of_libhdf5().unlock(); },
                                                 [] { ::new (static_cast<void*>(&mutex_of_libhdf5())) std::recursive_mutex; });
  static_cast<void>(registered);
}

text::coded_reason last_reason() {
  reasons r;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &r);
  H5Eclear2(H5E_DEFAULT);
  std::string text = r.plain.empty() ? "no reason given" : r.plain;
  if (text.size() > 300) text.resize(300);
  const bool is_newer = H5_VERS_MAJOR < 2 && text.find("bad version number for") != std::string::npos;
  if (is_newer && text.find("bad version number for datatype message") != std::string::npos)
    text +=
        ": written by a newer HDF5 (datatype version 4 or 5); build zarrbits with -DZARRBITS_HDF5=bundled, or write the file "
        "with libver \"v110\"";
  else if (is_newer)
    text += ": written by a newer HDF5; build zarrbits with -DZARRBITS_HDF5=bundled, or write the file with libver \"v110\"";
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return {is_newer ? reason_code::unsupported_feature : reason_code::unreadable, std::move(text)};
}

namespace {

thread_local failed_closes failed;

}  // namespace

const failed_closes& closes_that_failed() noexcept { return failed; }

void note_failed_close() noexcept {
  ++failed.count;
  try {
    failed.reason = last_error();
  } catch (const std::bad_alloc&) {  // the last one's stays
  }
}

void fail(const char* action, const text::coded_reason& reason) {
  throw failure(std::string("HDF5 cannot ") + action + ": " + reason.sentence, reason.code);
}

namespace {

array::extents extent_of(hid_t space, bool maximum) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) fail("get the rank of a dataspace");
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  if (rank > 0) {
    check(H5Sget_simple_extent_dims(space, maximum ? nullptr : dims.data(), maximum ? dims.data() : nullptr),
          "get the extent of a dataspace");
  }
  return {dims.begin(), dims.end()};
}

}  // namespace

array::extents extent(hid_t space) { return extent_of(space, false); }

array::extents maximum_extent(hid_t space) { return extent_of(space, true); }

array::extents chunk_extent(hid_t properties) {
  hsize_t chunk[H5S_MAX_RANK] = {};
  const int rank = H5Pget_chunk(properties, H5S_MAX_RANK, chunk);
  return {chunk, chunk + std::max(rank, 0)};
}

std::string member_name(hid_t type, unsigned index) {
  char* raw = H5Tget_member_name(type, index);
  if (!raw) fail("get the name of a member");
  std::string name = raw;
  H5free_memory(raw);
  return name;
}

}  // namespace zarrbits::hdf5
