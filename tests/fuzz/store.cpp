// SPDX-License-Identifier: BSL-1.0
//
// libFuzzer over the reader of Zarr stores: every zarr.json is read and every chunk of every array, as far as a few hundred of
// them go. Whatever a store says, the reader ends with values, or with one of its two exceptions.
//
// An input is a .zip file, a netCDF-3 file, references in JSON, one Parquet file of references, or objects one after the other:
// [0] length of the key [1..2] length of the object, then both; the last object may be cut off.
#include "fuzz.hpp"

#include "codecs/codec_chain.hpp"
#include "io/parquet_file.hpp"
#include "verify/decode/plain_codec_chain.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace zarrbits::zarr;

namespace {

constexpr std::size_t most_chunks = 200;
constexpr std::uint64_t largest_chunk = 1u << 20;  // elements; more is refused by the reader only from 1 GiB on
constexpr int deepest = 8;

class memory_object final : public stored_object {
 public:
  explicit memory_object(const std::string& bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    fuzz::require(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, "reads stay within the object");
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  const std::string& bytes_;
};

class memory_reader final : public store_reader {
 public:
  memory_reader(const std::uint8_t* data, std::size_t size) {
    while (size >= 3) {
      const std::size_t key = std::min<std::size_t>(data[0], size - 3),
                        object = std::min<std::size_t>(data[1] | static_cast<std::size_t>(data[2]) << 8, size - 3 - key);
      data += 3;
      objects_[std::string(reinterpret_cast<const char*>(data), key)].assign(reinterpret_cast<const char*>(data) + key, object);
      data += key + object;
      size -= 3 + key + object;
    }
  }
  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return nullptr;
    return std::make_unique<memory_object>(found->second);
  }
  void list(const std::string& folder, const std::function<bool(const store_entry&)>& each) const override {
    const std::string prefix = folder.empty() ? "" : folder + "/";
    std::string last;
    for (const auto& [key, object] : objects_) {
      if (!key.starts_with(prefix) || key.size() == prefix.size()) continue;
      const std::size_t slash = key.find('/', prefix.size());
      store_entry e{.name = key.substr(prefix.size(), slash - prefix.size()),
                    .is_folder = slash != std::string::npos,
                    .size = object.size()};
      if (e.name.empty() || (e.is_folder && e.name == last)) continue;
      if (e.is_folder) last = e.name;
      if (!each(e)) return;
    }
  }

 private:
  std::map<std::string, std::string> objects_;
};

void read_array(const store_folder& folder) {
  const zarr_array a(folder, zarrbits::codecs::make_decoder), plain(folder, zarrbits::verification::make_plain_decoder);
  fuzz::require(a.shape().size() == a.chunk_shape().size(), "a chunk has the dimensions of the array");
  const auto product_of = [](const std::vector<std::uint64_t>& shape) {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape) {
      if (__builtin_mul_overflow(n, extent, &n)) n = UINT64_MAX;
    }
    return n;
  };
  const std::uint64_t most = product_of(a.chunk_shape());
  if (most > largest_chunk || (!a.type().variable() && a.type().size > largest_chunk / most)) return;
  const auto listed = a.list_chunks(most_chunks);
  if (!listed) return;
  for (const auto& at : *listed) {
    element_buffer values, plain_values;
    bool is_sound = true;
    try {
      plain.read_chunk(at, plain_values);
    } catch (const store_error&) {
      is_sound = false;
    } catch (const not_supported&) {
      is_sound = false;
    }
    try {
      if (!a.read_chunk(at, values)) continue;
      if (is_sound)
        fuzz::require(values.strings == plain_values.strings && values.data == plain_values.data, "both decoders read the same");
      const std::uint64_t elements = product_of(a.shape_of(at));
      fuzz::require(elements <= most, "no chunk is larger than the largest");
      if (a.type().variable()) fuzz::require(values.strings.size() == elements, "a chunk has as many strings as elements");
      else fuzz::require(values.data.size() == elements * a.type().size, "a chunk has the bytes of its elements");
    } catch (const store_error&) {
    } catch (const not_supported&) {
    }
  }
}

void read_node_and_below(const store_folder& folder, int depth) {
  try {
    const zarrbits::metadata::node_kind kind = kind_of(folder);
    if (kind == zarrbits::metadata::node_kind::array) read_array(folder);
    selection_of(folder);
    if (depth == 0) return;
    for (const store_folder& child : folder.nodes()) {
      unescape_node_name(child.leaf_name());
      read_node_and_below(child, depth - 1);
    }
  } catch (const store_error&) {
  } catch (const not_supported&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) { return 0; }

namespace {

// A store in one file.
void read_file(const std::uint8_t* data, std::size_t size,
               const std::function<std::shared_ptr<const store_reader>(const std::string& path)>& open) {
  const int file = ::memfd_create("store", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    read_node_and_below(store_folder(open("/proc/self/fd/" + std::to_string(file)), "fuzz"), deepest);
  } catch (const store_error&) {
  } catch (const not_supported&) {
  }
  ::close(file);
}

void read_parquet(const std::uint8_t* data, std::size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    zarrbits::io::parquet_file file({bytes.begin(), bytes.end()}, 100'000);
    for (const char* column : {"path", "raw"}) {
      if (file.has_column(column)) fuzz::require(file.texts(column).size() == file.rows(), "a column has a text for each row");
    }
    for (const char* column : {"offset", "size"}) {
      if (file.has_column(column))
        fuzz::require(file.numbers(column).size() == file.rows(), "a column has a number for each row");
    }
  } catch (const zarrbits::io::parquet_error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view begin(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4));
  if (begin.starts_with("PK")) {
    read_file(data, size, open_zip);
    return 0;
  }
  if (begin.starts_with("CDF")) {
    read_file(data, size,
              [](const std::string& path) { return open_netcdf3(path, {}, std::uint64_t{64} << 20, access_pattern::full); });
    return 0;
  }
  if (begin.starts_with('{')) {
    read_file(data, size, [](const std::string& path) {
      return open_references(path, {}, {}, std::uint64_t{64} << 20, access_pattern::full);
    });
    return 0;
  }
  if (begin == "PAR1") {
    read_parquet(data, size);
    return 0;
  }
  read_node_and_below(store_folder(std::make_shared<memory_reader>(data, size), "fuzz"), deepest);
  return 0;
}
