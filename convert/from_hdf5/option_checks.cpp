// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/option_checks.hpp"

#include "convert/plan/dimension_chunks.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "text/format.hpp"
#include "text/selection.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::conversion {

namespace {

using dataset_visitor = std::function<bool(const hdf5::source_object&, hid_t)>;

// Until `visit` returns true; false if it never does. Datasets that cannot be opened are reported when they are converted.
bool any_dataset(const hdf5::source_file& source, const dataset_visitor& visit) {
  for (const hdf5::source_object& o : source.objects()) {
    if (o.kind != hdf5::source_object::kind_type::dataset) continue;
    bool has_match = false;
    hdf5::skip_reason([&] { has_match = visit(o, source.open(o)); });
    H5Eclear2(H5E_DEFAULT);
    if (has_match) return true;
  }
  return false;
}

std::size_t rank_of(const hdf5::source_object& o, hid_t dataset) {
  const hdf5::handle space(H5Dget_space(dataset), "tell the dataspace");
  return hdf5::extent(space).size() + (o.overrides.new_dimension.empty() ? 0 : 1);
}

void require_rank(const hdf5::source_file& source, const char* option, const std::vector<std::uint64_t>& shape) {
  if (shape.empty()) return;
  std::set<std::size_t> ranks;
  const bool has_match = any_dataset(source, [&](const hdf5::source_object& o, hid_t dataset) {
    const std::size_t rank = rank_of(o, dataset);
    ranks.insert(rank);
    return rank == shape.size();
  });
  if (has_match || ranks.empty()) return;
  std::string text, rank_list;
  for (const std::uint64_t n : shape) text += (text.empty() ? "" : "x") + std::to_string(n);
  for (const std::size_t n : ranks)
    rank_list += (rank_list.empty() ? "" : n == *ranks.rbegin() ? " and " : ", ") + std::to_string(n);
  throw zarrbits::error(errc::no_match, std::string(option) + " " + text + " has " + text::pluralize(shape.size(), "dimension") +
                                            ", but the datasets have " + rank_list + "; \"zarrbits inspect\" lists their shapes");
}

bool has_integers(hid_t dataset) {
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype");
  return H5Tdetect_class(type, H5T_INTEGER) > 0 || H5Tdetect_class(type, H5T_ENUM) > 0 || H5Tdetect_class(type, H5T_BITFIELD) > 0;
}

}  // namespace

void require_applicable_options(const hdf5::source_file& source, const convert_options& options) {
  const auto is_virtual = [](const hdf5::source_object&, hid_t dataset) {
    return H5Pget_layout(hdf5::handle(H5Dget_create_plist(dataset), "get the properties")) == H5D_VIRTUAL;
  };
  if (options.encoding.grid == grid_type::rectilinear && !options.source.concat && !any_dataset(source, is_virtual))
    throw zarrbits::error(errc::invalid_option,
                          "the `grid` rectilinear is for arrays that are joined from several files, and no dataset of \"" +
                              source.path() + "\" is; use `concat`, or remove `grid`",
                          {source.path()});
  require_rank(source, "`chunk`", options.encoding.chunk);
  if (options.encoding.shard) require_rank(source, "`shard`", options.encoding.shard->shape);
  if (!options.encoding.chunk_along.empty()) {
    dimension_chunks_check check(options.encoding.chunk_along);
    any_dataset(source, [&](const hdf5::source_object& o, hid_t dataset) {
      check.add(o.path, hdf5::dimension_namer(source).known_names(o, dataset, rank_of(o, dataset)));
      return false;
    });
    check.require_all_matched();
  }
  for (const auto& of : options.encoding.bits_of) {
    text::selection one({of.pattern}, {});
    bool matches = false;
    const bool has_match = any_dataset(source, [&](const hdf5::source_object& o, hid_t dataset) {
      if (!one.matches(o.path)) return false;
      matches = true;
      return has_integers(dataset);
    });
    if (!has_match) {
      throw zarrbits::error(errc::no_match, "`bits` \"" + of.pattern + "\" matches no dataset" + (matches ? " of integers" : "") +
                                                "; \"zarrbits inspect\" lists them");
    }
  }
}

}  // namespace zarrbits::conversion
