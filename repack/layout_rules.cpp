// SPDX-License-Identifier: BSL-1.0
#include "repack/layout_rules.hpp"

#include "hdf5/attributes.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/selection.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace zarrbits::repacking {

namespace {

// Cloud-optimised HDF5: https://guide.cloudnativegeo.org/cloud-optimized-netcdf4-hdf5/
constexpr std::uint64_t max_chunk_bytes = 16U << 20, max_metadata_bytes = 8U << 20;
constexpr std::uint64_t hdf5_chunk_limit = std::numeric_limits<std::uint32_t>::max();
constexpr unsigned archive_level = 4;  // of deflate

std::uint64_t chunk_bytes_of(const array::extents& chunk, std::uint64_t element) {
  return array::saturating_mul(array::product(chunk), element);
}

// What one more step along the first dimension adds.
std::uint64_t row_bytes_of(const array::extents& chunk, std::uint64_t element) {
  return chunk.size() < 2 ? 0 : chunk_bytes_of({chunk.begin() + 1, chunk.end()}, element);
}

// A chunk that has as many whole rows as fit is large enough.
bool is_large_enough(const array::extents& chunk, std::uint64_t element, std::uint64_t wanted) {
  return chunk_bytes_of(chunk, element) >= wanted - std::min(wanted, row_bytes_of(chunk, element));
}

// A chunk of so many bytes: longer along the first dimension, and along the next ones only where that is not enough.
array::extents larger_chunk(array::extents chunk, const array::extents& dims, std::uint64_t element, std::uint64_t wanted) {
  const std::uint64_t rows = wanted / std::max<std::uint64_t>(chunk_bytes_of(chunk, element) / chunk[0], 1);
  if (rows > chunk[0]) chunk[0] = std::max(chunk[0], std::min(rows, dims[0]));
  for (std::size_t d = 1; d < chunk.size() && chunk[0] >= dims[0] && !is_large_enough(chunk, element, wanted); ++d) {
    const std::uint64_t step = std::max<std::uint64_t>(chunk_bytes_of(chunk, element) / chunk[d], 1);
    chunk[d] = std::max(chunk[d], std::min(dims[d], wanted / step + (wanted % step != 0)));
  }
  return chunk;
}

// A chunk of at most so many bytes: shorter along the first dimensions.
array::extents smaller_chunk(array::extents chunk, std::uint64_t element, std::uint64_t max_bytes) {
  for (std::uint64_t& length : chunk) {
    const std::uint64_t step = chunk_bytes_of(chunk, element) / length;
    if (chunk_bytes_of(chunk, element) > max_bytes)
      length = std::max<std::uint64_t>(max_bytes / std::max<std::uint64_t>(step, 1), 1);
  }
  return chunk;
}

std::string describe_chunks(const dataset_layout& l) {
  if (l.layout == H5D_CONTIGUOUS) return "contiguous";
  if (l.layout != H5D_CHUNKED) return "not in chunks";
  return text::pluralize(l.chunks, "chunk") + " of " + array::joined_text(l.chunk) + " (" +
         text::format_bytes(chunk_bytes_of(l.chunk, l.element_bytes)) + ")";
}

std::vector<hdf5::filter> archive_filters(std::uint64_t element) {
  std::vector<hdf5::filter> filters;
  if (element > 1) filters.push_back({H5Z_FILTER_SHUFFLE, {static_cast<unsigned>(element)}, "shuffle"});
  filters.push_back({H5Z_FILTER_DEFLATE, {archive_level}, "deflate"});
  filters.push_back({H5Z_FILTER_FLETCHER32, {}, "fletcher32"});
  return filters;
}

// The three datasets that CMIP7's rules name; null: the file has no such one.
struct archive_datasets {
  const tree_object *time = nullptr, *bounds = nullptr, *data = nullptr;
};

const tree_object* dataset_at(const opened_contents& source, const std::string& path) {
  const tree_object* const o = source.tree.find(path);
  return o && o->kind == H5I_DATASET ? o : nullptr;
}

// The dataset that an attribute of the object names.
const tree_object* dataset_named_by(const opened_contents& source, const tree_object& o, const char* attribute) {
  const hdf5::handle object = open_object(source.file.file(), o);
  if (H5Aexists(object, attribute) <= 0) return nullptr;
  const std::vector<std::string> names = hdf5::text_attribute(object, attribute);
  return names.size() == 1 ? dataset_at(source, "/" + names[0]) : nullptr;
}

archive_datasets find_archive_datasets(const opened_contents& source) {
  archive_datasets result;
  result.time = dataset_at(source, "/time");
  if (result.time) result.bounds = dataset_named_by(source, *result.time, "bounds");
  result.data = dataset_named_by(source, source.tree.objects[0], "variable_id");
  return result;
}

bool has_several_chunks(const dataset_layout& l) { return l.layout == H5D_CHUNKED && l.chunks > 1; }

layout_finding check_one_chunk(const opened_contents& source, const tree_object& o, const char* rule) {
  const dataset_layout& l = source.contents.datasets.at(o.address);
  return {text::escape_name(o.path), rule, describe_chunks(l), "one chunk, or contiguous", !has_several_chunks(l), true};
}

std::string at_byte(std::uint64_t address) { return "at byte " + std::to_string(address); }

layout_finding check_metadata(const file_contents& c) {
  const std::uint64_t first = c.first_value();
  const bool is_first = c.last_metadata < first;
  return {"/",
          "metadata",
          is_first ? "before all values" : "the last piece " + at_byte(c.last_metadata) + ", the first value " + at_byte(first),
          "before all values",
          is_first,
          true};
}

layout_finding check_indexes(const opened_contents& source) {
  const std::uint64_t first = source.contents.first_chunk();
  for (const tree_object& o : source.tree.objects) {
    const auto l = source.contents.datasets.find(o.address);
    if (l == source.contents.datasets.end() || l->second.chunks == 0 || l->second.last_index < first) continue;
    return {"/",
            "index",
            "that of \"" + text::escape_name(o.path) + "\" ends " + at_byte(l->second.last_index) + ", the first chunk is " +
                at_byte(first),
            "before all chunks",
            false,
            true};
  }
  return {"/", "index", "before all chunks", "before all chunks", true, true};
}

bool is_paged(const hdf5::source_file& file) {
  const hdf5::handle properties(H5Fget_create_plist(file.file()), "get the properties of the file");
  H5F_fspace_strategy_t strategy = H5F_FSPACE_STRATEGY_FSM_AGGR;
  hbool_t persist = false;
  hsize_t threshold = 0;
  hdf5::check(H5Pget_file_space_strategy(properties, &strategy, &persist, &threshold), "get the strategy of the file's space");
  return strategy == H5F_FSPACE_STRATEGY_PAGE;
}

// Values of variable length are outside of their chunks.
bool has_chunk_rule(const dataset_layout& l) { return has_several_chunks(l) && !l.linked_values; }

// Where no rule names filters, chunks of other shapes keep theirs, or get those that each reader has.
std::optional<std::vector<hdf5::filter>> filters_for_other_chunks(const dataset_layout& l) {
  if (l.linked_values || l.can_encode) return {};
  std::vector<hdf5::filter> filters = archive_filters(l.element_bytes);
  filters.pop_back();
  return filters;
}

std::vector<layout_finding> check_cloud(const opened_contents& source) {
  std::vector<layout_finding> findings{check_metadata(source.contents)};
  findings.push_back({"/", "metadata_bytes", text::format_bytes(source.contents.last_metadata),
                      "at most " + text::format_bytes(max_metadata_bytes), source.contents.last_metadata <= max_metadata_bytes,
                      true});
  const bool paged = is_paged(source.file), has_block = source.file.user_block_size() > 0;
  findings.push_back({"/", "pages",
                      paged       ? "pages"
                      : has_block ? "no pages, but a user block"
                                  : "no pages",
                      "pages, or a user block", paged || has_block, true});
  for (const tree_object& o : source.tree.objects) {
    const auto l = source.contents.datasets.find(o.address);
    if (l == source.contents.datasets.end() || !has_chunk_rule(l->second)) continue;
    const bool met = is_large_enough(l->second.chunk, l->second.element_bytes, min_chunk_bytes) &&
                     chunk_bytes_of(l->second.chunk, l->second.element_bytes) <= max_chunk_bytes;
    findings.push_back({text::escape_name(o.path), "chunk_bytes", describe_chunks(l->second),
                        text::format_bytes(min_chunk_bytes) + " to " + text::format_bytes(max_chunk_bytes) + ", or one chunk",
                        met, true});
  }
  return findings;
}

std::vector<layout_finding> check_cmip7(const opened_contents& source) {
  std::vector<layout_finding> findings{check_indexes(source), check_metadata(source.contents)};
  findings.back().required = false;  // the archives look at the indexes alone
  const archive_datasets d = find_archive_datasets(source);
  if (d.time) findings.push_back(check_one_chunk(source, *d.time, "time_chunks"));
  if (d.bounds) findings.push_back(check_one_chunk(source, *d.bounds, "bounds_chunks"));
  if (!d.data) return findings;
  const dataset_layout& l = source.contents.datasets.at(d.data->address);
  const tree_object* const last = d.bounds ? d.bounds : d.time;
  findings.push_back({text::escape_name(d.data->path), "data_chunks", describe_chunks(l),
                      "at least " + text::format_bytes(min_chunk_bytes) + " less one row, or one chunk, or contiguous",
                      !has_several_chunks(l) || is_large_enough(l.chunk, l.element_bytes, min_chunk_bytes),
                      // the archives look at the data of files whose times are in chunks
                      last && source.contents.datasets.at(last->address).layout == H5D_CHUNKED});
  return findings;
}

void plan_cloud(const opened_contents& source, const repack_options& options, dataset_changes& changes) {
  for (const auto& [address, l] : source.contents.datasets) {
    if (!has_chunk_rule(l) || !l.can_decode) continue;
    array::extents chunk = l.chunk;
    if (!is_large_enough(chunk, l.element_bytes, options.chunk_bytes))
      chunk = larger_chunk(chunk, l.dims, l.element_bytes, options.chunk_bytes);
    else chunk = smaller_chunk(chunk, l.element_bytes, std::max(max_chunk_bytes, options.chunk_bytes));
    if (chunk != l.chunk) changes[address] = {chunk, filters_for_other_chunks(l), "chunk_bytes"};
  }
}

void plan_one_chunk(const opened_contents& source, const tree_object& o, const char* rule, dataset_changes& changes) {
  const dataset_layout& l = source.contents.datasets.at(o.address);
  if (!has_several_chunks(l) || !(l.linked_values || l.can_decode)) return;
  dataset_change change{l.dims, {}, rule};
  if (chunk_bytes_of(change.chunk, l.element_bytes) > hdf5_chunk_limit)
    throw error(errc::unsupported,
                "dataset \"" + text::escape_name(o.path) + "\" of \"" + source.file.path() +
                    "\" cannot be in one chunk: HDF5's chunks have at most 4 GiB",
                {source.file.path(), o.path});
  if (!l.linked_values) change.filters = archive_filters(l.element_bytes);
  changes[o.address] = change;
}

void plan_cmip7(const opened_contents& source, const repack_options& options, dataset_changes& changes) {
  const archive_datasets d = find_archive_datasets(source);
  if (d.time) plan_one_chunk(source, *d.time, "time_chunks", changes);
  if (d.bounds) plan_one_chunk(source, *d.bounds, "bounds_chunks", changes);
  if (!d.data) return;
  const dataset_layout& l = source.contents.datasets.at(d.data->address);
  if (!has_several_chunks(l) || !(l.linked_values || l.can_decode) ||
      is_large_enough(l.chunk, l.element_bytes, options.chunk_bytes))
    return;
  dataset_change change{larger_chunk(l.chunk, l.dims, l.element_bytes, options.chunk_bytes), {}, "data_chunks"};
  if (change.chunk == l.chunk) return;
  if (!l.linked_values) change.filters = archive_filters(l.element_bytes);
  changes[d.data->address] = change;
}

// An option "PATTERN=VALUE", or "VALUE" for all.
struct pattern_value {
  std::optional<text::path_pattern> pattern;
  std::string value;
};

pattern_value split_pattern(const std::string& option) {
  const std::size_t equals = option.rfind('=');
  if (equals == std::string::npos) return {{}, option};
  return {text::path_pattern(option.substr(0, equals)), option.substr(equals + 1)};
}

[[noreturn]] void refuse_option(const char* member, const std::string& text, const std::string& reason) {
  throw error(errc::invalid_option, std::string("`") + member + "` has \"" + text + "\", " + reason);
}

// A length of -1 is 0 here.
array::extents parse_chunk(const std::string& option, const std::string& text) {
  array::extents chunk;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("x,", begin), text.size());
    std::int64_t length = 0;
    const auto [last, fault] = std::from_chars(text.data() + begin, text.data() + end, length);
    if (fault != std::errc() || last != text.data() + end || length == 0 || length < -1)
      refuse_option("chunks", option, "which is not a pattern and a shape, such as /a/b=64x64 or /v=24x-1x-1");
    chunk.push_back(length == -1 ? 0 : static_cast<std::uint64_t>(length));
    begin = end + 1;
  }
  return chunk;
}

std::vector<hdf5::filter> parse_filters(const std::string& option, const std::string& text, std::uint64_t element) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool is_zstd = name == "zstd";
  if (name == "none" && colon == std::string::npos) return {};
  unsigned level = is_zstd ? 3 : archive_level;
  const unsigned max_level = is_zstd ? 22 : 9;
  bool is_valid = is_zstd || name == "deflate";
  if (is_valid && colon != std::string::npos) {
    const auto [last, fault] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), level);
    is_valid = fault == std::errc() && last == text.data() + text.size() && level >= 1 && level <= max_level;
  }
  if (!is_valid) refuse_option("filters", option, "which is not one of none, deflate:1 to deflate:9, and zstd:1 to zstd:22");
  std::vector<hdf5::filter> filters;
  if (element > 1) filters.push_back({H5Z_FILTER_SHUFFLE, {static_cast<unsigned>(element)}, "shuffle"});
  if (is_zstd) filters.push_back({hdf5::zstd_filter, {level}, "zstd"});
  else filters.push_back({H5Z_FILTER_DEFLATE, {level}, "deflate"});
  return filters;
}

array::extents chunk_of_option(const dataset_layout& l, const array::extents& requested, const std::string& option,
                               const tree_object& o, const hdf5::source_file& file) {
  const auto refuse = [&](const std::string& reason) {
    throw error(
        errc::no_match,
        "`chunks` has \"" + option + "\", but dataset \"" + text::escape_name(o.path) + "\" of \"" + file.path() + "\" " + reason,
        {file.path(), o.path});
  };
  if (l.layout == H5D_VIRTUAL) refuse("is virtual: its chunks are those of other datasets");
  if (l.dims.empty()) refuse("has no dimensions");
  if (requested.size() != l.dims.size()) refuse("has " + text::pluralize(l.dims.size(), "dimension"));
  array::extents chunk = requested;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    if (chunk[d] == 0) chunk[d] = std::max<std::uint64_t>(l.dims[d], 1);
    chunk[d] = std::min(chunk[d], std::max<std::uint64_t>(l.max_dims[d], 1));  // HDF5 allows no more
  }
  if (chunk_bytes_of(chunk, l.element_bytes) > hdf5_chunk_limit)
    refuse("would have chunks of " + text::format_bytes(chunk_bytes_of(chunk, l.element_bytes)) +
           ", and HDF5's have at most 4 GiB");
  return chunk;
}

}  // namespace

bool are_same_filters(const std::vector<hdf5::filter>& a, const std::vector<hdf5::filter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const hdf5::filter& x, const hdf5::filter& y) { return x.id == y.id && x.values == y.values; });
}

std::vector<layout_finding> check_rules(const opened_contents& source, const repack_options& options) {
  switch (options.layout) {
    case file_layout::cloud: return check_cloud(source);
    case file_layout::cmip7: return check_cmip7(source);
    case file_layout::asis: break;
  }
  return {check_metadata(source.contents)};
}

dataset_changes plan_changes(const opened_contents& source, const repack_options& options) {
  dataset_changes changes;
  if (options.layout == file_layout::cloud) plan_cloud(source, options, changes);
  if (options.layout == file_layout::cmip7) plan_cmip7(source, options, changes);
  const auto for_each_match = [&](const char* member, const std::string& option, const pattern_value& value, const auto& visit) {
    bool is_matched = !value.pattern;
    for (const tree_object& o : source.tree.objects) {
      if (o.kind != H5I_DATASET || (value.pattern && !value.pattern->matches(text::escape_name(o.path)))) continue;
      is_matched = true;
      visit(o, source.contents.datasets.at(o.address));
    }
    if (!is_matched)
      throw error(errc::no_match,
                  std::string("`") + member + "` has \"" + option + "\", which no dataset of \"" + source.file.path() +
                      "\" matches; \"zarrbits inspect\" lists them",
                  {source.file.path()});
  };
  for (const std::string& option : options.chunks) {
    const pattern_value value = split_pattern(option);
    const array::extents requested = parse_chunk(option, value.value);
    for_each_match("chunks", option, value, [&](const tree_object& o, const dataset_layout& l) {
      const array::extents chunk = chunk_of_option(l, requested, option, o, source.file);
      dataset_change& change = changes[o.address];
      change.chunk = chunk == l.chunk ? array::extents() : chunk;
      change.reason = "chunks";
    });
  }
  for (const std::string& option : options.filters) {
    const pattern_value value = split_pattern(option);
    std::string unfiltered;  // a dataset that cannot be
    bool is_applied = false;
    for_each_match("filters", option, value, [&](const tree_object& o, const dataset_layout& l) {
      std::vector<hdf5::filter> filters = parse_filters(option, value.value, l.element_bytes);
      dataset_change& change = changes[o.address];
      const bool is_chunked = l.layout == H5D_CHUNKED || !change.chunk.empty();
      if (!is_chunked && value.pattern)
        throw error(errc::no_match,
                    "`filters` has \"" + option + "\", but dataset \"" + text::escape_name(o.path) + "\" of \"" +
                        source.file.path() + "\" has no chunks; choose their shape with `chunks`",
                    {source.file.path(), o.path});
      if (!l.can_be_filtered && !filters.empty()) {
        unfiltered = o.path;
        return;
      }
      is_applied = true;
      if (!is_chunked) return;
      change.filters = std::move(filters);
      change.has_chosen_filters = true;
      change.reason = change.chunk.empty() ? "filters" : change.reason;
      if (change.chunk.empty() && !l.filters.partial_unfiltered && are_same_filters(l.filters.filters, *change.filters))
        change.filters.reset();
    });
    if (value.pattern && !is_applied)
      throw error(errc::no_match,
                  "`filters` has \"" + option + "\", but dataset \"" + text::escape_name(unfiltered) + "\" of \"" +
                      source.file.path() + "\" has values of variable length, which HDF5 does not filter; leave the option out",
                  {source.file.path(), unfiltered});
  }
  std::erase_if(changes, [](const auto& entry) { return !entry.second; });
  return changes;
}

}  // namespace zarrbits::repacking
