// SPDX-License-Identifier: BSL-1.0
//
// The whole file: walk it, convert each object, write the groups from the leaves to the root, account for everything.
//
#include <zarrbits/convert.hpp>

#include "convert/attributes.hpp"
#include "convert/dataset.hpp"
#include "convert/decompressors.hpp"
#include "convert/dimensions.hpp"
#include "convert/h5.hpp"
#include "convert/names.hpp"
#include "convert/sink.hpp"
#include "convert/source.hpp"

#include <chrono>
#include <new>

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

class converter {
 public:
  converter(const convert_options& options, source_file& source, sink& out)
      : options_(options), source_(source), dimensions_(source),
        context_{options, source, out, dimensions_, [this](std::uint64_t n) { bytes_done_ += n; tell(nullptr); }}, skipped_(source.objects().size()) {}

  std::vector<converted_object> run() {
    measure();
    for (std::size_t i = 0; i < source_.objects().size(); ++i) {
      const source_object& o = source_.objects()[i];
      tell(&o.path);
      if (o.kind == source_object::kind_type::dataset) dataset(i);
      else if (o.kind == source_object::kind_type::datatype) datatype(i);
      ++objects_done_;
    }
    // parents come before their children in the list, so that backwards every group is written after all that is in it
    for (std::size_t i = source_.objects().size(); i-- > 0;) {
      if (source_.objects()[i].kind == source_object::kind_type::group) group(i);
    }
    return std::move(report_);
  }

 private:
  void tell(const std::string* path) {
    if (path) at_hand_ = *path;
    if (options_.progress) options_.progress({at_hand_, objects_done_, source_.objects().size(), bytes_done_, bytes_});
  }

  void measure() {
    if (!options_.progress || !options_.measure_first) return;
    for (const source_object& o : source_.objects()) {
      if (o.kind != source_object::kind_type::dataset) continue;
      const h5::handle d(H5Oopen_by_addr(source_.file(), o.address));
      if (d) bytes_ += H5Dget_storage_size(d);
    }
    H5Eclear2(H5E_DEFAULT);
  }

  void dataset(std::size_t index) {
    const source_object& o = source_.objects()[index];
    converted_object e = entry_for(o);
    std::vector<converted_object> attributes;
    const std::uint64_t before = bytes_done_;
    try {
      dataset_job(context_, o).run(e, attributes);
    } catch (const skip_dataset& reason) {
      skip(index, e, attributes, reason.what());
    } catch (const damaged_chunk& reason) {
      skip(index, e, attributes, reason.what());
    } catch (const h5::failure& reason) {
      skip(index, e, attributes, reason.what());
    } catch (const zarrbits::error& reason) {
      skip(index, e, attributes, reason.what());
    } catch (const std::bad_alloc&) {
      skip(index, e, attributes, "it needs more memory than there is");
    } catch (const std::length_error&) {
      skip(index, e, attributes, "it needs more memory than there is");
    }
    H5Eclear2(H5E_DEFAULT);
    bytes_done_ = std::max(bytes_done_, before + e.source_bytes);
    report_.push_back(std::move(e));
    append(report_, attributes);
  }

  // What was written of it goes again.
  void skip(std::size_t index, converted_object& e, std::vector<converted_object>& attributes, const std::string& reason) {
    skipped_[index] = true;
    context_.out.remove(std::string_view(source_.objects()[index].store_path).substr(1));
    e.store_bytes = 0;
    e.chunks = {};
    e.outcome = outcome::skipped;
    e.reason = reason;
    e.lossy = false;
    e.lost_chunks.clear();
    for (converted_object& a : attributes) {
      a.outcome = outcome::skipped;
      a.lossy = false;
      a.zarr_name.clear();
      a.reason = "its dataset is skipped";
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
      named_types_[o.parent][shown(o.link_name)] = description;
      json user = convert_attributes(type, o.path, source_, nullptr, attributes);
      if (!user.empty()) {
        user[own_key] = {{"datatype", description}};
        context_.out.put(metadata_key(o.store_path), group_text(user));
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
      user = convert_attributes(source_.open(o), o.path, source_, nullptr, attributes);
    } catch (const h5::failure& reason) {
      e.lossy = true;
      e.reason = std::string("its attributes cannot be read: ") + reason.what();
    }
    if (!o.listing_error.empty()) {
      e.lossy = true;
      e.reason = "not everything in it can be listed: " + o.listing_error;
    }
    json own = json::object();
    json recorded = json::object();
    for (const extra_link& link : o.links) links.push_back(record(o, link, recorded));
    if (!recorded.empty()) own["links"] = std::move(recorded);
    if (const auto types = named_types_.find(index); types != named_types_.end()) own["named_types"] = types->second;
    json names = json::object();
    for (const std::size_t child : o.children) {
      const source_object& c = source_.objects()[child];
      const std::string leaf = c.store_path.substr(c.store_path.rfind('/') + 1);
      if (leaf != c.link_name && !skipped_[child]) names[leaf] = is_utf8(c.link_name) ? json(c.link_name) : json{{"base64", base64(c.link_name)}};
    }
    if (!names.empty()) own["names"] = std::move(names);  // of children that are stored under another
    if (!own.empty()) user[own_key] = std::move(own);
    context_.out.put(metadata_key(o.store_path), group_text(user));
    report_.push_back(std::move(e));
    append(report_, attributes);
    append(report_, links);
  }

  converted_object record(const source_object& o, const extra_link& link, json& recorded) {
    converted_object e;
    e.path = join_path(o.path, shown(link.name));
    e.kind = "link";
    e.link = link.kind;
    e.outcome = outcome::mapped;
    json note = {{"kind", link.kind}};
    if (link.kind == "hard") {
      e.target = source_.objects()[link.object].path;
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
      e.outcome = outcome::skipped;
      e.reason = link.detail;
      return e;
    }
    recorded[shown(link.name)] = std::move(note);
    return e;
  }

  const convert_options& options_;
  source_file& source_;
  dimension_namer dimensions_;
  conversion_context context_;
  std::vector<converted_object> report_;
  std::map<std::size_t, json> named_types_;  // by the group that they are in
  std::vector<bool> skipped_;
  std::string at_hand_;
  std::uint64_t objects_done_ = 0, bytes_done_ = 0, bytes_ = 0;
};

}  // namespace

convert_result convert(const convert_options& options) {
  if (!options.codec.empty() && options.codec != "bytes" && options.codec != "packbits") {
    throw convert_error("\"" + options.codec + "\" is no codec that the converter writes; give \"bytes\" or \"packbits\"");
  }
  if (options.bits && (options.codec != "packbits" || *options.bits < 1 || *options.bits > 64)) {
    throw convert_error("the number of bits goes with the codec packbits, and is 1 to 64");
  }
  const auto started = std::chrono::steady_clock::now();
  const h5::silence quiet;
  register_decoders();
  convert_result result;
  result.source = options.source;
  result.store = options.store;
  result.profile = "portable";
  // the source is opened before anything is written or removed
  source_file source(options.source);
  directory_sink out(options.store, {.overwrite = options.overwrite, .source = options.source});
  source.walk(out.tells_case_apart());
  result.objects = converter(options, source, out).run();
  out.finish();
  result.store_objects = out.objects();
  result.store_bytes = out.bytes();
  result.exit_status = result.lost() && !options.allow_lossy ? 3 : 0;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace zarrbits
