// SPDX-License-Identifier: BSL-1.0
//
// Everything that can be reached in an HDF5 file, each object once: groups that contain themselves and objects with many names
// are met by address. Where links are followed, what they lead to stands at their place once more, also of other files.
//
#ifndef ZARRBITS_CONVERT_HDF5_SOURCE_FILE_HPP
#define ZARRBITS_CONVERT_HDF5_SOURCE_FILE_HPP

#include "convert/hdf5/file_bytes.hpp"
#include "convert/hdf5/h5.hpp"
#include "convert/hdf5/open_source.hpp"
#include "convert/hdf5/values_json.hpp"
#include "convert/text/selection.hpp"

#include <zarrbits/convert.hpp>

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

constexpr std::size_t no_object = static_cast<std::size_t>(-1);

// A link that is not the one under which its object is stored.
struct extra_link {
  std::string name;                // as in the file
  std::string kind;                // hard, soft, external, user, broken
  std::size_t object = no_object;  // hard: where it stood when the link was found
  std::string target;              // hard, soft, external: path, shown
  std::string file;                // external: file, shown
  std::string detail;              // user: value in base64; broken: why
  bool left_out = false;           // broken: the object is there, but cannot be stored
  bool selected = true;
  // After follow_links():
  bool copied = false;      // what it leads to is an object of the group
  std::string not_copied;   // why it is not, though it was to be
  bool leads_back = false;  // that is because it leads to a group that it is in
};

// Where an object lies. Two of them may be copies of one that is in the source once.
struct object_place {
  std::size_t file = 0;  // 0: the source; else one of the others that links lead to
  haddr_t address = HADDR_UNDEF;
  auto operator<=>(const object_place&) const = default;
};

// How an object is to stand in the store, where a convention (convert/convention/) says so.
struct arrangement {
  std::vector<std::string> dimension_names;  // of a dataset's dimensions; "" or too few: as the source names them
  std::vector<hsize_t> shape;  // of a dataset, where it is larger than in the source; what is beyond reads as fill value
  bool characters = false;     // strings of one byte stay bytes
  // Names: a compound of two equal floats with these is a complex number.
  std::pair<std::string, std::string> complex_parts;
  std::vector<std::size_t> text_lengths;  // of a compound that is to be one array of structs: flat_struct.hpp
};

struct joined_parts;  // joined_parts.hpp

struct source_object {
  // A dimension is a dataset that has no values of its own, and is no node of the store.
  enum class kind_type { group, dataset, datatype, dimension } kind = kind_type::group;
  object_place place;
  bool copy = false;       // it stands where a link does, or below
  std::string route;       // of one in another file: its path through the links, from the source's root
  std::string path;        // as shown to people and in the report
  std::string store_path;  // "/" or "/a/b%5C"
  std::string link_name;   // of the link that it was found by, as in the file
  std::size_t parent = no_object;
  std::vector<std::size_t> children;  // groups: objects stored below
  std::vector<extra_link> links;      // groups: the other links in it
  std::string listing_error;          // groups: why not everything in it is known
  arrangement arranged;
  std::shared_ptr<const joined_parts> joined;  // of a dataset that goes on in other files; else null
};

// How a source is opened.
struct source_options {
  std::uint64_t chunk_cache = 0;           // bytes of decoded chunks that libhdf5 keeps of a dataset; 0: as many as it likes
  std::string endpoint = {};               // of "s3://bucket/key"; "": what the environment says
  std::vector<std::string> external = {};  // folders whose files may be read for it, too, or "all"
  bool lock = true;                        // false: also a file that another process has open for writing
};

class source_file final {
 public:
  // A file, or "s3://bucket/key". Throws convert_error where it cannot be opened.
  explicit source_file(const std::string& path, const source_options& options = {});
  source_file(const source_file&) = delete;
  source_file& operator=(const source_file&) = delete;

  // Finds all objects, or those that `top` names ("/a/b"): that is then the root of the store. `tells_case_apart`: whether two
  // names may differ in case alone. `at` hears of each group before it is listed. Throws convert_error.
  void walk(bool tells_case_apart, const std::string& top = "", const std::function<void(const std::string& group)>& at = {});
  // After walk(): what links lead to becomes an object at their place, with all below it. `inside`: of soft and further hard
  // links, too; else only what lies in other files. Links of which nothing can be made stay, and say why.
  void follow_links(bool inside, bool tells_case_apart);
  // Before walk(): objects whose path in the store is longer are left out. Chunk keys follow after it, and file systems end at
  // 4,096 bytes.
  void limit_paths(std::size_t bytes) { longest_store_path_ = std::min(longest_store_path_, bytes); }
  // After walk(): keeps what is wanted and the groups above it. An object goes by the path that walk() found it under; further
  // hard links may add it, and are left out alone. Throws convert_error.
  void select(selection& wanted);

  h5::handle open(const source_object& o) const;
  // Of a dataset in this file, before its values are read, and its extent.
  std::shared_ptr<const beside> look_beside(hid_t dataset) const;
  // Throws h5::failure where no value of it may be read.
  void require_values(hid_t dataset) const;
  // Which other files were read for it, and which were not.
  const file_gate& others() const { return *gate_; }
  hid_t file() const { return opened_->file(); }
  const std::string& path() const { return path_; }
  const source_options& options() const { return options_; }
  // Bytes before the HDF5 file proper; 0: there are none.
  std::uint64_t user_block_size() const;
  // What S3 has to tell this content from another; empty for local files.
  const std::string& etag() const { return etag_; }
  // Of the source, without libhdf5; there are none in S3.
  const std::shared_ptr<const file_bytes>& bytes() const { return bytes_; }
  // As opened_source::require_unchanged().
  void require_unchanged() const { opened_->require_unchanged(); }
  // Its writer is, or was, one that lets others read meanwhile.
  bool swmr() const { return opened_->swmr(); }
  // A chunk that becomes larger than this, and more than 1,000 times larger than it is stored, is refused.
  void limit_expansion(std::uint64_t bytes) { largest_expansion_ = bytes; }
  std::uint64_t largest_expansion() const { return largest_expansion_; }
  std::vector<source_object>& objects() { return objects_; }
  const std::vector<source_object>& objects() const { return objects_; }
  // What select() left out: the uppermost of each; what is below goes with it.
  const std::vector<source_object>& unselected() const { return unselected_; }
  // What select() was asked for, for the attributes of the store's root; empty where nothing.
  const json& selection_note() const { return selection_note_; }
  // The first that is the open `object`, or null.
  const source_object* at(hid_t object) const;

  // What a reference points to that `holder` has, any open object of its file; null where nothing.
  const source_object* target(hid_t holder, const void* reference, H5R_type_t type) const;
  // Its path; empty where it points to nothing.
  std::string target_of(hid_t holder, const void* reference, H5R_type_t type) const;

 private:
  using names = std::unordered_set<std::string>;
  void list_group(std::size_t index, bool tells_case_apart, std::vector<std::size_t>& fresh);
  void follow_links_of(std::size_t index, bool inside, bool tells_case_apart);
  void follow(std::size_t index, hid_t group, extra_link& link, bool all, bool tells_case_apart, names& taken);
  // Appends `object`, which a link of the group leads to. Throws h5::failure where the store cannot have it; `left_out` then.
  std::size_t add_object(std::size_t parent, const std::string& link, hid_t object, const object_place& place, bool copy,
                         bool tells_case_apart, names& taken, bool& left_out);
  // Where an open object lies; of a file that is not known, HADDR_UNDEF.
  object_place place_of(hid_t object) const;
  // The same, and the file is known from now on. Throws h5::failure.
  object_place find_place(hid_t object);
  std::string route_to(std::size_t parent, const std::string& link) const;
  // The group, or one that it is in, lies there.
  bool is_in(std::size_t group, const object_place& place) const;
  source_object top_object(const std::string& path);
  void keep_only(const std::vector<bool>& keep);

  std::string path_;
  source_options options_;
  std::string etag_;
  std::string top_ = "/";  // the root of the store, as in the file
  std::shared_ptr<file_gate> gate_;
  mutable std::map<std::pair<unsigned long, haddr_t>, std::shared_ptr<const beside>> beside_;  // by libhdf5's number of the file
  std::unique_ptr<const opened_source> opened_;
  std::shared_ptr<const file_bytes> bytes_;
  unsigned long number_ = 0;                           // libhdf5's, of the source
  std::vector<std::pair<dev_t, ino_t>> linked_files_;  // object_place::file - 1
  std::size_t copies_ = 0;
  std::size_t longest_store_path_ = 3500;
  std::uint64_t largest_expansion_ = std::uint64_t{1} << 32;  // no chunk is larger
  std::vector<source_object> objects_;
  std::vector<source_object> unselected_;
  std::map<object_place, std::size_t> by_place_;          // the first of its copies
  std::map<object_place, std::string> unselected_paths_;  // in other files; of the source libhdf5 tells them
  json selection_note_ = json::object();
};

}  // namespace zarrbits::conversion

#endif
