// SPDX-License-Identifier: BSL-1.0
#include "export/netcdf_types.hpp"

#include "export/new_object.hpp"
#include "text/nfc.hpp"
#include "text/shown.hpp"
#include "text/words.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace zarrbits::exporting {

namespace {

constexpr std::size_t longest_name = 256;  // bytes, of netCDF

// A part of a compound, an array or a sequence.
type_form part_form(type_form t) {
  if (t.is_ordered) throw not_expressible("times of numpy in a struct, where netCDF has no place for their units");
  t = netcdf_form(std::move(t));
  const bool text = t.kind == form_kind::text && !t.variable && t.size > 1;
  return text ? array_form(text_form(1, false, {}), {t.size}) : std::move(t);
}

type_form float_of_netcdf(type_form t) {
  if (t.size > 2 && !t.converted) return t;
  type_form f = float_form(t.size, t.big_endian);
  if (t.size > 2) return f;
  f.file = hdf5::handle(H5Tcopy(t.big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE), "copy a float type");
  f.converted = true;
  return f;
}

std::string name_of_complex(const type_form& t) { return t.size == 8 ? "_PFNC_FLOAT_COMPLEX_TYPE" : "_PFNC_DOUBLE_COMPLEX_TYPE"; }

}  // namespace

type_form netcdf_form(type_form t) {
  switch (t.kind) {
    case form_kind::integer: {
      const H5T_class_t kind = H5Tget_class(t.file);
      if (kind == H5T_ENUM || (kind == H5T_INTEGER && !t.converted)) return t;
      return integer_form(t.size, t.is_signed, t.big_endian);  // bit fields, HDF5's times, numbers of reduced precision
    }
    case form_kind::boolean: return integer_form(1, true, false);
    case form_kind::floating: return float_of_netcdf(std::move(t));
    case form_kind::complex: return t;
    case form_kind::text: return t;
    case form_kind::bytes:
      if (t.is_ordered) return integer_form(t.size, true, t.big_endian);
      return H5Tget_class(t.file) == H5T_OPAQUE ? std::move(t) : bytes_form(t.size, "");
    case form_kind::object_reference:
    case form_kind::region_reference: throw not_expressible("references, which netCDF does not have");
    case form_kind::compound:
      for (form_member& m : t.members) {
        if (const std::string why = fault_of_netcdf_name(m.name); !why.empty())
          throw not_expressible("its member \"" + text::shown(m.name) + "\" has " + why);
        m.name = text::to_nfc(m.name);
        m.type = part_form(std::move(m.type));
      }
      return compound_form(std::move(t.members));
    case form_kind::array: {
      type_form base = part_form(std::move(t.members.front().type));
      if (base.kind != form_kind::array) return array_form(std::move(base), std::move(t.dims));
      t.dims.insert(t.dims.end(), base.dims.begin(), base.dims.end());  // a list of lists is one of more dimensions
      return array_form(std::move(base.members.front().type), std::move(t.dims));
    }
    case form_kind::sequence: return sequence_form(part_form(std::move(t.members.front().type)));
  }
  return t;
}

bool is_user_type(const type_form& t) {
  switch (t.kind) {
    case form_kind::integer: return H5Tget_class(t.file) == H5T_ENUM;
    case form_kind::floating:
    case form_kind::text: return false;
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
  const auto found = std::find_if(units.begin(), units.end(), [&](const auto& u) { return type.unit == u.first; });
  if (found == units.end()) throw not_expressible("times of numpy in units of \"" + type.unit + "\", which CF does not have");
  const bool is_span = type.name == "numpy.timedelta64";
  attributes["units"] = std::string(found->second) + (is_span ? "" : " since 1970-01-01");
  if (is_span) attributes["dtype"] = "timedelta64[" + type.unit + "]";  // xarray's
  else attributes["calendar"] = "proleptic_gregorian";
  attributes["_FillValue"] = INT64_MIN;  // NaT
  return attributes;
}

std::string fault_of_netcdf_name(const std::string& name) {
  if (name.size() > longest_name) return "a name of more than 256 bytes, which netCDF cannot have";
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

void committed_types::commit_parts(const type_form& t, const std::string& name) {
  for (const form_member& m : t.members) commit(m.type, m.name.empty() ? name + "_item" : m.name);
}

hid_t committed_types::commit(const type_form& t, const std::string& name) {
  if (!is_user_type(t)) return t.file;
  if (!is_taken_) {
    const hid_t known = find(t.file);
    return known >= 0 ? known : t.file.get();
  }
  commit_parts(t, name);
  if (t.kind == form_kind::array) return t.file;  // within a compound; as a variable it has dimensions
  if (const hid_t known = find(t.file); known >= 0) return known;
  const std::string wanted = t.kind == form_kind::complex ? name_of_complex(t) : name + "_t";
  std::string free = wanted;
  for (unsigned i = 2; is_taken_(free) || H5Lexists(file_, ("/" + free).c_str(), H5P_DEFAULT) > 0; ++i)
    free = wanted + std::to_string(i);
  const hdf5::handle links(H5Pcreate(H5P_LINK_CREATE), "create properties"), properties = new_object(H5P_DATATYPE_CREATE);
  hdf5::check(H5Pset_char_encoding(links, H5T_CSET_UTF8), "set the encoding of names");
  hdf5::handle type(H5Tcopy(t.file), "copy a type");
  hdf5::check(H5Tcommit2(file_, ("/" + free).c_str(), type, links, properties, H5P_DEFAULT), "create a named type");
  add(std::move(type));
  return types_.back();
}

}  // namespace zarrbits::exporting
