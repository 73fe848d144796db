// SPDX-License-Identifier: BSL-1.0
//
// A small reader of Zarr v3 stores, for `zarrbits verify` alone: it shares nothing with the converter, so that a mistake there is not
// made twice. Codecs come from the core, on its portable kernels.
//
//   zarr_array a(store / "a");
//   zarr_values chunk;
//   if (!a.read_chunk({0, 0}, chunk)) chunk = a.fill();   // never written
//
#ifndef ZARRBITS_CONVERT_VERIFY_ZARR_READER_HPP
#define ZARRBITS_CONVERT_VERIFY_ZARR_READER_HPP

#include <zarrbits/codec.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::verify {

// The store is not what the Zarr specification allows, or a chunk cannot be decoded.
struct store_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The store may be right, but this reader cannot tell.
struct not_supported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
  std::string name;          // as in zarr.json
  std::size_t size = 0;      // bytes of an element in memory; 0: variable length
  unsigned bits = 0;         // of a component
  std::vector<zarr_field> fields;

  bool variable() const noexcept { return kind == zarr_kind::text || kind == zarr_kind::binary; }
};

struct zarr_field {
  std::string name;
  std::size_t offset = 0;
  zarr_type type;
};

// Elements in C order: `data` in this machine's byte order, or one string for each element of a type of variable length.
struct zarr_values {
  std::vector<std::byte> data;
  std::vector<std::string> strings;
};

enum class node_kind { none, group, array };

// What the zarr.json in `directory` says it is; none where there is no zarr.json. Throws store_error where it says nothing sensible.
node_kind kind_of(const std::filesystem::path& directory);

// A zarr.json, whatever it says. Throws store_error where there is none, or it is no JSON object or absurdly nested.
nlohmann::json read_node(const std::filesystem::path& directory);

// What the store's root says that it holds of the source: patterns of its paths, and the object that is its root ("" for all).
struct store_selection {
  std::string object;
  std::vector<std::string> include, exclude;
};
store_selection selection_of(const std::filesystem::path& store);

// Names of the store's directories escape what Zarr does not allow: %2F is "/".
std::string unescape(const std::string& name);

class zarr_array {
 public:
  explicit zarr_array(const std::filesystem::path& directory);

  const std::vector<std::uint64_t>& shape() const noexcept { return shape_; }
  const std::vector<std::uint64_t>& chunk_shape() const noexcept { return chunk_shape_; }
  const zarr_type& type() const noexcept { return type_; }
  const zarr_values& fill() const noexcept { return fill_; }  // one element

  // All elements of a chunk, also those past the edge of the array. False where the chunk does not exist.
  bool read_chunk(const std::vector<std::uint64_t>& index, zarr_values& out) const;
  bool has_chunk(const std::vector<std::uint64_t>& index) const;

  // The chunks that exist, up to `most` of them; empty where there are more.
  std::optional<std::vector<std::vector<std::uint64_t>>> list_chunks(std::size_t most) const;

 private:
  struct bytes_codec {
    enum kind_type { gzip, zstd, blosc, zlib, shuffle, fletcher32, crc32c } what;
    std::size_t element = 1;  // shuffle
  };

  zarr_array() = default;
  void read_sharding(const nlohmann::json& configuration, const nlohmann::json& data_type);
  void read_codecs(const nlohmann::json& list, const nlohmann::json& data_type);
  std::filesystem::path path_of(const std::vector<std::uint64_t>& index) const;
  std::optional<std::vector<std::uint64_t>> index_of(const std::string& key) const;
  std::uint64_t chunk_elements() const;
  void decode(std::vector<std::byte> bytes, zarr_values& out) const;
  void decode_shard(const std::vector<std::byte>& bytes, zarr_values& out) const;
  void decode_strings(const std::vector<std::byte>& in, std::uint64_t elements, zarr_values& out) const;
  void untranspose(zarr_values& values) const;

  std::filesystem::path directory_;
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint64_t> chunk_shape_;
  bool v2_keys_ = false;
  char separator_ = '/';
  zarr_type type_;
  zarr_values fill_;
  std::vector<std::size_t> order_;           // of a transpose codec; empty: none
  std::optional<zarrbits::codec> codec_;     // array to bytes; none: vlen-utf8 and vlen-bytes
  std::shared_ptr<const zarr_array> inner_;  // sharding_indexed: a shard as an array of chunks
  bool index_at_end_ = true;
  std::vector<bytes_codec> after_;           // bytes to bytes, in the order of encoding
};

// zarr_type.cpp
zarr_type parse_type(const nlohmann::json& data_type, unsigned depth = 0);
zarr_values parse_fill(const zarr_type& type, const nlohmann::json& fill);
// The data type as the core spells it.
nlohmann::json core_spelling(const nlohmann::json& data_type);

// zarr_bytes.cpp: bytes to bytes. Each throws store_error; `most` bounds what comes out of a few hostile bytes.
std::vector<std::byte> gunzip(const std::vector<std::byte>& in, std::uint64_t most);
std::vector<std::byte> unzlib(const std::vector<std::byte>& in, std::uint64_t most);
std::vector<std::byte> unblosc(const std::vector<std::byte>& in, std::uint64_t most);
std::vector<std::byte> unshuffle(const std::vector<std::byte>& in, std::size_t element);
void drop_fletcher32(std::vector<std::byte>& bytes);
std::vector<std::byte> unzstd(const std::vector<std::byte>& in, std::uint64_t most);
std::uint32_t crc32c(const std::byte* data, std::size_t size);

}  // namespace zarrbits::verify

#endif
