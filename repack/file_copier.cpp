// SPDX-License-Identifier: BSL-1.0
#include "repack/file_copier.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/plugin_filters.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::repacking {

namespace {

// Messages in the object headers of HDF5 1.6 have at most 64 KiB.
constexpr std::size_t max_compact_attribute = 64000;
constexpr std::uint64_t max_attribute_strings = std::uint64_t{1} << 30;

std::string quoted(const std::string& path) { return "\"" + text::escape_name(path) + "\""; }

haddr_t address_of(hid_t object) {
  H5O_info_t info;
  std::memset(&info, 0, sizeof info);
  hdf5::check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "get information about an object");
  return info.addr;
}

hdf5::handle link_properties(const tree_link& link) {
  hdf5::handle properties(H5Pcreate(H5P_LINK_CREATE), "create properties");
  if (link.utf8) hdf5::check(H5Pset_char_encoding(properties, H5T_CSET_UTF8), "set the character set of a name");
  return properties;
}

hdf5::handle creation_properties_of(hid_t object, H5I_type_t kind) {
  return kind == H5I_GROUP     ? hdf5::handle(H5Gget_create_plist(object), "get the properties of a group")
         : kind == H5I_DATASET ? hdf5::handle(H5Dget_create_plist(object), "get the properties of a dataset")
                               : hdf5::handle(H5Tget_create_plist(object), "get the properties of a named type");
}

// One by one: libhdf5 puts the addresses of a group's heap and index into its property list, and would believe them in another
// file.
void copy_group_properties(hid_t from, hid_t to) {
  unsigned links = 0, attributes = 0, max_compact = 0, min_dense = 0, names = 0, length = 0;
  std::size_t heap = 0;
  hdf5::check(H5Pget_link_creation_order(from, &links), "get the order of links");
  hdf5::check(H5Pset_link_creation_order(to, links), "set the order of links");
  hdf5::check(H5Pget_attr_creation_order(from, &attributes), "get the order of attributes");
  hdf5::check(H5Pset_attr_creation_order(to, attributes), "set the order of attributes");
  hdf5::check(H5Pget_attr_phase_change(from, &max_compact, &min_dense), "get the storage of attributes");
  hdf5::check(H5Pset_attr_phase_change(to, max_compact, min_dense), "set the storage of attributes");
  hdf5::check(H5Pget_link_phase_change(from, &max_compact, &min_dense), "get the storage of links");
  hdf5::check(H5Pset_link_phase_change(to, max_compact, min_dense), "set the storage of links");
  hdf5::check(H5Pget_est_link_info(from, &names, &length), "get the estimate of links");
  hdf5::check(H5Pset_est_link_info(to, names, length), "set the estimate of links");
  hdf5::check(H5Pget_local_heap_size_hint(from, &heap), "get the size of the heap");
  hdf5::check(H5Pset_local_heap_size_hint(to, heap), "set the size of the heap");
  for (const hdf5::filter& f : hdf5::read_pipeline(from).filters)
    hdf5::check(H5Pset_filter(to, f.id, H5Z_FLAG_MANDATORY, f.values.size(), f.values.data()), "set a filter of links");
  hdf5::check(H5Pset_obj_track_times(to, false), "leave out times");
}

// Without times, which would be those of now: one file becomes one file, whenever it is repacked.
hdf5::handle properties_for_copy(hid_t object, H5I_type_t kind) {
  hdf5::handle properties = creation_properties_of(object, kind);
  if (kind == H5I_GROUP) {
    hdf5::handle copy(H5Pcreate(H5P_GROUP_CREATE), "create properties");
    copy_group_properties(properties, copy);
    return copy;
  }
  hdf5::check(H5Pset_obj_track_times(properties, false), "leave out times");
  return properties;
}

std::vector<std::string> attribute_names(hid_t object, H5I_type_t kind) {
  unsigned order = 0;
  hdf5::check(H5Pget_attr_creation_order(creation_properties_of(object, kind), &order), "get the order of attributes");
  std::vector<std::string> names;
  const bool tracked = (order & H5P_CRT_ORDER_TRACKED) != 0;
  hdf5::check(
      hdf5::list_attributes(object, tracked ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, tracked ? H5_ITER_INC : H5_ITER_NATIVE, names),
      "list attributes");
  return names;
}

bool has_filters_of_plugins(const hdf5::pipeline& p) {
  return std::any_of(p.filters.begin(), p.filters.end(), [](const hdf5::filter& f) { return f.id >= H5Z_FILTER_RESERVED; });
}

std::size_t encode_nothing(unsigned, std::size_t, const unsigned*, std::size_t, std::size_t*, void**) { return 0; }

// `present`: libhdf5 may create datasets with the filter. Without a name: libhdf5 would write it into the file.
void register_placeholder(H5Z_filter_t id, bool present) {
  const H5Z_class2_t placeholder{H5Z_CLASS_T_VERS, id, present, present, nullptr, nullptr, nullptr, encode_nothing};
  hdf5::check(H5Zregister(&placeholder), "register a filter");
}

// A fill value of references; empty if it has none.
std::vector<std::byte> references_in_fill_value(hid_t properties, hid_t type) {
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  hdf5::check(H5Pfill_value_defined(properties, &status), "get the fill value");
  if (status != H5D_FILL_VALUE_USER_DEFINED || !reference_map::has_references(type)) return {};
  std::vector<std::byte> value(H5Tget_size(type));
  hdf5::check(H5Pget_fill_value(properties, type, value.data()), "get the fill value");
  if (std::all_of(value.begin(), value.end(), [](std::byte b) { return b == std::byte{0}; })) value.clear();
  return value;
}

bool has_references_in_fill_value(hid_t dataset) {
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype");
  return !references_in_fill_value(creation_properties_of(dataset, H5I_DATASET), type).empty();
}

void set_filters(hid_t properties, const std::vector<hdf5::filter>& filters) {
  if (H5Pget_nfilters(properties) > 0) hdf5::check(H5Premove_filter(properties, H5Z_FILTER_ALL), "remove the filters");
  for (const hdf5::filter& f : filters)
    hdf5::check(
        H5Pset_filter(properties, f.id, f.is_optional ? H5Z_FLAG_OPTIONAL : H5Z_FLAG_MANDATORY, f.values.size(), f.values.data()),
        "set a filter");
}

// The filters stay, and some have the length of a chunk among their parameters.
void note_chunk_bytes(hid_t properties, std::uint64_t bytes) {
  for (hdf5::filter& f : hdf5::read_pipeline(properties).filters) {
    if (hdf5::set_chunk_bytes(f, bytes))
      hdf5::check(H5Pmodify_filter(properties, f.id, f.is_optional ? H5Z_FLAG_OPTIONAL : H5Z_FLAG_MANDATORY, f.values.size(),
                                   f.values.data()),
                  "change the parameters of a filter");
  }
}

// The property list has the version of the source's format, which may be newer than that of the new file. `chunk`: empty without
// chunks.
void reset_layout(hid_t properties, const array::extents& chunk) {
  const H5D_layout_t layout = chunk.empty() ? H5Pget_layout(properties) : H5D_CHUNKED;
  if (layout == H5D_VIRTUAL) return;
  H5D_alloc_time_t allocation = H5D_ALLOC_TIME_DEFAULT;
  hdf5::check(H5Pget_alloc_time(properties, &allocation), "get the time of allocation");
  const bool is_for_layout = layout == H5Pget_layout(properties);
  hdf5::check(H5Pset_layout(properties, layout), "set the layout");
  if (layout == H5D_CHUNKED) {
    hdf5::check(H5Pset_chunk(properties, static_cast<int>(chunk.size()), hdf5::to_hsize(chunk).data()),
                "set the shape of chunks");
    // libhdf5 would write chunks of fill values, with filters that it may not have, before the chunks are copied
    if (allocation == H5D_ALLOC_TIME_EARLY) allocation = H5D_ALLOC_TIME_INCR;
  }
  if (is_for_layout) hdf5::check(H5Pset_alloc_time(properties, allocation), "set the time of allocation");
}

}  // namespace

file_copier::file_copier(const opened_contents& source, const dataset_changes& changes)
    : source_(source.file), tree_(source.tree), contents_(source.contents), changes_(changes) {}

hdf5::handle file_copier::creation_properties(std::uint64_t page_size) const {
  hdf5::handle properties(H5Fget_create_plist(source_.file()), "get the properties of the file");
  const hdf5::handle root(H5Gopen2(source_.file(), "/", H5P_DEFAULT), "open the root group");
  // libhdf5 leaves the root group's properties out of those of the file
  copy_group_properties(creation_properties_of(root, H5I_GROUP), properties);
  hdf5::check(
      H5Pset_file_space_strategy(properties, page_size > 0 ? H5F_FSPACE_STRATEGY_PAGE : H5F_FSPACE_STRATEGY_FSM_AGGR, false, 1),
      "set the strategy of the file's space");
  if (page_size > 0) hdf5::check(H5Pset_file_space_page_size(properties, page_size), "set the size of pages");
  return properties;
}

H5F_libver_t lowest_format(const opened_contents& source, const dataset_changes& changes) {
  for (const auto& [address, l] : source.contents.datasets) {
    if (l.filters.partial_unfiltered && !changes.contains(address)) return H5F_LIBVER_V110;
  }
  H5F_info2_t info;
  std::memset(&info, 0, sizeof info);
  hdf5::check(H5Fget_info2(source.file.file(), &info), "get information about the file");
  if (info.super.version >= 2) return H5F_LIBVER_V18;
  for (const tree_object& o : source.tree.objects) {
    const hdf5::handle object = open_object(source.file.file(), o);
    for (const std::string& name : attribute_names(object, o.kind)) {
      const hdf5::handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open an attribute");
      if (H5Aget_storage_size(attribute) > max_compact_attribute) return H5F_LIBVER_V18;
    }
  }
  return H5F_LIBVER_EARLIEST;
}

// libhdf5 creates a dataset only if it has its filters, and lets some of them change their parameters. Copied chunks need the
// parameters as they are, and no filter; chunks that our own encoders make need no filter either.
void file_copier::find_filters_of_plugins() {
  const auto add = [&](const std::vector<hdf5::filter>& filters) {
    for (const hdf5::filter& f : filters) {
      if (f.id >= H5Z_FILTER_RESERVED) filters_of_plugins_.emplace(f.id, hdf5::plugin_filter(f.id));
    }
  };
  for (const auto& [address, l] : contents_.datasets) add(l.filters.filters);
  for (const auto& [address, change] : changes_) {
    if (change.filters) add(*change.filters);
    if (change.joined) add(change.joined->filters);
  }
}

// `missing`: for filters that libhdf5 does not have; else for the others.
void file_copier::register_placeholders(bool missing) {
  for (const auto& [id, filter_class] : filters_of_plugins_) {
    if (missing == !filter_class) register_placeholder(id, true);
  }
}

// Values of variable length need the filters themselves. Nothing is unregistered yet: that would write the file, and libhdf5
// would give up the room for the metadata.
void file_copier::restore_filters() {
  for (const auto& [id, filter_class] : filters_of_plugins_) {
    if (filter_class) hdf5::check(H5Zregister(filter_class), "register a filter");
    else register_placeholder(id, false);
  }
}

file_copier::~file_copier() {
  for (const auto& [id, filter_class] : filters_of_plugins_) {
    if (!filter_class) H5Zunregister(id);
  }
  H5Eclear2(H5E_DEFAULT);
}

void file_copier::run(hid_t target) {
  target_ = target;
  references_.emplace(source_.file(), target, addresses_);
  const auto for_each_object = [&](const auto& visit) {
    for (const tree_object& o : tree_.objects) {
      try {
        visit(o);
      } catch (const hdf5::failure& e) {
        throw hdf5::failure(quoted(o.path) + ": " + e.what());
      }
    }
  };
  addresses_[tree_.objects[0].address] = address_of(target);
  copy_types();
  find_filters_of_plugins();
  register_placeholders(true);
  // filters may compute parameters for other chunks, so this comes before they get placeholders
  for_each_object([&](const tree_object& o) {
    const auto change = changes_.find(o.address);
    if (change != changes_.end() && !change->second.keeps_chunks() && !given_.contains(o.address) &&
        has_filters_of_plugins(contents_.datasets.at(o.address).filters))
      recoded_[o.address] = create_dataset(H5I_INVALID_HID, {}, o, H5P_DEFAULT);
  });
  register_placeholders(false);
  for_each_object([&](const tree_object& o) {
    if (o.kind == H5I_GROUP) copy_group_links(o);
  });
  // what fill values lead to exists now; the links of others stay in their order
  makes_deferred_ = true;
  for_each_object([&](const tree_object& o) {
    if (o.kind == H5I_GROUP && has_deferred_) copy_group_links(o);
  });
  recoded_.clear();
  restore_filters();
  for_each_object([&](const tree_object& o) {
    if (given_.contains(o.address)) return;
    copy_comment(o);
    copy_attributes(o);
  });
  named_types_.clear();
}

hdf5::handle file_copier::open_copy(const tree_object& o) const {
  return {H5Oopen_by_addr(target_, addresses_.at(o.address)), "open a copy"};
}

void file_copier::copy_types() {
  for (const tree_object& o : tree_.objects) {
    if (o.kind != H5I_DATATYPE) continue;
    type_in_target(open_object(source_.file(), o));
  }
}

// A named type is made when it is first needed, and linked later; those without a link live as long as their users.
hdf5::handle file_copier::type_in_target(hid_t type) {
  if (H5Tcommitted(type) <= 0) return hdf5::handle(H5Tcopy(type), "copy a datatype");
  const haddr_t address = address_of(type);
  auto entry = named_types_.find(address);
  if (entry == named_types_.end()) {
    const hdf5::handle properties = properties_for_copy(type, H5I_DATATYPE);
    hdf5::handle copy(H5Tcopy(type), "copy a datatype");
    hdf5::check(H5Tcommit_anon(target_, copy, properties, H5P_DEFAULT), "create a named type");
    addresses_[address] = address_of(copy);
    entry = named_types_.emplace(address, std::move(copy)).first;
  }
  H5Iinc_ref(entry->second);
  return hdf5::handle(entry->second.get());
}

void file_copier::copy_group_links(const tree_object& o) {
  const hdf5::handle group = open_copy(o);
  for (const tree_link& link : o.links) {
    if ((!makes_deferred_ && given_.empty()) || H5Lexists(group, link.name.c_str(), H5P_DEFAULT) <= 0) copy_link(group, link);
  }
}

void file_copier::defer(hid_t group, const tree_link& link) {
  unsigned order = 0;
  hdf5::check(H5Pget_link_creation_order(creation_properties_of(group, H5I_GROUP), &order), "get the order of links");
  if ((order & H5P_CRT_ORDER_TRACKED) != 0)
    throw hdf5::failure(quoted(link.name) +
                        " in it: a fill value that is a reference, in a group that keeps the order of its links");
  has_deferred_ = true;
}

void file_copier::copy_link(hid_t group, const tree_link& link) {
  const hdf5::handle properties = link_properties(link);
  const char* const name = link.name.c_str();
  if (link.type == H5L_TYPE_SOFT) {
    hdf5::check(H5Lcreate_soft(link.value.c_str(), group, name, properties, H5P_DEFAULT), "create a soft link");
  } else if (link.type == H5L_TYPE_EXTERNAL) {
    unsigned flags = 0;
    const char *file = nullptr, *object = nullptr;
    hdf5::check(H5Lunpack_elink_val(link.value.data(), link.value.size(), &flags, &file, &object), "read an external link");
    hdf5::check(H5Lcreate_external(file, object, group, name, properties, H5P_DEFAULT), "create an external link");
  } else if (link.type != H5L_TYPE_HARD) {
    hdf5::check(H5Lcreate_ud(group, name, link.type, link.value.data(), link.value.size(), properties, H5P_DEFAULT),
                "create a user-defined link");
  } else if (const auto copy = addresses_.find(link.address); copy != addresses_.end()) {
    const hdf5::handle object(H5Oopen_by_addr(target_, copy->second), "open a copy");
    hdf5::check(H5Olink(object, group, name, properties, H5P_DEFAULT), "create a hard link");
  } else {
    const tree_object& o = tree_.objects[tree_.index.at(link.address)];
    const bool may_have_references = o.kind == H5I_DATASET && contents_.datasets.at(o.address).linked_values;
    if (may_have_references && !makes_deferred_ && has_references_in_fill_value(open_object(source_.file(), o)))
      return defer(group, link);
    try {
      addresses_[o.address] = address_of(create_object(group, link, o));
    } catch (const hdf5::failure& e) {
      throw hdf5::failure(quoted(link.name) + " in it: " + e.what());
    }
  }
}

hdf5::handle file_copier::create_object(hid_t group, const tree_link& link, const tree_object& o) {
  const hdf5::handle properties_of_link = link_properties(link);
  if (o.kind == H5I_DATASET) return create_dataset(group, link, o, properties_of_link);
  const hdf5::handle properties = properties_for_copy(open_object(source_.file(), o), o.kind);
  return {H5Gcreate2(group, link.name.c_str(), properties_of_link, properties, H5P_DEFAULT), "create a group"};
}

// Without a group, the dataset gets its link later.
hdf5::handle file_copier::create_dataset(hid_t group, const tree_link& link, const tree_object& o, hid_t properties_of_link) {
  const hdf5::handle dataset = open_object(source_.file(), o);
  hdf5::handle properties = properties_for_copy(dataset, o.kind), space(H5Dget_space(dataset), "get the dataspace");
  const hdf5::handle stored_type(H5Dget_type(dataset), "get the datatype");
  const hdf5::pipeline& filters = contents_.datasets.at(o.address).filters;
  if (std::vector<std::byte> value = references_in_fill_value(properties, stored_type); !value.empty()) {
    references_->translate(stored_type, value.data(), 1);
    hdf5::check(H5Pset_fill_value(properties, stored_type, value.data()), "set the fill value");
  }
  const auto change = changes_.find(o.address);
  const bool is_changed = change != changes_.end();
  hdf5::handle other_type;
  if (is_changed && change->second.mapping) {
    const virtual_mapping& mapping = *change->second.mapping;
    if (mapping.type >= 0) other_type = hdf5::handle(H5Tcopy(mapping.type), "copy a datatype");
    properties = virtual_properties(mapping, properties, other_type ? other_type.get() : stored_type.get());
    space = hdf5::handle(H5Screate_simple(static_cast<int>(mapping.dims.size()), hdf5::to_hsize(mapping.dims).data(), nullptr),
                         "create a dataspace");
  }
  const joined_layout* const joined = is_changed && change->second.joined ? &*change->second.joined : nullptr;
  if (joined) {
    if (joined->type >= 0) other_type = hdf5::handle(H5Tcopy(joined->type), "copy a datatype");
    properties = joined_properties(*joined, properties, other_type ? other_type.get() : stored_type.get());
    space = joined_space(*joined);
    set_filters(properties, joined->filters);
  }
  reset_layout(properties, is_changed && !change->second.chunk.empty() ? change->second.chunk : hdf5::chunk_extent(properties));
  if (filters.partial_unfiltered && !is_changed)
    hdf5::check(H5Pset_chunk_opts(properties, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), "set the options of chunks");
  if (is_changed && change->second.filters) set_filters(properties, *change->second.filters);
  else if (is_changed && !change->second.chunk.empty())
    note_chunk_bytes(properties,
                     array::saturating_mul(array::product(change->second.chunk), contents_.datasets.at(o.address).element_bytes));
  const hdf5::handle type = other_type ? std::move(other_type) : type_in_target(stored_type);
  hdf5::handle copy;
  if (const auto created = recoded_.find(o.address); created != recoded_.end()) {
    copy = std::move(created->second);
    hdf5::check(H5Olink(copy, group, link.name.c_str(), properties_of_link, H5P_DEFAULT), "create a hard link");
  } else if (group < 0) {
    copy = hdf5::handle(H5Dcreate_anon(target_, type, space, properties, H5P_DEFAULT), "create a dataset");
  } else {
    copy = hdf5::handle(H5Dcreate2(group, link.name.c_str(), type, space, properties_of_link, properties, H5P_DEFAULT),
                        "create a dataset");
  }
  const std::vector<hdf5::filter>* const expected = joined ? &joined->filters : is_changed ? nullptr : &filters.filters;
  if (expected && !are_same_filters(*expected, hdf5::read_pipeline(creation_properties_of(copy, o.kind)).filters))
    throw hdf5::failure("a filter changed its parameters");
  return copy;
}

void file_copier::copy_comment(const tree_object& o) const {
  const hdf5::handle object = open_object(source_.file(), o);
  const ssize_t length = H5Oget_comment(object, nullptr, 0);
  H5Eclear2(H5E_DEFAULT);
  if (length <= 0) return;
  std::string comment(static_cast<std::size_t>(length) + 1, '\0');
  if (H5Oget_comment(object, comment.data(), comment.size()) < 0) hdf5::fail("read a comment");
  hdf5::check(H5Oset_comment(open_copy(o), comment.c_str()), "write a comment");
}

void file_copier::copy_attributes(const tree_object& o) {
  const hdf5::handle from = open_object(source_.file(), o), to = open_copy(o);
  const auto change = changes_.find(o.address);
  for (const std::string& name : attribute_names(from, o.kind)) {
    if (change != changes_.end() && change->second.omitted_attributes.contains(name)) continue;
    try {
      copy_attribute(from, to, name);
    } catch (const hdf5::failure& e) {
      throw hdf5::failure("attribute " + quoted(name) + ": " + e.what());
    }
  }
}

void file_copier::copy_attribute(hid_t from, hid_t to, const std::string& name) {
  const hdf5::handle attribute(H5Aopen(from, name.c_str(), H5P_DEFAULT), "open it");
  const hdf5::handle type(H5Aget_type(attribute), "get its datatype"), space(H5Aget_space(attribute), "get its dataspace");
  const hdf5::handle properties(H5Aget_create_plist(attribute), "get its properties");
  const hdf5::handle copy(H5Acreate2(to, name.c_str(), type_in_target(type), space, properties, H5P_DEFAULT), "create it");
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count <= 0) return;
  if (reference_map::has_linked_values(type))
    hdf5::count_variable_bytes(attribute, hdf5::describe_type(type), static_cast<std::uint64_t>(count), max_attribute_strings);
  const std::uint64_t bytes = array::saturating_mul(static_cast<std::uint64_t>(count), H5Tget_size(type));
  if (bytes / H5Tget_size(type) != static_cast<std::uint64_t>(count) || bytes > H5Aget_storage_size(attribute) + (1U << 30))
    throw hdf5::failure("its extent is larger than what the file has of it");
  std::vector<std::byte> values(static_cast<std::size_t>(bytes));
  hdf5::check(H5Aread(attribute, type, values.data()), "read it");
  references_->translate(type, values.data(), static_cast<std::uint64_t>(count));
  const herr_t status = H5Awrite(copy, type, values.data());
  std::string reason = status < 0 ? hdf5::last_error() : "";
  if (reference_map::has_linked_values(type)) {
    std::vector<std::byte> read(values.size());
    if (status >= 0 && H5Aread(copy, type, read.data()) >= 0) {
      // libhdf5 writes some sequences of compounds wrongly
      if (!reference_map::are_equal(type, values.data(), read.data(), static_cast<std::uint64_t>(count)))
        reason = "libhdf5 cannot write values of its datatype";
      H5Dvlen_reclaim(type, space, H5P_DEFAULT, read.data());
    }
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, values.data());
  }
  if (!reason.empty()) throw hdf5::failure("cannot write it: " + reason);
}

}  // namespace zarrbits::repacking
