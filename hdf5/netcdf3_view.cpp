// SPDX-License-Identifier: BSL-1.0
#include "hdf5/netcdf3_view.hpp"

#include "hdf5/file_driver.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/scale_attributes.hpp"
#include "io/netcdf3_header.hpp"
#include "remote/netcdf3_rows.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t max_header_bytes = 64U << 20;
constexpr std::uint64_t max_chunks = 1U << 20;  // of all variables

std::string quoted(const std::string& name) { return "\"" + text::escape_name(name) + "\""; }

// In the byte order of the file (values), or in the usual one (attributes).
hid_t number_type(io::netcdf3_type type, bool is_big_endian) {
  switch (type) {
    case io::netcdf3_type::int8: return is_big_endian ? H5T_STD_I8BE : H5T_STD_I8LE;
    case io::netcdf3_type::int16: return is_big_endian ? H5T_STD_I16BE : H5T_STD_I16LE;
    case io::netcdf3_type::int32: return is_big_endian ? H5T_STD_I32BE : H5T_STD_I32LE;
    case io::netcdf3_type::int64: return is_big_endian ? H5T_STD_I64BE : H5T_STD_I64LE;
    case io::netcdf3_type::uint8: return is_big_endian ? H5T_STD_U8BE : H5T_STD_U8LE;
    case io::netcdf3_type::uint16: return is_big_endian ? H5T_STD_U16BE : H5T_STD_U16LE;
    case io::netcdf3_type::uint32: return is_big_endian ? H5T_STD_U32BE : H5T_STD_U32LE;
    case io::netcdf3_type::uint64: return is_big_endian ? H5T_STD_U64BE : H5T_STD_U64LE;
    case io::netcdf3_type::float32: return is_big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE;
    case io::netcdf3_type::float64: return is_big_endian ? H5T_IEEE_F64BE : H5T_IEEE_F64LE;
    case io::netcdf3_type::character: break;
  }
  return H5T_C_S1;
}

handle text_type(std::uint64_t length) {
  handle type(H5Tcopy(H5T_C_S1), "copy a datatype");
  check(H5Tset_size(type, static_cast<std::size_t>(std::max<std::uint64_t>(length, 1))), "create a string type");
  return type;
}

handle space_of(const std::vector<std::uint64_t>& shape, bool is_record) {
  if (shape.empty()) return handle(H5Screate(H5S_SCALAR), "create a dataspace");
  std::vector<hsize_t> dims = to_hsize(shape), max_dims = dims;
  if (is_record) max_dims[0] = H5S_UNLIMITED;
  return handle(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), max_dims.data()), "create a dataspace");
}

void write_attribute(hid_t object, const io::netcdf3_attribute& a) {
  if (a.type == io::netcdf3_type::character) {
    const handle type = text_type(a.count), space(H5Screate(H5S_SCALAR), "create a dataspace");
    const bool is_ascii =
        std::none_of(a.bytes.begin(), a.bytes.end(), [](char c) { return static_cast<unsigned char>(c) > 127; });
    if (!is_ascii && text::is_utf8(a.bytes)) check(H5Tset_cset(type, H5T_CSET_UTF8), "create a string type");
    const handle attribute(H5Acreate2(object, a.name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute");
    check(H5Awrite(attribute, type, a.bytes.c_str()), "write an attribute");
    return;
  }
  const hsize_t n = a.count;
  const handle space(n == 0 ? H5Screate(H5S_NULL) : H5Screate_simple(1, &n, nullptr), "create a dataspace"),
      attribute(H5Acreate2(object, a.name.c_str(), number_type(a.type, false), space, H5P_DEFAULT, H5P_DEFAULT),
                "create an attribute");
  if (n > 0) check(H5Awrite(attribute, number_type(a.type, true), a.bytes.data()), "write an attribute");
}

}  // namespace

// The functions of a libhdf5 driver that keeps the metadata, and drops values, which the file has already.
struct netcdf3_view::driver {
  struct state {
    netcdf3_view& view;
    std::optional<haddr_t> next_values = {};  // the address that the next values are to get
    haddr_t metadata_end = 0, end = 0;
  };
  using settings = state*;
  struct file {
    H5FD_t base;  // libhdf5's; it comes first
    state* contents;
  };
  static state& of(const H5FD_t* f) { return *reinterpret_cast<const file*>(f)->contents; }

  static haddr_t padded(haddr_t end) { return (end + 7) / 8 * 8; }

  static H5FD_t* open(const char*, unsigned, hid_t list, haddr_t) {
    const auto* contents = static_cast<const settings*>(H5Pget_driver_info(list));
    auto* f = contents ? new (std::nothrow) file{} : nullptr;
    if (f) f->contents = *contents;
    return reinterpret_cast<H5FD_t*>(f);
  }
  static void* get_settings(H5FD_t* f) { return copy_settings(&reinterpret_cast<file*>(f)->contents); }
  static void* copy_settings(const void* s) { return new (std::nothrow) settings(*static_cast<const settings*>(s)); }
  static herr_t free_settings(void* s) {
    delete static_cast<settings*>(s);
    return 0;
  }
  static herr_t close(H5FD_t* f) {
    delete reinterpret_cast<file*>(f);
    return 0;
  }
  static int compare(const H5FD_t* a, const H5FD_t* b) { return &of(a) == &of(b) ? 0 : std::less<>()(&of(a), &of(b)) ? -1 : 1; }
  static herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = 0;  // nothing is collected in blocks, so each allocation is seen
    return 0;
  }
  static haddr_t get_eoa(const H5FD_t* f, H5FD_mem_t) { return of(f).end; }
  // libhdf5 also extends the last block in this way.
  static herr_t set_eoa(H5FD_t* f, H5FD_mem_t, haddr_t end) {
    state& s = of(f);
    s.end = std::max(s.end, end);
    if (is_range(end)) s.metadata_end = std::max(s.metadata_end, padded(end));
    return 0;
  }
  static haddr_t get_eof(const H5FD_t* f, H5FD_mem_t) { return of(f).end; }
  static herr_t get_handle(H5FD_t* f, hid_t, void** handle) {
    *handle = f;
    return 0;
  }
  static haddr_t allocate(H5FD_t* f, H5FD_mem_t type, hid_t, hsize_t size) {
    state& s = of(f);
    haddr_t address = 0;
    if (type == H5FD_MEM_DRAW && s.next_values) {
      address = *std::exchange(s.next_values, std::nullopt);
    } else if (type != H5FD_MEM_SUPER) {
      address = s.metadata_end;
      if (size > gathered_begin - address) return HADDR_UNDEF;
      s.metadata_end = padded(address + size);
    }
    s.end = std::max<haddr_t>(s.end, address + size);
    return address;
  }
  static std::span<std::byte> stored(state& s, haddr_t address, std::size_t size) {
    const bool is_superblock = address < s.view.metadata_begin_;
    std::vector<std::byte>& bytes = is_superblock ? s.view.superblock_ : s.view.metadata_;
    const auto offset = static_cast<std::size_t>(address - (is_superblock ? 0 : s.view.metadata_begin_));
    if (bytes.size() < offset + size) bytes.resize(offset + size);
    return std::span(bytes).subspan(offset, size);
  }
  static herr_t read(H5FD_t* f, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* out) {
    try {
      const std::span<std::byte> bytes = stored(of(f), address, size);
      std::memcpy(out, bytes.data(), size);
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }
  static herr_t write(H5FD_t* f, H5FD_mem_t type, hid_t, haddr_t address, std::size_t size, const void* in) {
    const bool is_metadata = type == H5FD_MEM_SUPER || (address >= of(f).view.metadata_begin_ && is_range(address));
    if (!is_metadata) return 0;
    try {
      const std::span<std::byte> bytes = stored(of(f), address, size);
      std::memcpy(bytes.data(), in, size);
      return 0;
    } catch (const std::exception&) {
      return -1;
    }
  }

  static hid_t id() {
    static const hid_t driver_id = [] {
      H5FD_class_t c = driver_class<driver>("zarrbits_netcdf3_view", 509);  // of the values that libhdf5 does not assign
      c.alloc = allocate;
      return H5FDregister(&c);
    }();
    return driver_id;
  }
};

// Writes the metadata, as netCDF-C does.
struct netcdf3_view::writer {
  netcdf3_view& view;
  const io::netcdf3_header& header;
  driver::state contents{view};
  std::set<std::string> dimension_names = {}, scale_names = {};
  std::vector<hobj_ref_t> scales = {};  // of each dimension
  std::vector<std::vector<scale_user>> users = {};
  haddr_t next_gathered = gathered_begin;
  std::uint64_t chunks = 0;

  void run() {
    contents.metadata_end = view.metadata_begin_;
    driver::state* settings = &contents;
    const handle access(H5Pcreate(H5P_FILE_ACCESS), "create properties"),
        creation(H5Pcreate(H5P_FILE_CREATE), "create properties");
    if (driver::id() < 0 || H5Pset_driver(access, driver::id(), &settings) < 0) fail("set the file driver");
    // objects of any size, and an index of chunks that has the address of each
    check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "choose the format of the file");
    check(H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "track the order of links");
    check(H5Pset_attr_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "track the order of attributes");
    check(H5Pset_obj_track_times(creation, false), "leave out times");
    const std::uint64_t failed_before = closes_that_failed().count;
    {
      const handle file(H5Fcreate("netCDF-3", H5F_ACC_TRUNC, creation, access), "create a file in memory");
      write_objects(file);
      check(H5Fflush(file, H5F_SCOPE_GLOBAL), "write the file in memory");
    }
    if (closes_that_failed().count > failed_before) throw failure("HDF5 cannot write: " + closes_that_failed().reason);
    view.end_ = contents.end;
  }

  bool is_scale(const io::netcdf3_variable& v) const {
    return !v.dimensions.empty() && header.dimensions[v.dimensions[0]].name == v.name;
  }
  // As netCDF-C calls a variable in HDF5 that has the name of a dimension, and not its values.
  std::string link_name(const io::netcdf3_variable& v) const {
    return dimension_names.contains(v.name) && !is_scale(v) ? "_nc4_non_coord_" + v.name : v.name;
  }

  static void require_link_name(const char* kind, const std::string& name) {
    if (name.find('/') == name.npos && name != ".") return;
    throw failure(std::string("the name of its ") + kind + " " + quoted(name) + " is not one that netCDF-4 allows; rename it");
  }

  void write_objects(hid_t file) {
    write_text_attribute(file, "_NCProperties", "version=2");
    for (const io::netcdf3_attribute& a : header.attributes) write_attribute(file, a);
    for (const io::netcdf3_dimension& d : header.dimensions) {
      require_link_name("dimension", d.name);
      dimension_names.insert(d.name);
    }
    for (const io::netcdf3_variable& v : header.variables) {
      require_link_name("variable", v.name);
      if (is_scale(v)) scale_names.insert(v.name);
      write_dataset(file, v);
    }
    for (std::size_t i = 0; i < header.dimensions.size(); ++i) {
      const io::netcdf3_dimension& d = header.dimensions[i];
      if (!scale_names.contains(d.name)) write_dimension(file, d);
      scales.push_back(reference_to(file, "/" + d.name));
    }
    users.resize(scales.size());
    for (const io::netcdf3_variable& v : header.variables) attach_scales(file, v);
    for (std::size_t i = 0; i < header.dimensions.size(); ++i) {
      const io::netcdf3_dimension& d = header.dimensions[i];
      const handle scale(H5Dopen2(file, ("/" + d.name).c_str(), H5P_DEFAULT), "open a dataset");
      write_text_attribute(scale, "CLASS", "DIMENSION_SCALE");
      write_text_attribute(scale, "NAME", scale_names.contains(d.name) ? d.name : name_without_variable(d.length));
      write_number_attribute(scale, "_Netcdf4Dimid", {static_cast<std::int32_t>(i)}, true);
      if (!users[i].empty()) write_scale_users(scale, users[i]);
    }
  }

  static handle dataset_properties() {
    handle creation(H5Pcreate(H5P_DATASET_CREATE), "create properties");
    check(H5Pset_attr_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "track the order of attributes");
    check(H5Pset_obj_track_times(creation, false), "leave out times");
    return creation;
  }

  void write_dimension(hid_t file, const io::netcdf3_dimension& d) const {
    const handle creation = dataset_properties(), space = space_of({d.length}, d.is_record);
    if (d.is_record) {
      const hsize_t chunk = 1024;
      check(H5Pset_chunk(creation, 1, &chunk), "set the chunk shape");
    }
    const handle dataset(H5Dcreate2(file, d.name.c_str(), H5T_IEEE_F32BE, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                         "create a dataset");
  }

  void write_dataset(hid_t file, const io::netcdf3_variable& v) {
    const std::string name = link_name(v);
    if (v.shape.size() > H5S_MAX_RANK)
      throw failure("its variable " + quoted(v.name) + " has " + std::to_string(v.shape.size()) +
                    " dimensions, and HDF5 allows " + std::to_string(H5S_MAX_RANK) + "; leave it out of the file");
    const handle creation = dataset_properties(), space = space_of(v.shape, v.is_record),
                 type = v.type == io::netcdf3_type::character ? text_type(1)
                                                              : handle(H5Tcopy(number_type(v.type, true)), "copy a datatype");
    check(H5Pset_fill_value(creation, type, io::fill_value(v).c_str()), "set the fill value");
    const io::netcdf3_chunks grid(v, header.record_stride);
    if (v.shape.empty()) {
      check(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), "allocate values early");
      contents.next_values = v.begin;
    } else {
      const std::vector<hsize_t> chunk = to_hsize(grid.chunk_shape());
      check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()), "set the chunk shape");
    }
    const handle dataset(H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT), "create a dataset");
    if (!v.shape.empty()) place_chunks(dataset, v, grid);
    require_placed();
    for (const io::netcdf3_attribute& a : v.attributes) write_attribute(dataset, a);
  }

  void require_placed() const {
    if (contents.next_values) throw failure("libhdf5 does not let a driver choose the place of values");
  }

  // "Writes" each chunk, for its entry in the index: the driver chooses its place, and drops the bytes.
  void place_chunks(hid_t dataset, const io::netcdf3_variable& v, const io::netcdf3_chunks& grid) {
    const std::vector<std::uint64_t>& counts = grid.counts();
    if (std::find(counts.begin(), counts.end(), std::uint64_t{0}) != counts.end()) return;
    std::vector<std::uint64_t> index(counts.size());
    std::vector<hsize_t> first(counts.size());
    const std::byte unread{};
    for (bool has_more = true; has_more;) {
      if (++chunks > max_chunks)
        throw failure("it has more than " + std::to_string(max_chunks) + " chunks; convert it by itself");
      const io::netcdf3_rows rows = grid.rows_of(index);
      if (rows.is_range()) {
        contents.next_values = rows.offset;
      } else {
        contents.next_values = next_gathered;
        view.gathered_.emplace(next_gathered, rows);
        if (rows.chunk_bytes > std::numeric_limits<std::int64_t>::max() - next_gathered)
          throw failure("its variable " + quoted(v.name) + " is too large");
        next_gathered += rows.chunk_bytes;
      }
      for (std::size_t d = 0; d < first.size(); ++d) first[d] = index[d] * grid.chunk_shape()[d];
      check(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, first.data(), static_cast<std::size_t>(rows.chunk_bytes), &unread),
            "place a chunk");
      require_placed();
      has_more = false;
      for (std::size_t d = index.size(); d-- > 0 && !has_more;) {
        has_more = ++index[d] < counts[d];
        if (!has_more) index[d] = 0;
      }
    }
  }

  void attach_scales(hid_t file, const io::netcdf3_variable& v) {
    if (v.dimensions.empty()) return;
    const std::string path = "/" + link_name(v);
    const handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT), "open a dataset");
    const bool scale = is_scale(v);
    if (!scale || v.dimensions.size() > 1) {
      std::vector<std::int32_t> ids;
      for (const std::size_t d : v.dimensions) ids.push_back(static_cast<std::int32_t>(d));
      write_number_attribute(dataset, "_Netcdf4Coordinates", ids, false);
    }
    if (scale) return;
    std::vector<std::vector<hobj_ref_t>> list;
    const hobj_ref_t reference = reference_to(file, path);
    for (std::size_t i = 0; i < v.dimensions.size(); ++i) {
      list.push_back({scales[v.dimensions[i]]});
      users[v.dimensions[i]].push_back({reference, static_cast<std::int32_t>(i)});
    }
    write_scale_list(dataset, std::move(list));
  }
};

netcdf3_view::netcdf3_view(std::shared_ptr<const io::byte_source> file, std::uint64_t cache)
    : file_(std::move(file)), cache_(cache) {
  const io::netcdf3_header header = io::read_netcdf3_header(*file_, max_header_bytes);
  const std::uint64_t size = file_->state().size;
  if (size > gathered_begin / 2) throw failure("it is too large");
  metadata_begin_ = (size + 511) / 512 * 512;
  writer{*this, header}.run();
}

void netcdf3_view::read(haddr_t address, std::span<std::byte> out) const {
  if (!is_range(address)) {
    auto chunk = gathered_.upper_bound(address);
    if (chunk == gathered_.begin()) throw io::read_error("there is no chunk at this address");
    --chunk;
    const std::uint64_t offset = address - chunk->first;
    if (offset > chunk->second.chunk_bytes || out.size() > chunk->second.chunk_bytes - offset)
      throw io::read_error("the chunk ends before the range that was to be read");
    return remote::read_rows(*file_, chunk->second, cache_, offset, out);
  }
  const bool is_superblock = address < metadata_begin_;
  const std::vector<std::byte>& bytes = is_superblock ? superblock_ : metadata_;
  const std::uint64_t offset = address - (is_superblock ? 0 : metadata_begin_);
  // libhdf5 also reads what it allocated and never wrote
  const auto present =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), bytes.size() - std::min<std::uint64_t>(offset, bytes.size())));
  if (present > 0) std::memcpy(out.data(), bytes.data() + offset, present);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(present), out.end(), std::byte{0});
}

}  // namespace zarrbits::hdf5
