// SPDX-License-Identifier: BSL-1.0
#include "export/path_references.hpp"

#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

namespace {

// Adds a block, or a list of points, to a selection. False if it does not fit.
bool select(hid_t space, const text::json& selection) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) return false;
  const auto r = static_cast<std::size_t>(rank);
  const auto numbers = [](const text::json& list, std::size_t n) {
    std::vector<hsize_t> out;
    if (!list.is_array() || list.size() != n) return out;
    for (const text::json& v : list) {
      if (!v.is_number_unsigned()) return std::vector<hsize_t>();
      out.push_back(v.get<hsize_t>());
    }
    return out;
  };
  if (const auto points = selection.find("points"); points != selection.end() && points->is_array()) {
    std::vector<hsize_t> coordinates;
    for (const text::json& p : *points) {
      const std::vector<hsize_t> point = numbers(p, r);
      if (point.size() != r) return false;
      coordinates.insert(coordinates.end(), point.begin(), point.end());
    }
    return coordinates.empty()
               ? H5Sselect_none(space) >= 0
               : r > 0 && H5Sselect_elements(space, H5S_SELECT_SET, coordinates.size() / r, coordinates.data()) >= 0;
  }
  if (const auto blocks = selection.find("blocks"); blocks != selection.end() && blocks->is_array()) {
    if (H5Sselect_none(space) < 0) return false;
    for (const text::json& b : *blocks) {
      const std::vector<hsize_t> corners = numbers(b, 2 * r);
      if (r == 0 || corners.size() != 2 * r) return false;
      std::vector<hsize_t> count(r);
      for (std::size_t i = 0; i < r; ++i) {
        if (corners[r + i] < corners[i] || corners[r + i] == HSIZE_UNDEF) return false;
        count[i] = corners[r + i] - corners[i] + 1;
      }
      if (H5Sselect_hyperslab(space, H5S_SELECT_OR, corners.data(), nullptr, count.data(), nullptr) < 0) return false;
    }
    return true;
  }
  const text::json kind = selection.value("selection", text::json());
  if (kind == "all") return H5Sselect_all(space) >= 0;
  return kind == "none" && H5Sselect_none(space) >= 0;
}

}  // namespace

bool is_link_name(const std::string& name) {
  return !name.empty() && name != "." && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

std::string path_references::path_in_file(const std::string& path) const {
  std::string raw = text::unescape_name(path);
  if (!raw.starts_with('/')) return group_ + (group_.ends_with('/') ? "" : "/") + raw;
  if (!top_.empty() && top_ != "/" && raw.starts_with(top_) && (raw.size() == top_.size() || raw[top_.size()] == '/'))
    raw = raw.substr(top_.size());
  return raw.empty() ? "/" : raw;
}

void path_references::object(const std::string& path, std::byte* out) {
  const hobj_ref_t null = 0;
  std::memcpy(out, &null, sizeof null);
  if (path.empty()) return;
  hobj_ref_t reference = 0;
  const std::string raw = path_in_file(path);
  if (raw.find('\0') == std::string::npos && H5Rcreate(&reference, file_, raw.c_str(), H5R_OBJECT, -1) >= 0) {
    std::memcpy(out, &reference, sizeof reference);
  } else {
    ++dangling_;
    H5Eclear2(H5E_DEFAULT);
  }
}

void path_references::region(const text::json& path_and_selection, std::byte* out) {
  hdset_reg_ref_t reference = {};
  std::memcpy(out, &reference, sizeof reference);
  if (path_and_selection.is_null() || path_and_selection == "") return;
  if (!path_and_selection.is_object() || !path_and_selection.value("path", text::json()).is_string())
    throw unsupported_in_hdf5(reason_code::unsupported_feature, "a reference to a region that is not an object with a path");
  const std::string raw = path_in_file(path_and_selection["path"].get<std::string>());
  const hdf5::handle dataset(raw.find('\0') == std::string::npos ? H5Dopen2(file_, raw.c_str(), H5P_DEFAULT) : H5I_INVALID_HID);
  const hdf5::handle space(dataset ? H5Dget_space(dataset) : H5I_INVALID_HID);
  if (space && select(space, path_and_selection) && H5Rcreate(&reference, file_, raw.c_str(), H5R_DATASET_REGION, space) >= 0) {
    std::memcpy(out, &reference, sizeof reference);
  } else {
    ++dangling_;
    H5Eclear2(H5E_DEFAULT);
  }
}

std::uint64_t path_references::take_dangling() { return std::exchange(dangling_, 0); }

}  // namespace zarrbits::exporting
