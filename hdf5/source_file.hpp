// SPDX-License-Identifier: BSL-1.0
//
// All reachable objects of an HDF5 file, each one once: addresses identify groups that contain themselves, and objects with
// several names. If links are followed, their targets appear again at the links' places, also those in other files.
//
#ifndef ZARRBITS_HDF5_SOURCE_FILE_HPP
#define ZARRBITS_HDF5_SOURCE_FILE_HPP

#include "hdf5/file_bytes.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/open_source.hpp"
#include "hdf5/values_json.hpp"
#include "text/selection.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <unordered_set>
#include <utility>
#include <vector>

namespace zarrbits::conversion {
struct joined_parts;  // of the jobs that join files: nothing here looks into it
}

namespace zarrbits::hdf5 {

constexpr std::size_t no_object = static_cast<std::size_t>(-1);

// A link to an object other than the one that it is stored under.
struct extra_link {
  std::string name;                      // as in the file
  std::string kind;                      // hard, soft, external, user, broken
  std::size_t object = no_object;        // hard: index of its object when the link was found
  std::string target;                    // hard, soft, external: path, escaped
  std::string file;                      // external: file, escaped
  std::string detail;                    // user: value in base64; broken: why
  reason_code code = reason_code::none;  // of `detail`, if broken, or of `not_copied`
  bool left_out = false;                 // broken: the object exists, but cannot be stored
  bool selected = true;
  // After follow_links():
  bool copied = false;     // its target is an object of the group
  std::string not_copied;  // why it was not copied, though it should be
  bool is_cyclic = false;  // not copied because it leads to a group that contains it
};

// Where an object is stored. Two objects may be copies of a single one in the source.
struct object_place {
  std::size_t file = 0;  // 0: the source; else another file that links lead to
  haddr_t address = HADDR_UNDEF;
  auto operator<=>(const object_place&) const = default;
};

// How an object appears in the store, if a convention (conventions/) or the joining of files decides it.
struct schema_override {
  std::vector<std::string> dimension_names;  // names of a dataset's dimensions; "" or too few: the source's names
  std::string new_dimension;                 // name of a first dimension that the array has, and the dataset does not; "": none
  array::extents shape;     // shape of a dataset, if it is larger than in the source; the rest reads as fill value
  bool characters = false;  // keep strings of one byte as bytes
  // Field names: a compound of two equal floats with these names is a complex number.
  std::pair<std::string, std::string> complex_parts;
  bool bits_are_booleans = false;         // bit fields of one byte are booleans
  bool int8_is_boolean = false;           // the attributes say that int8 stands for booleans
  std::vector<std::size_t> text_lengths;  // for a compound that becomes one array of structs: flat_struct.hpp
};

struct source_object {
  // A dimension is a dataset without values of its own; it is not a node of the store.
  enum class kind_type { group, dataset, datatype, dimension } kind = kind_type::group;
  object_place place;
  bool copy = false;       // it, or a group above it, is at a link's place
  std::string route;       // for an object in another file: its path through the links, from the source's root
  std::string path;        // as shown in messages and in the report
  std::string store_path;  // "/" or "/a/b%5C"
  std::string link_name;   // name of the link that it was found by, as in the file
  std::size_t parent = no_object;
  std::vector<std::size_t> children;  // groups: objects stored below
  std::vector<extra_link> links;      // groups: the other links in it
  std::vector<std::string> order;     // groups: names of all links as they were created; empty: unknown, or the order of names
  text::coded_reason listing_error;   // groups: why the list of objects is incomplete
  schema_override overrides;
  std::shared_ptr<const conversion::joined_parts> joined;  // for a dataset that continues in other files; else null
};

// How a source is opened.
struct source_options {
  std::uint64_t chunk_cache = 0;           // bytes of decoded chunks that libhdf5 keeps for a dataset; 0: libhdf5's default
  remote_access remote = {};               // how a file on a server is reached
  std::uint64_t cache = 64U << 20;         // bytes of a remote file that are kept in memory
  std::vector<std::string> external = {};  // further folders whose files may be read for it, or "all"
  bool lock = true;                        // false: also open a file that another process has open for writing
  bool netcdf3 = false;                    // it, and the parts of its virtual datasets, may be netCDF-3 files
};

// The code for a link whose target cannot be opened or copied.
inline reason_code code_of_link_failure(const failure& e) {
  return e.code == reason_code::unreadable ? reason_code::link_not_followed : e.code;
}

class source_file final {
 public:
  // A file, "s3://bucket/key" or "https://host/path". Throws zarrbits::error if it cannot be opened.
  explicit source_file(const std::string& path, const source_options& options = {});
  source_file(const source_file&) = delete;
  source_file& operator=(const source_file&) = delete;

  // Finds all objects, or those of `top` ("/a/b"), which is then the root of the store. `tells_case_apart`: the store allows two
  // names that differ only in case. `on_group` is called with each group before it is listed. Throws zarrbits::error.
  void walk(bool tells_case_apart, const std::string& top = "",
            const std::function<void(const std::string& group)>& on_group = {});
  // Call after walk(): targets of links become objects at the links' places, with all below. `inside`: targets of soft and
  // further hard links too; otherwise only those in other files. Links whose targets cannot be copied stay, with the reason.
  void follow_links(bool inside, bool tells_case_apart);
  // Call after follow_links(): names that begin with "__" stay as they are.
  void keep_reserved_names();
  // Call before walk(): leaves out objects with a longer path in the store. Chunk keys come after the path, and file systems
  // allow 4,096 bytes.
  void limit_paths(std::size_t bytes) { longest_store_path_ = std::min(longest_store_path_, bytes); }
  // Call after walk(): keeps wanted objects and the groups above them. An object is selected by the path under which walk() found
  // it; further hard links may add it, and each is left out on its own. Throws zarrbits::error.
  void select(text::selection& patterns);

  handle open(const source_object& o) const;
  // For a dataset in this file, before its values and its extent are read.
  std::shared_ptr<const external_dependencies> find_external_dependencies(hid_t dataset) const;
  // Throws failure if its values cannot be read.
  void require_values(hid_t dataset) const;
  // The other files that were read for it, and those that were refused.
  const external_file_policy& external_files() const { return *policy_; }
  hid_t file() const { return opened_->file(); }
  const std::string& path() const { return path_; }
  const source_options& options() const { return options_; }
  // Bytes before the HDF5 superblock; 0 without a user block.
  std::uint64_t user_block_size() const;
  // The server's identifier of this content; empty for local files.
  const std::string& etag() const { return opened_->state().etag; }
  // Its state now; of a remote file, when it was opened.
  io::file_state state() const;
  // Bytes of the source, without libhdf5.
  const std::shared_ptr<const file_bytes>& bytes() const { return bytes_; }
  // As opened_source::require_unchanged().
  void require_unchanged() const { opened_->require_unchanged(); }
  void require_same_on_server() const { opened_->require_same_on_server(); }
  // Its writer is, or was, one that allows concurrent readers.
  bool swmr() const { return opened_->swmr(); }
  // Refuses a chunk that becomes larger than this and more than 1,000 times its stored size.
  void limit_expansion(std::uint64_t bytes) { largest_expansion_ = bytes; }
  std::uint64_t largest_expansion() const { return largest_expansion_; }
  std::vector<source_object>& objects() { return objects_; }
  const std::vector<source_object>& objects() const { return objects_; }
  // The objects that select() left out: the topmost ones; all below is left out too.
  const std::vector<source_object>& unselected() const { return unselected_; }
  // The patterns given to select(), for the attributes of the store's root; empty without patterns.
  const text::json& selection_note() const { return selection_note_; }
  // The first entry of the open `object`, or null.
  const source_object* find_object(hid_t object) const;

  // The target of a reference in `holder`, any open object of its file; null if it has none.
  const source_object* target(hid_t holder, const void* reference, H5R_type_t type) const;
  // The target's path; empty without a target.
  std::string target_of(hid_t holder, const void* reference, H5R_type_t type) const;

 private:
  using names = std::unordered_set<std::string>;
  void list_group(std::size_t index, bool tells_case_apart, std::vector<std::size_t>& fresh);
  void follow_links_of(std::size_t index, bool inside, bool tells_case_apart);
  void follow(std::size_t index, hid_t group, extra_link& link, bool follow_all, bool tells_case_apart, names& used_names);
  // Appends `object`, the target of a link of the group. Throws failure if the store cannot have it, and sets `left_out`.
  std::size_t add_object(std::size_t parent, const std::string& link, hid_t object, const object_place& place, bool copy,
                         bool tells_case_apart, names& used_names, bool& left_out);
  // Where an open object is stored; HADDR_UNDEF if its file is unknown.
  object_place place_of(hid_t object) const;
  // Like place_of(), but adds an unknown file. Throws failure.
  object_place find_place(hid_t object);
  std::string route_to(std::size_t parent, const std::string& link) const;
  // True if the group, or one that contains it, is stored there.
  bool is_in(std::size_t group, const object_place& place) const;
  source_object top_object(const std::string& path);
  void keep_only(const std::vector<bool>& keep);

  std::string path_;
  source_options options_;
  std::string top_ = "/";  // the root of the store, as in the file
  std::shared_ptr<external_file_policy> policy_;
  mutable std::map<std::pair<unsigned long, haddr_t>, std::shared_ptr<const external_dependencies>>
      dependencies_;  // by libhdf5's file number
  std::unique_ptr<const opened_source> opened_;
  std::shared_ptr<const file_bytes> bytes_;
  unsigned long number_ = 0;                           // libhdf5's number of the source
  std::vector<std::pair<dev_t, ino_t>> linked_files_;  // object_place::file - 1
  std::size_t copies_ = 0;
  std::size_t longest_store_path_ = 3500;
  std::uint64_t largest_expansion_ = std::uint64_t{1} << 32;  // no chunk is larger
  std::vector<source_object> objects_;
  std::vector<source_object> unselected_;
  std::map<object_place, std::size_t> by_place_;          // the first of its copies
  std::map<object_place, std::string> unselected_paths_;  // in other files; libhdf5 finds those of the source
  text::json selection_note_ = text::json::object();
};

}  // namespace zarrbits::hdf5

#endif
