// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/file_order.hpp"

#include "convert/concat/cf_encoding.hpp"
#include "hdf5/source_dataset.hpp"
#include "text/node_names.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zarrbits::conversion {

// The meaning of the first value of the dimension's variable that is not missing.
long double first_value_of_file(const std::string& source, const std::string& dimension,
                                const hdf5::source_options& open_options) {
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
        throw hdf5::unsupported_dataset(reason_code::unsupported_type,
                                        "its \"" + factor + "\" is not a single number that can be read exactly");
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
      throw zarrbits::error(errc::damaged_source, "\"" + o.path + "\" of \"" + source + "\" cannot be read: " + reason->sentence,
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

}  // namespace zarrbits::conversion
