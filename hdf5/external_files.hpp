// SPDX-License-Identifier: BSL-1.0
//
// Other files that libhdf5 opens by itself while it reads one: raw data of external storage, sources of virtual datasets, targets
// of external links. A hostile file may name any file: /etc/passwd, or a pipe on which the reader waits forever. Two checks apply
// the same rule. HDF5 files go through our driver (chunk_locator.hpp), which asks the policy before it opens one. libhdf5 opens
// raw files without any driver, so find_external_dependencies() finds them, through virtual datasets of virtual datasets, before
// any value is read.
//
#ifndef ZARRBITS_HDF5_EXTERNAL_FILES_HPP
#define ZARRBITS_HDF5_EXTERNAL_FILES_HPP

#include "hdf5/h5.hpp"
#include "io/files.hpp"

#include <zarrbits/remote_access.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace zarrbits::remote {
class remote_file;
}

namespace zarrbits::hdf5 {

// Permits regular files in the source's folder and below, with symbolic links resolved, and what `allowed` adds: folders, "all"
// local files, or files on servers, each by its name.
class external_file_policy {
 public:
  // `name`: as libhdf5 gets it. `access`: how servers are reached. Throws zarrbits::error if an allowed folder is not a folder.
  external_file_policy(std::string name, bool remote, const std::vector<std::string>& allowed, const remote_access& access = {});

  enum class decision { allowed, missing, refused };
  decision check(const std::string& name);
  // Like check(), for a file that libhdf5 is about to open. The source itself is permitted until it is open.
  bool permit(const char* name) noexcept;
  // A file on a server that is permitted; null for any other name. It stays open while it is in use, or one of the last. Throws
  // zarrbits::error.
  std::shared_ptr<const remote::remote_file> open_remote(const std::string& name);
  // The state of such a file when it was first opened; nothing if it was not.
  std::optional<io::file_state> remote_state(const std::string& name) const;
  bool is_source(const char* name) const { return opening_ && name_ == name; }
  void source_is_open() { opening_ = false; }

  // The real path of the last checked file that exists.
  const std::string& checked_path() const { return checked_path_; }
  // Why check() last refused, as a sentence without its end; empty if it did not refuse since forget_refusal().
  const std::string& refusal() const { return refusal_; }
  void forget_refusal() { refusal_.clear(); }
  // Reports the last refusal.
  void note_refusal() { refused_[refused_file_] = refusal_; }
  // Notes a raw file that will be read.
  void note_read() { read_.insert(checked_path_); }

  // The folders of the names by which this file was opened, in that order.
  std::vector<std::string> folders_of(const std::string& name) const;

  const std::set<std::string>& read() const { return read_; }
  const std::map<std::string, std::string>& refused() const { return refused_; }  // and the reason

 private:
  using identity = std::pair<dev_t, ino_t>;
  void note_folder(const identity& file, const std::string& name);

  std::string name_;
  bool opening_ = true, allow_all_ = false;
  std::vector<std::string> allowed_;
  identity source_{};
  std::string checked_path_, refusal_, refused_file_;
  std::set<std::string> read_;
  std::map<std::string, std::string> refused_;
  std::map<identity, std::vector<std::string>> folders_;
  struct remote_part {
    std::optional<io::file_state> state = {};
    std::weak_ptr<const remote::remote_file> opened = {};
  };
  remote_access access_;
  std::map<std::string, remote_part> remote_parts_;  // by name
  std::list<std::shared_ptr<const remote::remote_file>> recent_;
};

// A source of a virtual dataset.
struct virtual_source {
  bool is_available = false;  // it exists, and may be read
  bool chunked = false;       // chunked, with the form and the datatype of external_dependencies::chunked; then also:
  std::string file = {};      // its real path
  haddr_t address = HADDR_UNDEF;
  array::extents extent = {}, chunk = {};
};

// What the values of a dataset need besides its own file.
struct external_dependencies {
  std::vector<virtual_source> sources;     // virtual dataset only
  std::uint64_t missing = 0, refused = 0;  // sources that are missing or refused
  std::string refusal_reason;              // for the first refused one
  text::coded_reason obstacle;             // why no value can be read; else empty
  bool is_cyclic = false;                  // not even the extent is known: a virtual dataset of itself
  std::uint64_t raw_bytes = 0;             // bytes in external files
  std::string missing_raw = {};            // which external file of its own cannot be opened, and why; "": all can
  // The first chunked source of a virtual dataset; null if none is chunked.
  struct chunked_source {
    array::extents chunk;
    handle type, properties;
    std::string form;  // chunk_form()
  };
  std::shared_ptr<const chunked_source> chunked = {};
};
// Whether it is a scalar that stands for values in other files, which its attributes name (CF-1.13, section 2.8, and CFA before
// it). libhdf5 does not know of those: nothing here reads them.
bool is_aggregation_variable(hid_t dataset);

external_dependencies find_external_dependencies(hid_t dataset, external_file_policy& gate);

// After H5Dread: throws failure if it failed, which names the external file that cannot be opened, and else is that of check().
void check_read(herr_t status, hid_t dataset, const char* action);

}  // namespace zarrbits::hdf5

#endif
