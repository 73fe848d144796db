// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/final_metadata.hpp"

#include "convert/concat/joined_parts.hpp"
#include "convert/from_hdf5/dataset_metadata.hpp"
#include "convert/from_hdf5/node_attributes.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/type_json.hpp"
#include "io/files.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "zarr/write/node_writer.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace zarrbits::conversion {

namespace {

void append(std::vector<converted_object>& to, std::vector<converted_object>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

link_kind kind_of(const hdf5::extra_link& link) {
  for (const link_kind k : {link_kind::hard, link_kind::soft, link_kind::external, link_kind::user}) {
    if (link.kind == to_string(k)) return k;
  }
  return link_kind::broken;
}

converted_object entry_for(const hdf5::source_object& o) {
  converted_object e;
  e.path = o.path;
  e.kind = o.kind == hdf5::source_object::kind_type::group      ? object_kind::group
           : o.kind == hdf5::source_object::kind_type::datatype ? object_kind::datatype
                                                                : object_kind::dataset;
  if (o.store_path != o.path) e.zarr_path = o.store_path;
  return e;
}

converted_object not_selected(converted_object e) {
  e.outcome = outcome::skipped;
  e.selected = false;
  text::set_reason(e, reason_code::not_selected, "not selected");
  return e;
}

// Writes the metadata of all objects when their chunks are written, and makes their entries of the report.
class metadata_writer {
 public:
  explicit metadata_writer(hdf5_source& source)
      : source_(source),
        run_(source.run()),
        options_(source.options()),
        file_(source.file()),
        out_(source.run().out(), source.options().target.convention != convention::none),
        dimensions_(file_),
        skipped_(file_.objects().size()) {}

  std::vector<converted_object> run() {
    for (std::size_t i = 0; i < file_.objects().size(); ++i) {
      const hdf5::source_object& o = file_.objects()[i];
      run_.set_current(o.path);
      if (o.kind == hdf5::source_object::kind_type::dataset) dataset(i);
      else if (o.kind == hdf5::source_object::kind_type::datatype) datatype(i);
      else if (o.kind == hdf5::source_object::kind_type::dimension) dimension(i);
      if (o.kind != hdf5::source_object::kind_type::dataset) run_.object_done();
    }
    for (const hdf5::source_object& o : file_.unselected()) report_.push_back(not_selected(entry_for(o)));
    // parents come before their children in the list; the reverse order writes every group after its content
    for (std::size_t i = file_.objects().size(); i-- > 0;) {
      if (file_.objects()[i].kind == hdf5::source_object::kind_type::group) group(i);
    }
    for (converted_object& e : report_) {
      if (!e.reason.empty()) e.reason = run_.worded(e.reason);
    }
    return std::move(report_);
  }

 private:
  std::uint64_t memory() const { return std::max<std::uint64_t>(options_.execution.memory, 16U << 20); }

  text::json attributes_of(const hdf5::source_object& o, hid_t object, const hdf5::type_description* leaf,
                           std::vector<converted_object>& report) {
    std::vector<hdf5::attribute_report> attribute_reports;
    text::json user = node_attributes(source_, o, object, leaf, attribute_reports);
    for (hdf5::attribute_report& a : attribute_reports) {
      converted_object& e = report.emplace_back();
      e.path = o.path;
      e.kind = object_kind::attribute;
      e.attribute = std::move(a.name);
      e.zarr_name = std::move(a.key);
      e.outcome = a.skipped ? outcome::skipped : outcome::mapped;
      e.lossy = a.lossy;
      text::set_reason(e, a.code, std::move(a.reason));
    }
    return user;
  }

  void dataset(std::size_t index) {
    const hdf5::source_object& o = file_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes;
    text::json user;
    const auto skip_reason = hdf5::skip_reason([&] {
      const auto opened = source_.opened(index);
      const dataset_plan& dataset = *opened;
      e.source_bytes = dataset.data.stored_bytes;
      if (hdf5::unsupported_reason(dataset.data.type).empty()) {
        user = attributes_of(o, dataset.data.dataset, &dataset.data.leaf(), attributes);
        if (text::json notes = dataset.own_attributes(); !notes.empty()) user[text::annotation_key].update(notes);
      }
      opened->prepare();
      const work_unit_result result = run_.take_result(index);
      if (!result.skipped.empty()) throw hdf5::unsupported_dataset(result.skipped);
      if (index == 0) file_.require_unchanged();
      write_dataset_metadata(dataset, out_, dimensions_, user, result, e);
    });
    if (skip_reason) skip(index, e, attributes, std::move(user), {skip_reason->code, run_.worded(skip_reason->sentence)});
    source_.close(index);
    H5Eclear2(H5E_DEFAULT);
    report_.push_back(std::move(e));
    append(report_, attributes);
  }

  // Removes what was written of it. Its attributes move to the parent group: an array without its values would read as fill
  // value.
  void skip(std::size_t index, converted_object& e, std::vector<converted_object>& attributes, text::json user,
            const text::coded_reason& reason) {
    if (index == 0) {  // nothing would remain
      throw zarrbits::error(
          errc::unsupported,
          "dataset \"" + e.path + "\" of \"" + options_.source.name + "\" cannot be converted: " + reason.sentence,
          {options_.source.name, e.path});
    }
    skipped_[index] = true;
    run_.out().remove(std::string_view(file_.objects()[index].store_path).substr(1));
    e.store_bytes = 0;
    e.chunks = {};
    e.outcome = outcome::skipped;
    text::set_reason(e, reason.code, reason.sentence);
    e.lossy = false;
    e.lost_chunks.clear();
    const hdf5::source_object& o = file_.objects()[index];
    const bool has_attributes = user.is_object() && !user.empty();
    if (has_attributes)
      skipped_datasets_[o.parent].add(text::escape_name(o.link_name),
                                      {{"reason", reason.sentence}, {"attributes", std::move(user)}});
    for (converted_object& a : attributes) {
      a.outcome = outcome::skipped;
      a.lossy = false;
      a.zarr_name.clear();
      text::set_reason(a, reason_code::parent_skipped,
                       has_attributes ? "its dataset is skipped; it is kept in the group above, under zarrbits.skipped"
                                      : "its dataset is skipped");
    }
  }

  // A named type with attributes becomes a group that holds them; its name and type are also among the parent's attributes.
  void datatype(std::size_t index) {
    const hdf5::source_object& o = file_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes;
    try {
      const hdf5::handle type = file_.open(o);
      const text::json description = hdf5::datatype_json(hdf5::describe_type(type));
      named_types_[o.parent].add(text::escape_name(o.link_name), description);
      text::json user = attributes_of(o, type, nullptr, attributes);
      if (!user.empty()) {
        user[text::annotation_key]["datatype"] = description;
        out_.group(o.store_path, user);
      } else {
        e.zarr_path.clear();
        skipped_[index] = true;  // no node
      }
      e.outcome = outcome::mapped;
    } catch (const hdf5::failure& reason) {
      skipped_[index] = true;
      e.outcome = outcome::skipped;
      text::set_reason(e, reason.code, reason.what());
    }
    report_.push_back(std::move(e));
    append(report_, attributes);
  }

  // A dimension without values is a name at its arrays; its length is noted, because none of them may have it.
  void dimension(std::size_t index) {
    const hdf5::source_object& o = file_.objects()[index];
    converted_object e = entry_for(o);
    e.outcome = outcome::mapped;
    text::set_reason(e, reason_code::changed_form,
                     "a dimension without values: its name is with the arrays that have it, its length under zarrbits.dimensions "
                     "of the group");
    e.zarr_path.clear();
    std::vector<converted_object> attributes;
    text::json note = {{"length", o.overrides.shape.empty() ? 0 : o.overrides.shape[0]}};
    try {
      const hdf5::handle scale = file_.open(o);
      const array::extents max_extent = hdf5::maximum_extent(hdf5::handle(H5Dget_space(scale), "get the dataspace"));
      if (max_extent.size() == 1 && max_extent[0] == H5S_UNLIMITED) note["unlimited"] = true;
      text::json user = attributes_of(o, scale, nullptr, attributes);
      if (!user.empty()) note["attributes"] = std::move(user);
    } catch (const hdf5::failure& reason) {
      e.lossy = true;
      text::set_reason(e, reason.code, std::string("its attributes cannot be read: ") + reason.what());
    }
    dimensions_without_values_[o.parent].add(text::escape_name(o.link_name), std::move(note));
    report_.push_back(std::move(e));
    append(report_, attributes);
  }

  void group(std::size_t index) {
    const hdf5::source_object& o = file_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes, links;
    text::json user = text::json::object();
    e.outcome = outcome::mapped;
    try {
      user = attributes_of(o, file_.open(o), nullptr, attributes);
    } catch (const hdf5::failure& reason) {
      e.lossy = true;
      text::set_reason(e, reason.code, std::string("its attributes cannot be read: ") + reason.what());
    }
    if (!o.listing_error.empty()) {
      e.lossy = true;
      text::set_reason(e, o.listing_error.code, "not everything in it can be listed: " + o.listing_error.sentence);
    }
    text::json notes = text::json::object();
    text::object_builder recorded, names;
    if (index == 0 && source_.rules()) notes["convention"] = to_string(source_.convention());
    if (index == 0 && !file_.selection_note().empty()) notes["selection"] = file_.selection_note();
    for (const hdf5::extra_link& link : o.links) {
      if (link.selected) {
        links.push_back(record(o, link, recorded));
        continue;
      }
      converted_object l;
      l.path = text::join_path(o.path, text::escape_name(link.name));
      l.kind = object_kind::link;
      l.link = kind_of(link);
      l.target = link.target;
      links.push_back(not_selected(std::move(l)));
    }
    if (!recorded.empty()) notes["links"] = recorded.take();
    if (const auto types = named_types_.find(index); types != named_types_.end()) notes["named_types"] = types->second.take();
    if (const auto dims = dimensions_without_values_.find(index); dims != dimensions_without_values_.end())
      notes["dimensions"] = dims->second.take();
    if (const auto skipped = skipped_datasets_.find(index); skipped != skipped_datasets_.end())
      notes["skipped"] = skipped->second.take();
    for (const std::size_t child : o.children) {
      const hdf5::source_object& c = file_.objects()[child];
      const std::string leaf = text::base_name(c.store_path);
      if (leaf != c.link_name && !skipped_[child] && c.kind != hdf5::source_object::kind_type::dimension)
        names.add(leaf, hdf5::text_or_base64(c.link_name));
    }
    for (const std::string& name : o.order) notes["order"].push_back(text::escape_name(name));
    if (!names.empty()) notes["names"] = names.take();  // children that are stored under another name
    if (index == 0) user_block(o, notes);
    if (index == 0 && !source_.joined_sources().empty()) notes["sources"] = sources_note();
    if (!notes.empty()) user[text::annotation_key].update(notes);
    if (index == 0) source_.require_unchanged(conversion_source::change_check::complete);  // this write makes the store complete
    out_.group(o.store_path, user);
    report_.push_back(std::move(e));
    append(report_, attributes);
    append(report_, links);
  }

  // The files of the store, and where each begins.
  text::json sources_note() const { return append::source_notes(source_.joined_sources(), source_.files()); }

  // The bytes before the HDF5 superblock: any kind of data, such as a program or a text.
  void user_block(const hdf5::source_object& root, text::json& notes) {
    const std::uint64_t size = file_.user_block_size();
    if (size == 0) return;
    const std::uint64_t max_bytes = std::min<std::uint64_t>(memory() / 8, 64U << 20);
    converted_object e;
    e.path = "/";
    e.kind = object_kind::user_block;
    e.outcome = outcome::skipped;
    if (root.path != "/") {
      e.selected = false;
      text::set_reason(e, reason_code::not_selected, "not selected");
    } else if (size > max_bytes) {
      text::set_reason(e, reason_code::too_large,
                       "its " + text::format_bytes(size) + " exceed the " + text::format_bytes(max_bytes) + " that are kept");
    } else {
      std::vector<std::byte> bytes(static_cast<std::size_t>(size));
      try {
        file_.bytes()->require_range(0, size);
        file_.bytes()->read(0, bytes);
      } catch (const io::read_error& reason) {
        throw zarrbits::error(errc::io_failed, "the user block of \"" + file_.path() + "\" cannot be read: " + reason.what(),
                              {file_.path()});
      }
      notes["user_block"] = {{"base64", text::base64(bytes)}};
      e.outcome = outcome::mapped;
    }
    report_.push_back(std::move(e));
  }

  converted_object record(const hdf5::source_object& o, const hdf5::extra_link& link, text::object_builder& recorded) {
    converted_object e;
    e.path = text::join_path(o.path, text::escape_name(link.name));
    e.kind = object_kind::link;
    e.link = kind_of(link);
    e.outcome = outcome::mapped;
    text::json note = {{"kind", link.kind}};
    if (link.kind == "hard") {
      e.target = link.target;
      note["target"] = e.target;
    } else if (link.kind == "soft" || link.kind == "external") {
      e.target = link.target;
      if (!link.file.empty()) note["file"] = link.file;
      note["target"] = link.target;
    } else if (link.kind == "user") {
      e.target = link.target;
      note["target"] = link.target;
      note["value"] = {{"base64", link.detail}};
    } else {
      text::set_reason(e, link.code, link.detail);
      if (link.left_out) {
        e.outcome = outcome::skipped;
        return e;
      }
      e.lossy = true;  // the name is kept; nobody can open the target
      note["reason"] = run_.worded(link.detail);
    }
    if (link.copied) text::set_reason(e, reason_code::changed_form, "its target is copied in its place");
    if (!link.not_copied.empty()) {
      text::set_reason(e, link.code, link.not_copied);
      e.lossy = !link.is_cyclic;
    }
    if (!recorded.add(text::escape_name(link.name), std::move(note))) {  // only a damaged file has this
      e.outcome = outcome::skipped;
      text::set_reason(e, reason_code::invalid_name, "its group has another link of this name");
    }
    return e;
  }

  hdf5_source& source_;
  converter& run_;
  const convert_options& options_;
  hdf5::source_file& file_;
  zarr::node_writer out_;
  hdf5::dimension_namer dimensions_;
  std::vector<converted_object> report_;
  std::map<std::size_t, text::object_builder> named_types_;                // by their group
  std::map<std::size_t, text::object_builder> dimensions_without_values_;  // by their group
  std::map<std::size_t, text::object_builder> skipped_datasets_;           // by their parent group: reason and attributes of each
  std::vector<bool> skipped_;
};

}  // namespace

std::vector<converted_object> write_metadata(hdf5_source& source) { return metadata_writer(source).run(); }

}  // namespace zarrbits::conversion
