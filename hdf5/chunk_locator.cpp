// SPDX-License-Identifier: BSL-1.0
#include "hdf5/chunk_locator.hpp"

#include "hdf5/file_driver.hpp"
#include "hdf5/netcdf3_view.hpp"
#include "remote/remote_file.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <new>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

std::mutex errors_mutex;
driver_error_state recorded_errors;

void record_error(const std::string& file, const std::string& reason) {
  const std::lock_guard guard(errors_mutex);
  ++recorded_errors.count;
  recorded_errors.last = "\"" + file + "\" cannot be read: " + reason;
  recorded_errors.server_error = nullptr;
}

void record_error(const zarrbits::error& of_server) {
  const std::lock_guard guard(errors_mutex);
  ++recorded_errors.count;
  recorded_errors.last = of_server.what();
  recorded_errors.server_error = std::make_shared<const zarrbits::error>(of_server);
}

constexpr const char* convert_again = "; check the disk or the connection, and convert again";

// As in HDF5: the environment may say that a file system without locks is an error. If it says not to lock at all, libhdf5 asks
// for no lock.
bool locks_are_needed() {
  const char* value = std::getenv("HDF5_USE_FILE_LOCKING");
  return value && (std::strcmp(value, "TRUE") == 0 || std::strcmp(value, "1") == 0);
}

// The kernel stamps a file with the time of its clock's last tick: two writes within one tick have the same time. The opened
// state must be older than that, so that every later write shows.
io::file_state settled_state_of(int descriptor) noexcept {
#ifdef CLOCK_REALTIME_COARSE
  for (int i = 0; i < 100; ++i) {
    const io::file_state state = io::state_of(descriptor);
    timespec tick{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &tick);
    if (!state.regular || state.seconds != tick.tv_sec || state.nanoseconds < tick.tv_nsec) return state;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
#endif
  return io::state_of(descriptor);
}

}  // namespace

driver_error_state driver_errors() {
  const std::lock_guard guard(errors_mutex);
  return recorded_errors;
}

// The functions of a libhdf5 driver. Each forwards to the driver below.
struct chunk_locator::driver {
  // The settings of this driver in a property list. libhdf5 passes them on to files that it opens for this one.
  struct settings {
    std::shared_ptr<external_file_policy> policy;
    std::shared_ptr<const remote::remote_file> remote;  // the file, if it is on a server; else it is a local one
    std::shared_ptr<source_lock> lock;
    std::shared_ptr<netcdf3_access> netcdf3;
  };
  struct file {
    H5FD_t base;  // libhdf5's; it comes first
    settings options;
    struct handle_type {
      int descriptor;  // of the driver below, -1 for a remote file; must come first: libhdf5 takes a handle for a pointer to a
                       // descriptor when it opens a symbolic link
      file* owner;
    } handle;
    H5FD_t* underlying;  // null for a remote file, which has nothing below
    haddr_t end;         // of a remote file: what libhdf5 set as the end of its addresses
    bool source, locating, located, unsure;
    haddr_t address;
    std::size_t size;
    haddr_t last_metadata;
    io::file_state opened;
    std::string name;
    std::unique_ptr<const netcdf3_view> netcdf3;  // null for an HDF5 file
  };
  // Keeps libhdf5's errors. Its public functions, which this driver calls, clear earlier errors: when an open fails, such a
  // function closes the file, and the reason of the failure would be lost.
  struct saved_errors {
    hid_t stack = H5Eget_current_stack();
    ~saved_errors() {
      if (stack >= 0) H5Eset_current_stack(stack);
    }
  };
  static file& of(H5FD_t* f) { return *reinterpret_cast<file*>(f); }
  static H5FD_t* underlying(const H5FD_t* f) { return reinterpret_cast<const file*>(f)->underlying; }

  static H5FD_t* open(const char* name, unsigned flags, hid_t list, haddr_t max_address) {
    if (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_CREAT)) return nullptr;  // only for reading
    const auto* options = static_cast<const settings*>(H5Pget_driver_info(list));
    if (!options || !options->policy) return nullptr;
    const bool source = options->policy->is_source(name);
    if (!source && !options->policy->permit(name)) return nullptr;
    std::shared_ptr<const remote::remote_file> remote_source = source ? options->remote : nullptr;
    if (!source && !open_part(*options->policy, name, remote_source)) return nullptr;
    const bool remote = remote_source != nullptr;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    const bool ready = !remote && access >= 0 && H5Pset_fapl_sec2(access) >= 0;
    errno = 0;
    H5FD_t* lower_file = ready ? H5FDopen(name, flags, access, max_address) : nullptr;
    const int error = errno == 0 ? EIO : errno;
    if (access >= 0) {
      const saved_errors errors;
      H5Pclose(access);
    }
    if (!lower_file && !remote) {
      if (!source && error != ENOENT)  // libhdf5 treats it as missing, and its values read as the fill value
        record_error(name, std::system_category().message(error) + convert_again);
      return nullptr;
    }
    void* descriptor = nullptr;
    if (!remote && (H5FDget_vfd_handle(lower_file, H5P_DEFAULT, &descriptor) < 0 || !descriptor)) {
      H5FDclose(lower_file);
      return nullptr;
    }
    auto* f = new (std::nothrow) file{};
    if (f) {
      f->underlying = lower_file;
      f->options = *options;
      f->options.remote = std::move(remote_source);
      f->handle = {remote ? -1 : *static_cast<int*>(descriptor), f};
      f->opened = remote ? f->options.remote->state() : settled_state_of(f->handle.descriptor);
      f->name = name;
      f->source = source;
      if (!view_netcdf3(*f)) {
        close(reinterpret_cast<H5FD_t*>(f));
        return nullptr;
      }
    } else if (lower_file) {
      H5FDclose(lower_file);
    }
    return reinterpret_cast<H5FD_t*>(f);
  }
  // False for a file on a server that may be read, and cannot.
  static bool open_part(external_file_policy& policy, const char* name,
                        std::shared_ptr<const remote::remote_file>& part) noexcept {
    const saved_errors errors;
    try {
      part = policy.open_remote(name);
      return true;
    } catch (const zarrbits::error& e) {
      record_error(e);
    } catch (const std::exception& e) {
      record_error(name, e.what());
    }
    return false;
  }
  // False for a netCDF-3 file that may be read as such, and cannot.
  static bool view_netcdf3(file& f) noexcept {
    netcdf3_access* const access = f.options.netcdf3.get();
    if (!access || !f.opened.regular) return true;
    const saved_errors errors;
    std::string reason;
    try {
      std::shared_ptr<const io::byte_source> bytes = f.options.remote;
      if (!bytes)
        bytes = std::make_shared<const io::local_bytes>(io::file_descriptor(::fcntl(f.handle.descriptor, F_DUPFD_CLOEXEC, 0)));
      std::string head(static_cast<std::size_t>(std::min<std::uint64_t>(f.opened.size, 4)), '\0');
      bytes->read(0, std::as_writable_bytes(std::span(head)));
      if (io::is_netcdf3(head)) f.netcdf3 = std::make_unique<const netcdf3_view>(std::move(bytes), access->cache);
      return true;
    } catch (const zarrbits::error& e) {
      record_error(e);
      return false;
    } catch (const failure& e) {
      reason = std::string("it cannot be read like a netCDF-4 file: ") + e.what();
    } catch (const std::exception& e) {
      reason = e.what();
    }
    if (f.source) access->reason = reason;
    else record_error(f.name, reason);
    return false;
  }
  static void* get_settings(H5FD_t* f) { return copy_settings(&of(f).options); }
  static void* copy_settings(const void* source) { return new (std::nothrow) settings(*static_cast<const settings*>(source)); }
  static herr_t free_settings(void* s) {
    delete static_cast<settings*>(s);
    return 0;
  }
  static herr_t close(H5FD_t* f) {
    const saved_errors errors;
    if (underlying(f) && io::state_of(of(f).handle.descriptor) != of(f).opened)
      record_error(of(f).name, std::string("it changed meanwhile") + convert_again);
    const herr_t status = underlying(f) ? H5FDclose(underlying(f)) : 0;
    delete &of(f);
    return status;
  }
  static int compare(const H5FD_t* a, const H5FD_t* b) {
    if (underlying(a) && underlying(b)) return H5FDcmp(underlying(a), underlying(b));
    const auto remote = [](const H5FD_t* f) { return reinterpret_cast<const file*>(f)->options.remote.get(); };
    if (remote(a) == remote(b)) return 0;
    return std::less<>()(remote(a), remote(b)) ? -1 : 1;
  }
  static herr_t query(const H5FD_t* f, unsigned long* flags) {
    *flags = 0;  // before a file is open
    if (!f || !underlying(f)) return 0;
    const herr_t status = H5FDquery(underlying(f), flags) < 0 ? -1 : 0;
    // libhdf5 marks both buffers as filled before it reads; after a failed read they would return bytes that were never read
    *flags &= ~static_cast<unsigned long>(H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_ACCUMULATE_METADATA);
    return status;
  }
  static haddr_t get_eoa(const H5FD_t* f, H5FD_mem_t type) {
    return underlying(f) ? H5FDget_eoa(underlying(f), type) : reinterpret_cast<const file*>(f)->end;
  }
  static herr_t set_eoa(H5FD_t* f, H5FD_mem_t type, haddr_t address) {
    if (underlying(f)) return H5FDset_eoa(underlying(f), type, address);
    of(f).end = address;
    return 0;
  }
  static haddr_t get_eof(const H5FD_t* f, H5FD_mem_t type) {
    if (const auto& view = reinterpret_cast<const file*>(f)->netcdf3) return view->end();
    return underlying(f) ? H5FDget_eof(underlying(f), type) : reinterpret_cast<const file*>(f)->opened.size;
  }
  static herr_t get_handle(H5FD_t* f, hid_t, void** handle) {
    *handle = &of(f).handle;
    return 0;
  }
  static herr_t read(H5FD_t* f, H5FD_mem_t type, hid_t, haddr_t address, std::size_t size, void* out) {
    file& us = of(f);
    if (type != H5FD_MEM_DRAW && type != H5FD_MEM_GHEAP && !us.netcdf3) us.last_metadata = std::max(us.last_metadata, address);
    if (!us.locating || type != H5FD_MEM_DRAW) return read_bytes(us, type, address, {static_cast<std::byte*>(out), size});
    us.unsure = us.located;
    us.located = true;
    us.address = address;
    us.size = size;
    return 0;
  }
  // libhdf5's own driver returns zeros beyond the end of the file.
  static herr_t read_bytes(const file& us, H5FD_mem_t type, haddr_t address, std::span<std::byte> out) {
    std::string reason = "the file ends before the range that was to be read";
    const bool is_in_file = !us.netcdf3 || us.netcdf3->is_in_file(type, address);
    const bool inside =
        !is_in_file || !us.opened.regular || (address <= us.opened.size && out.size() <= us.opened.size - address);
    try {
      if (inside) {
        if (!is_in_file) us.netcdf3->read(address, out);
        else if (us.options.remote && type == H5FD_MEM_DRAW) us.options.remote->read(address, out);
        else if (us.options.remote) us.options.remote->read_metadata(address, out);
        else io::read_range(us.handle.descriptor, address, out);
        return 0;
      }
    } catch (const io::read_error& e) {
      reason = e.what();
      record_error(us.name, reason + convert_again);
    } catch (const zarrbits::error& e) {
      reason = e.what();
      record_error(e);
    } catch (const std::exception& e) {
      reason = e.what();
      record_error(us.name, reason + convert_again);
    }
    H5Epush2(H5E_DEFAULT, __FILE__, "read", __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR, "%s", reason.c_str());
    return -1;
  }
  static herr_t write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }
  // Remote files have no lock. The property list's own lock setting does not pass on to files that libhdf5 opens for this one:
  // libhdf5 would then refuse to open this file a second time, as the source of its own virtual dataset.
  static herr_t lock(H5FD_t* f, hbool_t) {
    file& us = of(f);
    if (us.handle.descriptor < 0 || !us.options.lock || !us.options.lock->requested) return 0;
    const io::lock_state state = io::take_lock(us.handle.descriptor, true);
    if (us.source) us.options.lock->state = state;
    if (state == io::lock_state::acquired || (state == io::lock_state::unsupported && !locks_are_needed())) return 0;
    if (!us.source && state == io::lock_state::contended)  // otherwise libhdf5 treats it as missing
      record_error(us.name, "another process has it open for writing; convert again when it is closed");
    H5Epush2(H5E_DEFAULT, __FILE__, "lock", __LINE__, H5E_ERR_CLS, H5E_FILE, H5E_CANTOPENFILE, "%s",
             state == io::lock_state::contended ? "another process has it open for writing"
                                                : "its file system does not support locks");
    return -1;
  }
  static herr_t unlock(H5FD_t*) { return 0; }

  // Id of this driver; negative if libhdf5 rejects it. Registered once for the process.
  static hid_t id() {
    static const hid_t driver_id = [] {
      H5FD_class_t c =
          driver_class<driver>("zarrbits_chunk_locator", 511);  // the last of the values that libhdf5 does not assign
      c.lock = lock;
      c.unlock = unlock;
      return H5FDregister(&c);
    }();
    return driver_id;
  }
};

void chunk_locator::set_driver(hid_t access, std::shared_ptr<external_file_policy> gate,
                               std::shared_ptr<const remote::remote_file> remote, std::shared_ptr<source_lock> lock,
                               std::shared_ptr<netcdf3_access> netcdf3) {
  const driver::settings options{std::move(gate), std::move(remote), std::move(lock), std::move(netcdf3)};
  const hid_t id = driver::id();
  if (id < 0 || H5Pset_driver(access, id, &options) < 0) fail("set the file driver");
}

chunk_locator::chunk_locator(hid_t file) noexcept {
  const handle access(H5Fget_access_plist(file));
  if (access && driver::id() >= 0 && H5Pget_driver(access) == driver::id() && H5Fget_vfd_handle(file, H5P_DEFAULT, &file_) >= 0) {
    file_ = static_cast<driver::file::handle_type*>(file_)->owner;
    return;
  }
  file_ = nullptr;
  H5Eclear2(H5E_DEFAULT);
}

int chunk_locator::descriptor() const noexcept { return file_ ? static_cast<driver::file*>(file_)->handle.descriptor : -1; }

std::shared_ptr<const remote::remote_file> chunk_locator::remote() const noexcept {
  return file_ ? static_cast<driver::file*>(file_)->options.remote : nullptr;
}

io::file_state chunk_locator::opened() const noexcept {
  return file_ ? static_cast<driver::file*>(file_)->opened : io::file_state{};
}

std::uint64_t chunk_locator::take_last_metadata() noexcept {
  return file_ ? std::exchange(static_cast<driver::file*>(file_)->last_metadata, 0) : 0;
}

std::optional<chunk_locator::range> chunk_locator::find(hid_t dataset, const array::extents& first,
                                                        unsigned& mask) const noexcept {
  if (!file_) return {};
  auto& f = *static_cast<driver::file*>(file_);
  f.locating = true;
  f.located = f.unsure = false;
  char nothing_is_read = 0;
  hsize_t start[H5S_MAX_RANK] = {};
  std::copy_n(first.begin(), std::min<std::size_t>(first.size(), H5S_MAX_RANK), start);
  const herr_t status = H5Dread_chunk(dataset, H5P_DEFAULT, start, &mask, &nothing_is_read);
  f.locating = false;
  if (status < 0) {
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
  if (!f.located || f.unsure || (f.netcdf3 && !netcdf3_view::is_range(f.address))) return {};
  return range{f.address, f.size};
}

}  // namespace zarrbits::hdf5
