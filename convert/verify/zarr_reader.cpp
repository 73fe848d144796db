// SPDX-License-Identifier: BSL-1.0
#include "convert/verify/zarr_reader.hpp"

#include "core/codec_state.hpp"
#include "core/kernels/kernels.hpp"

#include <zarrbits/chunk.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace zarrbits::verify {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// What is held in memory at once; a store that wants more is not read.
constexpr std::uint64_t most_metadata = 64u << 20;
constexpr std::uint64_t most_chunk = 1u << 30;
constexpr int deepest_metadata = 100;
constexpr std::size_t most_codecs = 32;

// False where there is no such file.
bool read_file(const fs::path& path, std::uint64_t most, std::vector<std::byte>& out) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO in a store must not stop us
  if (descriptor < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw store_error("cannot read " + path.string() + ": " + std::generic_category().message(errno));
  }
  struct closer {
    int descriptor;
    ~closer() { ::close(descriptor); }
  } close_it{descriptor};
  struct stat s = {};
  if (::fstat(descriptor, &s) != 0 || !S_ISREG(s.st_mode)) throw store_error(path.string() + " is no regular file");
  if (static_cast<std::uint64_t>(s.st_size) > most) throw not_supported(path.string() + " is too large to be read at once");
  out.resize(static_cast<std::size_t>(s.st_size));
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::read(descriptor, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw store_error("cannot read " + path.string());
    done += static_cast<std::size_t>(n);
  }
  return true;
}

json read_metadata(const fs::path& directory, bool& exists) {
  std::vector<std::byte> text;
  exists = read_file(directory / "zarr.json", most_metadata, text);
  if (!exists) return {};
  const char* begin = reinterpret_cast<const char*>(text.data());
  // what is done with JSON later recurses
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    if (depth > deepest_metadata) throw store_error((directory / "zarr.json").string() + " is nested too deeply");
    return true;
  };
  json j = json::parse(begin, begin + text.size(), shallow, false);
  if (!j.is_object()) throw store_error((directory / "zarr.json").string() + " is no JSON object");
  return j;
}

std::vector<std::uint64_t> extents(const json& list, const char* what) {
  if (!list.is_array()) throw store_error(std::string("\"") + what + "\" is no list");
  std::vector<std::uint64_t> out;
  for (const json& n : list) {
    if (!n.is_number_unsigned()) throw store_error(std::string("\"") + what + "\" holds " + n.dump() + ", which is no extent");
    out.push_back(n.get<std::uint64_t>());
  }
  return out;
}

// The name and configuration of a codec, a chunk grid, a key encoding: an object, or the bare name.
std::string named(const json& j, json& configuration) {
  configuration = json::object();
  if (j.is_string()) return j.get<std::string>();
  if (!j.is_object() || !j.contains("name") || !j["name"].is_string()) throw store_error(j.dump() + " has no name");
  if (j.contains("configuration") && j["configuration"].is_object()) configuration = j["configuration"];
  return j["name"].get<std::string>();
}

const json& required(const json& j, const char* key) {
  if (!j.contains(key)) throw store_error(std::string("zarr.json has no \"") + key + "\"");
  return j[key];
}

}  // namespace

json read_node(const fs::path& directory) {
  bool exists = false;
  json j = read_metadata(directory, exists);
  if (!exists) throw store_error("there is no " + (directory / "zarr.json").string());
  return j;
}

node_kind kind_of(const fs::path& directory) {
  bool exists = false;
  const json j = read_metadata(directory, exists);
  if (!exists) return node_kind::none;
  if (j.value("zarr_format", json()) != 3) throw store_error("\"zarr_format\" is not 3");
  const json type = j.value("node_type", json());
  if (type == "group") return node_kind::group;
  if (type == "array") return node_kind::array;
  throw store_error("\"node_type\" is " + type.dump() + ", neither group nor array");
}

store_selection selection_of(const fs::path& store) {
  bool exists = false;
  const json j = read_metadata(store, exists);
  store_selection s;
  const auto texts = [](const json& list) {
    std::vector<std::string> out;
    for (const json& text : list) out.push_back(text.get<std::string>());
    return out;
  };
  try {
    const json note = j.value(json::json_pointer("/attributes/zarrbits/selection"), json::object());
    s.object = note.value("object", "");
    s.include = texts(note.value("include", json::array()));
    s.exclude = texts(note.value("exclude", json::array()));
  } catch (const json::exception&) {
    throw store_error("the attribute \"zarrbits\" of the store's root does not say as it should what was selected");
  }
  return s;
}

std::string unescape(const std::string& name) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '%' && i + 2 < name.size() && digit(name[i + 1]) >= 0 && digit(name[i + 2]) >= 0) {
      out += static_cast<char>(digit(name[i + 1]) * 16 + digit(name[i + 2]));
      i += 2;
    } else {
      out += name[i];
    }
  }
  return out;
}

zarr_array::zarr_array(const fs::path& directory) try : directory_(directory) {
  bool exists = false;
  const json j = read_metadata(directory, exists);
  if (!exists) throw store_error("there is no zarr.json");
  for (const auto& item : j.items()) {
    const std::string& key = item.key();
    const json& value = item.value();
    static const char* const known[] = {"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value",
                                        "codecs", "attributes", "dimension_names", "storage_transformers"};
    const bool is_known = std::any_of(std::begin(known), std::end(known), [&](const char* k) { return key == k; });
    const bool optional = value.is_object() && value.value("must_understand", json(true)) == false;
    if (!is_known && !optional) throw store_error("zarr.json has the unknown key \"" + key + "\"");
  }
  if (j.contains("storage_transformers") && !j["storage_transformers"].empty()) throw not_supported("storage transformers");

  shape_ = extents(required(j, "shape"), "shape");
  json configuration;
  if (const std::string grid = named(required(j, "chunk_grid"), configuration); grid != "regular") {
    throw not_supported("the chunk grid " + grid);
  }
  chunk_shape_ = extents(required(configuration, "chunk_shape"), "chunk_shape");
  if (chunk_shape_.size() != shape_.size()) throw store_error("\"chunk_shape\" and \"shape\" differ in their number of dimensions");
  if (std::find(chunk_shape_.begin(), chunk_shape_.end(), 0u) != chunk_shape_.end()) throw store_error("\"chunk_shape\" holds 0");

  const std::string keys = named(required(j, "chunk_key_encoding"), configuration);
  if (keys != "default" && keys != "v2") throw not_supported("the chunk key encoding " + keys);
  v2_keys_ = keys == "v2";
  const std::string separator = configuration.value("separator", std::string(v2_keys_ ? "." : "/"));
  if (separator != "." && separator != "/") throw store_error("the separator of the chunk keys is neither \".\" nor \"/\"");
  separator_ = separator[0];

  type_ = parse_type(required(j, "data_type"));
  fill_ = parse_fill(type_, required(j, "fill_value"));
  read_codecs(required(j, "codecs"), j["data_type"]);
} catch (const json::exception& e) {
  throw store_error(std::string("zarr.json is not as it should be: ") + e.what());
} catch (const zarrbits::error& e) {
  throw store_error(e.what());
}

void zarr_array::read_codecs(const json& list, const json& data_type) {
  if (!list.is_array()) throw store_error("\"codecs\" is no list");
  static const std::pair<const char*, bytes_codec::kind_type> known[] = {
      {"gzip", bytes_codec::gzip}, {"zstd", bytes_codec::zstd}, {"blosc", bytes_codec::blosc}, {"crc32c", bytes_codec::crc32c},
      {"numcodecs.zlib", bytes_codec::zlib}, {"numcodecs.shuffle", bytes_codec::shuffle}, {"numcodecs.fletcher32", bytes_codec::fletcher32}};
  bool in_bytes = false;
  for (const json& entry : list) {
    json configuration;
    const std::string name = named(entry, configuration);
    if (name == "transpose") {
      if (in_bytes || !order_.empty()) throw not_supported("a second transpose, or one of bytes");
      if (!configuration.contains("order") || !configuration["order"].is_array()) throw not_supported("a transpose whose order is no list");
      std::vector<bool> seen(shape_.size());
      for (const json& n : configuration["order"]) {
        if (!n.is_number_unsigned() || n.get<std::uint64_t>() >= seen.size() || seen[n.get<std::size_t>()]) {
          throw store_error("the order of transpose is no permutation");
        }
        seen[n.get<std::size_t>()] = true;
        order_.push_back(n.get<std::size_t>());
      }
      if (order_.size() != shape_.size()) throw store_error("the order of transpose has another number of dimensions than the array");
    } else if (const auto found = std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return name == k.first; }); found != std::end(known)) {
      if (!in_bytes) throw store_error("the codec " + name + " stands before an array to bytes codec");
      if (after_.size() >= most_codecs) throw not_supported("more than " + std::to_string(most_codecs) + " codecs");
      std::size_t element = 1;
      if (found->second == bytes_codec::shuffle) {
        const json size = configuration.value("elementsize", json());
        if (!size.is_number_unsigned() || size.get<std::uint64_t>() == 0) throw store_error("the elementsize of numcodecs.shuffle is no size");
        element = size.get<std::size_t>();
      }
      after_.push_back({found->second, element});
    } else if (name == "sharding_indexed") {
      if (in_bytes) throw store_error("there are two array to bytes codecs");
      read_sharding(configuration, data_type);
      in_bytes = true;
    } else if (name == "vlen-utf8" || name == "vlen-bytes") {
      if (in_bytes) throw store_error("there are two array to bytes codecs");
      if (!type_.variable()) throw store_error("the codec " + name + " does not take " + type_.name);
      in_bytes = true;
    } else if (name == "bytes" || name == "endian" || name == "packbits" || name == "numcodecs.packbits") {
      if (in_bytes) throw store_error("there are two array to bytes codecs");
      if (type_.variable()) throw store_error("the codec " + name + " does not take " + type_.name);
      const json type = core_spelling(data_type);
      try {
        const zarrbits::codec c = parse_codec(entry.dump(), zarrbits::data_type(type.is_string() ? type.get<std::string>() : type.dump()));
        codec_ = detail::with_kernels(c, detail::portable_kernels);
      } catch (const zarrbits::error& e) {
        throw store_error(e.what());
      }
      in_bytes = true;
    } else {
      throw not_supported("the codec " + name);
    }
  }
  if (!in_bytes) throw store_error("there is no array to bytes codec");
}

void zarr_array::read_sharding(const json& configuration, const json& data_type) {
  auto inner = std::shared_ptr<zarr_array>(new zarr_array);
  inner->shape_ = chunk_shape_;
  inner->chunk_shape_ = extents(required(configuration, "chunk_shape"), "chunk_shape");
  inner->type_ = type_;
  inner->fill_ = fill_;
  if (inner->chunk_shape_.size() != chunk_shape_.size()) throw store_error("the chunks inside of shards have another number of dimensions");
  for (std::size_t i = 0; i < chunk_shape_.size(); ++i) {
    if (inner->chunk_shape_[i] == 0 || chunk_shape_[i] % inner->chunk_shape_[i] != 0) throw store_error("the chunks inside of shards do not divide them");
  }
  inner->read_codecs(required(configuration, "codecs"), data_type);
  const std::string where = configuration.value("index_location", std::string("end"));
  if (where != "end" && where != "start") throw store_error("the index_location of shards is neither start nor end");
  index_at_end_ = where == "end";
  static const json usual = {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}, {{"name", "crc32c"}}};
  json codecs = required(configuration, "index_codecs");
  for (json& c : codecs) {
    if (c.is_object() && c.contains("configuration") && c["configuration"].empty()) c.erase("configuration");
  }
  if (codecs != usual) throw not_supported("an index of shards that is encoded as " + codecs.dump());
  inner_ = std::move(inner);
}

// The index: for each chunk of the shard, in C order, where it begins and how long it is; all ones where there is none.
void zarr_array::decode_shard(const std::vector<std::byte>& bytes, zarr_values& out) const {
  std::uint64_t chunks = 1;
  const std::size_t rank = chunk_shape_.size();
  std::vector<std::uint64_t> grid(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    grid[i] = chunk_shape_[i] / inner_->chunk_shape_[i];
    if (__builtin_mul_overflow(chunks, grid[i], &chunks)) throw not_supported("a shard of more than 2^64 chunks");
  }
  if (bytes.size() < 4 || chunks > (bytes.size() - 4) / 16) throw store_error("a shard is shorter than its index");
  const std::size_t index_size = static_cast<std::size_t>(chunks) * 16, start = index_at_end_ ? bytes.size() - 4 - index_size : 0;
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t n = 0;
    for (std::size_t k = 0; k < size; ++k) n |= std::to_integer<std::uint64_t>(bytes[at + k]) << (8 * k);
    return n;
  };
  if (crc32c(bytes.data() + start, index_size) != number(start + index_size, 4)) throw store_error("the checksum of a shard's index is wrong");
  const std::uint64_t elements = chunk_elements();
  const std::size_t size = type_.variable() ? 0 : type_.size;
  if (elements > most_chunk / std::max<std::size_t>(size, type_.variable() ? 32 : 1)) throw not_supported("a shard that does not fit in 1 GiB");
  if (type_.variable()) {
    out.strings.assign(static_cast<std::size_t>(elements), fill_.strings.at(0));
  } else {
    out.data.resize(static_cast<std::size_t>(elements) * size);
    for (std::size_t i = 0; i < elements; ++i) std::memcpy(out.data.data() + i * size, fill_.data.data(), size);
  }
  std::vector<std::uint64_t> at(rank, 0);
  for (std::uint64_t c = 0; c < chunks; ++c) {
    const std::uint64_t offset = number(start + 16 * c, 8), length = number(start + 16 * c + 8, 8);
    if (offset != ~0ULL || length != ~0ULL) {
      if (offset > bytes.size() || length > bytes.size() - offset) throw store_error("a chunk lies outside of its shard");
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
      zarr_values values;
      inner_->decode({first, first + static_cast<std::ptrdiff_t>(length)}, values);
      // element by element: what is compared is not in a hurry
      std::vector<std::uint64_t> in(rank, 0);
      for (std::size_t from = 0;; ++from) {
        std::uint64_t to = 0;
        for (std::size_t i = 0; i < rank; ++i) to = to * chunk_shape_[i] + at[i] * inner_->chunk_shape_[i] + in[i];
        if (type_.variable()) out.strings[to] = std::move(values.strings[from]);
        else std::memcpy(out.data.data() + to * size, values.data.data() + from * size, size);
        std::size_t d = rank;
        while (d > 0 && ++in[d - 1] == inner_->chunk_shape_[d - 1]) in[--d] = 0;
        if (d == 0) break;
      }
    }
    for (std::size_t d = rank; d > 0 && ++at[d - 1] == grid[d - 1]; --d) at[d - 1] = 0;
  }
}

fs::path zarr_array::path_of(const std::vector<std::uint64_t>& index) const {
  std::string key = v2_keys_ ? "" : "c";
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i > 0 || !v2_keys_) key += separator_;
    key += std::to_string(index[i]);
  }
  if (key.empty()) key = "0";
  return directory_ / key;
}

std::optional<std::vector<std::uint64_t>> zarr_array::index_of(const std::string& key) const {
  std::vector<std::uint64_t> index;
  std::string_view rest = key;
  if (!v2_keys_) {
    if (!rest.starts_with('c')) return {};
    rest.remove_prefix(1);
    if (!rest.empty() && rest[0] != separator_) return {};
    if (!rest.empty()) rest.remove_prefix(1);
  }
  if (shape_.empty()) return rest == (v2_keys_ ? "0" : "") ? std::optional(index) : std::nullopt;
  while (index.size() < shape_.size()) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc()) return {};
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    index.push_back(n);
    if (index.size() == shape_.size()) break;
    if (rest.empty() || rest[0] != separator_) return {};
    rest.remove_prefix(1);
  }
  if (!rest.empty()) return {};
  return index;
}

std::uint64_t zarr_array::chunk_elements() const {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : chunk_shape_) {
    if (__builtin_mul_overflow(n, extent, &n)) throw not_supported("a chunk of more than 2^64 elements");
  }
  return n;
}

bool zarr_array::has_chunk(const std::vector<std::uint64_t>& index) const {
  struct stat s = {};
  return ::stat(path_of(index).c_str(), &s) == 0;
}

std::optional<std::vector<std::vector<std::uint64_t>>> zarr_array::list_chunks(std::size_t most) const {
  std::vector<std::vector<std::uint64_t>> out;
  for (fs::recursive_directory_iterator i(directory_), end; i != end; ++i) {
    if (!i->is_regular_file()) continue;
    if (const auto index = index_of(i->path().lexically_relative(directory_).string())) out.push_back(*index);
    if (out.size() > most) return {};
  }
  return out;
}

bool zarr_array::read_chunk(const std::vector<std::uint64_t>& index, zarr_values& out) const {
  const fs::path path = path_of(index);
  std::vector<std::byte> bytes;
  if (!read_file(path, 2 * most_chunk, bytes)) return false;
  decode(std::move(bytes), out);
  return true;
}

void zarr_array::decode(std::vector<std::byte> bytes, zarr_values& out) const {
  const std::uint64_t elements = chunk_elements();
  // how many bytes may come out of each step, so that a few bytes cannot fill the memory
  std::uint64_t most = most_chunk;
  if (codec_) {
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(elements, codec_->element_size(), &size) || size > most_chunk) {
      throw not_supported("a chunk of " + std::to_string(elements) + " elements, which does not fit in 1 GiB");
    }
    most = 2 * codec_->encoded_size(elements) + (64u << 10);
  }
  for (std::size_t i = after_.size(); i-- > 0;) {
    switch (after_[i].what) {
      case bytes_codec::gzip: bytes = gunzip(bytes, most); continue;
      case bytes_codec::zstd: bytes = unzstd(bytes, most); continue;
      case bytes_codec::blosc: bytes = unblosc(bytes, most); continue;
      case bytes_codec::zlib: bytes = unzlib(bytes, most); continue;
      case bytes_codec::shuffle: bytes = unshuffle(bytes, after_[i].element); continue;
      case bytes_codec::fletcher32: drop_fletcher32(bytes); continue;
      case bytes_codec::crc32c: break;
    }
    {
      if (bytes.size() < 4) throw store_error("a chunk is shorter than its checksum");
      const std::size_t size = bytes.size() - 4;
      std::uint32_t stored = 0;
      for (std::size_t k = 0; k < 4; ++k) stored |= std::to_integer<std::uint32_t>(bytes[size + k]) << (8 * k);
      if (crc32c(bytes.data(), size) != stored) throw store_error("the crc32c checksum of a chunk is wrong");
      bytes.resize(size);
    }
  }
  out.data.clear();
  out.strings.clear();
  if (inner_) {
    decode_shard(bytes, out);
  } else if (codec_) {
    out.data.resize(static_cast<std::size_t>(codec_->decoded_size(elements)));
    const chunk_result r = decode_chunk(*codec_, bytes, out.data);
    if (!r) throw store_error(codec_->explain(r.failure));
  } else {
    decode_strings(bytes, elements, out);
  }
  if (!order_.empty()) untranspose(out);
}

void zarr_array::decode_strings(const std::vector<std::byte>& in, std::uint64_t elements, zarr_values& out) const {
  std::size_t at = 0;
  const auto number = [&] {
    if (in.size() - at < 4) throw store_error("a chunk of strings ends too early");
    std::uint32_t n = 0;
    for (std::size_t k = 0; k < 4; ++k) n |= std::to_integer<std::uint32_t>(in[at + k]) << (8 * k);
    at += 4;
    return n;
  };
  const std::uint32_t count = number();
  if (count != elements) {
    throw store_error("a chunk of strings holds " + std::to_string(count) + " elements instead of " + std::to_string(elements));
  }
  if (count > in.size() / 4) throw store_error("a chunk of strings ends too early");
  out.strings.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t size = number();
    if (in.size() - at < size) throw store_error("a chunk of strings ends too early");
    out.strings.emplace_back(reinterpret_cast<const char*>(in.data()) + at, size);
    at += size;
  }
  if (at != in.size()) throw store_error("a chunk of strings goes on after its last element");
}

void zarr_array::untranspose(zarr_values& values) const {
  const std::size_t rank = order_.size();
  // strides of the array's dimensions within the transposed chunk
  std::vector<std::size_t> stride(rank);
  std::size_t step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    stride[order_[i]] = step;
    step *= static_cast<std::size_t>(chunk_shape_[order_[i]]);
  }
  zarr_values out;
  out.data.resize(values.data.size());
  out.strings.resize(values.strings.size());
  std::vector<std::uint64_t> at(rank, 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < step; ++to) {
    if (type_.variable()) {
      out.strings[to] = std::move(values.strings[from]);
    } else {
      std::memcpy(out.data.data() + to * type_.size, values.data.data() + from * type_.size, type_.size);
    }
    for (std::size_t i = rank; i-- > 0;) {
      from += stride[i];
      if (++at[i] < chunk_shape_[i]) break;
      from -= stride[i] * static_cast<std::size_t>(chunk_shape_[i]);
      at[i] = 0;
    }
  }
  values = std::move(out);
}

}  // namespace zarrbits::verify
