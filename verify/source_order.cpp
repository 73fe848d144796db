// SPDX-License-Identifier: BSL-1.0
#include "verify/source_order.hpp"

#include "hdf5/open_source.hpp"
#include "hdf5/registered_decoders.hpp"
#include "io/reference_table.hpp"
#include "text/natural_order.hpp"
#include "verify/cf_meaning.hpp"
#include "verify/compare_stores.hpp"
#include "verify/source_tree.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace zarrbits::verification {

namespace {

// The first value of a coordinate that is not missing; of times, microseconds since the calendar's year 0.
std::optional<long double> first_meaning(hid_t dataset) {
  const auto meaning = meaning_of_numbers(dataset, {});
  const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the shape");
  if (!meaning || H5Sget_simple_extent_ndims(space.get()) != 1) return {};
  const hdf5::handle properties = checked(H5Dget_create_plist(dataset), "cannot read the properties");
  hdf5::register_decoders(properties.get());
  const auto length = static_cast<hsize_t>(H5Sget_simple_extent_npoints(space.get()));
  std::vector<double> values(static_cast<std::size_t>(std::min<hsize_t>(length, 4096)));
  for (hsize_t first = 0; first < length; first += values.size()) {
    const hsize_t count = std::min<hsize_t>(values.size(), length - first);
    const hdf5::handle selected = checked(H5Scopy(space.get()), "cannot read the shape"),
                       memory = checked(H5Screate_simple(1, &count, nullptr), "cannot select elements");
    check(H5Sselect_hyperslab(selected.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), "cannot select elements");
    check_read(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory.get(), selected.get(), H5P_DEFAULT, values.data()), dataset);
    for (std::size_t i = 0; i < count; ++i) {
      if (const auto value = instant(*meaning, values[i])) return value;
    }
  }
  return {};
}

// The first value of the variable with the dimension's name.
long double first_value(const std::string& source, const verify_options& options) {
  if (zarr::is_store_name(source))
    return first_value_in_store(
        zarr::open_source_store(source, options.remote, io::allowed_paths({}, options.external), options.memory),
        options.concat->dimension);
  const source_name name = split_source(source);
  const hdf5::handle access = checked(H5Pcreate(H5P_FILE_ACCESS), "cannot prepare to open a file");
  const hdf5::opened_source file(name.file, access.get(), options.remote, options.memory / 4, options.external, options.lock,
                                 io::access_hint::partial, true);
  comparison_progress progress(options.progress);
  const source_tree tree(file.file(), name.object.empty() ? "/" : name.object, progress);
  std::vector<std::pair<std::string, haddr_t>> variables;
  for (const auto& [address, object] : tree.objects()) {
    const auto& names = object.names;
    if (object.type == H5O_TYPE_DATASET && std::find(names.begin(), names.end(), options.concat->dimension) != names.end())
      variables.emplace_back(object.path, address);
  }
  std::sort(variables.begin(), variables.end());
  for (const auto& [path, address] : variables) {
    if (const auto value = first_meaning(tree.open(address).get())) return *value;
  }
  throw error(errc::no_match,
              "\"" + source + "\" has no variable \"" + options.concat->dimension +
                  "\" with a first value, by which the files were to be ordered; set another `order`",
              {source});
}

}  // namespace

std::vector<std::string> sources_of(const verify_options& options) {
  std::vector<std::string> names{options.source};
  if (options.concat) names.insert(names.end(), options.concat->sources.begin(), options.concat->sources.end());
  return names;
}

std::vector<std::string> sources_in_order(const verify_options& options) {
  using order = concatenation::order_type;
  std::vector<std::string> names = sources_of(options);
  if (options.concat->order == order::name) std::stable_sort(names.begin(), names.end(), text::natural_less);
  if (options.concat->order != order::value) return names;
  std::vector<std::pair<long double, std::string>> keyed;
  for (const std::string& name : names) keyed.emplace_back(first_value(name, options), name);
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = keyed[i].second;
  return names;
}

}  // namespace zarrbits::verification
