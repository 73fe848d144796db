// SPDX-License-Identifier: BSL-1.0
#include "export/netcdf_types.hpp"

#include "export/property_lists.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/nfc.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace zarrbits::exporting {

namespace {

constexpr std::size_t max_name_bytes = 256;  // bytes, of netCDF

// A part of a compound, an array or a sequence.
type_spec part_spec(type_spec t) {
  if (t.is_ordered)
    throw unsupported_in_hdf5(reason_code::unsupported_type,
                              "times of numpy in a struct, where netCDF has no place for their units");
  t = netcdf_spec(std::move(t));
  const bool text = t.kind == type_kind::text && !t.variable && t.size > 1;
  return text ? array_spec(text_spec(1, false, {}), {t.size}) : std::move(t);
}

type_spec float_of_netcdf(type_spec t) {
  if (t.size > 2 && !t.converted) return t;
  type_spec f = float_spec(t.size, t.big_endian);
  if (t.size > 2) return f;
  f.file = hdf5::handle(H5Tcopy(t.big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE), "copy a float type");
  f.converted = true;
  return f;
}

std::string name_of_complex(const type_spec& t) { return t.size == 8 ? "_PFNC_FLOAT_COMPLEX_TYPE" : "_PFNC_DOUBLE_COMPLEX_TYPE"; }

}  // namespace

type_spec netcdf_spec(type_spec t) {
  switch (t.kind) {
    case type_kind::integer: {
      const H5T_class_t kind = H5Tget_class(t.file);
      if (kind == H5T_ENUM || (kind == H5T_INTEGER && !t.converted)) return t;
      return integer_spec(t.size, t.is_signed, t.big_endian);  // bit fields, HDF5's times, numbers of reduced precision
    }
    case type_kind::boolean: return integer_spec(1, true, false);
    case type_kind::floating: return float_of_netcdf(std::move(t));
    case type_kind::complex: return t;
    case type_kind::text: return t;
    case type_kind::bytes:
      if (t.is_ordered) return integer_spec(t.size, true, t.big_endian);
      return H5Tget_class(t.file) == H5T_OPAQUE ? std::move(t) : bytes_spec(t.size, "");
    case type_kind::object_reference:
    case type_kind::region_reference:
      throw unsupported_in_hdf5(reason_code::unsupported_type, "references, which netCDF does not have");
    case type_kind::compound:
      for (member_spec& m : t.members) {
        if (const std::string reason = fault_of_netcdf_name(m.name); !reason.empty())
          throw unsupported_in_hdf5(reason_code::invalid_name, "its member \"" + text::escape_name(m.name) + "\" has " + reason);
        m.name = text::to_nfc(m.name);
        m.type = part_spec(std::move(m.type));
      }
      return compound_spec(std::move(t.members));
    case type_kind::array: {
      type_spec base = part_spec(std::move(t.members.front().type));
      if (base.kind != type_kind::array) return array_spec(std::move(base), std::move(t.dims));
      t.dims.insert(t.dims.end(), base.dims.begin(), base.dims.end());  // a list of lists is one of more dimensions
      return array_spec(std::move(base.members.front().type), std::move(t.dims));
    }
    case type_kind::sequence: return sequence_spec(part_spec(std::move(t.members.front().type)));
  }
  return t;
}

bool is_user_type(const type_spec& t) {
  switch (t.kind) {
    case type_kind::integer: return H5Tget_class(t.file) == H5T_ENUM;
    case type_kind::floating:
    case type_kind::text: return false;
    default: return true;
  }
}

text::json cf_time_attributes(const zarr::zarr_type& type) {
  text::json attributes = text::json::object();
  if (!type.name.starts_with("numpy.")) return attributes;
  static constexpr std::array<std::pair<const char*, const char*>, 7> units = {{{"D", "days"},
                                                                                {"h", "hours"},
                                                                                {"m", "minutes"},
                                                                                {"s", "seconds"},
                                                                                {"ms", "milliseconds"},
                                                                                {"us", "microseconds"},
                                                                                {"ns", "nanoseconds"}}};
  const auto match = std::find_if(units.begin(), units.end(), [&](const auto& u) { return type.unit == u.first; });
  if (match == units.end())
    throw unsupported_in_hdf5(reason_code::unsupported_type,
                              "times of numpy in units of \"" + type.unit + "\", which CF does not have");
  const bool is_span = type.name == "numpy.timedelta64";
  attributes["units"] = std::string(match->second) + (is_span ? "" : " since 1970-01-01");
  if (is_span) attributes["dtype"] = "timedelta64[" + type.unit + "]";  // xarray's
  else attributes["calendar"] = "proleptic_gregorian";
  attributes["_FillValue"] = INT64_MIN;  // NaT
  return attributes;
}

std::string fault_of_netcdf_name(const std::string& name) {
  if (name.size() > max_name_bytes) return "a name of more than 256 bytes, which netCDF cannot have";
  const bool control = std::any_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
  if (control) return "a name with control characters, which netCDF cannot have";
  if (name.ends_with(' ')) return "a name that ends with a blank, which netCDF cannot have";
  if (!text::is_utf8(name)) return "a name that is not UTF-8, which netCDF cannot have";
  return "";
}

bool is_netcdf_bookkeeping(const std::string& attribute) {
  static constexpr std::array<std::string_view, 9> names = {
      "CLASS",         "NAME",          "DIMENSION_LIST",      "REFERENCE_LIST", "DIMENSION_LABELS",
      "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict"};
  return std::find(names.begin(), names.end(), attribute) != names.end();
}

hid_t committed_types::find(hid_t type) const {
  for (const hdf5::handle& t : types_) {
    if (H5Tequal(t, type) > 0) return t;
  }
  return H5I_INVALID_HID;
}

void committed_types::commit_parts(const type_spec& t, const std::string& name) {
  for (const member_spec& m : t.members) commit(m.type, m.name.empty() ? name + "_item" : m.name);
}

hid_t committed_types::commit(const type_spec& t, const std::string& name) {
  if (!is_user_type(t)) return t.file;
  if (!is_taken_) {
    const hid_t existing = find(t.file);
    return existing >= 0 ? existing : t.file.get();
  }
  commit_parts(t, name);
  if (t.kind == type_kind::array) return t.file;  // within a compound; as a variable it has dimensions
  if (const hid_t existing = find(t.file); existing >= 0) return existing;
  const std::string base_name = t.kind == type_kind::complex ? name_of_complex(t) : name + "_t";
  std::string free = base_name;
  for (unsigned i = 2; is_taken_(free) || H5Lexists(file_, ("/" + free).c_str(), H5P_DEFAULT) > 0; ++i)
    free = base_name + std::to_string(i);
  const hdf5::handle links(H5Pcreate(H5P_LINK_CREATE), "create properties"), properties = make_property_list(H5P_DATATYPE_CREATE);
  hdf5::check(H5Pset_char_encoding(links, H5T_CSET_UTF8), "set the encoding of names");
  hdf5::handle type(H5Tcopy(t.file), "copy a type");
  hdf5::check(H5Tcommit2(file_, ("/" + free).c_str(), type, links, properties, H5P_DEFAULT), "create a named type");
  add(std::move(type));
  return types_.back();
}

}  // namespace zarrbits::exporting
