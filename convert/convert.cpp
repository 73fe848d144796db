// SPDX-License-Identifier: BSL-1.0
//
// The whole file: convert each dataset, write the metadata from the leaves to the root, account for everything.
//
#include <zarrbits/convert.hpp>

#include "convert/attributes.hpp"
#include "convert/compression.hpp"
#include "convert/conversion.hpp"
#include "convert/dimensions.hpp"
#include "convert/grid_options.hpp"
#include "convert/json_text.hpp"
#include "convert/names.hpp"
#include "convert/selection.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace zarrbits {

namespace {

using namespace conversion;

void append(std::vector<converted_object>& to, std::vector<converted_object>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

converted_object entry_for(const source_object& o) {
  converted_object e;
  e.path = o.path;
  e.kind = o.kind == source_object::kind_type::group ? "group" : o.kind == source_object::kind_type::dataset ? "dataset" : "datatype";
  if (o.store_path != o.path) e.zarr_path = o.store_path;
  return e;
}

converted_object not_selected(converted_object e) {
  e.outcome = outcome::skipped;
  e.selected = false;
  e.reason = "not selected";
  return e;
}

// Writes the metadata of all objects, when the chunks are there, and the account of them.
class finisher {
 public:
  explicit finisher(conversion_run& all)
      : all_(all), options_(all.options()), source_(all.source()), out_(all.out()), dimensions_(source_), skipped_(source_.objects().size()) {}

  std::vector<converted_object> run() {
    for (std::size_t i = 0; i < source_.objects().size(); ++i) {
      const source_object& o = source_.objects()[i];
      all_.at_hand(o.path);
      if (o.kind == source_object::kind_type::dataset) dataset(i);
      else if (o.kind == source_object::kind_type::datatype) datatype(i);
      if (o.kind != source_object::kind_type::dataset) all_.object_done();
    }
    for (const source_object& o : source_.unselected()) report_.push_back(not_selected(entry_for(o)));
    // parents come before their children in the list, so that backwards every group is written after all that is in it
    for (std::size_t i = source_.objects().size(); i-- > 0;) {
      if (source_.objects()[i].kind == source_object::kind_type::group) group(i);
    }
    return std::move(report_);
  }

 private:
  std::uint64_t memory() const { return std::max<std::uint64_t>(options_.memory, 16U << 20); }

  void dataset(std::size_t index) {
    const source_object& o = source_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes;
    json user;
    const auto why = reason_to_skip([&] {
      dataset_plan dataset(source_, o, options_);
      e.source_bytes = dataset.data.stored_bytes;
      if (unsupported_reason(dataset.data.type).empty()) {
        user = convert_attributes(dataset.data.dataset, e.path, source_, &dataset.data.leaf(), memory(), attributes);
        if (json own = dataset.own_attributes(); !own.empty()) user[own_key] = std::move(own);
      }
      dataset.prepare();
      const unit_result made = all_.take(index);
      if (!made.skipped.empty()) throw skip_dataset(made.skipped);
      if (index == 0) source_.require_unchanged();
      dataset.finish(out_, dimensions_, user, made, e);
    });
    if (why) skip(index, e, attributes, std::move(user), *why);
    H5Eclear2(H5E_DEFAULT);
    report_.push_back(std::move(e));
    append(report_, attributes);
  }

  // What was written of it goes again. Its attributes go to those of the group above: an array without its values would read as fill value.
  void skip(std::size_t index, converted_object& e, std::vector<converted_object>& attributes, json user, const std::string& reason) {
    if (index == 0) {  // nothing would be left
      throw convert_error("dataset \"" + e.path + "\" of \"" + options_.source + "\" cannot be converted: " + reason);
    }
    skipped_[index] = true;
    out_.remove(std::string_view(source_.objects()[index].store_path).substr(1));
    e.store_bytes = 0;
    e.chunks = {};
    e.outcome = outcome::skipped;
    e.reason = reason;
    e.lossy = false;
    e.lost_chunks.clear();
    const source_object& o = source_.objects()[index];
    const bool kept = user.is_object() && !user.empty();
    if (kept) skipped_datasets_[o.parent].add(shown(o.link_name), {{"reason", reason}, {"attributes", std::move(user)}});
    for (converted_object& a : attributes) {
      a.outcome = outcome::skipped;
      a.lossy = false;
      a.zarr_name.clear();
      a.reason = kept ? "its dataset is skipped; it is kept in the group above, under zarrbits.skipped" : "its dataset is skipped";
    }
  }

  // A named type with attributes becomes a group that holds them; its name and meaning are also among the parent's attributes.
  void datatype(std::size_t index) {
    const source_object& o = source_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes;
    try {
      const h5::handle type = source_.open(o);
      const json description = type_description(describe_type(type));
      named_types_[o.parent].add(shown(o.link_name), description);
      json user = convert_attributes(type, o.path, source_, nullptr, memory(), attributes);
      if (!user.empty()) {
        user[own_key] = {{"datatype", description}};
        out_.put(metadata_key(o.store_path), group_text(user));
      } else {
        e.zarr_path.clear();
      }
      e.outcome = outcome::mapped;
    } catch (const h5::failure& reason) {
      e.outcome = outcome::skipped;
      e.reason = reason.what();
    }
    report_.push_back(std::move(e));
    append(report_, attributes);
  }

  void group(std::size_t index) {
    const source_object& o = source_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes, links;
    json user = json::object();
    e.outcome = outcome::mapped;
    try {
      user = convert_attributes(source_.open(o), o.path, source_, nullptr, memory(), attributes);
    } catch (const h5::failure& reason) {
      e.lossy = true;
      e.reason = std::string("its attributes cannot be read: ") + reason.what();
    }
    if (!o.listing_error.empty()) {
      e.lossy = true;
      e.reason = "not everything in it can be listed: " + o.listing_error;
    }
    json own = json::object();
    object_builder recorded, names;
    if (index == 0 && !source_.selection_note().empty()) own["selection"] = source_.selection_note();
    for (const extra_link& link : o.links) {
      if (link.selected) {
        links.push_back(record(o, link, recorded));
        continue;
      }
      converted_object l;
      l.path = join_path(o.path, shown(link.name));
      l.kind = "link";
      l.link = link.kind;
      l.target = link.target;
      links.push_back(not_selected(std::move(l)));
    }
    if (!recorded.empty()) own["links"] = recorded.take();
    if (const auto types = named_types_.find(index); types != named_types_.end()) own["named_types"] = types->second.take();
    if (const auto lost = skipped_datasets_.find(index); lost != skipped_datasets_.end()) own["skipped"] = lost->second.take();
    for (const std::size_t child : o.children) {
      const source_object& c = source_.objects()[child];
      const std::string leaf = c.store_path.substr(c.store_path.rfind('/') + 1);
      if (leaf != c.link_name && !skipped_[child]) names.add(leaf, text_or_base64(c.link_name));
    }
    if (!names.empty()) own["names"] = names.take();  // of children that are stored under another
    if (!own.empty()) user[own_key] = std::move(own);
    if (index == 0) source_.require_unchanged();  // from here on the store counts as whole
    out_.put(metadata_key(o.store_path), group_text(user));
    report_.push_back(std::move(e));
    append(report_, attributes);
    append(report_, links);
  }

  converted_object record(const source_object& o, const extra_link& link, object_builder& recorded) {
    converted_object e;
    e.path = join_path(o.path, shown(link.name));
    e.kind = "link";
    e.link = link.kind;
    e.outcome = outcome::mapped;
    json note = {{"kind", link.kind}};
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
      e.reason = link.detail;
      if (link.left_out) {
        e.outcome = outcome::skipped;
        return e;
      }
      e.lossy = true;  // the name is kept; what it leads to nobody can open
      note["reason"] = link.detail;
    }
    if (!recorded.add(shown(link.name), std::move(note))) {  // only a damaged file has that
      e.outcome = outcome::skipped;
      e.reason = "its group has another link of this name";
    }
    return e;
  }

  conversion_run& all_;
  const convert_options& options_;
  source_file& source_;
  sink& out_;
  dimension_namer dimensions_;
  std::vector<converted_object> report_;
  std::map<std::size_t, object_builder> named_types_;  // by the group that they are in
  std::map<std::size_t, object_builder> skipped_datasets_;  // by the group above: reason and attributes of each
  std::vector<bool> skipped_;
};

}  // namespace

void check_options(const convert_options& options) {
  if (!options.codec.empty() && options.codec != "bytes" && options.codec != "packbits") {
    throw convert_error("\"" + options.codec + "\" is no codec that the converter writes; give \"bytes\" or \"packbits\"");
  }
  if (options.bits && (options.codec != "packbits" || *options.bits < 1 || *options.bits > 64)) {
    throw convert_error("the number of bits goes with the codec packbits, and is 1 to 64");
  }
  const std::string profile = options.effective_profile();
  if (profile != "portable" && profile != "native" && profile != "recode") {
    throw convert_error("\"" + profile + "\" is no profile; give portable, native or recode");
  }
  if (!options.compress.empty()) parse_compression(options.compress);
  if (!options.compress.empty() && profile != "recode") throw convert_error("compression goes with the profile recode, not " + profile);
  if (!options.chunk.empty()) {
    if (profile != "recode") throw convert_error("another chunk shape goes with the profile recode, not " + profile);
    if (parse_grid_request("--chunk", options.chunk).shape.empty()) {
      throw convert_error("--chunk is \"" + shown(options.chunk) + "\"; give a shape, such as 100,200, or 100, for one dimension with its comma");
    }
  }
  parse_grid_request("--shard", options.shard);
  if (!options.checksum.empty() && options.checksum != "crc32c") throw convert_error("\"" + options.checksum + "\" is no checksum that the converter writes; give crc32c");
  selection(options.include, options.exclude);
  if (!options.endpoint.empty() && !is_s3(options.source) && !is_s3(options.store)) {
    throw convert_error("an endpoint goes with a source or a store \"s3://...\"; leave --endpoint out");
  }
  if (options.share && (options.share->count == 0 || options.share->index >= options.share->count)) {
    throw convert_error("share " + std::to_string(options.share->index) + " of " + std::to_string(options.share->count) +
                        " does not exist; the first is 0");
  }
  if (options.overwrite && (options.resume || options.share)) {
    throw convert_error("a store is either gone on with or begun anew; leave --overwrite out, or --resume and --partition");
  }
}

namespace {

using clock = std::chrono::steady_clock;

convert_result result_for(const convert_options& options) {
  convert_result result;
  result.source = options.source;
  result.store = options.store;
  result.profile = options.effective_profile();
  return result;
}

void count(convert_result& result, conversion_run& all, clock::time_point started) {
  result.store_objects = all.out().objects();
  result.store_bytes = all.out().bytes();
  result.seconds = std::chrono::duration<double>(clock::now() - started).count();
}

convert_result finished(conversion_run& all, clock::time_point started) {
  convert_result result = result_for(all.options());
  result.objects = finisher(all).run();
  list_other_files(all.source().others(), result.other_files, result.refused_files);
  result.exit_status = result.lost() && !all.options().allow_lossy ? 3 : 0;
  count(result, all, started);
  if (all.options().before_done) all.options().before_done(result);
  all.out().finish();
  result.seconds = std::chrono::duration<double>(clock::now() - started).count();
  return result;
}

}  // namespace

convert_result convert(const convert_options& options) {
  check_options(options);
  const auto started = clock::now();
  const h5::silence quiet;
  using mode = conversion_run::mode;
  conversion_run all(options, options.share ? mode::join : options.resume ? mode::resume : mode::all);
  if (!options.share) {
    all.run();
    return finished(all, started);
  }
  all.run(conversion_run::share_of(all.units(), options.share->index, options.share->count));
  convert_result result = result_for(options);
  count(result, all, started);
  return result;
}

convert_result finalize(const convert_options& options) {
  check_options(options);
  const auto started = clock::now();
  const h5::silence quiet;
  conversion_run all(options, conversion_run::mode::join);
  const auto units = all.units();
  const unsigned shares = std::max(1U, all.shares());
  const std::vector<unsigned> share_of = conversion_run::shares_of(units, shares);
  std::uint64_t missing = 0;
  std::set<unsigned> whose;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (all.done(units[i].id)) continue;
    ++missing;
    whose.insert(share_of[i]);
  }
  if (missing > 0) {
    std::string of;
    for (const unsigned share : whose) of += (of.empty() ? "" : ", ") + std::to_string(share);
    of = all.shares() ? ", of partition " + of + " of " + std::to_string(shares) : "";
    throw convert_error(std::to_string(missing) + " of " + counted(units.size(), "unit") + " are missing in \"" + options.store + "\"" + of +
                        "; run these partitions again, or all that is missing with convert --resume");
  }
  return finished(all, started);
}

}  // namespace zarrbits
