// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/join_files.hpp"

#include "convert/concat/cf_terms.hpp"
#include "convert/concat/compare_files.hpp"
#include "convert/concat/joined_axis.hpp"
#include "convert/concat/value_order.hpp"
#include "convert/concat/variable.hpp"
#include "convert/convention/convention_rules.hpp"
#include "convert/hdf5/attributes.hpp"
#include "convert/hdf5/file_references.hpp"
#include "convert/text/names.hpp"
#include "convert/text/sha256.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace zarrbits::conversion {

namespace {

using kind_type = source_object::kind_type;

constexpr std::size_t most_named = 20;   // files, in one sentence
constexpr std::size_t most_places = 64;  // chunks of a dataset that are kept in memory
// What values mean: these are compared, and put in one file's terms.
const std::set<std::string> cf_attributes = {"scale_factor", "add_offset", "_FillValue",       "missing_value",
                                             "units",        "calendar",   "_FillValue_source"};

// A pattern that matches this path alone.
std::string escaped_pattern(const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class joiner {
 public:
  joiner(source_file& first, const std::vector<std::string>& sources, const convert_options& options, const source_options& how,
         bool tells_case_apart, const grown_store* store)
      : first_(first),
        names_(sources),
        options_(options),
        concat_(*options.concat),
        wanted_(options.include, options.exclude),
        tells_case_apart_(tells_case_apart),
        there_(store),
        files_(std::make_shared<joined_files>(how, first.largest_expansion())) {}

  joined_store run() {
    find_variables();
    if (there_) go_on_in_store();
    std::string damaged;
    std::size_t count = 0;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      joined_source note;
      note.file = names_[k];
      tell(names_[k].starts_with('/') ? "/" + names_[k] : names_[k]);  // unlike the path of an object
      if (const auto why = try_file(k, note)) {
        if (++count <= most_named) damaged += (count > 1 ? "; \"" : "\"") + names_[k] + "\": " + *why;
        note.count = 0;
        note.left_out = true;
        note.notes = {*why};
      }
      store_.sources.push_back(std::move(note));
    }
    tell(first_.objects()[0].path);
    if (count > most_named) damaged += "; and " + std::to_string(count - most_named) + " more";
    if (count > 0 && (!options_.keep_going || store_.sources[0].left_out)) {
      throw convert_error(counted(count, "file") + " of " + std::to_string(names_.size()) + " cannot be joined: " + damaged +
                          "; `keep_going` leaves such files out, but for the first, and names them");
    }
    for (variable& v : variables_)
      v.finish(first_.objects()[v.object], ends_[v.dimension], files_, store_.sources, there_ ? there_->name() : "",
               concat_.is_new ? concat_.dimension : "");
    for (source_object& o : first_.objects()) {
      if (o.kind == kind_type::dimension && is_dimension(o)) o.arranged.shape = {ends_[o.store_path]};
    }
    leave_out();
    store_.files = files_;
    store_.checksum = sum_.hex();
    return std::move(store_);
  }

 private:
  void tell(const std::string& at) const {
    if (options_.progress) options_.progress({at, 0, 0, 0, 0});
  }

  // As netCDF looks for a dimension: in the group, then in those above.
  std::string dimension_path(const source_object& o) const {
    if (concat_.is_new) return "/" + concat_.dimension;
    for (std::string group = o.store_path; !group.empty();) {
      group.resize(group.rfind('/'));
      const std::string path = group + "/" + concat_.dimension;
      const auto has = [&](const source_object& other) { return other.store_path == path; };
      if (std::any_of(first_.objects().begin(), first_.objects().end(), has)) return path;
    }
    return o.store_path;
  }

  bool is_dimension(const source_object& o) const {
    return leaf_of(o.store_path) == concat_.dimension && ends_.contains(o.store_path);
  }

  void find_variables() {
    for (std::size_t i = 0; i < first_.objects().size(); ++i) {
      const source_object& o = first_.objects()[i];
      if (o.kind != kind_type::dataset) continue;
      reason_to_skip([&] {
        const source_dataset data(first_, o);
        const auto axis = axis_of(concat_, first_, o, data);
        if (!axis) return;
        variable_of_[o.store_path] = variables_.size();
        variables_.push_back({i, *axis, dimension_path(o), data.dims, {}, {}, 0});
      });
    }
    if (!variables_.empty()) return;
    if (concat_.is_new)
      throw convert_error("no dataset of \"" + names_[0] + "\" can have a new dimension: there are scales alone");
    throw convert_error(
        "no dataset of \"" + names_[0] + "\" has a dimension \"" + concat_.dimension +
        "\"; \"zarrbits inspect\" lists the datasets, and \"/PATH:0\" in place of a name is the first axis of one");
  }

  void note_state(const std::string& name, const file_state& state) {
    files_->add({name, state});
    sum_.add_field(std::filesystem::path(name).filename().string());
    sum_.add_number(state.size);
    sum_.add_number(static_cast<std::uint64_t>(state.seconds));
    sum_.add_number(static_cast<std::uint64_t>(state.nanoseconds));
    if (!state.etag.empty()) sum_.add_field(state.etag);
  }

  // Why a file cannot be read; then nothing of it is joined.
  std::optional<std::string> try_file(std::size_t k, joined_source& note) {
    std::optional<std::string> why;
    try {
      why = reason_to_skip([&] { add_file(k, note); });
    } catch (const unjoinable&) {
      throw;
    } catch (const convert_error& e) {
      why = e.what();
    }
    if (!why) return {};
    if (files_->list().size() == k) note_state(split_source(names_[k]).file, {});
    for (variable& v : variables_) {
      std::erase_if(v.parts, [&](const draft_part& p) { return p.file == k; });
    }
    return why;
  }

  void add_file(std::size_t k, joined_source& note) {
    const source_name name = split_source(names_[k]);
    const std::shared_ptr<source_file> other = k == 0 ? nullptr : files_->open(name.file);
    source_file& file = k == 0 ? first_ : *other;
    note_state(name.file, file.state());
    if (k > 0) {
      file.walk(tells_case_apart_, name.object);
      rules_ = find_convention(file, options_.convention, rules_);
      if (rules_ && rules_->arrange) rules_->arrange(file);
    }
    std::map<std::string, hsize_t> lengths;
    std::unordered_map<std::string, const source_object*> there;
    for (const source_object& o : file.objects()) there[o.store_path] = &o;
    for (variable& v : variables_) add_part(v, k, file, there, lengths, note);
    if (there_) compare_with_store(file, note);
    else if (k > 0) compare_rest(file, there, note);
    for (const auto& [dimension, length] : lengths) ends_[dimension] += length;
    const auto own = lengths.begin();
    note.first = own == lengths.end() ? 0 : ends_[own->first] - own->second;
    note.count = own == lengths.end() ? 0 : own->second;
  }

  void add_part(variable& v, std::size_t k, source_file& file, const std::unordered_map<std::string, const source_object*>& there,
                std::map<std::string, hsize_t>& lengths, joined_source& note) {
    const source_object& model = first_.objects()[v.object];
    const auto found = there.find(model.store_path);
    hsize_t& length = lengths[v.dimension];
    if (found == there.end() || found->second->kind != kind_type::dataset) {
      note.notes.push_back("it has no \"" + model.path + "\": its part reads as the fill value");
      return;
    }
    const source_object& o = *found->second;
    const source_dataset data(file, o);
    const auto axis = axis_of(concat_, file, o, data);
    const auto refuse = [&](const std::string& what) {
      throw unjoinable("\"" + model.path + "\" of \"" + names_[0] + "\" and of \"" + names_[k] + "\" cannot be joined: " + what);
    };
    if (axis != v.axis || data.dims.size() != v.dims.size()) refuse("its dimensions differ");
    for (std::size_t d = 0; d < v.dims.size(); ++d) {
      if ((concat_.is_new || d != v.axis) && data.dims[d] != v.dims[d])
        refuse("along another dimension they have " + std::to_string(v.dims[d]) + " and " + std::to_string(data.dims[d]) +
               " elements");
    }
    if (holds_references(data.type) && !(data.type.kind == type_class::text)) refuse("its values are references or sequences");
    const hsize_t own = concat_.is_new ? 1 : data.dims[v.axis];
    length = std::max(length, own);
    if (!concat_.is_new && o.arranged.shape.size() > v.axis) length = std::max(length, o.arranged.shape[v.axis]);
    v.stored += data.stored_bytes;
    const std::size_t which = v.variant_of(data, names_[k]);
    ++v.variants[which].parts;
    if (own > 0) v.parts.push_back({k, which, info_address(data.dataset), ends_[v.dimension], own, places_of(data)});
    if (v.dimension == model.store_path && data.dims.size() == 1 && !concat_.allow_overlap)
      directions_[v.dimension].go_on(model.path, names_[k], v.variants[which].terms, data);
    if (k > 0) compare_attributes(model, file, o, data.dataset, &data.leaf(), note, true);
  }

  // Asked for now, the file need not be opened once more for each of its variables.
  static std::vector<stored_place> places_of(const source_dataset& data) {
    try {
      return data.places_of_chunks(most_places);
    } catch (const h5::failure&) {  // told where the chunks are read
      H5Eclear2(H5E_DEFAULT);
      return {};
    }
  }

  static haddr_t info_address(hid_t object) {
    H5O_info_t info{};
    h5::check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "look at an object");
    return info.addr;
  }

  void compare_attributes(const source_object& model, source_file& file, const source_object& o, hid_t object,
                          const type_tree* leaf, joined_source& note, bool joined) {
    std::vector<converted_object> unused;
    auto known = attributes_.find(model.store_path);
    if (known == attributes_.end()) {
      const h5::handle mine = first_.open(model);
      std::optional<type_tree> type;
      if (model.kind == kind_type::dataset) {
        type = describe_type(h5::handle(H5Dget_type(mine), "tell the datatype"));
      }
      file_references references(first_, mine);
      json all = convert_attributes(mine, model.path, references, type ? &*type : nullptr, memory(), unused);
      known = attributes_.emplace(model.store_path, std::move(all)).first;
    }
    file_references references(file, object);
    const json theirs = convert_attributes(object, o.path, references, leaf, memory(), unused);
    std::string names;
    for (const std::string& name : differing_attributes(known->second, theirs)) {
      if (!joined || !cf_attributes.contains(name)) names += (names.empty() ? "\"" : ", \"") + shown(name) + "\"";
    }
    if (!names.empty())
      note.notes.push_back("its attributes " + names + " of \"" + model.path + "\" differ from the first file's, which are kept");
  }

  // What is not joined is the same in all files.
  void compare_rest(source_file& file, const std::unordered_map<std::string, const source_object*>& there, joined_source& note) {
    using different = concatenation::different_type;
    const auto differs = [&](const std::string& path, const std::string& store_path, const std::string& what) {
      if (concat_.different == different::refuse) {
        throw unjoinable("\"" + path + "\" of \"" + names_[0] + "\" and of \"" + note.file + "\" is not joined, and " + what +
                         "; leave it out with `exclude`, or give `different`");
      }
      const bool skip = concat_.different == different::skip;
      if (skip) left_out_.insert(store_path);
      note.notes.push_back("\"" + path + "\": " + what + "; " + (skip ? "it is left out" : "the first file's is kept"));
    };
    std::set<std::string> known;
    for (const source_object& o : first_.objects()) {
      known.insert(o.store_path);
      if (variable_of_.contains(o.store_path) || left_out_.contains(o.store_path)) continue;
      const auto found = there.find(o.store_path);
      if (found == there.end() || found->second->kind != o.kind) {
        differs(o.path, o.store_path, "is not in the other");
        continue;
      }
      const h5::handle object = file.open(*found->second);
      if (o.kind == kind_type::dataset) {
        const source_dataset mine(first_, o), theirs(file, *found->second);
        if (const std::string what = difference(mine, theirs); !what.empty()) differs(o.path, o.store_path, what);
        compare_attributes(o, file, *found->second, object, &theirs.leaf(), note, false);
      } else if (o.kind == kind_type::group) {
        compare_attributes(o, file, *found->second, object, nullptr, note, false);
      } else if (o.kind == kind_type::dimension && leaf_of(o.store_path) != concat_.dimension &&
                 o.arranged.shape != found->second->arranged.shape) {
        differs(o.path, o.store_path, "the dimension's lengths differ");
      }
    }
    for (const auto& [path, o] : there) {
      if (known.contains(path) || o->kind == kind_type::group || !wanted_.wants(o->path)) continue;
      if (concat_.different == different::refuse) {
        throw unjoinable("\"" + o->path + "\" is in \"" + note.file + "\", and not in \"" + names_[0] +
                         "\", the first; put a file first that has all, leave it out with `exclude`, or give `different`");
      }
      note.notes.push_back("\"" + o->path + "\" is not in the first file, and is left out");
    }
  }

  // The arrays that grow, each from where it ends in the store.
  void go_on_in_store() {
    sum_.add_field(there_->checksum());
    for (variable& v : variables_) {
      const source_object& o = first_.objects()[v.object];
      const auto refuse = [&](const std::string& why) {
        throw unjoinable("\"" + o.path + "\" of \"" + names_[0] + "\" cannot be appended to \"" + there_->name() + "\": " + why);
      };
      v.before = there_->array(o.store_path, v.axis);
      if (!v.before) refuse("the store has no such array; leave it out with `exclude`");
      v.node = there_->node(o.store_path);
      for (std::size_t d = 0; d < v.dims.size(); ++d) {
        if (d >= v.before->shape.size() || (d != v.axis && v.dims[d] != v.before->shape[d]))
          refuse("its dimensions and those of the array in the store differ");
      }
      hsize_t& end = ends_.emplace(v.dimension, v.before->count).first->second;
      if (end != v.before->count) refuse("the arrays of the store differ in their length along the dimension");
      if (v.dimension != o.store_path || v.dims.size() != 1 || concat_.allow_overlap) continue;
      const cf_terms terms = terms_in_store(*v.node, *v.before, terms_of(source_dataset(first_, o).dataset));
      directions_[v.dimension].go_on(o.path, there_->name(), terms, there_->last_values(o.store_path));
    }
    for (const auto& [path, node] : there_->nodes()) {
      if (variable_of_.contains(path) || !node.contains("dimension_names") || !node["dimension_names"].is_array()) continue;
      const json& names = node["dimension_names"];
      if (std::find(names.begin(), names.end(), concat_.dimension) != names.end()) {
        throw unjoinable("\"" + path + "\" of \"" + there_->name() + "\" has the dimension, and \"" + names_[0] +
                         "\", the first of the new files, has no such dataset; put a file first that has all");
      }
    }
  }

  // What is not joined is the same in the store.
  void compare_with_store(source_file& file, joined_source& note) {
    using different = concatenation::different_type;
    for (const source_object& o : file.objects()) {
      if (o.kind != kind_type::dataset || variable_of_.contains(o.store_path) || !wanted_.wants(o.path)) continue;
      const std::string what = there_->difference(o.store_path, source_dataset(file, o));
      if (what.empty()) continue;
      if (concat_.different == different::refuse) {
        throw unjoinable("\"" + o.path + "\" of \"" + note.file + "\" is not joined, and beside \"" + there_->name() + "\" " +
                         what + "; leave it out with `exclude`, or give `different`");
      }
      note.notes.push_back("\"" + o.path + "\": beside the store, " + what + "; the store's is kept");
    }
  }

  void leave_out() {
    for (const source_object& o : first_.objects()) {
      if (there_ && o.kind == kind_type::dataset && !o.joined) left_out_.insert(o.store_path);
    }
    if (left_out_.empty()) return;
    std::vector<std::string> patterns;
    for (const source_object& o : first_.objects()) {
      if (left_out_.contains(o.store_path)) patterns.push_back(escaped_pattern(o.path));
    }
    selection rest({}, patterns);
    first_.select(rest);
  }

  std::uint64_t memory() const { return std::max<std::uint64_t>(options_.memory, 16U << 20); }

  source_file& first_;
  const std::vector<std::string>& names_;
  const convert_options& options_;
  const concatenation& concat_;
  selection wanted_;
  bool tells_case_apart_;
  const grown_store* there_;
  std::shared_ptr<joined_files> files_;
  std::vector<variable> variables_;
  std::map<std::string, std::size_t> variable_of_;  // by path in the store
  std::map<std::string, hsize_t> ends_;             // of each dimension, so far
  std::map<std::string, value_order> directions_;
  std::map<std::string, json> attributes_;  // of the first file's objects
  std::set<std::string> left_out_;
  const convention_rules* rules_ = nullptr;  // of the file before
  joined_store store_;
  sha256 sum_;
};

}  // namespace

joined_store join_files(source_file& first, const std::vector<std::string>& sources, const convert_options& options,
                        const source_options& how, bool tells_case_apart, const grown_store* store) {
  return joiner(first, sources, options, how, tells_case_apart, store).run();
}

void add_sources(json& report, const std::vector<joined_source>& sources) {
  if (sources.empty()) return;
  json list = json::array();
  for (const joined_source& s : sources) {
    json notes = json::array();
    for (const std::string& note : s.notes) notes.push_back(utf8_text(note));
    list.push_back(
        {{"file", shown(s.file)}, {"first", s.first}, {"count", s.count}, {"left_out", s.left_out}, {"notes", std::move(notes)}});
  }
  report["sources"] = std::move(list);
}

}  // namespace zarrbits::conversion
