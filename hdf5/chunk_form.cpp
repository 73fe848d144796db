// SPDX-License-Identifier: BSL-1.0
#include "hdf5/chunk_form.hpp"

#include "hdf5/filters.hpp"
#include "hdf5/type_description.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits::hdf5 {

std::string fill_bytes(hid_t creation_properties, hid_t type) {
  if (holds_references(describe_type(type))) return {};
  std::string fill(H5Tget_size(type), '\0');
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  const bool is_defined = H5Pfill_value_defined(creation_properties, &status) >= 0 && status != H5D_FILL_VALUE_UNDEFINED &&
                          H5Pget_fill_value(creation_properties, type, fill.data()) >= 0;
  H5Eclear2(H5E_DEFAULT);
  return is_defined ? fill : std::string();
}

std::string chunk_form(hid_t creation_properties, hid_t type) {
  const pipeline filters = read_pipeline(creation_properties);
  text::json text = text::json::array({static_cast<int>(H5Pget_layout(creation_properties)), filters.partial_unfiltered});
  for (const filter& f : filters.filters)
    text.push_back(f.id == H5Z_FILTER_DEFLATE ? text::json::array({f.id}) : text::json::array({f.id, f.values}));
  text.push_back(text::base64(fill_bytes(creation_properties, type)));
  return text::json_text(text);
}

}  // namespace zarrbits::hdf5
