// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/hdf5_file.hpp>

#include "hdf5/attributes.hpp"
#include "hdf5/chunk_form.hpp"
#include "hdf5/fork_guard.hpp"
#include "io/files.hpp"
#include "reader/dataset_reader.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace zarrbits {

namespace {

constexpr std::uint64_t largest_attribute = 256U << 20;  // bytes in memory

// Calls `f`; what the parts below throw becomes an error of the file.
template <class F>
auto translate_errors(const std::string& file, const std::string& object, const F& f) {
  const auto refuse = [&](errc code, const std::string& reason) {
    return error(code, "\"" + text::escape_name(object) + "\" of \"" + file + "\" cannot be read: " + reason, {file, object});
  };
  try {
    return f();
  } catch (const compressors::corrupt_chunk& e) {
    throw refuse(errc::damaged_source, std::string(e.what()) + "; the file is damaged");
  } catch (const hdf5::failure& e) {
    throw refuse(errc::damaged_source, e.what());
  } catch (const hdf5::unsupported_dataset& e) {
    throw refuse(errc::unsupported, e.what());
  } catch (const io::read_error& e) {
    throw refuse(errc::io_failed, e.what());
  }
}

array::strided_box to_strided(const hdf5_box& box) {
  return {box.first, box.count, box.step.empty() ? array::extents(box.first.size(), 1) : box.step};
}

H5O_info_t info_of(hid_t object) {
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  hdf5::check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "get information about an object");
  return info;
}

struct listed_link {
  std::string name;
  H5L_type_t type;
};

herr_t collect_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  try {
    static_cast<std::vector<listed_link>*>(data)->push_back({name, info->type});
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
  return 0;
}

text::json members_of(hid_t group) {
  const hdf5::handle properties(H5Gget_create_plist(group));
  unsigned order = 0;
  const bool tracked = properties && H5Pget_link_creation_order(properties, &order) >= 0 && (order & H5P_CRT_ORDER_TRACKED) != 0;
  std::vector<listed_link> links;
  hdf5::check(H5Literate(group, tracked ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_link, &links),
              "list a group");
  text::json members = text::json::array();
  for (const listed_link& l : links) {
    const char* type = l.type == H5L_TYPE_HARD ? "hard" : l.type == H5L_TYPE_SOFT ? "soft" : "external";
    members.push_back({{"name", hdf5::text_or_base64(l.name)}, {"link", type}});
  }
  return members;
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  hdf5::check(hdf5::list_attributes(object, hdf5::attribute_index(object), H5_ITER_INC, names), "list the attributes");
  return names;
}

// The values of an attribute, packed.
std::string packed_values(hid_t attribute, const reader::value_layout& values, std::uint64_t count,
                          reader::reference_paths& references) {
  if (count > largest_attribute / std::max<std::size_t>(values.size(), 1))
    throw hdf5::failure("it is larger than " + text::format_bytes(largest_attribute));
  std::string packed;
  if (count == 0) return packed;
  if (hdf5::holds_variable(values.stored())) hdf5::count_variable_bytes(attribute, values.stored(), count, largest_attribute);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * values.size()));
  hdf5::check(H5Aread(attribute, values.memory(), bytes.data()), "read an attribute");
  struct reclaim {
    reclaim(hid_t t, hdf5::handle s, void* v) : type(t), space(std::move(s)), values(v) {}
    reclaim(const reclaim&) = delete;
    reclaim& operator=(const reclaim&) = delete;
    ~reclaim() { H5Dvlen_reclaim(type, space, H5P_DEFAULT, values); }

    hid_t type;
    hdf5::handle space;
    void* values;
  };
  std::optional<reclaim> owner;
  if (values.is_variable())
    owner.emplace(values.memory(), hdf5::handle(H5Aget_space(attribute), "get a dataspace"), bytes.data());
  values.pack(bytes.data(), count, references, packed);
  return packed;
}

}  // namespace

struct hdf5_file::content {
  // A file, with the state that its datasets share.
  struct opened {
    std::shared_ptr<hdf5::source_file> file;
    reader::object_paths paths;
    std::shared_ptr<reader::chunk_cache> cache;

    opened(std::shared_ptr<hdf5::source_file> f, std::uint64_t cache_bytes)
        : file(std::move(f)), paths(file->file()), cache(std::make_shared<reader::chunk_cache>(cache_bytes)) {}
  };
  struct located {
    std::shared_ptr<opened> in;
    hdf5::handle object;
  };

  std::string path;
  hdf5_file_options options;
  unsigned threads = 1;
  std::shared_ptr<reader::read_counters> counters = std::make_shared<reader::read_counters>();
  std::shared_ptr<opened> main;
  std::map<std::string, std::shared_ptr<opened>> others;  // that external links lead to

  std::shared_ptr<opened> open(const std::string& name) const {
    hdf5::source_options o;
    o.remote = options.remote;
    o.cache = options.remote_cache;
    o.external = options.external;
    o.lock = options.lock;
    o.netcdf3 = true;
    return std::make_shared<opened>(std::make_shared<hdf5::source_file>(name, o), options.chunk_cache);
  }

  // The caller holds lock.
  located locate(const std::string& object) {
    main->file->require_unchanged();
    // libhdf5 takes a text that ends with a zero
    const bool is_text = object.find('\0') == std::string::npos;
    hdf5::handle h(is_text ? H5Oopen(main->file->file(), object.empty() ? "/" : object.c_str(), H5P_DEFAULT) : H5I_INVALID_HID);
    if (!h) {
      const std::string reason = hdf5::last_error(), name = "\"" + text::escape_name(object) + "\" of \"" + path + "\"";
      const std::string& refusal = main->file->external_files().refusal();
      if (!refusal.empty())
        throw error(errc::refused, name + " cannot be opened: it lies in another file, " + refusal, {path, object});
      if (object.find_first_not_of('/') == std::string::npos)
        throw error(errc::damaged_source, name + " cannot be opened: " + reason + "; the file is damaged", {path, object});
      throw error(errc::not_found, name + " cannot be opened: " + reason, {path, object});
    }
    if (info_of(h).fileno == info_of(main->file->file()).fileno) return {main, std::move(h)};
    const hdf5::handle other(H5Iget_file_id(h), "get the file of an object");
    const ssize_t length = H5Fget_name(other, nullptr, 0);
    hdf5::check(static_cast<herr_t>(length < 0 ? -1 : 0), "get the name of a file");
    std::string name(static_cast<std::size_t>(length) + 1, '\0');
    H5Fget_name(other, name.data(), name.size());
    name.pop_back();
    std::shared_ptr<opened>& target = others[name];
    if (!target) target = open(name);
    const haddr_t address = info_of(h).addr;
    return {target, hdf5::handle(H5Oopen_by_addr(target->file->file(), address), "open the object")};
  }
};

struct hdf5_dataset::content {
  std::shared_ptr<hdf5_file::content> file;
  std::shared_ptr<hdf5_file::content::opened> in;
  std::string path;
  reader::dataset_reader reader;

  content(std::shared_ptr<hdf5_file::content> f, std::shared_ptr<hdf5_file::content::opened> o, const std::string& p,
          haddr_t address)
      : file(std::move(f)), in(std::move(o)), path(p), reader(in->file, address, p, in->cache, file->counters) {}
};

hdf5_file::hdf5_file(const std::string& path, const hdf5_file_options& options) : content_(std::make_shared<content>()) {
  hdf5::guard_forks();
  const hdf5::lock one_thread;
  const hdf5::silence quiet;
  content_->path = path;
  content_->options = options;
  content_->threads = hdf5::detail::threads_or_all(options.threads);
  translate_errors(path, "/", [&] { content_->main = content_->open(path); });
}

std::string hdf5_file::describe(const std::string& path) const {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;
  return translate_errors(content_->path, path, [&]() -> std::string {
    const content::located l = content_->locate(path);
    text::json j = {{"kind", "group"}, {"address", info_of(l.object).addr}};
    const H5I_type_t kind = H5Iget_type(l.object);
    if (kind == H5I_GROUP) {
      j["members"] = members_of(l.object);
    } else if (kind == H5I_DATATYPE) {
      j["kind"] = "datatype";
      j["type"] = reader::value_layout(l.object).json();
    } else {
      j["kind"] = "dataset";
      const hdf5::handle type(H5Dget_type(l.object), "get the datatype"), space(H5Dget_space(l.object), "get the dataspace"),
          properties(H5Dget_create_plist(l.object), "get the properties");
      const reader::value_layout values(type);
      j["type"] = values.json();
      const bool null = H5Sget_simple_extent_type(space) == H5S_NULL;
      j["shape"] = null ? text::json(nullptr) : text::json(hdf5::extent(space));
      j["maxshape"] = text::json::array();
      if (!null) {
        for (const std::uint64_t n : hdf5::maximum_extent(space))
          j["maxshape"].push_back(n == H5S_UNLIMITED ? text::json(nullptr) : text::json(n));
      }
      const array::extents chunk = hdf5::chunk_extent(properties);
      j["chunks"] = chunk.empty() ? text::json(nullptr) : text::json(chunk);
      j["filters"] = text::json::array();
      for (const hdf5::filter& f : hdf5::read_pipeline(properties).filters)
        j["filters"].push_back({{"id", f.id}, {"values", f.values}, {"name", hdf5::text_or_base64(f.name)}});
      const std::string fill = values.obstacle().empty() && !values.is_variable() && values.size() <= largest_attribute
                                   ? hdf5::fill_bytes(properties, values.memory())
                                   : std::string();
      j["fill"] = fill.empty() ? text::json(nullptr) : text::json(text::base64(fill));
    }
    return text::json_text(j);
  });
}

std::string hdf5_file::attributes(const std::string& path) const {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;
  return translate_errors(content_->path, path, [&]() -> std::string {
    const content::located l = content_->locate(path);
    std::string out;
    std::uint64_t total = 0;
    for (const std::string& name : attribute_names(l.object)) {
      text::json j = {{"name", hdf5::text_or_base64(name)}};
      std::string values;
      try {
        const hdf5::handle attribute(H5Aopen(l.object, name.c_str(), H5P_DEFAULT), "open an attribute"),
            type(H5Aget_type(attribute), "get the datatype"), space(H5Aget_space(attribute), "get the dataspace");
        const reader::value_layout layout(type);
        j["type"] = layout.json();
        const bool null = H5Sget_simple_extent_type(space) == H5S_NULL;
        const array::extents shape = null ? array::extents() : hdf5::extent(space);
        j["shape"] = null ? text::json(nullptr) : text::json(shape);
        if (!layout.obstacle().empty()) throw hdf5::failure("its datatype is " + layout.obstacle());
        reader::reference_paths references(l.in->paths, l.object);
        if (!null) values = packed_values(attribute, layout, array::product(shape), references);
        total += values.size();
        if (total > largest_attribute)
          throw hdf5::failure("all attributes take more than " + text::format_bytes(largest_attribute));
      } catch (const hdf5::failure& e) {
        j["error"] = e.what();
        values.clear();
      }
      const std::string header = text::json_text(j);
      reader::append_length(out, header.size());
      out += header;
      reader::append_length(out, values.size());
      out += values;
    }
    return out;
  });
}

hdf5_dataset hdf5_file::dataset(const std::string& path) const {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;
  return translate_errors(content_->path, path, [&] {
    const content::located l = content_->locate(path);
    if (H5Iget_type(l.object) != H5I_DATASET)
      throw error(errc::unsupported,
                  "\"" + text::escape_name(path) + "\" of \"" + content_->path + "\" is not a dataset; use one",
                  {content_->path, path});
    return hdf5_dataset(std::make_shared<const hdf5_dataset::content>(content_, l.in, path, info_of(l.object).addr));
  });
}

hdf5_statistics hdf5_file::statistics() const {
  const reader::read_counters& c = *content_->counters;
  return {c.decoded_chunks, c.cached_chunks, c.empty_chunks, c.plain_bytes, c.libhdf5_values};
}

const std::vector<std::uint64_t>& hdf5_dataset::shape() const noexcept { return content_->reader.dataset().dims; }
std::vector<std::uint64_t> hdf5_dataset::chunk_shape() const { return content_->reader.dataset().chunk_in_file; }
std::size_t hdf5_dataset::element_size() const noexcept { return content_->reader.values().size(); }
std::string hdf5_dataset::type_json() const { return text::json_text(content_->reader.values().json()); }
bool hdf5_dataset::is_variable() const noexcept { return content_->reader.values().is_variable(); }

void hdf5_dataset::read(const hdf5_box& box, std::span<std::byte> out) const {
  translate_errors(content_->file->path, content_->path,
                   [&] { content_->reader.read(to_strided(box), out, content_->file->threads); });
}

std::string hdf5_dataset::read_packed(const hdf5_box& box) const {
  return translate_errors(content_->file->path, content_->path,
                          [&] { return content_->reader.read_packed(to_strided(box), content_->in->paths); });
}

std::size_t hdf5_dataset::value_count(const hdf5_box& box) { return static_cast<std::size_t>(array::product(box.count)); }

void hdf5_dataset::read_numbers(const hdf5_box& box, bool is_float, bool is_signed, std::size_t size,
                                std::span<std::byte> out) const {
  translate_errors(content_->file->path, content_->path, [&] {
    hdf5::handle native;
    {
      const hdf5::lock one_thread;
      const hdf5::silence quiet;
      const hid_t type = is_float    ? (size == sizeof(float)    ? H5T_NATIVE_FLOAT
                                        : size == sizeof(double) ? H5T_NATIVE_DOUBLE
                                                                 : H5T_NATIVE_LDOUBLE)
                         : size == 1 ? (is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8)
                         : size == 2 ? (is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16)
                         : size == 4 ? (is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32)
                                     : (is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64);
      native = hdf5::handle(H5Tcopy(type), "copy a datatype");
      if (!content_->reader.values().is_variable() && H5Tequal(native, content_->reader.values().memory()) <= 0) {
        H5T_cdata_t* path = nullptr;
        if (!H5Tfind(content_->reader.values().memory(), native, &path)) {
          H5Eclear2(H5E_DEFAULT);
          throw error(errc::unsupported_data_type,
                      "\"" + text::escape_name(content_->path) +
                          "\" cannot be read as numbers: HDF5 does not convert its datatype; "
                          "use read() with bytes",
                      {content_->file->path, content_->path});
        }
      } else {
        native = {};
      }
    }
    if (!native) return content_->reader.read(to_strided(box), out, content_->file->threads);
    std::vector<std::byte> stored(value_count(box) * element_size());
    content_->reader.read(to_strided(box), stored, content_->file->threads);
    content_->reader.convert(stored, native, size, out);
  });
}

}  // namespace zarrbits
