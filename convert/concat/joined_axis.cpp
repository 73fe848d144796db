// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/joined_axis.hpp"

#include "convert/concat/variable.hpp"
#include "hdf5/dimensions.hpp"
#include "text/selection.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

namespace zarrbits::conversion {

namespace {

// All datasets except scales get the new dimension, in front of their own.
std::optional<std::size_t> new_axis_of(const std::string& dimension, const hdf5::source_file& file, const hdf5::source_object& o,
                                       const hdf5::opened_dataset& data) {
  if (data.null || hdf5::is_dimension_scale(data.dataset)) return {};
  const std::vector<std::uint64_t> shape(data.dims.begin(), data.dims.end());
  const std::vector<std::string> names = hdf5::dimension_namer(file).names(o, data.dataset, shape, shape.size());
  const std::string subject = "\"" + o.path + "\" of \"" + file.path() + "\" ";
  if (std::find(names.begin(), names.end(), dimension) != names.end())
    throw unjoinable(subject + "has a dimension \"" + dimension + "\" already; join along it with `concat`");
  if (data.layout == H5D_VIRTUAL)
    throw unjoinable(subject + "is a virtual dataset, which cannot be joined along a new dimension");
  if (data.dims.size() >= H5S_MAX_RANK) throw unjoinable(subject + "has the maximum number of dimensions already");
  return 0;
}

}  // namespace

bool is_axis_pattern(const std::string& dimension) { return dimension.find(':') != std::string::npos; }

std::optional<std::size_t> axis_by_pattern(const std::string& pattern, const std::string& path, std::size_t rank,
                                           const std::string& subject, const std::string& file) {
  const std::size_t colon = pattern.rfind(':');
  std::size_t axis = 0;
  const char* const end = pattern.data() + pattern.size();
  const auto [parsed_end, error] = std::from_chars(pattern.data() + colon + 1, end, axis);
  if (error != std::errc() || parsed_end != end)
    throw zarrbits::error(errc::invalid_option, "`concat` \"" + pattern + "\" does not end with the number of an axis");
  if (!text::selection({pattern.substr(0, colon)}, {}).matches(path)) return {};
  if (axis >= rank)
    throw zarrbits::error(errc::no_match, subject + " of \"" + file + "\" has no axis " + std::to_string(axis), {file, path});
  return axis;
}

std::optional<std::size_t> axis_of(const concatenation& concat, const hdf5::source_file& file, const hdf5::source_object& o,
                                   const hdf5::opened_dataset& data) {
  if (concat.is_new) return new_axis_of(concat.dimension, file, o, data);
  if (data.null || data.dims.empty()) return {};
  const std::string& dimension = concat.dimension;
  if (is_axis_pattern(dimension))
    return axis_by_pattern(dimension, o.store_path, data.dims.size(), "dataset \"" + o.path + "\"", file.path());
  const std::vector<std::uint64_t> shape(data.dims.begin(), data.dims.end());
  const std::vector<std::string> names = hdf5::dimension_namer(file).names(o, data.dataset, shape, shape.size());
  const auto match = std::find(names.begin(), names.end(), dimension);
  if (match == names.end()) return {};
  return static_cast<std::size_t>(match - names.begin());
}

}  // namespace zarrbits::conversion
