// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/file_order.hpp"

#include "convert/concat/cf_encoding.hpp"
#include "hdf5/source_dataset.hpp"
#include "text/natural_order.hpp"
#include "text/node_names.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::conversion {

namespace {

// The meaning of the first value of the dimension's variable that is not missing.
long double first_value(const std::string& source, const std::string& dimension, const hdf5::source_options& open_options) {
  const source_name name = split_source(source);
  hdf5::source_file file(name.file, open_options);
  file.walk(true, name.object);
  std::optional<long double> value;
  for (const hdf5::source_object& o : file.objects()) {
    if (o.kind != hdf5::source_object::kind_type::dataset || text::base_name(o.store_path) != dimension || value) continue;
    const auto reason = hdf5::skip_reason([&] {
      const hdf5::source_dataset data(file, o);
      const cf_encoding terms = read_cf_encoding(data.dataset);
      if (data.dims.size() != 1 || terms.kind.size == 0) return;
      if (const std::string factor = unreadable_packing_attribute(terms); !factor.empty())
        throw hdf5::unsupported_dataset("its \"" + factor + "\" is not a single number that can be read exactly");
      constexpr std::uint64_t block_length = 4096;
      for (std::uint64_t first = 0; first < data.dims[0] && !value; first += block_length) {
        const std::uint64_t count = std::min(block_length, data.dims[0] - first);
        compressors::buffer bytes(static_cast<std::size_t>(count) * sizeof(double));
        data.read_block(H5T_NATIVE_DOUBLE, sizeof(double), {first}, {count}, {count}, bytes);
        for (std::size_t i = 0; i < count && !value; ++i) {
          double stored = 0;
          std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
          value = meaning(terms, stored);
        }
      }
    });
    if (reason)
      throw zarrbits::error(errc::damaged_source, "\"" + o.path + "\" of \"" + source + "\" cannot be read: " + *reason,
                            {source, o.path});
  }
  if (!value) {
    throw zarrbits::error(errc::no_match,
                          "\"" + source + "\" has no variable \"" + dimension +
                              "\" with a first value, by which the files were to be ordered; set another `order`",
                          {source, dimension});
  }
  return *value;
}

}  // namespace

std::vector<std::string> given_sources(const std::string& first, const std::optional<concatenation>& concat) {
  std::vector<std::string> names{first};
  if (concat) names.insert(names.end(), concat->sources.begin(), concat->sources.end());
  return names;
}

std::vector<std::string> ordered_sources(const convert_options& options, const hdf5::source_options& open_options) {
  using order = concatenation::order_type;
  std::vector<std::string> names = given_sources(options.source, options.concat);
  if (options.concat->order == order::name) std::stable_sort(names.begin(), names.end(), text::natural_less);
  if (options.concat->order != order::value) return names;
  std::vector<std::pair<long double, std::string>> keyed_names;
  for (std::string& name : names) {
    const long double value = first_value(name, options.concat->dimension, open_options);
    keyed_names.emplace_back(value, std::move(name));
  }
  std::stable_sort(keyed_names.begin(), keyed_names.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed_names.begin(), keyed_names.end(), names.begin(), [](auto& each) { return std::move(each.second); });
  return names;
}

}  // namespace zarrbits::conversion
