// SPDX-License-Identifier: BSL-1.0
#include "export/file_writer.hpp"

#include "export/attribute_values.hpp"
#include "export/chunk_plan.hpp"
#include "export/link_order.hpp"
#include "export/property_lists.hpp"
#include "export/write_chunks.hpp"
#include "metadata/node.hpp"
#include "text/format.hpp"
#include "text/memory_estimate.hpp"
#include "text/name_escaping.hpp"
#include "text/nfc.hpp"
#include "text/warning.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace zarrbits::exporting {

using conversion::source_array;
using text::escape_name;
using kind_type = tree_node::kind_type;

namespace {

constexpr unsigned in_order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;

bool is_reference(const store_node& node) {
  const text::json& note = node.note("hdf5_type");
  if (!note.is_object()) return false;
  const text::json kind = note.value("class", text::json());
  return kind == "object_reference" || kind == "region_reference";
}

// Creates an object. A name that two nodes have by their notes, for example, is a reason to leave one of them out.
template <class F>
void created(F&& create) {
  try {
    create();
  } catch (const hdf5::failure& e) {
    throw unsupported_in_hdf5(reason_code::unsupported_feature, e.what());
  }
}

// Runs `write`. Returns the reason to skip the object (HDF5 cannot have it or, with `keep_going`, it is damaged); else
// empty.
template <class F>
text::coded_reason reason_to_skip(bool keep_going, const std::string& path, F&& write) {
  try {
    write();
    return {};
  } catch (const unsupported_in_hdf5& e) {
    return e.reason();
  } catch (const zarr::not_supported& e) {
    return e.reason();
  } catch (const zarr::store_error& e) {
    if (!keep_going) throw zarr::store_error("\"" + escape_name(path) + "\": " + e.what(), e.code, e.reason);
    return {e.reason, e.what()};
  } catch (const compressors::corrupt_chunk& e) {
    if (!keep_going) throw compressors::corrupt_chunk("\"" + escape_name(path) + "\": " + e.what());
    return {reason_code::damaged, e.what()};
  } catch (const text::json::exception& e) {
    return {reason_code::damaged, std::string("its metadata is invalid: ") + e.what()};
  }
}

// Times of numpy in years or months, which CF does not have.
bool has_times_without_units(const tree_node& n) {
  if (n.kind != kind_type::array) return false;
  try {
    cf_time_attributes(zarr::parse_type(metadata::data_type_of(read_node(n).document)));
    return false;
  } catch (const unsupported_in_hdf5&) {
    return true;
  } catch (const std::runtime_error&) {  // told where the array is written
    return false;
  }
}

}  // namespace

bool looks_like_netcdf(const store_tree& tree) {
  if (!tree.convention.empty()) return tree.convention == "netcdf";
  if (tree.has_notes) return false;
  const bool has_coordinate = std::any_of(tree.nodes.begin(), tree.nodes.end(), [](const tree_node& n) {
    return n.kind == kind_type::array && n.dimensions.size() == 1 && n.dimensions[0] == last_of(n.path);
  });
  // nothing is left out for netCDF's sake of a file that nobody said was for netCDF
  return has_coordinate && std::none_of(tree.nodes.begin(), tree.nodes.end(), has_times_without_units);
}

file_writer::file_writer(hid_t file, store_tree& tree, const spec_rules& rules, const export_options& options,
                         export_report& report)
    : file_(file), tree_(tree), options_(options), report_(report), rules_(rules), types_(file, {}), references_(file, tree.top) {
  links_ = hdf5::handle(H5Pcreate(H5P_LINK_CREATE), "create properties");
  hdf5::check(H5Pset_char_encoding(links_, H5T_CSET_UTF8), "set the encoding of names");
  if (rules.netcdf) scales_.emplace(tree, rules_);
  if (!rules.netcdf_types) return;
  types_ = committed_types(file, [this](const std::string& name) {
    const auto has_it = [&](const tree_node& n) { return n.path == "/" + name; };
    return std::any_of(tree_.nodes.begin(), tree_.nodes.end(), has_it) ||
           std::any_of(scales_->scales().begin(), scales_->scales().end(),
                       [&](const scale& s) { return scales_->path_of(s) == "/" + name; });
  });
}

void file_writer::run() {
  for (const left_out& item : tree_.unnamed) {
    exported_object& e = report_.objects.emplace_back();
    e.path = item.path;
    skip(e, item.reason);
  }
  if (scales_) {
    for (const left_out& item : scales_->renamed()) {
      exported_object& e = report_.objects.emplace_back();
      e.path = escape_name(item.path);
      e.kind = object_kind::attribute;
      e.attribute = "dimension_names";
      skip(e, item.reason);
    }
  }
  create_all();
  // references lead to objects in the file, so they are written once these are known
  for (const bool with_references : {false, true}) {
    for (std::size_t i = 0; i < tree_.nodes.size(); ++i) write_dataset(i, with_references);
  }
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) create_links(i);
  if (scales_) scales_->create(file_);  // of arrays that had to be left out
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) attributes_of(i);
  if (scales_) {
    attributes_of_scales();
    scales_->attach(file_);
  }
  for (const tree_node& n : tree_.nodes) {
    if (n.is_ordered && n.is_created) order_links(n);
  }
}

void file_writer::order_links(const tree_node& n) {
  const link_order order(read_node(n));
  order.apply(hdf5::handle(H5Gopen2(file_, n.path.c_str(), H5P_DEFAULT), "open a group"));
}

void file_writer::skip(exported_object& entry, const text::coded_reason& reason) {
  entry.outcome = outcome::skipped;
  text::set_reason(entry, reason.code, reason.sentence);
}

void file_writer::note_dangling(exported_object& entry) {
  if (const auto count = references_.take_dangling())
    text::set_reason(entry, reason_code::dangling_reference,
                     text::pluralize(count, "reference") + " to what the file does not have; null in the file");
}

std::string file_writer::name_of_note(const std::string& shown_name) const {
  std::string name = text::unescape_name(shown_name);
  return rules_.netcdf_types ? text::to_nfc(name) : name;
}

void file_writer::remove(tree_node& n) {
  n.is_created = false;
  H5Ldelete(file_, n.path.c_str(), H5P_DEFAULT);
  H5Eclear2(H5E_DEFAULT);
}

hdf5::handle file_writer::group_properties(const tree_node& n) const {
  hdf5::handle properties = make_property_list(H5P_GROUP_CREATE);
  // libnetcdf has variables in the order in which they were made
  if (rules_.netcdf || n.is_ordered) hdf5::check(H5Pset_link_creation_order(properties, in_order), "track the order of links");
  if (rules_.netcdf) hdf5::check(H5Pset_attr_creation_order(properties, in_order), "track the order of attributes");
  return properties;
}

hid_t file_writer::group(std::size_t index) {
  constexpr std::size_t max_open = 64;
  if (const auto match = open_groups_.find(index); match != open_groups_.end()) return match->second;
  const tree_node& n = tree_.nodes[index];
  const auto parent = open_groups_.find(n.parent);
  hdf5::handle opened(parent == open_groups_.end() ? H5Gopen2(file_, n.path.c_str(), H5P_DEFAULT)
                                                   : H5Gopen2(parent->second, last_of(n.path).c_str(), H5P_DEFAULT),
                      "open a group");
  if (open_groups_.size() == max_open) open_groups_.clear();
  return open_groups_.emplace(index, std::move(opened)).first->second;
}

hdf5::handle file_writer::open(const tree_node& n) {
  return n.path == "/" ? hdf5::handle(H5Gopen2(file_, "/", H5P_DEFAULT), "open a group")
                       : hdf5::handle(H5Oopen(group(n.parent), last_of(n.path).c_str(), H5P_DEFAULT), "open an object");
}

void file_writer::create_all() {
  std::vector<std::size_t> deferred;  // their fill values may lead to the others
  for (std::size_t i = 0; i < tree_.nodes.size(); ++i) {
    tree_node& n = tree_.nodes[i];
    exported_object e;
    e.path = escape_name(n.path);
    if ("/" + n.folder.path() != e.path) e.store_path = "/" + n.folder.path();
    e.kind = n.kind == kind_type::group        ? object_kind::group
             : n.kind == kind_type::named_type ? object_kind::datatype
                                               : object_kind::dataset;
    entries_.push_back(report_.objects.size());
    report_.objects.push_back(std::move(e));
    if (i > 0 && !tree_.nodes[n.parent].is_created) {
      skip(entry_of(i), {reason_code::parent_skipped, "its group is not in the file"});
      continue;
    }
    if (options_.progress) options_.progress(escape_name(n.path), 0, 0);
    if (n.kind == kind_type::array && is_reference(read_node(n))) {
      deferred.push_back(i);
      continue;
    }
    const text::coded_reason reason = reason_to_skip(true, n.path, [&] {  // by its metadata alone
      const std::string fault = rules_.netcdf_types ? fault_of_netcdf_name(last_of(n.path)) : "";
      if (!fault.empty()) throw unsupported_in_hdf5(reason_code::invalid_name, fault);
      created([&] {
        if (n.kind == kind_type::group) create_group(n);
        else if (n.kind != kind_type::named_type) create_dataset(i);
      });
      n.is_created = true;
    });
    if (!reason.empty()) skip(entry_of(i), reason);
    if (n.kind == kind_type::group && n.is_created) create_named_types(i, read_node(n));
  }
  for (const std::size_t i : deferred) {
    const text::coded_reason reason = reason_to_skip(true, tree_.nodes[i].path, [&] {
      created([&] { create_dataset(i); });
      tree_.nodes[i].is_created = true;
    });
    if (!reason.empty()) skip(entry_of(i), reason);
  }
  if (scales_) scales_->create(file_);
}

void file_writer::create_group(tree_node& n) {
  if (n.path == "/") return;
  const hdf5::handle properties = group_properties(n);
  const hdf5::handle created_group(H5Gcreate2(group(n.parent), last_of(n.path).c_str(), links_, properties, H5P_DEFAULT),
                                   "create a group");
}

void file_writer::commit_type(hid_t group, const std::string& name, const text::json& note, const std::string& path) {
  exported_object e;
  e.path = path;
  e.kind = object_kind::datatype;
  const text::coded_reason reason = reason_to_skip(options_.keep_going, path, [&] {
    if (!is_link_name(name)) throw unsupported_in_hdf5(reason_code::invalid_name, "HDF5 cannot have this name");
    type_spec t = spec_of_note(note, rules_);
    if (rules_.netcdf_types) {
      t = netcdf_spec(std::move(t));
      if (!is_user_type(t))
        throw unsupported_in_hdf5(reason_code::unsupported_type,
                                  "a named type that is a number or a text, which netCDF does not have");
      types_.commit_parts(t, name);
    }
    const hdf5::handle properties = make_property_list(H5P_DATATYPE_CREATE);
    created(
        [&] { hdf5::check(H5Tcommit2(group, name.c_str(), t.file, links_, properties, H5P_DEFAULT), "create a named type"); });
    types_.add(std::move(t.file));
  });
  if (!reason.empty()) skip(e, reason);
  report_.objects.push_back(std::move(e));
}

void file_writer::create_named_types(std::size_t index, const store_node& node) {
  const text::json& types = node.note("named_types");
  if (!types.is_object()) return;
  const std::string path = tree_.nodes[index].path;
  const hid_t parent = group(index);
  for (const auto& item : types.items())
    commit_type(parent, name_of_note(item.key()), item.value(), path_below(escape_name(path), item.key()));
}

hdf5::handle file_writer::dataset(const tree_node& n, const type_spec& type, const array::extents& dims,
                                  const array::extents& max_dims, const array::extents& chunk, bool null, hid_t properties) {
  const hdf5::handle space(null           ? H5Screate(H5S_NULL)
                           : dims.empty() ? H5Screate(H5S_SCALAR)
                                          : H5Screate_simple(static_cast<int>(dims.size()), hdf5::to_hsize(dims).data(),
                                                             hdf5::to_hsize(max_dims).data()),
                           "create a dataspace");
  if (!chunk.empty())
    hdf5::check(H5Pset_chunk(properties, static_cast<int>(chunk.size()), hdf5::to_hsize(chunk).data()),
                "set the shape of chunks");
  if (rules_.netcdf) hdf5::check(H5Pset_attr_creation_order(properties, in_order), "track the order of attributes");
  const hid_t in_file = types_.commit(type, last_of(n.path));
  return {H5Dcreate2(group(n.parent), last_of(n.path).c_str(), in_file, space, links_, properties, H5P_DEFAULT),
          "create a dataset"};
}

void file_writer::set_fill(hid_t properties, const source_array& array, const dataset_spec& form) {
  value_arena arena(1U << 20);
  const type_spec& type = form.type();
  std::vector<std::byte> value(type.size, std::byte{0});
  const zarr::element_buffer& fill = array.fill();
  const std::size_t size = form.element.size;
  const bool is_written = must_write_fill(array, form);
  // a text stays in the properties, too, for those who ask for it; netCDF's programs would read it
  if (is_written && (rules_.netcdf_types || form.element.kind != type_kind::text)) return;
  if (array.type().variable()) {
    if (fill.strings[0].empty()) return;
    write_text_value(form.element, fill.strings[0], value.data(), references_, arena);
  } else if (form.same_layout) {
    for (std::size_t i = 0; i < form.inner; ++i) std::memcpy(value.data() + i * size, fill.data.data(), size);
    set_order(form.element, value.data(), form.inner);
  } else {
    if (type.has_variable_parts() && !is_written) return;  // libhdf5's own is empty, too
    write_element(form.element, array.type(), fill.data.data(), value.data(), references_, arena);
  }
  if (references_.take_dangling() > 0) return;
  if (std::all_of(value.begin(), value.end(), [](std::byte b) { return b == std::byte{0}; })) return;
  hdf5::check(H5Pset_fill_value(properties, type.memory, value.data()), "set the fill value");
}

void file_writer::warn_of_chunks(const tree_node& n, const source_array& array, const dataset_spec& form) const {
  std::uint64_t bytes = std::max<std::uint64_t>(form.element.size, 1);
  for (const std::uint64_t extent : array.chunk_shape()) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return;  // it is refused
  }
  constexpr std::uint64_t max_copies = 3;  // stored, decoded, encoded
  const std::string sentence = text::chunk_memory_warning(
      {"array \"" + escape_name(n.path) + "\" of \"" + options_.store + "\"", bytes, max_copies * bytes}, options_.memory,
      "increase `memory`");
  text::report_sentence(options_.warning, sentence);
}

void file_writer::create_dataset(std::size_t index) {
  const tree_node& n = tree_.nodes[index];
  const store_node node = read_node(n);
  const hdf5::handle properties = make_property_list(H5P_DATASET_CREATE);
  if (!node.is_array) {
    const grouped_spec f = grouped_spec_of(n.folder, node, rules_);
    (void)dataset(n, f.type, f.dims, f.max_dims, f.chunk, false, properties);
    return;
  }
  const source_array array = open_array(n);
  const dataset_spec f = dataset_spec_of(array, node, rules_);
  warn_of_chunks(n, array, f);
  if (rules_.netcdf_types) cf_time_attributes(array.type());  // or it has none
  if (f.null && rules_.netcdf_types)
    throw unsupported_in_hdf5(reason_code::unsupported_feature, "an array without a shape, which netCDF does not have");
  if (!f.null) set_fill(properties, array, f);
  if (!f.chunk.empty() && f.same_layout) {
    const chunk_plan recipe(array, node, f, options_);
    for (const hdf5::filter& filter : recipe.filters()) {
      const unsigned* values = filter.values.data();
      if (filter.id == H5Z_FILTER_DEFLATE) hdf5::check(H5Pset_deflate(properties, values[0]), "set a filter");
      else if (filter.id == H5Z_FILTER_SHUFFLE) hdf5::check(H5Pset_shuffle(properties), "set a filter");
      else if (filter.id == H5Z_FILTER_FLETCHER32) hdf5::check(H5Pset_fletcher32(properties), "set a filter");
      else hdf5::check(H5Pset_filter(properties, filter.id, H5Z_FLAG_OPTIONAL, filter.values.size(), values), "set a filter");
      std::string& filters = entry_of(index).filters;
      filters += (filters.empty() ? "" : ", ") + filter.name;
    }
  }
  (void)dataset(n, f.type(), f.dims, f.max_dims, f.chunk, f.null, properties);
}

void file_writer::write_dataset(std::size_t index, bool with_references) {
  tree_node& n = tree_.nodes[index];
  if (!n.is_created || (n.kind != kind_type::array && n.kind != kind_type::grouped)) return;
  exported_object& entry = entry_of(index);
  const text::coded_reason reason = reason_to_skip(options_.keep_going, n.path, [&] {
    const store_node node = read_node(n);
    if (node.is_array) return write_array(n, node, entry, with_references);
    const grouped_spec f = grouped_spec_of(n.folder, node, rules_);
    if (f.type.holds_references() != with_references) return;
    const hdf5::handle dataset = open(n);
    write_grouped(dataset, n.folder, f, options_.memory, references_);
    note_dangling(entry);
  });
  references_.take_dangling();
  if (reason.empty()) return;
  remove(n);
  skip(entry, reason);
}

void file_writer::write_array(tree_node& n, const store_node& node, exported_object& entry, bool with_references) {
  const source_array array = open_array(n);
  const dataset_spec f = dataset_spec_of(array, node, rules_);
  if (f.type().holds_references() != with_references || f.null) return;
  const hdf5::handle dataset = open(n);
  const chunk_progress on_progress = [&](std::uint64_t completed, std::uint64_t total) {
    if (options_.progress) options_.progress(entry.path, completed, total);
  };
  on_progress(0, 0);
  written_chunks written;
  if (!f.chunk.empty() && f.same_layout) {
    const chunk_plan recipe(array, node, f, options_);
    written = write_chunks(dataset, array, f, recipe, options_, on_progress);
    entry.outcome = written.any_recoded ? outcome::recoded : recipe.expected_outcome();
  } else {
    written = write_values(dataset, array, f, options_, references_, on_progress);
    entry.outcome = f.same_layout ? outcome::recoded : outcome::mapped;
  }
  entry.chunks = written.count;
  entry.store_bytes = written.store_bytes;
  entry.file_bytes = written.file_bytes;
  for (const auto& [chunk, reason] : written.lost_chunks) entry.lost_chunks.push_back(chunk);
  if (!written.lost_chunks.empty()) {
    text::set_reason(
        entry, reason_code::lost_chunks,
        text::pluralize(written.lost_chunks.size(), "chunk") + " cannot be read: " + written.lost_chunks.front().second);
  } else {
    note_dangling(entry);
  }
}

void file_writer::create_links(std::size_t index) {
  const tree_node& n = tree_.nodes[index];
  if (n.kind != kind_type::group || !n.is_created) return;
  const store_node node = read_node(n);
  const text::json& skipped = node.note("skipped");
  if (skipped.is_object()) {
    for (const auto& item : skipped.items()) {
      if (!tree_.selection.matches(path_below(escape_name(n.path), item.key()))) continue;
      exported_object& e = report_.objects.emplace_back();
      e.path = path_below(escape_name(n.path), item.key());
      e.kind = object_kind::dataset;
      skip(e, {reason_code::parent_skipped, "the store does not have it either"});
    }
  }
  const text::json& links = node.note("links");
  if (!links.is_object()) return;
  for (const auto& item : links.items()) {
    if (!tree_.selection.matches(path_below(escape_name(n.path), item.key()))) continue;
    const bool external = item.value().is_object() && item.value().value("kind", text::json()) == "external";
    const bool is_copied = H5Lexists(file_, path_below(n.path, name_of_note(item.key())).c_str(), H5P_DEFAULT) > 0;
    if (is_copied && !external) continue;  // its target
    exported_object e;
    e.path = path_below(escape_name(n.path), item.key());
    e.kind = object_kind::link;
    if (is_copied) {
      text::set_reason(e, reason_code::changed_form, "a copy of its target, which a link would not find");
      report_.objects.push_back(std::move(e));
      continue;
    }
    try {
      write_link(n.path, name_of_note(item.key()), item.value(), e);
    } catch (const unsupported_in_hdf5& problem) {
      skip(e, problem.reason());
    } catch (const hdf5::failure& problem) {
      skip(e, problem.reason());
    }
    report_.objects.push_back(std::move(e));
  }
}

void file_writer::write_link(const std::string& group, const std::string& name, const text::json& note, exported_object& entry) {
  const auto text = [&](const char* key) {
    return note.is_object() && note.value(key, text::json()).is_string() ? name_of_note(note[key].get<std::string>()) : "";
  };
  const std::string kind = text("kind"), target = text("target"), target_file = text("file");
  if (!is_link_name(name)) throw unsupported_in_hdf5(reason_code::invalid_name, "HDF5 cannot have this name");
  for (const std::string& part : {target, target_file}) {
    if (part.find('\0') != std::string::npos) throw unsupported_in_hdf5(reason_code::unsupported_feature, "its target has a NUL");
  }
  const std::string path = path_below(group, name);
  if (rules_.netcdf_types) {  // its programs do not open a file in which a link leads nowhere, and follow groups without end
    H5O_info_t info;
    const hdf5::handle parent(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), "open a group");
    const bool exists = kind != "external" && H5Oexists_by_name(parent, target.c_str(), H5P_DEFAULT) > 0 &&
                        H5Oget_info_by_name(parent, target.c_str(), &info, H5P_DEFAULT) >= 0;
    H5Eclear2(H5E_DEFAULT);
    if (!exists || info.type != H5O_TYPE_DATASET)
      throw unsupported_in_hdf5(reason_code::unsupported_feature, "a link to something else than an array of the file");
  }
  if (kind == "hard") {
    hdf5::check(H5Lcreate_hard(file_, target.c_str(), file_, path.c_str(), links_, H5P_DEFAULT), "create a link");
  } else if (kind == "soft") {
    hdf5::check(H5Lcreate_soft(target.c_str(), file_, path.c_str(), links_, H5P_DEFAULT), "create a link");
  } else if (kind == "external") {
    hdf5::check(H5Lcreate_external(target_file.c_str(), target.c_str(), file_, path.c_str(), links_, H5P_DEFAULT),
                "create a link");
  } else {
    throw unsupported_in_hdf5(reason_code::unsupported_feature, kind == "user"    ? "a link of a class that a program registered"
                                                                : kind == "store" ? "a link to another Zarr store"
                                                                                  : "a link that HDF5 could not open");
  }
  if (kind == "external")
    text::set_reason(entry, reason_code::link_not_followed, "a link to \"" + escape_name(target_file) + "\", as in the source");
}

void file_writer::put_attributes(hid_t object, const std::string& path, const text::json& attributes, const text::json& notes,
                                 const zarr::zarr_type* array, bool big_endian, bool is_scale) {
  references_.begin_at(path.substr(0, path.rfind('/')));
  const attribute_rules rules{rules_, tree_.convention == "nwb", tree_.has_notes, array, big_endian, is_scale, types_};
  write_attributes(object, attributes, notes, rules, references_, options_.memory / 4,
                   [&](const std::string& name, bool skipped, const text::coded_reason& reason) {
    exported_object e;
    e.path = escape_name(path);
    e.kind = object_kind::attribute;
    e.attribute = escape_name(name);
    text::set_reason(e, reason.code, reason.sentence);
    note_dangling(e);
    if (skipped) skip(e, reason);
    report_.objects.push_back(std::move(e));
  });
}

void file_writer::attributes_of(std::size_t index) {
  tree_node& n = tree_.nodes[index];
  if (n.kind != kind_type::named_type && !n.is_created) return;
  if (n.kind == kind_type::named_type) {  // its group has made it
    n.is_created = H5Lexists(group(n.parent), last_of(n.path).c_str(), H5P_DEFAULT) > 0;
    H5Eclear2(H5E_DEFAULT);
    if (!n.is_created) return skip(entry_of(index), {reason_code::parent_skipped, "its type is not in the file"});
  }
  store_node node = read_node(n);
  if (index == 0 && tree_.nodes.size() > 1 && (node.is_array || tree_.nodes[1].folder.path() == n.folder.path())) return;
  for (const detail::attribute_remark& r : node.remarks) {
    exported_object& e = report_.objects.emplace_back();
    e.path = escape_name(n.path);
    e.kind = object_kind::attribute;
    e.attribute = escape_name(r.attribute);
    text::set_reason(e, r.code, r.reason);
    if (r.left_out) e.outcome = outcome::skipped;
  }
  const hdf5::handle object = open(n);
  if (!node.is_array) return put_attributes(object, n.path, node.attributes, node.notes, nullptr, false, false);
  const source_array array = open_array(n);
  exported_object attribute;
  attribute.path = escape_name(n.path);
  attribute.kind = object_kind::attribute;
  add_attributes_of_type(array, node, std::move(attribute));
  put_attributes(object, n.path, node.attributes, node.notes, &array.type(), metadata::is_big_endian(codecs_of_chunks(node)),
                 scales_ && scales_->is_scale(index));
  const bool labelled = !scales_ && std::any_of(n.dimensions.begin(), n.dimensions.end(),
                                                [](const std::string& d) { return !d.empty() && !text::is_phony(d); });
  if (!labelled) return;
  std::vector<std::string> names = n.dimensions;
  const hdf5::handle space(H5Dget_space(object), "get a dataspace");
  names.resize(static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  for (std::string& name : names) {
    if (text::is_phony(name) || name.find('\0') != std::string::npos) name.clear();
  }
  if (!names.empty()) write_labels(object, names);
}

void file_writer::add_attributes_of_type(const source_array& array, store_node& node, exported_object attribute) {
  if (array.type().kind == zarr::zarr_kind::boolean && rules_.netcdf && !node.attributes.contains("dtype") &&
      !node.note("attribute_values").contains("dtype"))
    node.attributes["dtype"] = "bool";  // as xarray says it in netCDF
  if (!rules_.netcdf_types) return;
  const text::json times = cf_time_attributes(array.type());
  for (const auto& item : times.items()) {
    if (node.attributes.contains(item.key()) && node.attributes[item.key()] != item.value()) {
      attribute.attribute = item.key();
      skip(report_.objects.emplace_back(attribute),
           {reason_code::changed_form, "netCDF has times as numbers, whose unit this attribute says"});
    }
    node.attributes[item.key()] = item.value();
  }
}

void file_writer::attributes_of_scales() {
  for (const scale& s : scales_->scales()) {
    if (s.variable || !scales_->is_made(s) || (s.attributes.empty() && s.notes.empty())) continue;
    const std::string path = scales_->path_of(s);
    const hdf5::handle object(H5Oopen(file_, path.c_str(), H5P_DEFAULT), "open an object");
    put_attributes(object, path, s.attributes, s.notes, nullptr, false, true);
  }
}

}  // namespace zarrbits::exporting
