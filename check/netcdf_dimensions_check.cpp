// SPDX-License-Identifier: BSL-1.0
#include "check/netcdf_dimensions_check.hpp"

#include "hdf5/dimensions.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::checking {

namespace {

constexpr std::uint64_t max_entries = 1U << 20;  // of an attribute

struct dataset_dimensions {
  const hdf5::source_object* object = nullptr;
  array::extents shape;
  bool is_scale = false, is_plain_dimension = false;                        // a dimension of netCDF without a variable
  std::vector<std::vector<const hdf5::source_object*>> scales;              // of each dimension; null: leads to nothing
  std::set<std::pair<const hdf5::source_object*, std::size_t>> references;  // REFERENCE_LIST: dataset and dimension
  bool has_references = false;
  std::optional<std::int64_t> dimension_id;
  std::vector<std::int64_t> coordinates;
};

std::vector<std::int64_t> read_integers(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const hdf5::handle attribute(H5Aopen(object, name, H5P_DEFAULT), "open an attribute");
  const hdf5::handle type(H5Aget_type(attribute), "get a type"), space(H5Aget_space(attribute), "get a dataspace");
  const std::uint64_t count = array::product(hdf5::extent(space));
  if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_type(space) == H5S_NULL || count > max_entries)
    throw hdf5::failure(std::string(name) + " is not a short list of integers");
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  hdf5::check(H5Aread(attribute, H5T_NATIVE_INT64, values.data()), "read an attribute");
  return values;
}

// The datasets that a scale says it is attached to, and the dimension of each.
void read_references(const hdf5::source_file& source, hid_t scale, dataset_dimensions& d) {
  constexpr const char* name = "REFERENCE_LIST";
  if (H5Aexists(scale, name) <= 0) return;
  const hdf5::handle attribute(H5Aopen(scale, name, H5P_DEFAULT), "open REFERENCE_LIST");
  const hdf5::handle type(H5Aget_type(attribute), "get a type"), space(H5Aget_space(attribute), "get a dataspace");
  const std::uint64_t count = array::product(hdf5::extent(space));
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2 || count > max_entries)
    throw hdf5::failure("REFERENCE_LIST is not a list of datasets and dimensions");
  struct entry {
    hobj_ref_t dataset;
    int dimension;
  };
  const hdf5::handle memory(H5Tcreate(H5T_COMPOUND, sizeof(entry)), "create a type");
  const std::string names[] = {hdf5::member_name(type, 0), hdf5::member_name(type, 1)};
  hdf5::check(H5Tinsert(memory, names[0].c_str(), HOFFSET(entry, dataset), H5T_STD_REF_OBJ), "create a type");
  hdf5::check(H5Tinsert(memory, names[1].c_str(), HOFFSET(entry, dimension), H5T_NATIVE_INT), "create a type");
  std::vector<entry> entries(static_cast<std::size_t>(count));
  if (count > 0) hdf5::check(H5Aread(attribute, memory, entries.data()), "read REFERENCE_LIST");
  d.has_references = true;
  for (const entry& e : entries)
    d.references.emplace(source.target(scale, &e.dataset, H5R_OBJECT), static_cast<std::size_t>(e.dimension));
}

class dimensions_check {
 public:
  dimensions_check(const hdf5::source_file& source, finding_list& findings) : source_(source), findings_(findings) {}

  void run() {
    for (const hdf5::source_object& o : source_.objects()) {
      if (o.kind != hdf5::source_object::kind_type::dataset) continue;
      try {
        read(o);
      } catch (const hdf5::failure& e) {
        add(finding_severity::problem, o, e.what());
      }
    }
    for (const auto& [object, d] : datasets_) {
      check_scales(d);
      check_references(d);
      check_ids(d);
    }
  }

 private:
  void add(finding_severity severity, const hdf5::source_object& o, const std::string& reason) {
    findings_.add({severity, "netcdf", o.path, "", reason});
  }

  void read(const hdf5::source_object& o) {
    const hdf5::handle dataset = source_.open(o);
    dataset_dimensions d;
    d.object = &o;
    const hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
    if (H5Sget_simple_extent_type(space) == H5S_SIMPLE) d.shape = hdf5::extent(space);
    d.is_scale = hdf5::is_dimension_scale(dataset);
    d.is_plain_dimension = hdf5::is_dimension_without_variable(dataset);
    for (const auto& references : hdf5::dimension_scales(dataset, d.shape.size())) {
      auto& list = d.scales.emplace_back();
      for (const hobj_ref_t& reference : references) list.push_back(source_.target(dataset, &reference, H5R_OBJECT));
    }
    if (H5Aexists(dataset, "DIMENSION_LIST") > 0 && d.scales.empty() && !d.shape.empty())
      add(finding_severity::notice, o, "DIMENSION_LIST is not a list of references for each of its dimensions, as netCDF has it");
    read_references(source_, dataset, d);
    if (const auto ids = read_integers(dataset, "_Netcdf4Dimid"); !ids.empty()) d.dimension_id = ids.front();
    d.coordinates = read_integers(dataset, "_Netcdf4Coordinates");
    if (d.is_scale && d.dimension_id) {
      const auto [entry, is_new] = by_id_.try_emplace(*d.dimension_id, &o);
      if (!is_new)
        add(finding_severity::problem, o,
            "_Netcdf4Dimid is " + std::to_string(*d.dimension_id) + ", as that of \"" + entry->second->path + "\" is");
    }
    datasets_.emplace(&o, std::move(d));
  }

  // DIMENSION_LIST: each reference leads to a scale, and the scale knows of it.
  void check_scales(const dataset_dimensions& d) {
    for (std::size_t i = 0; i < d.scales.size(); ++i) {
      for (const hdf5::source_object* target : d.scales[i]) {
        const std::string dimension = "dimension " + std::to_string(i);
        const auto entry = datasets_.find(target);
        if (!target || entry == datasets_.end()) {
          add(finding_severity::problem, *d.object, "DIMENSION_LIST of " + dimension + " leads to no dataset");
          continue;
        }
        const dataset_dimensions& scale = entry->second;
        if (!scale.is_scale) {
          add(finding_severity::problem, *d.object,
              "DIMENSION_LIST of " + dimension + " leads to \"" + target->path + "\", which is not a dimension scale");
        } else if (!scale.references.contains({d.object, i})) {
          add(finding_severity::notice, *d.object,
              "its " + dimension + " has the scale \"" + target->path + "\", whose REFERENCE_LIST does not have it");
        }
        if (scale.is_scale && !scale.is_plain_dimension && scale.shape.size() == 1 && scale.shape[0] != d.shape[i])
          add(finding_severity::notice, *d.object,
              "its " + dimension + " has the length " + std::to_string(d.shape[i]) + ", and its scale \"" + target->path + "\" " +
                  std::to_string(scale.shape[0]));
      }
    }
  }

  void check_references(const dataset_dimensions& d) {
    for (const auto& [target, dimension] : d.references) {
      const auto entry = target ? datasets_.find(target) : datasets_.end();
      if (entry == datasets_.end()) {
        add(finding_severity::notice, *d.object, "REFERENCE_LIST leads to no dataset");
        continue;
      }
      const auto& scales = entry->second.scales;
      if (dimension >= scales.size() ||
          std::find(scales[dimension].begin(), scales[dimension].end(), d.object) == scales[dimension].end())
        add(finding_severity::notice, *d.object,
            "REFERENCE_LIST has dimension " + std::to_string(dimension) + " of \"" + target->path +
                "\", whose DIMENSION_LIST does not have it");
    }
  }

  void check_ids(const dataset_dimensions& d) {
    if (d.coordinates.empty()) return;
    if (d.coordinates.size() != d.shape.size()) {
      add(finding_severity::problem, *d.object,
          "_Netcdf4Coordinates has " + std::to_string(d.coordinates.size()) + " dimensions, and the dataset " +
              std::to_string(d.shape.size()));
      return;
    }
    for (std::size_t i = 0; i < d.coordinates.size(); ++i) {
      const auto entry = by_id_.find(d.coordinates[i]);
      const std::string id = std::to_string(d.coordinates[i]);
      if (entry == by_id_.end()) {
        add(finding_severity::problem, *d.object,
            "_Netcdf4Coordinates has the dimension " + id + ", which is _Netcdf4Dimid of no dimension");
      } else if (i < d.scales.size() && !d.scales[i].empty() &&
                 std::find(d.scales[i].begin(), d.scales[i].end(), entry->second) == d.scales[i].end()) {
        add(finding_severity::problem, *d.object,
            "_Netcdf4Coordinates of dimension " + std::to_string(i) + " leads to \"" + entry->second->path +
                "\", and DIMENSION_LIST to another one");
      }
    }
  }

  const hdf5::source_file& source_;
  finding_list& findings_;
  std::map<const hdf5::source_object*, dataset_dimensions> datasets_;
  std::map<std::int64_t, const hdf5::source_object*> by_id_;
};

}  // namespace

void check_netcdf_dimensions(const hdf5::source_file& source, finding_list& findings) {
  dimensions_check(source, findings).run();
}

}  // namespace zarrbits::checking
