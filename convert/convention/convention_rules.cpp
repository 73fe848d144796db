// SPDX-License-Identifier: BSL-1.0
#include "convert/convention/convention_rules.hpp"

#include "convert/convention/anndata.hpp"
#include "convert/convention/matlab.hpp"
#include "convert/convention/netcdf.hpp"
#include "convert/convention/nexus.hpp"
#include "convert/convention/nwb.hpp"
#include "convert/convention/pytables.hpp"

#include <algorithm>
#include <iterator>

namespace zarrbits::conversion {

namespace {

// The first convention that recognises a file wins: specific marks come before general ones.
constexpr convention_rules table[] = {anndata_rules, nwb_rules, nexus_rules, matlab_rules, pytables_rules, netcdf_rules};

}  // namespace

const convention_rules* find_convention(const source_file& file, std::optional<zarrbits::convention> asked,
                                        const convention_rules* likely) {
  if (likely && !asked && likely->recognise(file)) return likely;
  const auto* const found = std::find_if(std::begin(table), std::end(table), [&](const convention_rules& r) {
    return asked ? r.which == *asked : r.recognise(file);
  });
  H5Eclear2(H5E_DEFAULT);
  return found == std::end(table) ? nullptr : found;
}

std::string convention_hint(const source_file& file) {
  const std::string name = cf_attribute(file);
  if (name.empty()) return "";
  return "\"" + file.path() + "\" is not marked with a convention, but has attributes of the CF conventions, such as \"" + name +
         "\": with `convention` netcdf, xarray reads the store as it reads the file";
}

void arrange(source_file& file, const convention_rules* rules) {
  if (!rules) return;
  if (rules->reserved_names) file.keep_reserved_names();
  if (rules->arrange) rules->arrange(file);
}

}  // namespace zarrbits::conversion
