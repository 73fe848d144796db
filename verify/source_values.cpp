// SPDX-License-Identifier: BSL-1.0
#include "verify/source_values.hpp"

#include "hdf5/external_files.hpp"
#include "hdf5/string_blocks.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/format.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_attribute_bytes = 256u << 20;  // bytes

herr_t first_reason(unsigned, const H5E_error2_t* e, void* out) {
  auto& reason = *static_cast<std::string*>(out);
  if (reason.empty() && e->desc) reason = e->desc;
  return 0;
}

hid_t native_integer(std::size_t size, bool is_signed) {
  switch (size) {
    case 1: return is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2: return is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4: return is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default: return is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

std::size_t container_size(std::size_t size) { return size <= 1 ? 1 : size <= 2 ? 2 : size <= 4 ? 4 : 8; }

source_type unsupported_type(const std::string& name) {
  source_type t;
  t.name = name;
  return t;
}

bool is_swapped(hid_t type) {
  const H5T_order_t order = H5Tget_order(type);
  return (order == H5T_ORDER_LE || order == H5T_ORDER_BE) && order != H5Tget_order(H5T_NATIVE_UINT64);
}

// The stored bytes of a type that libhdf5 would change by a conversion, or cannot convert.
source_type as_bytes(hid_t type, std::string name) {
  source_type t;
  t.kind = source_kind::opaque;
  t.size = H5Tget_size(type);
  t.swapped = is_swapped(type);
  t.name = std::move(name);
  return t;
}

source_type describe_integer(hid_t type) {
  source_type t;
  t.kind = source_kind::integer;
  t.swapped = is_swapped(type);
  const std::size_t size = H5Tget_size(type), precision = H5Tget_precision(type);
  t.is_signed = H5Tget_sign(type) == H5T_SGN_2;
  t.name = (t.is_signed ? "int" : "uint") + std::to_string(8 * size);
  if (size == 0 || size > max_number_bytes) return unsupported_type("integers of " + std::to_string(size) + " bytes");
  if (precision > 64) {
    source_type wide = as_bytes(type, t.name);
    wide.is_wide = precision == 8 * size;
    wide.is_signed = t.is_signed;
    return wide;
  }
  t.size = size <= 8 ? container_size(size) : 8;
  t.exact = t.size == size && precision == 8 * size;
  return t;
}

// Bit fields and times.
source_type describe_bits(hid_t type, source_kind kind) {
  const std::size_t size = H5Tget_size(type);
  const std::string name = (kind == source_kind::bitfield ? "bitfield" : "time") + std::to_string(8 * size);
  if (size == 0 || container_size(size) != size) return as_bytes(type, name);
  source_type t;
  t.kind = kind;
  t.size = size;
  t.swapped = t.reversed = is_swapped(type);
  t.is_signed = kind == source_kind::integer;
  t.name = name;
  return t;
}

// True if the float is an IEEE float, so that its bits can be compared.
bool is_ieee(hid_t type, std::size_t size) {
  std::size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) < 0) return false;
  const H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return false;
  const std::size_t exponent_bits = size == 2 ? 5 : size == 4 ? 8 : size == 8 ? 11 : 0;
  return exponent_bits != 0 && exponent_size == exponent_bits && mantissa == 0 && mantissa_size == 8 * size - 1 - exponent_bits &&
         exponent == mantissa_size && sign == 8 * size - 1 && H5Tget_precision(type) == 8 * size &&
         H5Tget_norm(type) == H5T_NORM_IMPLIED && H5Tget_ebias(type) == (std::size_t{1} << (exponent_bits - 1)) - 1;
}

source_type describe_float(hid_t type) {
  source_type t;
  t.kind = source_kind::floating;
  t.swapped = is_swapped(type);
  const std::size_t size = H5Tget_size(type);
  t.exact = is_ieee(type, size);
  t.size = t.exact ? size : sizeof(double);
  t.name = (t.exact ? "float" : "a float of ") + std::to_string(8 * size) + (t.exact ? "" : " bits");
  if (size > max_number_bytes) return unsupported_type("floats of " + std::to_string(8 * size) + " bits");
  return H5Tget_precision(type) > 8 * size ? as_bytes(type, t.name) : t;
}

bool is_boolean(hid_t type) {
  if (H5Tget_nmembers(type) != 2) return false;
  const hdf5::handle base = checked(H5Tget_super(type), "cannot read an enum");
  long long value[2] = {};
  bool named[2] = {};
  for (unsigned i = 0; i < 2; ++i) {
    const std::unique_ptr<char, decltype(&H5free_memory)> name(H5Tget_member_name(type, i), &H5free_memory);
    unsigned char raw[64] = {};
    if (!name || H5Tget_size(type) > sizeof raw / 2 || H5Tget_member_value(type, i, raw) < 0) return false;
    if (H5Tconvert(base.get(), H5T_NATIVE_LLONG, 1, raw, nullptr, H5P_DEFAULT) < 0) return false;
    std::copy_n(raw, sizeof(long long), reinterpret_cast<unsigned char*>(&value[i]));
    const std::string_view n = name.get();
    named[i] = (n == "FALSE" && value[i] == 0) || (n == "TRUE" && value[i] == 1);
  }
  return named[0] && named[1] && value[0] != value[1];
}

source_type describe_compound(hid_t type, unsigned depth) {
  source_type t;
  t.kind = source_kind::compound;
  t.name = "a compound";
  const int n = H5Tget_nmembers(type);
  for (unsigned i = 0; n > 0 && i < static_cast<unsigned>(n); ++i) {
    const std::unique_ptr<char, decltype(&H5free_memory)> name(H5Tget_member_name(type, i), &H5free_memory);
    const hdf5::handle member = checked(H5Tget_member_type(type, i), "cannot read a compound's member");
    source_member m;
    m.name = name ? name.get() : "";
    m.type = describe(member.get(), depth + 1);
    // a member that cannot be read is left out of the memory type; the others can still be compared
    m.offset = t.size;
    t.size += m.type.size;
    t.members.push_back(std::move(m));
  }
  return t;
}

#if H5_VERSION_GE(2, 0, 0)
// As h5py's compounds of r and i.
source_type describe_complex(hid_t type) {
  const hdf5::handle base = checked(H5Tget_super(type), "cannot read a complex type");
  source_type t;
  t.kind = source_kind::compound;
  t.name = "a complex number";
  for (const char* name : {"r", "i"}) {
    source_member m;
    m.name = name;
    m.type = describe_float(base.get());
    if (m.type.kind != source_kind::floating || m.type.size < 4) return unsupported_type("complex numbers of " + m.type.name);
    m.offset = t.size;
    t.size += m.type.size;
    t.members.push_back(std::move(m));
  }
  return t;
}
#endif

source_type describe_array(hid_t type, unsigned depth) {
  source_type t;
  t.kind = source_kind::array;
  hsize_t dims[H5S_MAX_RANK] = {};
  const int rank = H5Tget_array_ndims(type);
  if (rank < 1 || rank > H5S_MAX_RANK || H5Tget_array_dims2(type, dims) < 0)
    return unsupported_type("an array type of unknown shape");
  const hdf5::handle base = checked(H5Tget_super(type), "cannot read an array type");
  source_member m;
  m.type = describe(base.get(), depth + 1);
  if (m.type.kind == source_kind::unsupported) return m.type;
  std::size_t count = 1;
  for (int i = 0; i < rank; ++i) {
    t.dims.push_back(dims[i]);
    if (__builtin_mul_overflow(count, dims[i], &count)) return unsupported_type("an array type of impossible size");
  }
  if (__builtin_mul_overflow(count, m.type.size, &t.size) || t.size > (1u << 30))
    return unsupported_type("an array type of more than 1 GiB");
  t.name = "an array of " + m.type.name;
  t.members.push_back(std::move(m));
  return t;
}

}  // namespace

hdf5::handle checked(hid_t id, const char* message) {
  if (id < 0) throw source_error(std::string(message) + ": " + hdf5_reason());
  return hdf5::handle(id);
}

void check(herr_t status, const char* message) {
  if (status < 0) throw source_error(std::string(message) + ": " + hdf5_reason());
}

void check_read(herr_t status, hid_t dataset) {
  try {
    hdf5::check_read(status, dataset, "read the values");
  } catch (const hdf5::failure& e) {
    throw source_error(e.what());
  }
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_reason, &reason);
  H5Eclear2(H5E_DEFAULT);
  return reason.empty() ? "libhdf5 gives no reason" : reason;
}

bool source_type::has_variable_parts() const {
  return kind == source_kind::variable_text || kind == source_kind::sequence ||
         std::any_of(members.begin(), members.end(), [](const source_member& m) { return m.type.has_variable_parts(); });
}

source_type describe(hid_t type, unsigned depth) {
  if (depth > 32) return unsupported_type("types nested more than 32 deep");
  source_type t;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return describe_integer(type);
    case H5T_BITFIELD: return describe_bits(type, source_kind::bitfield);
    case H5T_FLOAT: return describe_float(type);
    case H5T_ENUM: {
      const hdf5::handle base = checked(H5Tget_super(type), "cannot read an enum");
      t = describe_integer(base.get());
      if (t.kind != source_kind::integer) return unsupported_type("an enum of " + t.name);
      t.is_enum = true;
      t.is_bool = is_boolean(type);
      t.name = t.is_bool ? "a boolean" : "an enum of " + t.name;
      return t;
    }
    case H5T_STRING:
      t.padding = H5Tget_strpad(type);
      if (H5Tis_variable_str(type) > 0) {
        t.kind = source_kind::variable_text;
        t.size = sizeof(char*);
        t.name = "a string";
      } else {
        t.kind = source_kind::text;
        t.size = H5Tget_size(type);
        t.name = "a string of " + std::to_string(t.size) + " bytes";
      }
      return t;
    case H5T_OPAQUE:
      t.kind = source_kind::opaque;
      t.size = H5Tget_size(type);
      t.name = "opaque of " + std::to_string(t.size) + " bytes";
      if (const std::unique_ptr<char, decltype(&H5free_memory)> tag(H5Tget_tag(type), &H5free_memory); tag) t.tag = tag.get();
      return t;
    case H5T_COMPOUND: return describe_compound(type, depth);
    case H5T_ARRAY: return describe_array(type, depth);
#if H5_VERSION_GE(2, 0, 0)
    case H5T_COMPLEX: return describe_complex(type);
#endif
    case H5T_REFERENCE:
      if (H5Tequal(type, H5T_STD_REF_OBJ) > 0) {
        t.kind = source_kind::reference;
        t.size = sizeof(hobj_ref_t);
        t.name = "an object reference";
      } else if (H5Tequal(type, H5T_STD_REF_DSETREG) > 0) {
        t.kind = source_kind::region;
        t.size = sizeof(hdset_reg_ref_t);
        t.name = "a region reference";
      } else {
        return unsupported_type("a reference of the kind introduced by HDF5 1.12");
      }
      return t;
    case H5T_VLEN: {
      const hdf5::handle base = checked(H5Tget_super(type), "cannot read a sequence type");
      source_member m;
      m.type = describe(base.get(), depth + 1);
      if (m.type.kind == source_kind::unsupported) return m.type;
      t.kind = source_kind::sequence;
      t.size = sizeof(hvl_t);
      t.name = "sequences of " + m.type.name;
      t.members.push_back(std::move(m));
      return t;
    }
    case H5T_TIME: return describe_bits(type, source_kind::integer);
    default: return unsupported_type("an unknown datatype class");
  }
}

hdf5::handle memory_type(const source_type& t, hid_t file_type) {
  const char* const message = "cannot make a memory type";
  switch (t.kind) {
    case source_kind::integer:
      if (H5Tget_class(file_type) == H5T_TIME) return checked(H5Tcopy(file_type), message);
      return checked(H5Tcopy(native_integer(t.size, t.is_signed)), message);
    case source_kind::bitfield: return checked(H5Tcopy(file_type), message);
    case source_kind::floating: {
      if (!t.exact) return checked(H5Tcopy(H5T_NATIVE_DOUBLE), message);
      // a copy of the file's type in our byte order: only bytes move, and NaN payloads survive
      hdf5::handle m = checked(H5Tcopy(file_type), message);
      check(H5Tset_order(m.get(), H5Tget_order(H5T_NATIVE_DOUBLE)), message);
      return m;
    }
    case source_kind::text:
    case source_kind::variable_text:
    case source_kind::opaque: return checked(H5Tcopy(file_type), message);
    case source_kind::reference: return checked(H5Tcopy(H5T_STD_REF_OBJ), message);
    case source_kind::region: return checked(H5Tcopy(H5T_STD_REF_DSETREG), message);
    case source_kind::array: {
      const hdf5::handle file_base = checked(H5Tget_super(file_type), message);
      const hdf5::handle base = memory_type(t.members[0].type, file_base.get());
      const std::vector<hsize_t> dims(t.dims.begin(), t.dims.end());
      return checked(H5Tarray_create2(base.get(), static_cast<unsigned>(dims.size()), dims.data()), message);
    }
    case source_kind::sequence: {
      const hdf5::handle file_base = checked(H5Tget_super(file_type), message);
      const hdf5::handle base = memory_type(t.members[0].type, file_base.get());
      return checked(H5Tvlen_create(base.get()), message);
    }
    case source_kind::compound: {
#if H5_VERSION_GE(2, 0, 0)
      if (H5Tget_class(file_type) == H5T_COMPLEX) {
        const hdf5::handle file_base = checked(H5Tget_super(file_type), message);
        const hdf5::handle base = memory_type(t.members[0].type, file_base.get());
        return checked(H5Tcomplex_create(base.get()), message);
      }
#endif
      hdf5::handle m = checked(H5Tcreate(H5T_COMPOUND, std::max<std::size_t>(t.size, 1)), message);
      for (unsigned i = 0; i < t.members.size(); ++i) {
        if (t.members[i].type.size == 0) continue;
        const hdf5::handle file_member = checked(H5Tget_member_type(file_type, i), message);
        const hdf5::handle member = memory_type(t.members[i].type, file_member.get());
        check(H5Tinsert(m.get(), t.members[i].name.c_str(), t.members[i].offset, member.get()), message);
      }
      return m;
    }
    default: throw source_error("there is no memory type for " + t.name);
  }
}

source_values::source_values(const source_type& type, hid_t memory_type, std::uint64_t max_bytes)
    : type_(type), max_bytes_(max_bytes) {
  check(H5Iinc_ref(memory_type), "cannot keep a memory type");
  memory_ = hdf5::handle(memory_type);
}

source_values::~source_values() { reclaim(); }

void source_values::reclaim() {
  if (variable_) variable_->clear();
  if (live_ == 0 || !type_.has_variable_parts()) return;
  const hsize_t n = std::exchange(live_, 0);
  const hdf5::handle space(H5Screate_simple(1, &n, nullptr));
  if (space) H5Dvlen_reclaim(memory_.get(), space.get(), H5P_DEFAULT, data_.data());
}

void source_values::read(hid_t dataset, const std::vector<std::uint64_t>& start, const std::vector<std::uint64_t>& count) {
  reclaim();
  std::size_t elements = 1;
  for (const std::uint64_t n : count) elements *= static_cast<std::size_t>(n);
  // zeros, so that bytes that libhdf5 does not write are not stray pointers
  data_.assign(elements * type_.size, std::byte{0});
  if (elements == 0) return;
  const hdf5::handle file_space = checked(H5Dget_space(dataset), "cannot read the dataspace");
  const std::vector<hsize_t> offset(start.begin(), start.end());
  const std::vector<hsize_t> size(count.begin(), count.end());
  hdf5::handle memory_space;
  if (size.empty()) {
    memory_space = checked(H5Screate(H5S_SCALAR), "cannot make a dataspace");
  } else {
    check(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, offset.data(), nullptr, size.data(), nullptr),
          "cannot select a block");
    memory_space = checked(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), "cannot make a dataspace");
  }
  if (type_.has_variable_parts() && !variable_) variable_ = std::make_unique<hdf5::vlen_allocator>(max_bytes_);
  const hid_t transfer = variable_ ? variable_->transfer() : H5P_DEFAULT;
  bool is_read = false;
  try {
    if (type_.kind == source_kind::variable_text) {
      const hdf5::string_blocks blocks(dataset);
      is_read = blocks.has_fill_text();
      const std::vector<std::uint64_t> zero(count.size(), 0);
      if (is_read)
        blocks.read(memory_, {start, count}, count, zero, {reinterpret_cast<char**>(data_.data()), elements}, *variable_);
    }
  } catch (const hdf5::failure& e) {
    if (!variable_->exceeded()) throw source_error(e.what());
  }
  const herr_t status =
      is_read ? 0 : H5Dread(dataset, memory_.get(), memory_space.get(), file_space.get(), transfer, data_.data());
  if (variable_ && variable_->exceeded()) {
    H5Eclear2(H5E_DEFAULT);
    variable_.reset();  // the caller may read less
    throw zarr::not_supported(reason_code::too_large, "strings or sequences of more than " + text::format_bytes(max_bytes_) +
                                                          " in a block of the source");
  }
  check_read(status, dataset);
}

void source_values::read_attribute(hid_t attribute, hid_t file_type, std::uint64_t elements) {
  reclaim();
  if (elements > max_attribute_bytes / std::max<std::size_t>(type_.size, 1))
    throw zarr::not_supported(reason_code::too_large, "attributes of more than 256 MiB");
  data_.assign(static_cast<std::size_t>(elements) * type_.size, std::byte{0});
  if (elements == 0) return;
  if (type_.has_variable_parts()) {
    try {  // H5Aread takes no limit for its allocations
      hdf5::count_variable_bytes(attribute, hdf5::describe_type(file_type), elements, max_attribute_bytes);
    } catch (const hdf5::failure& e) {
      throw source_error(e.what());
    }
  }
  check(H5Aread(attribute, memory_.get(), data_.data()), "H5Aread failed");
  live_ = static_cast<std::size_t>(elements);
}

void source_values::read_fill(hid_t creation_properties) {
  reclaim();
  data_.assign(type_.size, std::byte{0});
  check(H5Pget_fill_value(creation_properties, memory_.get(), data_.data()), "cannot read the fill value");
  live_ = 1;
}

}  // namespace zarrbits::verification
