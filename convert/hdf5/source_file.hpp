// SPDX-License-Identifier: BSL-1.0
//
// Everything that can be reached in an HDF5 file, each object once: groups that contain themselves and objects with many names
// are met by address.
//
#ifndef ZARRBITS_CONVERT_HDF5_SOURCE_FILE_HPP
#define ZARRBITS_CONVERT_HDF5_SOURCE_FILE_HPP

#include "convert/hdf5/h5.hpp"
#include "convert/hdf5/open_source.hpp"
#include "convert/hdf5/values_json.hpp"
#include "convert/text/selection.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
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
};

// How an object is to stand in the store, where a convention (convert/convention/) says so.
struct arrangement {
  std::vector<std::string> dimension_names;  // of a dataset's dimensions; "" or too few: as the source names them
  std::vector<hsize_t> shape;  // of a dataset, where it is larger than in the source; what is beyond reads as fill value
  bool characters = false;     // strings of one byte stay bytes
  std::vector<std::size_t> text_lengths;  // of a compound that is to be one array of structs: flat_struct.hpp
};

struct joined_parts;  // joined_parts.hpp

struct source_object {
  // A dimension is a dataset that has no values of its own, and is no node of the store.
  enum class kind_type { group, dataset, datatype, dimension } kind = kind_type::group;
  haddr_t address = HADDR_UNDEF;
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

class source_file final : public reference_reader {
 public:
  // A file, or "s3://bucket/key". Throws convert_error where it cannot be opened.
  explicit source_file(const std::string& path, const source_options& options = {});
  ~source_file() override;
  source_file(const source_file&) = delete;
  source_file& operator=(const source_file&) = delete;

  // Finds all objects, or those that `top` names ("/a/b"): that is then the root of the store. `tells_case_apart`: whether two
  // names may differ in case alone. `at` hears of each group before it is listed. Throws convert_error.
  void walk(bool tells_case_apart, const std::string& top = "", const std::function<void(const std::string& group)>& at = {});
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
  // Bytes before the HDF5 file proper; 0: there are none.
  std::uint64_t user_block_size() const;
  // What S3 has to tell this content from another; empty for local files.
  const std::string& etag() const { return etag_; }
  // Of the same file, for what can be read without libhdf5; negative where it cannot be opened.
  int descriptor() const { return descriptor_; }
  // Throws unreadable_range where the file had fewer bytes when it was opened.
  void require_range(std::uint64_t offset, std::uint64_t size) const;
  // As opened_source::require_unchanged().
  void require_unchanged() const { opened_->require_unchanged(); }
  // Its writer is, or was, one that lets others read meanwhile.
  bool swmr() const { return opened_->swmr(); }
  // A chunk that becomes larger than this, and more than 1,000 times larger than it is stored, is refused.
  void limit_expansion(std::uint64_t bytes) { largest_expansion_ = bytes; }
  std::uint64_t largest_expansion() const { return largest_expansion_; }
  // Where in the file of descriptor() chunks are.
  const chunk_locator& chunks() const { return opened_->chunks(); }
  std::vector<source_object>& objects() { return objects_; }
  const std::vector<source_object>& objects() const { return objects_; }
  // What select() left out: the uppermost of each; what is below goes with it.
  const std::vector<source_object>& unselected() const { return unselected_; }
  // What select() was asked for, for the attributes of the store's root; empty where nothing.
  const json& selection_note() const { return selection_note_; }
  // The object that lies at this address of the file, or null.
  const source_object* at(haddr_t address) const;

  // Paths of references' targets.
  json object(const void* reference) override;
  json region(const void* reference) override;
  // What a reference points to; null where nothing.
  const source_object* target(const void* reference, H5R_type_t type) const;
  // Its path; empty where it points to nothing.
  std::string target_of(const void* reference, H5R_type_t type) const;

 private:
  void list_group(std::size_t index, bool tells_case_apart, std::vector<std::size_t>& fresh);
  source_object top_object(const std::string& path);
  void keep_only(const std::vector<bool>& keep);

  std::string path_;
  std::string etag_;
  std::shared_ptr<file_gate> gate_;
  mutable std::unordered_map<haddr_t, std::shared_ptr<const beside>> beside_;
  std::unique_ptr<const opened_source> opened_;
  int descriptor_ = -1;
  std::size_t longest_store_path_ = 3500;
  std::uint64_t largest_expansion_ = std::uint64_t{1} << 32;  // no chunk is larger
  std::vector<source_object> objects_;
  std::vector<source_object> unselected_;
  std::unordered_map<haddr_t, std::size_t> by_address_;
  json selection_note_ = json::object();
};

}  // namespace zarrbits::conversion

#endif
