// SPDX-License-Identifier: BSL-1.0
#include "hdf5/plugin_filters.hpp"

#include <H5PLextern.h>

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

// libhdf5's built-in filters are exported under internal names; its public interface does not return a filter's function.
const H5Z_class2_t* built_in(H5Z_filter_t id) {
  return id == H5Z_FILTER_SZIP ? static_cast<const H5Z_class2_t*>(::dlsym(RTLD_DEFAULT, "H5Z_SZIP")) : nullptr;
}

// Looks among the plugins that libhdf5 has loaded; loads none.
const H5Z_class2_t* plugin(H5Z_filter_t id) {
  unsigned folders = 0;
  if (H5PLsize(&folders) < 0) return nullptr;
  for (unsigned i = 0; i < folders; ++i) {
    char folder[4096];
    const ssize_t n = H5PLget(i, folder, sizeof folder);
    if (n <= 0 || n >= static_cast<ssize_t>(sizeof folder)) continue;
    std::error_code e;
    for (std::filesystem::directory_iterator entry(folder, e), end; !e && entry != end; entry.increment(e)) {
      void* library = ::dlopen(entry->path().c_str(), RTLD_LAZY | RTLD_NOLOAD);
      if (!library) continue;
      const auto kind = reinterpret_cast<H5PL_type_t (*)()>(::dlsym(library, "H5PLget_plugin_type"));
      const auto info = reinterpret_cast<const void* (*)()>(::dlsym(library, "H5PLget_plugin_info"));
      const H5Z_class2_t* filter_class =
          kind && info && kind() == H5PL_TYPE_FILTER ? static_cast<const H5Z_class2_t*>(info()) : nullptr;
      ::dlclose(library);  // libhdf5 keeps it open
      if (filter_class && filter_class->version == H5Z_CLASS_T_VERS && filter_class->id == id) return filter_class;
    }
  }
  return nullptr;
}

}  // namespace

bool libhdf5_decodes(H5Z_filter_t id) {
  unsigned config = 0;
  const bool decodes =
      H5Zfilter_avail(id) > 0 && (H5Zget_filter_info(id, &config) < 0 || (config & H5Z_FILTER_CONFIG_DECODE_ENABLED));
  H5Eclear2(H5E_DEFAULT);
  return decodes;
}

const H5Z_class2_t* plugin_filter(H5Z_filter_t id) {
  static std::map<H5Z_filter_t, const H5Z_class2_t*> cache;
  if (const auto entry = cache.find(id); entry != cache.end()) return entry->second;
  const H5Z_class2_t* filter_class = nullptr;
  if (libhdf5_decodes(id)) filter_class = id < H5Z_FILTER_RESERVED ? built_in(id) : plugin(id);
  H5Eclear2(H5E_DEFAULT);
  if (filter_class) cache[id] = filter_class;
  return filter_class;
}

namespace {

// Memory of libhdf5, which filters exchange for their own.
struct filter_output {
  filter_output() = default;
  filter_output(filter_output&& other) noexcept : memory(std::exchange(other.memory, nullptr)), size(other.size) {}
  ~filter_output() { H5free_memory(memory); }
  const std::byte* bytes() const { return static_cast<const std::byte*>(memory); }

  void* memory = nullptr;
  std::size_t size = 0;  // 0: the filter failed
};

// The caller holds lock.
filter_output run_filter(const H5Z_class2_t& filter_class, const filter& f, unsigned flags, std::span<const std::byte> in) {
  constexpr std::size_t margin = 4096;  // zeros after the end, for decoders that read slightly too far
  filter_output out;
  out.memory = H5allocate_memory(in.size() + margin, true);
  if (!out.memory) throw std::bad_alloc();
  std::copy(in.begin(), in.end(), static_cast<std::byte*>(out.memory));
  std::size_t capacity = in.size();
  out.size = filter_class.filter(flags, f.values.size(), f.values.data(), in.size(), &capacity, &out.memory);
  if (out.size > capacity || !out.memory) out.size = 0;
  return out;
}

std::string described(const H5Z_class2_t& filter_class, const filter& f) {
  return "filter " + std::to_string(f.id) +
         (filter_class.name && *filter_class.name ? std::string(" (") + filter_class.name + ")" : "");
}

}  // namespace

compressors::buffer decode_plugin_filter(const filter& f, std::span<const std::byte> in, std::size_t max_size) {
  const lock one_thread;
  const H5Z_class2_t* c = plugin_filter(f.id);
  if (!c || !c->filter) throw compressors::corrupt_chunk("filter " + std::to_string(f.id) + " is not known");
  if (in.empty()) throw compressors::corrupt_chunk("filter " + std::to_string(f.id) + ": it is empty");
  if (f.id == H5Z_FILTER_SZIP) {  // libhdf5 allocates the announced size
    std::size_t announced = 0;
    for (std::size_t i = std::min<std::size_t>(4, in.size()); i-- > 0;)
      announced = announced << 8 | std::to_integer<std::size_t>(in[i]);
    if (announced > max_size) throw compressors::corrupt_chunk("szip: it declares more than the chunk");
  }
  const filter_output out = run_filter(*c, f, H5Z_FLAG_REVERSE, in);
  if (out.size == 0) {
    const std::string reason = last_error();
    throw compressors::corrupt_chunk(described(*c, f) + ": " + reason);
  }
  if (out.size > max_size)
    throw compressors::corrupt_chunk("filter " + std::to_string(f.id) + ": it decodes to more than the chunk");
  return compressors::buffer(out.bytes(), out.bytes() + out.size);
}

compressors::buffer encode_plugin_filter(const filter& f, std::span<const std::byte> in) {
  const lock one_thread;
  const H5Z_class2_t* c = plugin_filter(f.id);
  if (!c || !c->filter || !c->encoder_present)
    throw failure("no plugin encodes filter " + std::to_string(f.id) + "; add its folder to HDF5_PLUGIN_PATH");
  const filter_output out = run_filter(*c, f, 0, in);
  if (out.size == 0) {
    const std::string reason = last_error();
    throw failure(described(*c, f) + " cannot encode a chunk: " + reason);
  }
  return compressors::buffer(out.bytes(), out.bytes() + out.size);
}

}  // namespace zarrbits::hdf5
