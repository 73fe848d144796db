// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/join_stores.hpp"

#include "array/chunk_grid.hpp"
#include "codecs/codec_chain.hpp"
#include "convert/concat/cf_encoding.hpp"
#include "convert/concat/compare_files.hpp"
#include "convert/concat/inherited_units.hpp"
#include "convert/concat/joined_axis.hpp"
#include "convert/concat/sequence_check.hpp"
#include "convert/concat/variable.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "metadata/array_metadata.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/missing_value.hpp"
#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/natural_order.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "text/selection.hpp"
#include "text/sha256.hpp"
#include "zarr/read/unreadable_node.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace zarrbits::conversion {

struct joined_array {
  struct part {
    std::optional<zarr::store_folder> folder;  // none: the store has no such array
    std::uint64_t length = 0;
    std::size_t source = 0;  // index in source_nodes::sources
    std::string store = {};  // its name
    number_kind kind = {};
    std::shared_ptr<const value_change> change = {};
    bool is_stored_alike = false;
  };
  std::size_t axis = 0;
  text::json data_type, fill_value;
  number_kind kind = {};  // of the whole; size 0: no numbers
  std::vector<part> parts = {};
};

namespace {

using zarr::element_buffer;
using zarr::zarr_array;
using zarr::zarr_kind;
using nodes_by_path = std::map<std::string, const source_node*>;

number_kind kind_of(const zarr::zarr_type& type) {
  const bool is_integer = type.kind == zarr_kind::signed_integer || type.kind == zarr_kind::unsigned_integer,
             is_float = type.kind == zarr_kind::floating && (type.size == 4 || type.size == 8);
  if (!is_float && !(is_integer && type.unit.empty() && type.bits == 8 * type.size)) return {};
  return {is_integer, type.kind != zarr_kind::unsigned_integer, type.size};
}

std::string type_name(const number_kind& kind) {
  return (!kind.is_integer ? "float" : kind.is_signed ? "int" : "uint") + std::to_string(8 * kind.size);
}

template <class From, class To>
void convert_numbers(const std::byte* input, std::byte* output, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    From number{};
    std::memcpy(&number, input + i * sizeof number, sizeof number);
    const auto converted = static_cast<To>(number);
    std::memcpy(output + i * sizeof converted, &converted, sizeof converted);
  }
}

// Calls `use` with a number of this kind.
template <class Use>
void with_number(const number_kind& kind, const Use& use) {
  if (!kind.is_integer) return kind.size == 4 ? use(float()) : use(double());
  switch (kind.size) {
    case 1: return kind.is_signed ? use(std::int8_t()) : use(std::uint8_t());
    case 2: return kind.is_signed ? use(std::int16_t()) : use(std::uint16_t());
    case 4: return kind.is_signed ? use(std::int32_t()) : use(std::uint32_t());
    default: return kind.is_signed ? use(std::int64_t()) : use(std::uint64_t());
  }
}

// As int64 or double.
std::vector<std::byte> widened(const std::vector<std::byte>& input, const number_kind& kind, bool as_integer) {
  const std::size_t n = input.size() / kind.size;
  std::vector<std::byte> wide(n * sizeof(double));
  with_number(kind, [&]<class Number>(Number) {
    if (as_integer) convert_numbers<Number, std::int64_t>(input.data(), wide.data(), n);
    else convert_numbers<Number, double>(input.data(), wide.data(), n);
  });
  return wide;
}

source_array::element_change change_to(const number_kind& target, const joined_array::part& part) {
  if (target.size == 0 || (part.kind == target && !part.change)) return {};
  return [target, from = part.kind, change = part.change](element_buffer& elements) {
    const std::size_t n = elements.data.size() / from.size;
    // a change takes what its source is, and what it gives is what its target is
    std::vector<std::byte> wide = widened(elements.data, from, change ? from.is_integer : target.is_integer);
    if (change) {
      std::vector<std::byte> changed(wide.size());
      change->apply(wide.data(), changed.data(), n);
      wide = std::move(changed);
    }
    elements.data.resize(n * target.size);
    with_number(target, [&]<class Number>(Number) {
      if (target.is_integer) convert_numbers<std::int64_t, Number>(wide.data(), elements.data.data(), n);
      else convert_numbers<double, Number>(wide.data(), elements.data.data(), n);
    });
  };
}

// The value of "_FillValue", for which xarray has a form of its own.
std::optional<cf_number> declared_fill(const text::json& attributes, const number_kind& kind) {
  if (!attributes.contains("_FillValue")) return {};
  const text::json& list = attributes["_FillValue"];
  const text::json& value = list.is_array() && list.size() == 1 ? list[0] : list;
  cf_number result;
  result.is_integer = kind.is_integer;
  result.size = kind.size;
  if (kind.is_integer) {
    if (!value.is_number_integer()) return {};
    result.integer_value = value.get<std::int64_t>();
    return result;
  }
  if (value.is_number()) {
    result.real = value.get<double>();
  } else if (value.is_string() && value == "NaN") {
    result.real = std::numeric_limits<double>::quiet_NaN();
  } else if (value.is_string()) {
    const auto bytes = text::decode_base64(value.get<std::string>());
    if (!bytes || bytes->size() != sizeof(double)) return {};
    std::uint64_t bits = 0;
    for (std::size_t i = sizeof bits; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
    result.real = std::bit_cast<double>(bits);
  } else {
    return {};
  }
  if (kind.size == 4) result.real = static_cast<float>(result.real);
  return result;
}

cf_encoding encoding_of(const source_node& node, const zarr_array& array, const source_node* lender) {
  const number_kind kind = kind_of(array.type());
  if (kind.size == 0) return {};
  return stored_cf_encoding(node.document, kind, declared_fill(metadata::attributes_or_empty(node.document), kind), {},
                            lender ? &lender->document : nullptr);
}

nodes_by_path by_path(const source_nodes& tree) {
  nodes_by_path result;
  for (const source_node& node : tree.nodes) result.emplace(node.path, &node);
  return result;
}

inherited_units find_lenders(const source_nodes& tree) {
  std::map<std::string, text::json> documents;
  for (const source_node& node : tree.nodes) {
    if (node.is_array) documents.emplace(node.path, node.document);
  }
  return find_inherited_units(documents);
}

const source_node* lender_of(const std::string& path, const inherited_units& lenders, const nodes_by_path& nodes) {
  const auto lender = lenders.find(path);
  return lender == lenders.end() ? nullptr : nodes.at(lender->second);
}

array::box all_of(const source_array& array) { return {array::extents(array.shape().size(), 0), array.shape()}; }

// The values of an array of one dimension, as they are stored.
std::vector<double> numbers_in(const source_array& array) {
  const element_buffer elements = array.read_box(all_of(array));
  const std::vector<std::byte> wide = widened(elements.data, kind_of(array.type()), false);
  std::vector<double> numbers(wide.size() / sizeof(double));
  std::memcpy(numbers.data(), wide.data(), wide.size());
  return numbers;
}

// The difference between two arrays that are not joined, as the end of a sentence; empty if they are equal.
std::string difference(const source_node& a, const source_node& b) {
  if (!b.unreadable.empty()) return "cannot be read in the other store: " + b.unreadable.sentence;
  if (a.is_array != b.is_array) return "is an array in one of them, and a group in the other";
  if (!a.is_array) return "";
  const source_array x = open_source_array(a), y = open_source_array(b);
  if (x.shape() != y.shape()) return "their shapes differ";
  if (metadata::data_type_of(a.document) != metadata::data_type_of(b.document)) return "their data types differ";
  const array::chunk_grid blocks{x.shape(), x.chunk_shape()};
  const array::box grid{array::extents(x.shape().size(), 0), blocks.counts()};
  bool is_equal = true;
  array::for_each_index(grid, [&](const array::extents& index) {
    if (!is_equal) return;
    const array::box block = array::intersect(blocks.box_of(index), all_of(x));
    const element_buffer of_x = x.read_box(block), of_y = y.read_box(block);
    is_equal = of_x.data == of_y.data && of_x.strings == of_y.strings;
  });
  return is_equal ? "" : "their values differ";
}

// Removes what `convert` noted about the types of values, and of attributes that have the type of a value.
void remove_type_notes(text::json& document) {
  text::json& attributes = metadata::mutable_attributes(document);
  for (const auto& [parent, key] :
       {std::pair(&attributes, text::annotation_key), std::pair(&attributes, text::hidden_annotation_key),
        std::pair(&document, text::annotation_key)}) {
    const auto notes = parent->find(key);
    if (notes == parent->end() || !notes->is_object()) continue;
    for (const char* name : {"hdf5_type", "enum"}) notes->erase(name);
    for (const char* group : {"attribute_types", "attribute_values"}) {
      const auto list = notes->find(group);
      if (list == notes->end() || !list->is_object()) continue;
      for (const char* name :
           {"_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "scale_factor", "add_offset"})
        list->erase(name);
    }
  }
}

constexpr std::size_t max_named_stores = 20;

class store_joiner {
 public:
  store_joiner(source_nodes& first, const convert_options& options, const std::function<void(const std::string& path)>& callback)
      : first_(first),
        names_(given_sources(options.source.name, options.source.concat)),
        options_(options),
        concat_(*options.source.concat),
        callback_(callback) {}

  void run() {
    first_nodes_ = by_path(first_);
    find_variables();
    std::string damaged;
    std::size_t damaged_count = 0;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      joined_source source;
      source.file = names_[k];
      const auto sequences = sequences_;  // without a store that cannot be read
      try {
        if (k == 0) {
          add(k, first_, source);
        } else {
          source_nodes tree = read_tree(names_[k], options_, callback_);
          add(k, tree, source);
        }
      } catch (const zarr::store_error& e) {
        leave_out(source, {e.reason, e.what()}, damaged, damaged_count);
      } catch (const zarr::not_supported& e) {
        leave_out(source, zarr::unsupported_node(e), damaged, damaged_count);
      }
      if (source.left_out) {
        sequences_ = sequences;
        for (variable& v : variables_) {
          if (v.parts.empty() || v.parts.back().source != k) continue;
          v.parts.pop_back();
          v.encodings.pop_back();
        }
      }
      first_.sources.push_back(std::move(source));
    }
    if (damaged_count > max_named_stores) damaged += "; and " + std::to_string(damaged_count - max_named_stores) + " more";
    if (damaged_count > 0 && (!options_.execution.keep_going || first_.sources[0].left_out))
      throw error(errc::not_joinable, text::pluralize(damaged_count, "store") + " of " + std::to_string(names_.size()) +
                                          " cannot be joined: " + damaged +
                                          "; `keep_going` leaves out such stores, except the first, and reports them");
    if (options_.execution.note && !options_.execution.partition) {
      for (const auto& [dimension, sequence] : sequences_) {
        if (const std::string sentence = sequence.gap_note(); !sentence.empty()) options_.execution.note(sentence);
      }
    }
    for (variable& v : variables_) finish(v);
    for (source_node& node : first_.nodes) {
      if (left_out_.contains(node.path)) node.selected = false;
    }
    first_.checksum = sum_.hex();
  }

 private:
  struct variable {
    source_node* node = nullptr;  // of the first store
    std::size_t axis = 0;
    std::string dimension;  // path of the dimension's variable, or its own
    array::extents shape, chunk;
    text::json codecs;
    std::vector<joined_array::part> parts = {};
    std::vector<cf_encoding> encodings = {};  // of each part, empty for one that is missing
  };

  void leave_out(joined_source& source, const text::coded_reason& reason, std::string& damaged, std::size_t& count) const {
    if (++count <= max_named_stores) damaged += (count > 1 ? "; \"" : "\"") + source.file + "\": " + reason.sentence;
    source.left_out = true;
    source.code = reason.code;
    source.notes = {reason.sentence};
  }

  std::optional<std::size_t> axis_of(const source_node& node) const {
    const std::string& dimension = concat_.dimension;
    if (is_axis_pattern(dimension))
      return axis_by_pattern(dimension, node.path, metadata::rank_of(node.document), "array \"" + node.path + "\"", names_[0]);
    const std::vector<std::string> dimensions = metadata::dimension_names_in(node.document);
    const auto match = std::find(dimensions.begin(), dimensions.end(), dimension);
    if (match == dimensions.end()) return {};
    return static_cast<std::size_t>(match - dimensions.begin());
  }

  // As netCDF looks for a dimension: in the group, then in those above.
  std::string dimension_path(const std::string& array_path) const {
    for (std::string group = array_path; !group.empty();) {
      group.resize(group.rfind('/'));
      const std::string path = group + "/" + concat_.dimension;
      if (const auto node = first_nodes_.find(path); node != first_nodes_.end() && node->second->is_array) return path;
    }
    return array_path;
  }

  void find_variables() {
    for (source_node& node : first_.nodes) {
      if (!node.is_array || !node.selected || !node.unreadable.empty()) continue;
      const auto axis = axis_of(node);
      if (!axis) continue;
      variable v;
      v.node = &node;
      v.axis = *axis;
      v.dimension = dimension_path(node.path);
      v.codecs = metadata::inner_codecs(metadata::codecs_of(node.document));
      variable_of_[node.path] = variables_.size();
      variables_.push_back(std::move(v));
    }
    if (variables_.empty())
      throw error(errc::no_match,
                  "no array of \"" + names_[0] + "\" has a dimension \"" + concat_.dimension +
                      "\"; \"zarrbits inspect\" lists the arrays, and \"/PATH:0\" in place of a name is the first axis of one",
                  {names_[0]});
  }

  [[noreturn]] void refuse(const std::string& path, std::size_t k, const std::string& reason) const {
    throw unjoinable("\"" + path + "\" of \"" + names_[0] + "\" and of \"" + names_[k] + "\" cannot be joined: " + reason,
                     {names_[k], path});
  }

  void add(std::size_t k, source_nodes& tree, joined_source& source) {
    const nodes_by_path nodes = by_path(tree);
    const inherited_units lenders = find_lenders(tree);
    std::map<std::string, std::uint64_t> lengths;  // of each dimension in this store
    for (variable& v : variables_) {
      const auto entry = nodes.find(v.node->path);
      if (entry != nodes.end() && !entry->second->unreadable.empty())
        throw zarr::store_error("\"" + v.node->path + "\": " + entry->second->unreadable.sentence, errc::damaged_store,
                                entry->second->unreadable.code);
      if (entry == nodes.end() || !entry->second->is_array) {
        add_note(source, "it has no \"" + v.node->path + "\": its part reads as the fill value");
        continue;
      }
      add_part(v, k, *entry->second, lender_of(v.node->path, lenders, nodes), source);
      const auto [length, is_new] = lengths.emplace(v.dimension, v.parts.back().length);
      if (!is_new && length->second != v.parts.back().length)
        refuse(v.node->path, k,
               "along the dimension it has " + text::pluralize(v.parts.back().length, "element") + ", and other arrays have " +
                   std::to_string(length->second));
    }
    if (lengths.empty()) throw zarr::store_error("it has none of the arrays with the dimension");
    for (variable& v : variables_) {  // what this store does not have
      if (!v.parts.empty() && v.parts.back().source == k) continue;
      const auto length = lengths.find(v.dimension);
      v.parts.push_back({.folder = {}, .length = length == lengths.end() ? 0 : length->second, .source = k});
      v.encodings.emplace_back();
    }
    if (k > 0) compare_rest(k, tree, nodes, source);
    source.first = ends_[lengths.begin()->first];
    source.count = lengths.begin()->second;
    for (const auto& [dimension, length] : lengths) ends_[dimension] += length;
    first_.roots.push_back(tree.nodes.front().folder);
    for (const source_node& node : tree.nodes) {
      const std::string document = text::json_text(node.document);
      sum_.add_field(node.path);
      sum_.add_field(document);
      source.bytes += document.size();  // the chunks follow when they are listed
    }
  }

  void add_part(variable& v, std::size_t k, const source_node& node, const source_node* lender, joined_source& source) {
    const std::string& path = node.path;
    const zarr_array array(node.folder, codecs::make_decoder);
    const std::optional<std::size_t> axis = axis_of(node);
    if (k == 0) {
      v.shape = array.shape();
      v.chunk = array.chunk_shape();
    }
    if (axis != v.axis || array.shape().size() != v.shape.size()) refuse(path, k, "its dimensions differ");
    for (std::size_t d = 0; d < v.shape.size(); ++d) {
      if (d == v.axis) continue;
      if (array.shape()[d] != v.shape[d])
        refuse(path, k,
               "along another dimension they have " + std::to_string(v.shape[d]) + " and " + std::to_string(array.shape()[d]) +
                   " elements");
      if (array.chunk_shape()[d] != v.chunk[d] || !array.grid(d).is_regular())
        refuse(path, k,
               "their chunks are " + array::joined_text(v.chunk) + " and " + array::joined_text(array.chunk_shape()) +
                   ", which differ along another dimension; convert one of them alone first, with the other's shape as `chunk`");
    }
    cf_encoding encoding = encoding_of(node, array, lender);
    const text::json &type = metadata::data_type_of(node.document), &first_type = metadata::data_type_of(v.node->document);
    if (encoding.kind.size == 0 && type != first_type) refuse(path, k, "their data types differ");
    joined_array::part part{
        .folder = node.folder, .length = array.shape()[v.axis], .source = k, .store = names_[k], .kind = encoding.kind};
    part.is_stored_alike = type == first_type && metadata::inner_codecs(metadata::codecs_of(node.document)) == v.codecs;
    if (v.dimension == path && v.shape.size() == 1 && !concat_.allow_overlap && encoding.kind.size > 0) {
      if (const std::string name = unreadable_packing_attribute(encoding); !name.empty())
        throw unjoinable("\"" + path + "\" of \"" + names_[k] + "\" cannot be joined: its \"" + name +
                             "\" is not a single number that can be read exactly, and the order of its values cannot be checked; "
                             "`allow_overlap` skips the check",
                         {names_[k], path});
      if (part.length > options_.execution.memory / 64)
        throw zarr::not_supported(reason_code::too_large, "dimensions with more values than the memory can hold");
      sequences_[v.dimension].check(path, names_[k], encoding, numbers_in(source_array(array)));
    }
    v.parts.push_back(std::move(part));
    v.encodings.push_back(std::move(encoding));
    if (k > 0) compare_attributes(*v.node, node, true, source);
  }

  void compare_attributes(const source_node& first, const source_node& other, bool is_joined, joined_source& source) const {
    static const std::set<std::string> encodings = {"scale_factor",  "add_offset", "_FillValue",
                                                    "missing_value", "units",      "calendar"};
    std::string differing;
    for (const std::string& name :
         differing_attributes(metadata::attributes_or_empty(first.document), metadata::attributes_or_empty(other.document))) {
      if (!is_joined || !encodings.contains(name))
        differing += (differing.empty() ? "\"" : ", \"") + text::escape_name(name) + "\"";
    }
    if (differing.empty()) return;
    add_note(source, "its attributes " + differing + " of \"" + first.path + "\" differ from the first store's, which are kept",
             true);
  }

  // What is not joined is the same in all stores.
  void compare_rest(std::size_t k, const source_nodes& tree, const nodes_by_path& nodes, joined_source& source) {
    using different = concatenation::different_type;
    for (const source_node& node : first_.nodes) {
      if (!node.selected || !node.unreadable.empty()) continue;
      if (variable_of_.contains(node.path) || left_out_.contains(node.path)) continue;
      const auto other = nodes.find(node.path);
      const std::string reason = other == nodes.end() ? "is not in the other store" : difference(node, *other->second);
      if (reason.empty()) {
        compare_attributes(node, *other->second, false, source);
        continue;
      }
      if (concat_.different == different::refuse)
        throw unjoinable("\"" + node.path + "\" of \"" + names_[0] + "\" and of \"" + names_[k] + "\" is not joined, and " +
                             reason + "; leave it out with `exclude`, or set `different`",
                         {names_[k], node.path});
      const bool skips = concat_.different == different::skip;
      if (skips) left_out_.insert(node.path);
      add_note(source, "\"" + node.path + "\": " + reason + "; " + (skips ? "it is left out" : "the first store's is kept"));
    }
    text::selection selection(options_.selection.include, options_.selection.exclude);
    for (const source_node& node : tree.nodes) {
      if (first_nodes_.contains(node.path) || !node.is_array || !selection.matches(node.path)) continue;
      if (concat_.different == different::refuse)
        throw unjoinable(
            "\"" + node.path + "\" is in \"" + names_[k] + "\", and not in \"" + names_[0] +
                "\", the first; put a store first that has everything, leave it out with `exclude`, or set `different`",
            {names_[k], node.path});
      add_note(source, "\"" + node.path + "\" is not in the first store, and is left out");
    }
  }

  // Makes the first store's node that of all.
  void finish(variable& v) {
    const std::string& path = v.node->path;
    std::vector<cf_encoding> encodings;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < v.parts.size(); ++i) {
      if (!v.parts[i].folder) continue;
      encodings.push_back(v.encodings[i]);
      names.push_back(names_[v.parts[i].source]);
    }
    const reconciled_encoding reconciled = reconcile(encodings, names, path, false);
    auto joined = std::make_shared<joined_array>();
    joined->axis = v.axis;
    joined->kind = reconciled.encoding.kind;
    const bool has_other_type = encodings[0].kind != joined->kind;
    text::json& document = v.node->document;
    if (reconciled.unpacked) {
      text::json& attributes = metadata::mutable_attributes(document);
      for (const char* name :
           {"scale_factor", "add_offset", "_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"})
        attributes.erase(name);
      metadata::set_fill_value(document, "NaN");
    }
    if (has_other_type) {
      remove_type_notes(document);
      metadata::set_data_type(document, type_name(joined->kind));
      text::json& attributes = metadata::mutable_attributes(document);
      if (attributes.contains("_FillValue") && attributes["_FillValue"].is_number())
        attributes["_FillValue"] = metadata::missing_value_of(metadata::data_type_of(document), attributes["_FillValue"]);
      text::json codecs = metadata::bytes_codecs(joined->kind.size > 1, false);
      for (const text::json& codec : v.codecs) {
        if (codecs::is_bytes_to_bytes(metadata::codec_id_in(codec))) codecs.push_back(codec);
      }
      v.codecs = std::move(codecs);
    }
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < v.parts.size(); ++i) {
      joined_array::part& part = v.parts[i];
      length += part.length;
      if (part.length == 0) continue;
      joined_source& source = first_.sources[part.source];
      if (part.folder) {
        part.change = change_of(v.encodings[i], reconciled);
        if (part.change && i > 0 && !reconciled.unpacked)
          add_note(source, "\"" + path + "\": its values are converted to the encoding of the first store");
        if (has_other_type)
          add_note(source, "\"" + path + "\": stored " + (reconciled.unpacked ? "unpacked, as " : "as ") +
                               (joined->kind.is_integer ? "integers" : "floats") + " of " +
                               std::to_string(8 * joined->kind.size) + " bits, for " + reconciled.reason);
        part.is_stored_alike = part.is_stored_alike && !has_other_type;
      }
      joined->parts.push_back(std::move(part));
    }
    metadata::set_extent(document, v.axis, length);
    joined->data_type = metadata::data_type_of(document);
    joined->fill_value = metadata::fill_value_of(document);
    if (joined->parts.size() < 2) {  // all others are empty
      if (joined->parts.empty() || !joined->parts[0].folder) return;
      joined_array::part& only = joined->parts[0];
      if (only.source == 0 && !only.change && !has_other_type) return;
      if (!has_other_type) {
        metadata::set_codecs(document, metadata::codecs_of(zarr::read_stored_node(*only.folder).document));
        v.codecs = metadata::inner_codecs(metadata::codecs_of(document));
        only.is_stored_alike = true;
      }
    }
    v.node->joined = joined;
    const source_array array = open_source_array(*v.node);
    metadata::set_codecs(document, array.divides_shards() || has_other_type || array::product(array.chunks_per_shard()) == 1
                                       ? v.codecs
                                       : metadata::codecs_of(document));
    set_grid(document, array);
  }

  static void set_grid(text::json& document, const source_array& array) {
    if (array.is_regular()) {
      array::extents object = array.chunk_shape();
      for (std::size_t d = 0; d < object.size(); ++d) object[d] *= array.chunks_per_shard()[d];
      return metadata::set_chunk_grid(document, metadata::regular_grid(object));
    }
    text::json shapes = text::json::array();
    for (std::size_t d = 0; d < array.shape().size(); ++d) {
      text::json lengths = text::json::array();
      for (const auto& run : array.grid(d).runs())
        lengths.push_back(run.count > 1 ? text::json{run.length, run.count} : text::json(run.length));
      shapes.push_back(std::move(lengths));
    }
    metadata::array_metadata grid;
    grid.chunk_shapes = std::move(shapes);
    metadata::set_chunk_grid(document, metadata::chunk_grid_json(grid));
  }

  source_nodes& first_;
  const std::vector<std::string> names_;
  const convert_options& options_;
  const concatenation& concat_;
  const std::function<void(const std::string& path)>& callback_;
  nodes_by_path first_nodes_;
  std::vector<variable> variables_;
  std::map<std::string, std::size_t> variable_of_;
  std::map<std::string, std::uint64_t> ends_;        // of each dimension, so far
  std::map<std::string, sequence_check> sequences_;  // by the path of the dimension
  std::set<std::string> left_out_;
  text::sha256 sum_;
};

// The meaning of the first value of the dimension's variable that is not missing.
long double first_value(const std::string& name, const convert_options& options) {
  const source_nodes tree = read_tree(name, options, [](const std::string&) {});
  const nodes_by_path nodes = by_path(tree);
  const inherited_units lenders = find_lenders(tree);
  for (const source_node& node : tree.nodes) {
    if (!node.is_array || !node.unreadable.empty() || text::base_name(node.path) != options.source.concat->dimension) continue;
    const zarr_array array(node.folder, codecs::make_decoder);
    const cf_encoding encoding = encoding_of(node, array, lender_of(node.path, lenders, nodes));
    if (array.shape().size() != 1 || encoding.kind.size == 0) continue;
    if (array.shape()[0] > options.execution.memory / 64)
      throw zarr::not_supported(reason_code::too_large, "dimensions with more values than the memory can hold");
    for (const double stored : numbers_in(source_array(array))) {
      if (const auto value = meaning(encoding, stored)) return *value;
    }
  }
  throw error(errc::no_match,
              "\"" + name + "\" has no variable \"" + options.source.concat->dimension +
                  "\" with a first value, by which the stores were to be ordered; set another `order`",
              {name, options.source.concat->dimension});
}

}  // namespace

void order_stores(convert_options& options) {
  std::vector<std::string> names = ordered_sources(options, [&](const std::string& name) { return first_value(name, options); });
  options.source.concat->order = concatenation::order_type::given;
  options.source.name = std::move(names.front());
  options.source.concat->sources.assign(std::make_move_iterator(names.begin() + 1), std::make_move_iterator(names.end()));
}

void join_stores(source_nodes& first, const convert_options& options,
                 const std::function<void(const std::string& path)>& callback) {
  store_joiner(first, options, callback).run();
}

std::size_t source_of_part(const joined_array& joined, std::size_t part) { return joined.parts.at(part).source; }

source_array open_source_array(const source_node& node) {
  if (!node.joined) return source_array(zarr_array(node.folder, codecs::make_decoder));
  const joined_array& joined = *node.joined;
  source_array::whole whole{joined.axis, zarr::parse_type(joined.data_type), {}};
  whole.fill = zarr::parse_fill(whole.type, joined.fill_value);
  std::vector<source_array::part> parts;
  for (const joined_array::part& p : joined.parts) {
    source_array::part part{.length = p.length, .is_stored_alike = p.is_stored_alike, .source = p.store};
    if (p.folder) {
      part.array.emplace(*p.folder, codecs::make_decoder);
      part.change = change_to(joined.kind, p);
      element_buffer fill = part.array->fill();
      try {
        if (part.change) part.change(fill);
      } catch (const unrepresentable_value& e) {
        fill = whole.fill;
        part.own_fill = fill;
        part.unrepresentable_fill = e.what();
      }
      if (fill.data != whole.fill.data || fill.strings != whole.fill.strings) part.own_fill = std::move(fill);
    }
    parts.push_back(std::move(part));
  }
  return {std::move(parts), std::move(whole)};
}

}  // namespace zarrbits::conversion
