// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_stores.hpp"

#include "metadata/missing_value.hpp"
#include "metadata/node.hpp"
#include "text/coordinates.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/memory_estimate.hpp"
#include "text/reserved_names.hpp"
#include "text/selection.hpp"
#include "text/warning.hpp"
#include "verify/blocks.hpp"
#include "verify/cf_meaning.hpp"
#include "verify/chunk_warning.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/comparison_progress.hpp"
#include "verify/decode/plain_codec_chain.hpp"
#include "verify/implied_units.hpp"
#include "verify/joined_files.hpp"
#include "verify/ordered_outcomes.hpp"
#include "verify/tree_comparison.hpp"
#include "verify/value_format.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

using numbers = std::vector<std::uint64_t>;

constexpr std::uint64_t max_parts_at_once = 64;

// Elements [first, first + shape).
struct part {
  numbers first, shape;

  std::size_t elements() const {
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape) {
      if (__builtin_mul_overflow(n, extent, &n))
        throw zarr::not_supported(reason_code::too_large, "chunks of more than 2^64 elements");
    }
    return static_cast<std::size_t>(n);
  }
};

// Calls `callback` for all positions of a grid, from `first` to `last`, both included.
template <class Each>
void for_each_position(const numbers& first, const numbers& last, const Each& callback) {
  numbers position = first;
  for (std::size_t d = 0;; d = position.size()) {
    callback(position);
    for (d = position.size(); d > 0; --d) {
      if (position[d - 1]++ < last[d - 1]) break;
      position[d - 1] = first[d - 1];
    }
    if (d == 0) return;
  }
}

// The first and the last chunk, along each dimension, that have elements of a part.
std::pair<numbers, numbers> chunks_of(const zarr::zarr_array& array, const part& region) {
  numbers first, last;
  for (std::size_t d = 0; d < region.first.size(); ++d) {
    first.push_back(array.grid(d).chunk_of(region.first[d]));
    last.push_back(array.grid(d).chunk_of(region.first[d] + region.shape[d] - 1));
  }
  return {std::move(first), std::move(last)};
}

// Where the chunks of a part are. In shards, they are found by an index, which is read once, in one thread.
class part_chunks {
 public:
  part_chunks(const zarr::zarr_array& array, const part& region) : array_(array) {
    if (product(array.chunks_per_shard()) == 1) return;
    ranges_.emplace();
    const auto [first, last] = chunks_of(array, region);
    try {
      for_each_position(first, last,
                        [&](const numbers& chunk_index) { ranges_->emplace(chunk_index, array.find_stored(chunk_index)); });
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  // Callable in any thread. Throws what array.find_stored() throws.
  std::optional<zarr::zarr_array::object_range> find(const numbers& chunk_index) const {
    if (!ranges_) return array_.find_stored(chunk_index);
    const auto entry = ranges_->find(chunk_index);
    if (entry == ranges_->end()) std::rethrow_exception(thrown_);
    return entry->second;
  }

 private:
  const zarr::zarr_array& array_;
  std::optional<std::map<numbers, std::optional<zarr::zarr_array::object_range>>> ranges_;
  std::exception_ptr thrown_;  // by the first chunk that is not in ranges_
};

// The values of a part of an array; chunks that do not exist have the fill value.
class part_values {
 public:
  part_values(const zarr::zarr_array& array, const part& region, const part_chunks& chunks)
      : array_(array), region_(region), size_(array.type().size) {
    const std::size_t n = region.elements();
    if (array.type().variable()) {
      values_.strings.assign(n, array.fill().strings[0]);
    } else {
      values_.data.resize(n * size_);
      for (std::size_t i = 0; i < n; ++i) std::memcpy(values_.data.data() + i * size_, array.fill().data.data(), size_);
    }
    const auto [first, last] = chunks_of(array, region);
    zarr::element_buffer chunk;
    for_each_position(first, last, [&](const numbers& chunk_index) {
      const auto stored = chunks.find(chunk_index);
      if (!stored) return;
      array_.decode(chunk_index, zarr::zarr_array::read(*stored), chunk);
      take(chunk_index, chunk);
    });
  }
  const zarr::element_buffer& values() const noexcept { return values_; }

 private:
  void take(const numbers& chunk_index, zarr::element_buffer& chunk) {
    const numbers extent = array_.shape_of(chunk_index);
    const std::size_t rank = chunk_index.size();
    numbers begin(rank), end(rank);  // of what both have, in the array
    numbers start(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      start[d] = array_.grid(d).start(chunk_index[d]);
      begin[d] = std::max(start[d], region_.first[d]);
      end[d] = std::min(start[d] + extent[d], region_.first[d] + region_.shape[d]);
      if (begin[d] >= end[d]) return;
    }
    const std::uint64_t row = rank == 0 ? 1 : end[rank - 1] - begin[rank - 1];
    numbers last = end;
    for (std::uint64_t& n : last) --n;
    if (rank > 0) last[rank - 1] = begin[rank - 1];
    for_each_position(begin, last, [&](const numbers& place) {
      std::size_t source_offset = 0, target_offset = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        source_offset = source_offset * static_cast<std::size_t>(extent[d]) + static_cast<std::size_t>(place[d] - start[d]);
        target_offset =
            target_offset * static_cast<std::size_t>(region_.shape[d]) + static_cast<std::size_t>(place[d] - region_.first[d]);
      }
      const auto n = static_cast<std::size_t>(row);
      if (array_.type().variable())
        std::copy_n(chunk.strings.begin() + static_cast<std::ptrdiff_t>(source_offset), n,
                    values_.strings.begin() + static_cast<std::ptrdiff_t>(target_offset));
      else if (size_ > 0)
        std::memcpy(values_.data.data() + target_offset * size_, chunk.data.data() + source_offset * size_, n * size_);
    });
  }

  const zarr::zarr_array& array_;
  const part& region_;
  const std::size_t size_;
  zarr::element_buffer values_;
};

// What the comparison of a part says.
struct part_outcome {
  std::string unreadable;  // why the source cannot be read
  std::optional<numbers> differing_index;
  std::string source_value, store_value;
  bool is_last_part = false;
};

struct node {
  zarr::store_folder folder;
  json document;
  std::string unreadable = {};  // why there is no document
  std::string fault = {};       // why readers refuse it

  // Bytes of its elements in memory; 0 of a group, and of an array that cannot be read.
  std::uint64_t bytes() const {
    try {
      numbers shape = metadata::parse_extents(metadata::shape_of(document), "shape");
      shape.push_back(zarr::parse_type(metadata::data_type_of(document)).size);
      return product(shape);
    } catch (const std::exception&) {
      return 0;
    }
  }
};

using nodes_by_path = std::map<std::string, node>;

// The joined arrays of a store, while its sources are compared one after the other.
struct joined_stores {
  std::string dimension;
  bool all_equal = true;                                         // arrays without the dimension must be equal in every source
  bool is_first = true;                                          // the source is the first one
  std::map<std::string, std::uint64_t> ends = {}, lengths = {};  // of each dimension: end of the sources before; in this one
  std::map<std::string, std::string> dimensions = {};            // of each array: path of the dimension's variable, or its own
  std::map<std::string, std::uint64_t> array_lengths = {};       // of the store's arrays, along the axis
  std::map<std::string, std::vector<numbers>> objects = {};      // of the store's arrays, ordered along the axis: listed once
  nodes_by_path store = {};                                      // its nodes, read once
};

// Where the source's array lies in the store's.
struct place {
  std::size_t axis = 0;
  std::uint64_t first = 0;

  part in_store(part region) const {
    if (!region.first.empty()) region.first[axis] += first;
    return region;
  }
};

// Numbers that may be stored in other terms.
struct meanings {
  cf_meaning source, store;
};

// By their paths; "/" is the root.
nodes_by_path nodes_of(const zarr::store_folder& root, comparison_progress& progress) {
  constexpr std::size_t longest_path = 4000;
  nodes_by_path nodes;
  std::vector<std::pair<std::string, zarr::store_folder>> todo{{"/", root}};
  while (!todo.empty()) {
    const auto [path, folder] = todo.back();
    todo.pop_back();
    progress.begin_object(path);
    if (path.size() > longest_path) throw zarr::not_supported(reason_code::too_large, "a path of more than 4000 bytes");
    json document;
    try {
      document = zarr::read_node(folder);
    } catch (const zarr::store_error& e) {
      if (path == "/" || e.code != errc::damaged_store) throw;
      nodes.emplace(path, node{folder, json::object(), e.what()});
      continue;
    } catch (const zarr::not_supported& e) {
      if (path == "/") throw;
      nodes.emplace(path, node{folder, json::object(), e.what()});
      continue;
    }
    std::string fault = refused_field(folder);
    try {
      (void)zarr::kind_of(folder);
    } catch (const zarr::store_error& e) {
      fault = std::string("has a zarr.json that is not valid: ") + e.what();
    }
    if (metadata::is_group(document)) {
      for (const zarr::store_folder& child : folder.nodes())
        todo.emplace_back((path == "/" ? path : path + "/") + child.leaf_name(), child);
    }
    nodes.emplace(path, node{folder, std::move(document), {}, std::move(fault)});
  }
  return nodes;
}

class stores_comparison {
 public:
  // `joined`: null if the store has one source.
  stores_comparison(const verify_options& options, const zarr::store_folder& source, const zarr::store_folder& store,
                    io::thread_pool& pool, joined_stores* joined = nullptr)
      : options_(options),
        pool_(pool),
        progress_(options.progress),
        source_root_(source),
        store_root_(store),
        source_(nodes_of(source, progress_)),
        nodes_of_store_(joined ? nodes_by_path() : nodes_of(store, progress_)),
        store_(joined ? joined->store : nodes_of_store_),
        joined_(joined) {}

  verify_result run() {
    text::report_sentence(options_.warning, text::node_memory_warning(options_.source, source_.size(), options_.memory));
    text::selection selection(text::include_patterns(options_.include, options_.with_coordinates, coordinates()),
                              options_.exclude);
    std::vector<std::pair<const nodes_by_path::value_type*, std::uint64_t>> selected;  // with their bytes
    std::uint64_t bytes = 0;
    for (const auto& of_source : source_) {
      if (of_source.first != "/" && !selection.matches(of_source.first) && !store_.contains(of_source.first)) continue;
      selected.emplace_back(&of_source, progress_.is_watched() ? of_source.second.bytes() : 0);
      bytes = sum(bytes, selected.back().second);
    }
    progress_.begin(selected.size(), bytes);
    for (const auto& [of_source, bytes_of_node] : selected) {
      progress_.begin_object(of_source->first);
      compare(of_source->first, of_source->second);
      progress_.end_object(bytes_of_node);
    }
    selection.require_all_matched();
    for (const auto& [path, n] : store_) {
      if (!source_.contains(path) && is_compared_as_whole()) result_.only_in_store.push_back(path);
    }
    return std::move(result_);
  }

 private:
  // The coordinate variables of included arrays.
  std::vector<std::string> coordinates() const {
    if (!options_.with_coordinates || options_.include.empty()) return {};
    text::selection requested(options_.include, options_.exclude);
    std::map<std::string, bool> is_selected;
    for (const auto& [path, n] : source_) {
      if (metadata::is_array(n.document) && !requested.excludes(path)) is_selected[path] = requested.matches(path);
    }
    return text::unselected_coordinates(
        is_selected, [&](const std::string& path) { return metadata::referenced_variables(source_.at(path).document); });
  }

  bool is_compared_as_whole() const { return !joined_ || joined_->is_first; }

  // As netCDF looks for a dimension: in the group, then in those above.
  std::string dimension_path(const std::string& path) const {
    for (std::string group = path; !group.empty();) {
      group.resize(group.rfind('/'));
      const std::string variable = group + "/" + joined_->dimension;
      if (const auto entry = source_.find(variable); entry != source_.end() && metadata::is_array(entry->second.document))
        return variable;
    }
    return path;
  }

  // Nothing if the array is not joined.
  std::optional<place> place_of(const std::string& path, const json& document) {
    if (!joined_) return {};
    std::optional<std::size_t> axis;
    if (auto pattern = axis_pattern_of(joined_->dimension)) {
      if (pattern->paths.matches(path) && pattern->axis < metadata::rank_of(document)) axis = pattern->axis;
    } else {
      const std::vector<std::string> names = metadata::dimension_names_in(text::json(document));
      const auto match = std::find(names.begin(), names.end(), joined_->dimension);
      if (match != names.end()) axis = static_cast<std::size_t>(match - names.begin());
    }
    if (!axis) return {};
    const auto [dimension, is_new] = joined_->dimensions.emplace(path, "");
    if (is_new) dimension->second = dimension_path(path);
    std::uint64_t& length = joined_->lengths[dimension->second];
    length = std::max(length, metadata::extent_of(document, *axis));
    return place{*axis, joined_->ends[dimension->second]};
  }

  finding make_finding(const std::string& path, const char* kind) const {
    finding f;
    f.path = f.store_path = path;
    f.kind = kind;
    return f;
  }

  void compare(const std::string& path, const node& source) {
    const bool is_array = metadata::is_array(source.document);
    finding f = make_finding(path, is_array ? "dataset" : "group");
    const auto entry = store_.find(path);
    if (!source.unreadable.empty()) {
      f.outcome = verdict::unreadable;
      f.reason = source.unreadable;
      return add_finding(result_, std::move(f));
    }
    if (entry == store_.end()) {
      f.store_path.clear();
      f.outcome = verdict::missing;
      f.reason = "is not in the store";
      return add_finding(result_, std::move(f));
    }
    const std::optional<place> joined_place = is_array ? place_of(path, source.document) : std::nullopt;
    const node& store = entry->second;
    if (!store.unreadable.empty()) {
      f.outcome = verdict::differs;
      f.reason = "cannot be read in the store: " + store.unreadable;
      return add_finding(result_, std::move(f));
    }
    if (metadata::kind_of(store.document) != metadata::kind_of(source.document)) {
      f.outcome = verdict::differs;
      f.reason = is_array ? "is a group in the store" : "is an array in the store";
      return add_finding(result_, std::move(f));
    }
    if (const std::string& fault = store.fault.empty() ? source.fault : store.fault; !fault.empty()) {
      f.outcome = store.fault.empty() ? verdict::unreadable : verdict::differs;
      f.reason = fault;
      return add_finding(result_, std::move(f));
    }
    const std::string older = is_compared_as_whole() ? zarr::v2_metadata_key(store.folder) : "";
    const auto differing_nodes = is_compared_as_whole() ? zarr::differing_consolidated(store.folder) : std::vector<std::string>();
    if (!older.empty() || !differing_nodes.empty()) {
      f.outcome = verdict::unchecked;
      f.reason = !older.empty()
                     ? "has metadata of Zarr v2 beside the zarr.json in the store (" + older + "), which were not compared"
                     : "has consolidated metadata in the store that disagree with the zarr.json of \"" + differing_nodes.front() +
                           "\", which was compared";
    }
    if (is_array) compare_arrays(source, store, joined_place, f);
    add_finding(result_, std::move(f));
    if (is_compared_as_whole()) compare_attributes(path, source.document, store.document, joined_place.has_value());
  }

  // A value that xarray does not take, which is in the notes instead.
  static bool is_noted(const json& attributes, const std::string& name, const json& value) {
    const json noted = attributes.value(json::json_pointer("/zarrbits/attribute_values"), json());
    return noted.is_object() && noted.contains(name) && text::sorted_json_text(noted[name]) == text::sorted_json_text(value);
  }

  // Joined numbers may be unpacked; then the notes on their types are not those of the array.
  static void remove_type_notes(json& attributes) {
    for (const char* key : {text::annotation_key, text::hidden_annotation_key}) {
      if (!attributes.contains(key) || !attributes[key].is_object()) continue;
      json& notes = attributes[key];
      for (const char* name : {"hdf5_type", "enum"}) notes.erase(name);
      for (const char* name : {"attribute_types", "attribute_values"}) {
        if (!notes.contains(name) || !notes[name].is_object()) continue;
        for (const std::string& attribute : attributes_of_packed_numbers()) notes[name].erase(attribute);
      }
    }
  }

  void compare_attributes(const std::string& path, const json& source, const json& store, bool is_joined) {
    json a = metadata::attributes_or_empty(source), b = metadata::attributes_or_empty(store);
    const bool may_be_unpacked = is_joined && metadata::data_type_of(source) != metadata::data_type_of(store);
    if (may_be_unpacked) {
      remove_type_notes(a);
      remove_type_notes(b);
    }
    for (const auto& [name, value] : a.items()) {
      if (may_be_unpacked && attributes_of_packed_numbers().contains(name)) continue;
      finding f = make_finding(path, "attribute");
      f.attribute = name;
      if (!b.contains(name) && name == "_FillValue" && is_noted(b, name, value)) {
        f.outcome = verdict::equal;
      } else if (!b.contains(name)) {
        f.outcome = verdict::missing;
        f.reason = "is not in the store";
      } else if (text::sorted_json_text(b[name]) != text::sorted_json_text(value) &&  // as text, since NaN is not equal to itself
                 !(name == "_FillValue" && b[name] == json(metadata::missing_value_of(metadata::data_type_of(source), value)))) {
        f.outcome = verdict::differs;
        f.reason = "has another value";
        f.source_value = text::sorted_json_text(value).substr(0, 200);
        f.store_value = text::sorted_json_text(b[name]).substr(0, 200);
      }
      add_finding(result_, std::move(f));
    }
    for (const auto& [name, value] : b.items()) {
      if (!a.contains(name) && name != text::annotation_key) result_.extras.push_back({path, "attribute", format_name(name)});
    }
  }

  static json names_in(const json& document) {
    const json names = metadata::dimension_names_of(document);
    const bool all_unnamed = std::all_of(names.begin(), names.end(), [](const json& n) { return n.is_null(); });
    return all_unnamed ? json() : names;
  }

  void compare_arrays(const node& source, const node& store, const std::optional<place>& joined_place, finding& f) {
    try {
      finding names = make_finding(f.path, "dimension names");
      if (const json a = names_in(source.document), b = names_in(store.document); a != b) {
        names.outcome = verdict::differs;
        names.reason = "are " + text::sorted_json_text(a) + ", and in the store " + text::sorted_json_text(b);
      }
      if (is_compared_as_whole()) add_finding(result_, std::move(names));
      std::optional<zarr::zarr_array> source_array;
      try {
        source_array.emplace(source.folder, make_plain_decoder);
      } catch (const zarr::store_error& e) {
        f.outcome = verdict::unreadable;
        f.reason = e.what();
        return;
      }
      const zarr::zarr_array store_array(store.folder, make_plain_decoder);
      if (joined_place) return compare_joined(*source_array, store_array, source, store, *joined_place, f);
      const json a = metadata::data_type_of(source.document), b = metadata::data_type_of(store.document);
      if (!differs(f, "data type", a, b) && !differs(f, "shape", json(source_array->shape()), json(store_array.shape()))) {
        const bool is_same_fill =
            source_array->fill().data == store_array.fill().data && source_array->fill().strings == store_array.fill().strings;
        const auto fills_differ = [&] {
          differs(f, "fill value", metadata::fill_value_of(source.document), metadata::fill_value_of(store.document));
        };
        if (!is_same_fill && !store.folder.is_v2()) fills_differ();
        warn_about_chunks(options_, f.path, store_array);
        const bool is_complete = compare_values(*source_array, store_array, f);
        // Zarr v2 has a fill value for missing values; another one matters only where neither has a chunk
        if (!is_same_fill && !is_complete && f.outcome != verdict::differs) fills_differ();
      }
    } catch (const zarr::store_error& e) {
      f.outcome = verdict::differs;
      f.reason = e.what();
    } catch (const zarr::not_supported& e) {
      f.outcome = verdict::unchecked;
      f.reason = std::string("cannot be compared: this reader does not support ") + e.what();
    }
  }

  // The source's part of an array of several sources.
  void compare_joined(const zarr::zarr_array& a, const zarr::zarr_array& b, const node& source, const node& store,
                      const place& joined_place, finding& f) {
    const std::size_t axis = joined_place.axis;
    joined_->array_lengths[f.path] = axis < b.shape().size() ? b.shape()[axis] : 0;
    numbers expected = a.shape();
    if (b.shape().size() == expected.size()) expected[axis] = std::max(b.shape()[axis], joined_place.first + expected[axis]);
    if (differs(f, "shape", json(expected), json(b.shape()))) return;
    std::optional<meanings> of_numbers;
    const inherited_units lent_in_store = units_in_store_.units_for(store_root_, f.path);
    inherited_units lent_in_source;
    try {
      lent_in_source = units_in_source_.units_for(source_root_, f.path);
    } catch (const zarr::store_error& e) {  // of an array beside it
      f.outcome = verdict::unreadable;
      f.reason = e.what();
      return;
    }
    if (lent_in_source.units.empty() && !lent_in_store.units.empty()) {  // the store has the first source's attributes
      if (const auto entry = source_.find(lent_in_store.path); entry != source_.end()) {
        const json lender = metadata::attributes_or_empty(entry->second.document);
        lent_in_source = {text_in(lender, "units"), text_in(lender, "calendar"), lent_in_store.path};
      }
    }
    auto meaning_of_source = meaning_in_store(source.document, a, lent_in_source),
         meaning_of_store = meaning_in_store(store.document, b, lent_in_store);
    const json source_type = metadata::data_type_of(source.document), store_type = metadata::data_type_of(store.document);
    const bool is_same_type = text::sorted_json_text(source_type) == text::sorted_json_text(store_type);
    if (meaning_of_source && meaning_of_store && !(is_same_type && *meaning_of_source == *meaning_of_store))
      of_numbers.emplace(meanings{std::move(*meaning_of_source), std::move(*meaning_of_store)});
    else if (differs(f, "data type", source_type, store_type)) return;
    if (compare_values(a, b, f, joined_place, of_numbers) || f.outcome == verdict::differs) return;
    // some elements are in no chunk
    if (!is_same_element(a, a.fill(), b, b.fill(), of_numbers, 0))
      differs(f, "fill value", metadata::fill_value_of(source.document), metadata::fill_value_of(store.document));
  }

  static std::string text_in(const json& attributes, const char* name) {
    const auto entry = attributes.find(name);
    return entry != attributes.end() && entry->is_string() ? entry->get<std::string>() : "";
  }

  static bool differs(finding& f, const char* property, const json& a, const json& b) {
    if (text::sorted_json_text(a) == text::sorted_json_text(b)) return false;
    f.outcome = verdict::differs;
    f.reason =
        std::string("has the ") + property + " " + text::sorted_json_text(a) + ", and in the store " + text::sorted_json_text(b);
    return true;
  }

  // Parts as long as the longer chunk in each dimension, so that few chunks are decoded twice; shorter ones if those take too
  // much memory.
  numbers shape_of_parts(const zarr::zarr_array& a, const zarr::zarr_array& b) const {
    const std::uint64_t max_elements = options_.memory / 8 / std::max<std::uint64_t>(a.type().variable() ? 64 : a.type().size, 1);
    numbers shape;
    for (std::size_t d = 0; d < a.shape().size(); ++d)
      shape.push_back(std::max<std::uint64_t>(1, std::min(a.shape()[d], std::max(a.chunk_shape()[d], b.chunk_shape()[d]))));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::uint64_t other_elements = 1;
      for (std::size_t k = 0; k < shape.size(); ++k) {
        if (k != d && __builtin_mul_overflow(other_elements, shape[k], &other_elements)) other_elements = UINT64_MAX;
      }
      const std::uint64_t min_length = std::min(a.chunk_shape()[d], b.chunk_shape()[d]);
      if (other_elements > max_elements / shape[d])
        shape[d] = std::max({std::uint64_t{1}, std::min(shape[d], min_length), max_elements / other_elements});
    }
    return shape;
  }

  // False if some elements are in no chunk of either array.
  bool compare_values(const zarr::zarr_array& a, const zarr::zarr_array& b, finding& f, const place& joined_place = {},
                      const std::optional<meanings>& of_numbers = {}) {
    const numbers& shape = a.shape();
    if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return true;
    const numbers step = shape_of_parts(a, b);
    numbers grid;
    for (std::size_t d = 0; d < shape.size(); ++d) grid.push_back((shape[d] - 1) / step[d] + 1);
    numbers parts;
    add_parts(a, shape, step, grid, parts);
    if (joined_ && joined_->dimensions.contains(f.path)) add_parts_of_joined(b, f.path, joined_place, shape, step, grid, parts);
    else add_parts(b, shape, step, grid, parts);
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    bool is_differing_before_end = false;
    ordered_outcomes<part_outcome> queue(pool_, [&](part_outcome& o) {
      if (!o.unreadable.empty() && f.outcome < verdict::unreadable) {
        f.outcome = verdict::unreadable;
        f.reason = o.unreadable;
      }
      if (!o.differing_index) return true;
      f.outcome = verdict::differs;
      f.reason = "has another value";
      f.has_index = true;
      f.index = std::move(*o.differing_index);
      f.source_value = std::move(o.source_value);
      f.store_value = std::move(o.store_value);
      is_differing_before_end = !o.is_last_part;
      return false;
    });
    for (const std::uint64_t number : parts) {
      const auto p = std::make_shared<part>(part{numbers(shape.size()), numbers(shape.size())});
      std::uint64_t remainder = number;
      for (std::size_t d = shape.size(); d-- > 0;) {
        p->first[d] = remainder % grid[d] * step[d];
        p->shape[d] = std::min(step[d], shape[d] - p->first[d]);
        remainder /= grid[d];
      }
      // both parts, and of each a chunk that is decoded into buffers that grow; strings take memory that is not known before
      const std::uint64_t cost =
          a.type().variable() ? work_memory(options_)
                              : a.type().size * (2 * p->elements() + 4 * (product(a.chunk_shape()) + product(b.chunk_shape())));
      queue.reserve(std::max(cost, work_memory(options_) / max_parts_at_once));
      const auto chunks_of_a = std::make_shared<const part_chunks>(a, *p),
                 chunks_of_b = std::make_shared<const part_chunks>(b, joined_place.in_store(*p));
      const bool is_last_part = number == parts.back();
      const bool continues =
          queue.submit(std::max(cost, work_memory(options_) / max_parts_at_once), [=, &a, &b, &of_numbers](part_outcome& o) {
            o.is_last_part = is_last_part;
            compare_part(a, *chunks_of_a, b, *chunks_of_b, *p, joined_place, of_numbers, o);
          });
      progress_.add_bytes(p->elements() * a.type().size);
      if (!continues) break;
    }
    queue.finish();
    const bool is_complete = parts.size() == product(grid);
    if (is_differing_before_end) return is_complete;
    std::uint64_t total = 1;
    for (const std::uint64_t extent : shape) total *= extent;
    result_.elements += total;
    return is_complete;
  }

  // Adds the numbers of the parts that have elements of existing objects; all others have only the fill value. `shape`: of the
  // compared region.
  void add_parts(const zarr::zarr_array& array, const numbers& shape, const numbers& step, const numbers& grid,
                 numbers& parts) const {
    require_countable(grid);
    array.for_each_object([&](const numbers& object, const zarr::store_entry&) {
      add_parts_of(array, object, {}, shape, step, grid, parts);
      return true;
    });
  }

  // As above, for the region that is at this place of an array of the store.
  void add_parts_of_joined(const zarr::zarr_array& array, const std::string& path, const place& in_array, const numbers& shape,
                           const numbers& step, const numbers& grid, numbers& parts) const {
    require_countable(grid);
    const std::size_t axis = in_array.axis;
    const auto [entry, is_new] = joined_->objects.try_emplace(path);
    std::vector<numbers>& objects = entry->second;
    if (is_new) {
      array.for_each_object([&](const numbers& object, const zarr::store_entry&) {
        objects.push_back(object);
        if (objects.size() > max_parts())
          throw zarr::not_supported(reason_code::too_large, "more chunks than the memory can list");
        return true;
      });
      std::sort(objects.begin(), objects.end(), [&](const numbers& x, const numbers& y) { return x[axis] < y[axis]; });
    }
    const std::uint64_t in_object = array.chunks_per_shard()[axis], first = array.grid(axis).chunk_of(in_array.first) / in_object,
                        last = array.grid(axis).chunk_of(in_array.first + shape[axis] - 1) / in_object;
    const auto begin = std::lower_bound(objects.begin(), objects.end(), first,
                                        [&](const numbers& object, std::uint64_t index) { return object[axis] < index; });
    for (auto object = begin; object != objects.end() && (*object)[axis] <= last; ++object)
      add_parts_of(array, *object, in_array, shape, step, grid, parts);
  }

  std::size_t max_parts() const { return static_cast<std::size_t>(options_.memory / 64); }

  static void require_countable(const numbers& grid) {
    std::uint64_t total = 1;
    for (const std::uint64_t n : grid) {
      if (__builtin_mul_overflow(total, n, &total))
        throw zarr::not_supported(reason_code::too_large, "arrays of more than 2^64 chunks");
    }
  }

  void add_parts_of(const zarr::zarr_array& array, const numbers& object, const place& in_array, const numbers& shape,
                    const numbers& step, const numbers& grid, numbers& parts) const {
    numbers first, last;
    for (std::size_t d = 0; d < object.size(); ++d) {
      const std::uint64_t shard_length = array.chunks_per_shard()[d], next = (object[d] + 1) * shard_length;
      const std::uint64_t end = next < array.chunks()[d] ? array.grid(d).start(next) : array.shape()[d];
      const std::uint64_t begin = d == in_array.axis ? in_array.first : 0,
                          first_element = std::max(array.grid(d).start(object[d] * shard_length), begin),
                          end_element = std::min(end, begin + shape[d]);
      if (first_element >= end_element) return;  // it is in another source
      first.push_back((first_element - begin) / step[d]);
      last.push_back((end_element - begin - 1) / step[d]);
    }
    for_each_position(first, last, [&](const numbers& grid_position) {
      std::uint64_t number = 0;
      for (std::size_t d = 0; d < grid_position.size(); ++d) number = number * grid[d] + grid_position[d];
      if (parts.empty() || parts.back() != number) parts.push_back(number);
    });
    if (parts.size() <= max_parts()) return;
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    if (parts.size() > max_parts() / 2) throw zarr::not_supported(reason_code::too_large, "more chunks than the memory can list");
  }

  static void compare_part(const zarr::zarr_array& a, const part_chunks& chunks_of_a, const zarr::zarr_array& b,
                           const part_chunks& chunks_of_b, const part& p, const place& joined_place,
                           const std::optional<meanings>& of_numbers, part_outcome& o) {
    std::optional<part_values> of_source;
    try {
      of_source.emplace(a, p, chunks_of_a);
    } catch (const zarr::store_error& e) {
      o.unreadable = e.what();
      return;
    }
    const part region_in_store = joined_place.in_store(p);
    const part_values of_store(b, region_in_store, chunks_of_b);
    const zarr::element_buffer &x = of_source->values(), &y = of_store.values();
    const std::size_t n = p.elements(), size = a.type().size;
    if (!of_numbers && x.data == y.data && x.strings == y.strings) return;
    for (std::size_t i = 0; i < n; ++i) {
      if (is_same_element(a, x, b, y, of_numbers, i)) continue;
      o.differing_index.emplace(p.shape.size());
      std::size_t remainder = i;
      for (std::size_t d = p.shape.size(); d-- > 0;) {
        (*o.differing_index)[d] = p.first[d] + remainder % p.shape[d];
        remainder /= static_cast<std::size_t>(p.shape[d]);
      }
      o.source_value = a.type().variable() ? format_text(x.strings[i]) : hex(x.data.data() + i * size, size);
      o.store_value = a.type().variable() ? format_text(y.strings[i]) : hex(y.data.data() + i * b.type().size, b.type().size);
      return;
    }
  }

  // The element `i` of both.
  static bool is_same_element(const zarr::zarr_array& a, const zarr::element_buffer& x, const zarr::zarr_array& b,
                              const zarr::element_buffer& y, const std::optional<meanings>& of_numbers, std::size_t i) {
    if (a.type().variable()) return x.strings[i] == y.strings[i];
    const std::byte *const p = x.data.data() + i * a.type().size, *const q = y.data.data() + i * b.type().size;
    if (of_numbers)
      return same_value(of_numbers->source, store_number(a.type(), p), of_numbers->store, store_number(b.type(), q));
    return std::memcmp(p, q, a.type().size) == 0;
  }

  const verify_options& options_;
  io::thread_pool& pool_;
  comparison_progress progress_;
  const zarr::store_folder source_root_, store_root_;
  const nodes_by_path source_, nodes_of_store_;
  const nodes_by_path& store_;
  joined_stores* const joined_;
  store_inherited_units units_in_source_, units_in_store_;
  verify_result result_;
};

}  // namespace

verify_result compare_stores(const verify_options& options, const zarr::store_folder& source, const zarr::store_folder& store,
                             io::thread_pool& pool) {
  return stores_comparison(options, source, store, pool).run();
}

verify_result compare_joined_stores(const verify_options& options, const std::vector<std::string>& sources,
                                    const std::function<zarr::store_folder(const std::string& name)>& open,
                                    const zarr::store_folder& store, io::thread_pool& pool) {
  verify_result result;
  joined_stores joined{.dimension = options.concat->dimension,
                       .all_equal = options.concat->different == concatenation::different_type::refuse};
  comparison_progress progress(options.progress);
  joined.store = nodes_of(store, progress);
  for (const std::string& name : sources) {
    verify_result one = stores_comparison(options, open(name), store, pool, &joined).run();
    for (const auto& [dimension, length] : joined.lengths) joined.ends[dimension] += length;
    joined.lengths.clear();
    if (std::exchange(joined.is_first, false)) {
      result = std::move(one);
      continue;
    }
    for (finding& f : one.findings) {
      const bool may_be_left_out = f.outcome == verdict::missing || !joined.dimensions.contains(f.path);
      const bool is_of_values = f.kind == "dataset" && (joined.all_equal || !may_be_left_out);
      if (!is_of_values && f.outcome != verdict::unreadable) continue;  // what cannot be read may be an array
      f.reason += " (\"" + name + "\")";
      result.findings.push_back(std::move(f));
    }
    for (std::size_t i = 0; i < verdict_count; ++i) result.datasets[i] += one.datasets[i];
    result.elements += one.elements;
    result.elements_unchecked += one.elements_unchecked;
  }
  for (const auto& [path, length] : joined.array_lengths) {
    const std::uint64_t sum_of_sources = joined.ends[joined.dimensions.at(path)];
    if (length == sum_of_sources) continue;
    finding f;
    f.path = f.store_path = path;
    f.kind = "dataset";
    f.outcome = verdict::differs;
    f.reason = "has " + text::pluralize(length, "element") + " along the dimension in the store, and its sources together have " +
               std::to_string(sum_of_sources);
    add_finding(result, std::move(f));
  }
  return result;
}

long double first_value_in_store(const zarr::store_folder& source, const std::string& dimension) {
  const std::function<void(const verify_progress&)> nobody;
  comparison_progress progress(nobody);
  for (const auto& [path, n] : nodes_of(source, progress)) {
    if (!metadata::is_array(n.document) || !n.unreadable.empty() || path.substr(path.rfind('/') + 1) != dimension) continue;
    const zarr::zarr_array array(n.folder, make_plain_decoder);
    const auto meaning = meaning_in_store(n.document, array, {});
    if (!meaning || array.shape().size() != 1) continue;
    for (std::uint64_t chunk = 0; chunk < array.grid(0).chunks(); ++chunk) {
      zarr::element_buffer elements;
      const bool is_stored = array.read_chunk({chunk}, elements);
      const std::uint64_t first = array.grid(0).start(chunk),
                          length = std::min(array.grid(0).length(chunk), array.shape()[0] - first);
      for (std::uint64_t i = 0; i < length; ++i) {
        const std::byte* const element =
            is_stored ? elements.data.data() + static_cast<std::size_t>(i) * array.type().size : array.fill().data.data();
        if (const auto value = instant(*meaning, store_number(array.type(), element))) return *value;
        if (!is_stored) break;
      }
    }
  }
  throw error(errc::no_match,
              "\"" + source.name() + "\" has no variable \"" + dimension +
                  "\" with a first value, by which the stores were to be ordered; set another `order`",
              {source.name(), dimension});
}

}  // namespace zarrbits::verification
