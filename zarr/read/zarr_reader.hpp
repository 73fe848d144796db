// SPDX-License-Identifier: BSL-1.0
//
// Reads Zarr v3 stores: metadata, and which bytes of the store each chunk has. It shares no code with zarr/write/, so that
// `verify` does not repeat a bug of what makes stores. Chunks are decoded by the decoder that the caller passes:
// codecs/codec_chain.hpp, and verify/decode/plain_codec_chain.hpp for `verify`.
//
//   zarr_array a(open_store("out.zarr", {}, {}, 512 << 20) / "a", codecs::make_decoder);
//   element_buffer chunk;
//   if (!a.read_chunk({0, 0}, chunk)) chunk = a.fill();   // never written
//
#ifndef ZARRBITS_ZARR_READ_ZARR_READER_HPP
#define ZARRBITS_ZARR_READ_ZARR_READER_HPP

#include "metadata/array_metadata.hpp"
#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "zarr/read/store_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

class chunk_decoder;
struct encoding;
class zarr_shard;

enum class zarr_kind {
  boolean,
  signed_integer,
  unsigned_integer,
  floating,
  complex,
  raw,         // r<N>, raw_bytes
  terminated,  // null_terminated_bytes
  text32,      // fixed_length_utf32
  record,      // struct
  text,        // string
  binary,      // variable_length_bytes
};

struct zarr_field;

struct zarr_type {
  zarr_kind kind = zarr_kind::raw;
  std::string name;      // as in zarr.json
  std::size_t size = 0;  // size of an element in memory; 0: variable length
  unsigned bits = 0;     // of a component
  std::string unit;      // numpy's times: "us", "10ms"
  std::vector<zarr_field> fields;

  bool variable() const noexcept { return kind == zarr_kind::text || kind == zarr_kind::binary; }
};

struct zarr_field {
  std::string name;
  std::size_t offset = 0;
  zarr_type type;
};

// Elements in C order: `data` in this machine's byte order, or one string per element if the type has variable length.
struct element_buffer {
  std::vector<std::byte> data;
  std::vector<std::string> strings;
};

// The kind that the zarr.json in `folder` declares; none if there is no zarr.json. Throws store_error if it declares nothing
// valid.
metadata::node_kind kind_of(const store_folder& folder);

// The bytes of a folder's zarr.json; empty if absent. Throws store_error if they would take more memory than is allowed.
std::optional<std::vector<std::byte>> read_metadata_bytes(const store_folder& folder);

// A node's zarr.json with its members in their order, and remarks on attributes that differ from the store's. Throws store_error.
struct stored_node {
  metadata::node_kind kind = metadata::node_kind::none;
  text::json document;
  std::vector<detail::attribute_remark> remarks;
};
stored_node read_stored_node(const store_folder& folder);

// The digest of the values that is noted in a zarr.json, which the functions below and above do not show; "" if absent.
std::string noted_digest(const store_folder& folder);

// A zarr.json with any content. Throws store_error if it is missing, no JSON object, or absurdly nested.
nlohmann::json read_node(const store_folder& folder);

// The selection that the store's root declares: patterns of the source's paths, and the object that is its root ("" for all).
struct store_selection {
  std::string object;
  std::vector<std::string> include, exclude;
};
store_selection selection_of(const store_folder& store);

// Folder names in the store escape what Zarr does not allow: %2F is "/". But "%2F" may also be the name in the source: the notes
// of the group say which.
std::string unescape_node_name(const std::string& name);

// The source's name of a node of this name, by the zarr.json of its group.
std::string name_in_source(const nlohmann::json& group, const std::string& stored);

// The nodes directly in a group, by their HDF5 names.
class child_nodes {
 public:
  child_nodes() = default;
  // `node`: the group's zarr.json.
  child_nodes(const store_folder& group, const nlohmann::json& node);

  // Removes and returns the nodes of that name: those that have it by the notes of the group; else those that may have it,
  // because notes may be lost, and nodes in sequences have none.
  std::vector<store_folder> match(const std::string& name);
  std::vector<store_folder> unmatched() const;

 private:
  struct candidate {
    std::size_t node;
    bool by_notes;
  };
  std::vector<store_folder> nodes_;
  std::vector<bool> matched_;
  std::multimap<std::string, candidate> by_name_;
};

// The name of Zarr v2 metadata next to the zarr.json of a node, or "": some readers prefer it.
std::string v2_metadata_key(const store_folder& node);

// Nodes ("" is the group itself) that the group's consolidated metadata, if it has any, describes differently than their
// zarr.json, or not at all.
std::vector<std::string> differing_consolidated(const store_folder& group);

class zarr_array {
 public:
  using chunk_index = std::vector<std::uint64_t>;

  // Makes what decodes the chunks. Throws store_error or not_supported.
  using decoder_factory = std::shared_ptr<const chunk_decoder> (*)(const encoding&);

  zarr_array(store_folder folder, decoder_factory make_decoder);

  const std::vector<std::uint64_t>& shape() const noexcept { return shape_; }
  // The shape of the smallest pieces that can be read alone: inner chunks if there are shards; the longest ones if they differ.
  const std::vector<std::uint64_t>& chunk_shape() const noexcept { return chunk_shape_; }
  const std::vector<std::uint64_t>& chunks_per_shard() const noexcept { return per_shard_; }  // all 1 if there are no shards
  // Number of chunks in each dimension.
  const std::vector<std::uint64_t>& chunks() const noexcept { return chunks_; }
  bool is_sharded() const noexcept;
  // Where these chunks begin and end along a dimension.
  const metadata::dimension_grid& grid(std::size_t dimension) const { return grids_.at(dimension); }
  bool is_regular() const noexcept;
  const metadata::chunk_key_encoding& keys() const noexcept { return keys_; }
  // Throws not_supported if chunks are too large to be decoded.
  void require_decodable() const;
  // The shape of a chunk; the last ones may reach over the edge of the array.
  std::vector<std::uint64_t> shape_of(const chunk_index& chunk) const;
  const zarr_type& type() const noexcept { return type_; }
  const element_buffer& fill() const noexcept { return fill_; }  // one element

  // All elements of a chunk, even those beyond the edge of the array. False if the chunk does not exist. Fastest in storage
  // order.
  bool read_chunk(const chunk_index& chunk, element_buffer& out) const;
  // read_chunk() in two steps: the bytes as they are stored, empty if the chunk does not exist, and their elements.
  std::optional<std::vector<std::byte>> read_stored(const chunk_index& chunk) const;
  void decode(std::vector<std::byte> stored, element_buffer& out) const;  // of the shape chunk_shape()
  void decode(const chunk_index& chunk, std::vector<std::byte> stored, element_buffer& out) const;
  // Where the bytes are that read_stored() reads; empty if the chunk does not exist.
  struct object_range {
    std::shared_ptr<const stored_object> object;
    std::uint64_t offset = 0, size = 0;
  };
  std::optional<object_range> find_stored(const chunk_index& chunk) const;
  static std::vector<std::byte> read(const object_range& range);
  // Keeps the chunks of a shard together.
  bool in_storage_order(const chunk_index& a, const chunk_index& b) const;

  // The existing chunks, up to `max_count` of them; empty if there are more.
  std::optional<std::vector<chunk_index>> list_chunks(std::size_t max_count) const;
  // The existing objects: shards or, without sharding, chunks. Calls `callback` with the index in their grid, and what the
  // listing says, until it returns false.
  void for_each_object(const std::function<bool(const chunk_index& index, const store_entry& object)>& callback) const;
  // As above. Calls `other` with all that is below the folder and belongs to no chunk, except for metadata: its key in the
  // folder, and the index of a chunk that is outside of the grid. A folder that is too deep for chunks is one entry.
  using other_visitor =
      std::function<void(const std::string& key, const store_entry& entry, const std::optional<chunk_index>& outside)>;
  void for_each_object(const std::function<bool(const chunk_index& index, const store_entry& object)>& callback,
                       const other_visitor& other) const;
  // The existing chunks of an object, within the array: those of a shard, or the one with this index. Empty if they are more than
  // `max_count`.
  std::optional<std::vector<chunk_index>> list_chunks_of(const chunk_index& object, std::size_t max_count) const;
  // Null if absent.
  std::unique_ptr<stored_object> open_object(const chunk_index& index) const;

 private:
  struct chunk_location {
    chunk_index shard;
    std::uint64_t inside;
  };

  bool can_hold_objects(std::string key) const;
  chunk_location locate(const chunk_index& chunk) const;
  std::shared_ptr<const zarr_shard> open_shard(const chunk_index& shard) const;
  bool contains_shard(const chunk_index& shard) const;
  bool list_shard(const chunk_index& shard, std::size_t max_count, std::vector<chunk_index>& out) const;

  store_folder folder_;
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint64_t> chunk_shape_;
  std::vector<std::uint64_t> per_shard_;
  std::vector<std::uint64_t> chunks_;
  std::vector<metadata::dimension_grid> grids_;
  metadata::chunk_key_encoding keys_;
  zarr_type type_;
  element_buffer fill_;
  std::shared_ptr<const chunk_decoder> decoder_;
  mutable std::optional<std::pair<chunk_index, std::shared_ptr<const zarr_shard>>> last_;
};

// zarr_type.cpp
zarr_type parse_type(const nlohmann::json& data_type, unsigned depth = 0);
element_buffer parse_fill(const zarr_type& type, const nlohmann::json& fill);

}  // namespace zarrbits::zarr

#endif
