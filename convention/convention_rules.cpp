// SPDX-License-Identifier: BSL-1.0
#include "convention/convention_rules.hpp"

#include "convention/anndata.hpp"
#include "convention/matlab.hpp"
#include "convention/netcdf.hpp"
#include "convention/nexus.hpp"
#include "convention/nwb.hpp"
#include "convention/pytables.hpp"

#include <algorithm>
#include <iterator>

namespace zarrbits::conventions {

namespace {

// The first convention that recognises a file wins: specific marks come before general ones.
constexpr convention_rules table[] = {anndata_rules, nwb_rules, nexus_rules, matlab_rules, pytables_rules, netcdf_rules};

}  // namespace

const convention_rules* find_convention(const hdf5::source_file& file, std::optional<zarrbits::convention> asked,
                                        const convention_rules* likely) {
  if (likely && !asked && likely->recognise(file)) return likely;
  const auto* const found = std::find_if(std::begin(table), std::end(table), [&](const convention_rules& r) {
    return asked ? r.which == *asked : r.recognise(file);
  });
  H5Eclear2(H5E_DEFAULT);
  return found == std::end(table) ? nullptr : found;
}

std::string convention_hint(const hdf5::source_file& file) {
  const std::string name = cf_attribute(file);
  if (name.empty()) return "";
  return "\"" + file.path() + "\" is not marked with a convention, but has attributes of the CF conventions, such as \"" + name +
         "\": with `convention` netcdf, xarray reads the store as it reads the file";
}

void arrange(hdf5::source_file& file, const convention_rules* rules) {
  if (!rules) return;
  if (rules->reserved_names) file.keep_reserved_names();
  if (rules->arrange) rules->arrange(file);
}

}  // namespace zarrbits::conventions
