// SPDX-License-Identifier: BSL-1.0
#include "convert/zarr_reader.hpp"

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
  json j = json::parse(begin, begin + text.size(), nullptr, false);
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
    } else if (name == "gzip" || name == "zstd" || name == "crc32c") {
      if (!in_bytes) throw store_error("the codec " + name + " stands before an array to bytes codec");
      after_.push_back({name == "gzip" ? bytes_codec::gzip : name == "zstd" ? bytes_codec::zstd : bytes_codec::crc32c});
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
    if (after_[i].what == bytes_codec::gzip) {
      bytes = gunzip(bytes, most);
    } else if (after_[i].what == bytes_codec::zstd) {
      bytes = unzstd(bytes, most);
    } else {
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
  if (codec_) {
    out.data.resize(static_cast<std::size_t>(codec_->decoded_size(elements)));
    const chunk_result r = decode_chunk(*codec_, bytes, out.data);
    if (!r) throw store_error(codec_->explain(r.failure));
  } else {
    decode_strings(bytes, elements, out);
  }
  if (!order_.empty()) untranspose(out);
  return true;
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
