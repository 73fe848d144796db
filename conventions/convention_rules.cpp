// SPDX-License-Identifier: BSL-1.0
#include "conventions/convention_rules.hpp"

#include "conventions/anndata.hpp"
#include "conventions/matlab.hpp"
#include "conventions/netcdf.hpp"
#include "conventions/nexus.hpp"
#include "conventions/nwb.hpp"
#include "conventions/pytables.hpp"

#include <algorithm>
#include <iterator>

namespace zarrbits::conventions {

namespace {

// The first convention that recognises a file wins: specific marks come before general ones.
constexpr convention_rules table[] = {anndata_rules, nwb_rules, nexus_rules, matlab_rules, pytables_rules, netcdf_rules};

}  // namespace

const convention_rules* find_convention(const hdf5::source_file& file, std::optional<zarrbits::convention> requested,
                                        const convention_rules* likely) {
  if (likely && !requested && likely->recognise(file)) return likely;
  const auto* const entry = std::find_if(std::begin(table), std::end(table), [&](const convention_rules& r) {
    return requested ? r.kind == *requested : r.recognise(file);
  });
  H5Eclear2(H5E_DEFAULT);
  return entry == std::end(table) ? nullptr : entry;
}

std::string convention_hint(const hdf5::source_file& file) {
  const std::string name = cf_attribute(file);
  if (name.empty()) return "";
  return "\"" + file.path() + "\" is not marked with a convention, but has attributes of the CF conventions, such as \"" + name +
         "\": with `convention` netcdf, xarray reads the store as it reads the file";
}

void override_schema(hdf5::source_file& file, const convention_rules* rules) {
  if (!rules) return;
  if (rules->reserved_names) file.keep_reserved_names();
  if (rules->override_schema) rules->override_schema(file);
}

}  // namespace zarrbits::conventions
