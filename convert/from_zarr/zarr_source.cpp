// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/zarr_source.hpp"

#include "convert/concat/joined_parts.hpp"
#include "convert/from_zarr/join_stores.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "convert/plan/dimension_chunks.hpp"
#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "metadata/array_metadata.hpp"
#include "metadata/node.hpp"
#include "text/coordinates.hpp"
#include "text/format.hpp"
#include "text/memory_estimate.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/selection.hpp"
#include "text/sha256.hpp"
#include "text/warning.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

namespace zarrbits::conversion {

namespace {

// A target within the source would become a part of it.
void refuse_target_within(const convert_options& options, const std::string& source_name) {
  if (io::is_object_store(source_name) != io::is_object_store(options.target.name) || options.target.name.empty()) return;
  const auto place = [](const std::string& name) {
    std::error_code e;
    if (io::is_object_store(name)) return name;
    return text::strip_trailing_slashes(std::filesystem::weakly_canonical(std::filesystem::absolute(name), e).native());
  };
  const std::string source = place(split_source(source_name).file), target = place(options.target.name);
  if (io::may_be_within(target, source))
    throw error(errc::invalid_option,
                "\"" + options.target.name + "\" is the source, or in it; choose another place for the new store",
                {options.target.name});
}

}  // namespace

zarr_source::zarr_source(converter& run, convert_options& options) : run_(run), options_(options) {
  if (options_.source.concat) order_stores(options_);
}

void zarr_source::open(bool) {
  const bool is_open = !source_.nodes.empty();
  works_.clear();
  // the selection decides which arrays are joined
  if (is_open && !options_.source.concat) select_nodes(source_, options_);
  else source_ = read_nodes(options_, [&](const std::string& path) { run_.set_current(path); });
  for (const std::string& name : given_sources(options_.source.name, options_.source.concat))
    refuse_target_within(options_, name);
  require_applicable_options();
}

void zarr_source::report_warnings() const {
  // all metadata stay in memory until the end
  text::report_sentence(options_.execution.warning,
                        text::node_memory_warning(options_.source.name, source_.nodes.size(), options_.execution.memory));
  if (options_.execution.partition) return;
  text::report_sentence(options_.execution.note,
                        text::coordinates_note(source_.coordinates, options_.selection.with_coordinates));
}

// A changed chunk is noticed when it is read.
void zarr_source::require_unchanged(change_check check) const {
  if (check == change_check::unit_done) return;
  for (const zarr::store_folder& root : source_.roots) root.require_unchanged();
}

// The metadata of all nodes, and the states of all objects of the arrays.
source_identity zarr_source::identity() {
  source_identity id;
  text::sha256 sum;
  if (!source_.checksum.empty()) sum.add_field(source_.checksum);
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    const source_node& n = source_.nodes[i];
    sum.add_field(n.path);
    sum.add_field(text::json_text(n.document));
    if (!has_chunks(i)) continue;
    const auto work = array(i);
    if (!work->skip_reason().empty()) continue;
    work->chunks().add_identity(sum);
    id.size += work->chunks().source_bytes();
  }
  id.checksum = sum.hex();
  id.region_memory = options_.execution.memory;
  return id;
}

// Lists which chunks there are, once.
std::shared_ptr<array_work> zarr_source::array(std::size_t node) {
  std::shared_ptr<array_work>& work = works_[node];
  if (work) return work;
  run_.set_current(path(node));
  work = std::make_shared<array_work>(run_, source_.nodes[node], node);
  return work;
}

std::uint64_t zarr_source::begin_units(bool) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!has_chunks(i)) continue;
    const auto work = array(i);
    work->warn_of_chunks();
    for (std::uint64_t k = 0; k < work->units(); ++k) bytes += work->unit(k).bytes;
  }
  return bytes;
}

void zarr_source::require_applicable_options() const {
  std::set<std::size_t> ranks;
  std::map<std::string, bool> patterns;
  dimension_chunks_check chunks(options_.encoding.chunk_along);
  for (const source_node& n : source_.nodes) {
    if (!n.is_array || !n.selected) continue;
    if (const text::json& shape = metadata::shape_of(n.document); shape.is_array()) ranks.insert(shape.size());
    chunks.add(n.path, metadata::dimension_names_in(n.document));
    for (const auto& of : options_.encoding.bits_of) {
      text::selection one({of.pattern}, {});
      patterns[of.pattern] = patterns[of.pattern] || one.matches(n.path);
    }
  }
  const auto require_rank = [&](const char* option, const array::extents& shape) {
    if (shape.empty() || ranks.empty() || ranks.contains(shape.size())) return;
    std::string rank_list;
    for (const std::size_t n : ranks)
      rank_list += (rank_list.empty() ? "" : n == *ranks.rbegin() ? " and " : ", ") + std::to_string(n);
    throw error(errc::no_match, std::string(option) + " has " + text::pluralize(shape.size(), "dimension") +
                                    ", but the arrays have " + rank_list + "; \"zarrbits inspect\" lists their shapes");
  };
  require_rank("`chunk`", options_.encoding.chunk);
  if (options_.encoding.shard) require_rank("`shard`", options_.encoding.shard->shape);
  chunks.require_all_matched();
  for (const auto& [pattern, matched] : patterns) {
    if (!matched) throw error(errc::no_match, "`bits` \"" + pattern + "\" matches no array; \"zarrbits inspect\" lists them");
  }
}

// The entry of an array or a group in the report; writes its metadata.
converted_object zarr_source::write_node(std::size_t node) {
  const source_node& n = source_.nodes[node];
  converted_object entry;
  entry.path = n.path;
  entry.kind = n.is_array ? object_kind::dataset : object_kind::group;
  entry.selected = n.selected;
  if (!n.selected) {
    entry.outcome = outcome::skipped;
    text::set_reason(entry, reason_code::not_selected, "not selected");
    return entry;
  }
  if (!n.unreadable.empty()) {
    entry.kind = object_kind::dataset;
    entry.outcome = outcome::skipped;
    text::set_reason(entry, n.unreadable.code, run_.worded(n.unreadable.sentence));
    return entry;
  }
  const text::json* document = &n.document;
  std::optional<zarr_array_plan> plain;
  if (n.is_array) {
    const array_work& work = *array(node);
    work_unit_result merged = run_.take_result(node);
    if (!merged.skipped.empty() || !work.skip_reason().empty()) {
      entry.outcome = outcome::skipped;
      const text::coded_reason& reason = work.skip_reason().empty() ? merged.skipped : work.skip_reason();
      text::set_reason(entry, reason.code, run_.worded(reason.sentence));
      return entry;
    }
    const array_result result = merged.arrays.empty() ? array_result() : std::move(merged.arrays[0]);
    document = &work.change().document;
    if (!result.assumed.bits_suffice && work.change().packs_if_it_fits) {
      plain = plan_zarr_array(work.array(), n.document, n.path, options_, false);
      document = &plain->document;
      text::set_reason(entry, reason_code::changed_form, "stored as bytes: " + result.unpacked);
    }
    entry.outcome = result.worst;
    entry.chunks = result.counts;
    entry.chunks.lost = result.lost_chunks.size();
    entry.source_bytes = work.chunks().source_bytes();
    entry.store_bytes = result.store_bytes;
    entry.lossy = !result.lost_chunks.empty();
    for (const auto& lost_chunk : result.lost_chunks) entry.lost_chunks.push_back(lost_chunk.first);
    if (entry.lossy)
      text::set_reason(entry, reason_code::lost_chunks,
                       text::pluralize(result.lost_chunks.size(), "chunk") +
                           " cannot be read: " + run_.worded(result.lost_chunks.begin()->second));
    if (const std::string reason = work.v3_only_reason(); !reason.empty())
      text::add_reason(entry, reason_code::zarr_v3_only, "only for readers of Zarr v3: " + reason);
  } else {
    entry.outcome = outcome::raw;
  }
  run_.out().put(metadata::metadata_key(n.path == "/" ? "" : n.path), metadata::node_text(*document));
  return entry;
}

std::vector<converted_object> zarr_source::write_metadata() {
  std::vector<converted_object> objects(source_.nodes.size());
  for (std::size_t i = source_.nodes.size(); i-- > 0;) objects[i] = write_node(i);  // the root last
  for (std::size_t i = 0; i < source_.nodes.size(); ++i) {
    if (objects[i].outcome == outcome::skipped) continue;
    for (const detail::attribute_remark& r : source_.nodes[i].remarks) {
      converted_object& entry = objects.emplace_back();
      entry.path = source_.nodes[i].path;
      entry.kind = object_kind::attribute;
      entry.attribute = text::escape_name(r.attribute);
      entry.outcome = r.left_out ? outcome::skipped : outcome::mapped;
      text::set_reason(entry, r.code, r.reason);
    }
  }
  return objects;
}

// Joined stores, each with the bytes of its metadata, and of its chunks in the arrays that are joined.
std::vector<joined_source> zarr_source::joined_sources() const {
  std::vector<joined_source> sources = source_.sources;
  for (const auto& [node, work] : works_) {
    const auto& joined = source_.nodes[node].joined;
    if (!joined || !work->skip_reason().empty()) continue;
    const std::vector<std::uint64_t>& bytes = work->chunks().bytes_of_parts();
    for (std::size_t part = 0; part < bytes.size(); ++part) sources.at(source_of_part(*joined, part)).bytes += bytes[part];
  }
  return sources;
}

void zarr_source::describe(convert_result& result, bool) {
  for (const auto& [node, work] : works_) result.source_bytes += work->skip_reason().empty() ? work->chunks().source_bytes() : 0;
}

// About the bytes of a re-encoded array, by a sample of its objects or regions, which are made and go nowhere. Empty if its
// values may be on a server or cannot be read, and if more than the sample would be read for it.
std::optional<std::uint64_t> zarr_source::estimate(std::size_t node) {
  constexpr std::uint64_t sample_bytes = 4U << 20, max_samples = 256, max_item_bytes = 64U << 20;
  const array_work& work = *array(node);
  const std::uint64_t items = work.chunks().items();
  if (items == 0) return 0;
  for (const std::string& name : given_sources(options_.source.name, options_.source.concat)) {
    const std::string source = split_source(name).file;
    if (io::is_remote(source) || io::is_references(zarr::kind_of_source(source))) return {};
  }
  if (work.chunks().has_two_passes() || work.change().packs_if_it_fits || work.chunks().memory() > max_item_bytes) return {};
  const std::uint64_t item_bytes = std::max<std::uint64_t>(1, work.chunks().memory()),
                      count = std::min(items, std::clamp<std::uint64_t>(sample_bytes / item_bytes, 1, max_samples));
  work_unit_result sample;
  try {
    for (std::uint64_t i = 0; i < count; ++i) sample.add(work.make_items({items / count * i + items / count / 2, 1, 0}));
  } catch (const std::exception&) {  // convert says what cannot be read
    return {};
  }
  const double bytes = static_cast<double>(sample.arrays.at(0).store_bytes) * static_cast<double>(items);
  run_.set_sample(node, std::move(sample));
  return static_cast<std::uint64_t>(bytes / static_cast<double>(count));
}

planned_dataset zarr_source::planned(std::size_t node) {
  const source_node& n = source_.nodes[node];
  planned_dataset p;
  p.path = n.path;
  const std::shared_ptr<array_work> work = n.unreadable.empty() ? array(node) : nullptr;
  const text::coded_reason& skip_reason = work ? work->skip_reason() : n.unreadable;
  if (!skip_reason.empty()) {
    p.outcome = outcome::skipped;
    p.how = run_.worded(skip_reason.sentence);
    p.code = skip_reason.code;
    return p;
  }
  work->warn_of_chunks();
  const zarr_array_plan& c = work->change();
  p.outcome = c.strategy == zarr_strategy::copy || c.strategy == zarr_strategy::reshard ? outcome::raw : outcome::recoded;
  const bool referred = options_.target.references && p.outcome == outcome::raw;
  p.how = referred ? "referred to" : c.description();
  if (c.strategy == zarr_strategy::rechunk) p.how += "; chunks of " + array::joined_text(c.chunk);
  p.codecs = text::json_text(metadata::codecs_of(c.document));
  p.chunk_shape = c.chunk;
  p.objects = work->chunks().objects() + 1;
  p.source_bytes = work->chunks().source_bytes();
  p.store_bytes = referred ? 0 : p.outcome == outcome::raw ? p.source_bytes : work->chunks().plain_bytes();
  p.estimated_bytes = p.outcome == outcome::raw ? p.store_bytes : estimate(node);
  if (p.estimated_bytes) p.estimated_bytes = std::min(*p.estimated_bytes, p.store_bytes);
  if (const std::string reason = work->v3_only_reason(); !reason.empty()) p.how += "; only for readers of Zarr v3: " + reason;
  for (std::uint64_t k = 0; k < work->units(); ++k) {
    const chunk_range range = work->unit(k);
    p.units.push_back({range.first, range.count, range.bytes});
  }
  return p;
}

void zarr_source::plan(convert_plan& result, const plan_options&) {
  for (std::size_t i = 0; i < size(); ++i) {
    const source_node& n = source_.nodes[i];
    if (!n.selected) continue;
    if (n.unreadable.empty() && !n.is_array) ++result.groups;
    else result.datasets.push_back(planned(i));
  }
}

void check_store_options(const convert_options& options) {
  const auto refuse = [](bool is_given, const char* option, const char* reason) {
    if (is_given) throw error(errc::invalid_option, std::string(reason) + "; leave out `" + option + "`");
  };
  if (options.source.concat) {
    for (const std::string& name : options.source.concat->sources) {
      if (!zarr::is_read_as_store(name, true))
        throw error(errc::invalid_option,
                    "Zarr stores are joined with Zarr stores, and files with files: \"" + options.source.name +
                        "\" is a store, and \"" + name + "\" is not; make a store of it first",
                    {name});
    }
    refuse(options.source.concat->append, "append", "HDF5 files are appended to a store, and the source is a Zarr store");
    refuse(options.source.concat->is_new, "is_new", "a new dimension is for HDF5 files, and the source is a Zarr store");
  }
  if (options.target.references) {
    constexpr const char* stay = "references point to the chunks of the source, which stay as they are";
    refuse(options.encoding.compress.has_value(), "compress", stay);
    refuse(options.encoding.sets_chunks(), "chunk", stay);
    refuse(options.encoding.codec != array_codec::automatic, "codec", stay);
    refuse(options.encoding.profile.value_or(profile::native) == profile::recode, "profile", stay);
  }
  refuse(options.target.convention.has_value(), "convention",
         "the source is a Zarr store, whose names and attributes stay as they are");
  refuse(options.selection.links.has_value(), "links", "the source is a Zarr store, which has no links");
}

}  // namespace zarrbits::conversion
