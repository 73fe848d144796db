// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/join_files.hpp"

#include "convert/concat/cf_encoding.hpp"
#include "convert/concat/file_reader.hpp"
#include "convert/concat/inherited_units.hpp"
#include "convert/concat/joined_axis.hpp"
#include "convert/concat/reader_processes.hpp"
#include "convert/concat/sequence_check.hpp"
#include "convert/concat/variable.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/type_json.hpp"
#include "metadata/node.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/sha256.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace zarrbits::conversion {

namespace {

using kind_type = hdf5::source_object::kind_type;

constexpr std::size_t max_named_files = 20;  // files, in one sentence

class joiner {
 public:
  joiner(hdf5::source_file& first, const open_function& open_first, const std::vector<std::string>& sources,
         const convert_options& options, const hdf5::source_options& open_options, bool tells_case_apart,
         const append::append_target* store)
      : first_(first),
        open_first_(open_first),
        names_(sources),
        options_(options),
        concat_(*options.source.concat),
        is_case_sensitive_(tells_case_apart),
        existing_store_(store),
        files_(std::make_shared<hdf5::source_files>(open_options, first.largest_expansion())) {
    files_->lend_first(first);
  }

  joined_store run() {
    find_variables();
    if (existing_store_) extend_store();
    const file_reader::setting setting{names_, options_, *files_, is_case_sensitive_, existing_store_, variables_};
    file_reader local_reader(first_, setting);
    // an open store cannot be shared, either
    const unsigned processes = existing_store_ ? 1 : options_.execution.processes;
    reader_processes child_readers(names_.size(), processes, [&] {
      const std::shared_ptr<hdf5::source_file> first = open_first_();
      if (first->state() != first_.state()) throw zarrbits::error(errc::changed, "the first file has changed", {names_[0]});
      return [first, reader = std::make_shared<file_reader>(*first, setting)](std::size_t k) { return reader->read(k); };
    });
    std::string damaged;
    std::size_t count = 0;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      joined_source note;
      note.file = names_[k];
      report_progress(names_[k].starts_with('/') ? "/" + names_[k] : names_[k]);  // unlike the path of an object
      std::optional<file_metadata> metadata;
      if (k > 0) metadata = child_readers.take(k);
      if (!metadata) metadata = local_reader.read(k);
      note_state(split_source(names_[k]).file, metadata->state.value_or(io::file_state{}));
      if (metadata->is_fatal) throw unjoinable(metadata->reason->sentence);
      if (!metadata->reason) {
        add(k, *metadata, note);
      } else {
        if (++count <= max_named_files) damaged += (count > 1 ? "; \"" : "\"") + names_[k] + "\": " + metadata->reason->sentence;
        note.left_out = true;
        note.code = metadata->reason->code;
        note.notes = {metadata->reason->sentence};
      }
      store_.sources.push_back(std::move(note));
    }
    report_progress(first_.objects()[0].path);
    if (count > max_named_files) damaged += "; and " + std::to_string(count - max_named_files) + " more";
    if (count > 0 && (!options_.execution.keep_going || store_.sources[0].left_out)) {
      throw zarrbits::error(errc::not_joinable, text::pluralize(count, "file") + " of " + std::to_string(names_.size()) +
                                                    " cannot be joined: " + damaged +
                                                    "; `keep_going` leaves out such files, except the first, and reports them");
    }
    note_gaps();
    for (variable& v : variables_)
      v.finish(first_.objects()[v.object], ends_[v.dimension], files_, store_.sources,
               existing_store_ ? existing_store_->name() : "", concat_.is_new ? concat_.dimension : "");
    for (hdf5::source_object& o : first_.objects()) {
      if (o.kind == kind_type::dimension && is_dimension(o)) o.overrides.shape = {ends_[o.store_path]};
    }
    select_remaining();
    store_.files = files_;
    store_.checksum = sum_.hex();
    return std::move(store_);
  }

 private:
  void report_progress(const std::string& path) const {
    if (options_.execution.progress) options_.execution.progress({path, 0, 0, 0, 0});
  }

  // As netCDF looks for a dimension: in the group, then in those above.
  std::string dimension_path(const hdf5::source_object& o) const {
    if (concat_.is_new) return "/" + concat_.dimension;
    for (std::string group = o.store_path; !group.empty();) {
      group.resize(group.rfind('/'));
      const std::string path = group + "/" + concat_.dimension;
      const auto is_at_path = [&](const hdf5::source_object& object) { return object.store_path == path; };
      if (std::any_of(first_.objects().begin(), first_.objects().end(), is_at_path)) return path;
    }
    return o.store_path;
  }

  bool is_dimension(const hdf5::source_object& o) const {
    return text::base_name(o.store_path) == concat_.dimension && ends_.contains(o.store_path);
  }

  void find_variables() {
    for (std::size_t i = 0; i < first_.objects().size(); ++i) {
      const hdf5::source_object& o = first_.objects()[i];
      if (o.kind != kind_type::dataset) continue;
      hdf5::skip_reason([&] {
        const hdf5::source_dataset data(first_, o);
        const auto axis = axis_of(concat_, first_, o, data);
        if (!axis) return;
        variable_of_[o.store_path] = variables_.size();
        variables_.push_back({i, *axis, dimension_path(o), data.dims, {}, {}, 0});
      });
    }
    if (!variables_.empty()) return;
    if (concat_.is_new)
      throw zarrbits::error(errc::no_match,
                            "no dataset of \"" + names_[0] + "\" can have a new dimension: there are only dimension scales",
                            {names_[0]});
    throw zarrbits::error(
        errc::no_match,
        "no dataset of \"" + names_[0] + "\" has a dimension \"" + concat_.dimension +
            "\"; \"zarrbits inspect\" lists the datasets, and \"/PATH:0\" in place of a name is the first axis of one",
        {names_[0]});
  }

  void note_state(const std::string& name, const io::file_state& state) {
    files_->add({name, state});
    sum_.add_field(std::filesystem::path(name).filename().string());
    sum_.add_number(state.size);
    sum_.add_number(static_cast<std::uint64_t>(state.seconds));
    sum_.add_number(static_cast<std::uint64_t>(state.nanoseconds));
    if (!state.etag.empty()) sum_.add_field(state.etag);
  }

  // What can only be told of all files in their order.
  void add(std::size_t k, file_metadata& metadata, joined_source& note) {
    std::map<std::string, std::uint64_t> lengths;
    for (const variable& v : variables_) lengths[v.dimension];
    for (variable_part& p : metadata.parts) {
      variable& v = variables_[p.variable];
      std::uint64_t& length = lengths[v.dimension];
      length = std::max(length, p.dimension_length);
      v.stored += p.stored;
      v.nothing_stored = v.nothing_stored && p.nothing_stored;
      p.form.file = names_[k];
      const cf_encoding terms = p.form.encoding;
      const std::size_t variant_index = v.variant_of(std::move(p.form));
      ++v.variants[variant_index].parts;
      if (p.count > 0) v.parts.push_back({k, variant_index, p.address, ends_[v.dimension], p.count, std::move(p.chunks)});
      sequences_[v.dimension].check(first_.objects()[v.object].path, names_[k], terms, p.values);
    }
    std::vector<std::string> left_out;
    for (file_note& r : metadata.notes) {
      if (left_out_.contains(r.object)) continue;
      add_note(note, std::move(r.text), r.is_minor);
      if (r.is_omitted) left_out.push_back(std::move(r.object));
    }
    left_out_.insert(left_out.begin(), left_out.end());
    for (const auto& [dimension, length] : lengths) ends_[dimension] += length;
    const auto entry = lengths.begin();
    note.first = entry == lengths.end() ? 0 : ends_[entry->first] - entry->second;
    note.count = entry == lengths.end() ? 0 : entry->second;
  }

  void note_gaps() const {
    if (!options_.execution.note || options_.execution.partition) return;
    for (const auto& [dimension, sequence] : sequences_) {
      if (const std::string sentence = sequence.gap_note(); !sentence.empty()) options_.execution.note(sentence);
    }
  }

  // The arrays that grow, each from where it ends in the store.
  void extend_store() {
    sum_.add_field(existing_store_->checksum());
    const inherited_units lenders = find_inherited_units(existing_store_->nodes());
    for (variable& v : variables_) {
      const hdf5::source_object& o = first_.objects()[v.object];
      const auto refuse = [&](const std::string& reason) {
        throw unjoinable(
            "\"" + o.path + "\" of \"" + names_[0] + "\" cannot be appended to \"" + existing_store_->name() + "\": " + reason,
            {names_[0], o.path});
      };
      v.existing = existing_store_->array(o.store_path, v.axis);
      if (!v.existing) refuse("the store has no such array; leave it out with `exclude`");
      v.node = existing_store_->node(o.store_path);
      if (const auto lender = lenders.find(o.store_path); lender != lenders.end())
        v.units_source = existing_store_->node(lender->second);
      for (std::size_t d = 0; d < v.dims.size(); ++d) {
        if (d >= v.existing->shape.size() || (d != v.axis && v.dims[d] != v.existing->shape[d]))
          refuse("its dimensions and those of the array in the store differ");
      }
      const hdf5::source_dataset data(first_, o);
      if (data.leaf().kind == hdf5::type_class::enumeration) {
        const text::json notes = existing_store_->notes(o.store_path);
        if (notes.contains("enum") && notes["enum"] != text::parse_json(text::json_text(hdf5::enumeration_members(data.leaf()))))
          refuse("its enumeration has different members in the store");
      }
      std::uint64_t& end = ends_.emplace(v.dimension, v.existing->count).first->second;
      if (end != v.existing->count) refuse("the arrays of the store differ in their length along the dimension");
      if (v.dimension != o.store_path || v.dims.size() != 1 || concat_.allow_overlap) continue;
      const cf_encoding terms = stored_cf_encoding(*v.node, *v.existing, read_cf_encoding(data.dataset), v.units_source);
      sequences_[v.dimension].check(o.path, existing_store_->name(), terms, existing_store_->last_values(o.store_path));
    }
    for (const auto& [path, node] : existing_store_->nodes()) {
      const text::json& names = metadata::dimension_names_of(node);
      if (variable_of_.contains(path) || !names.is_array()) continue;
      if (std::find(names.begin(), names.end(), concat_.dimension) != names.end()) {
        throw unjoinable("\"" + path + "\" of \"" + existing_store_->name() + "\" has the dimension, and \"" + names_[0] +
                             "\", the first of the new files, has no such dataset; put a file first that has all",
                         {names_[0], path});
      }
    }
  }

  void select_remaining() {
    for (const hdf5::source_object& o : first_.objects()) {
      if (existing_store_ && o.kind == kind_type::dataset && !o.joined) left_out_.insert(o.store_path);
    }
    if (left_out_.empty()) return;
    std::vector<std::string> patterns;
    for (const hdf5::source_object& o : first_.objects()) {
      if (left_out_.contains(o.store_path)) patterns.push_back(text::pattern_of_path(o.path));
    }
    text::selection remaining({}, patterns);
    first_.select(remaining);
  }

  hdf5::source_file& first_;
  const open_function& open_first_;
  const std::vector<std::string>& names_;
  const convert_options& options_;
  const concatenation& concat_;
  bool is_case_sensitive_;
  const append::append_target* existing_store_;
  std::shared_ptr<hdf5::source_files> files_;
  std::vector<variable> variables_;
  std::map<std::string, std::size_t> variable_of_;   // by path in the store
  std::map<std::string, std::uint64_t> ends_;        // of each dimension, so far
  std::map<std::string, sequence_check> sequences_;  // by the path of the dimension
  std::set<std::string> left_out_;
  joined_store store_;
  text::sha256 sum_;
};

}  // namespace

joined_store join_files(hdf5::source_file& first, const open_function& open_first, const std::vector<std::string>& sources,
                        const convert_options& options, const hdf5::source_options& open_options, bool tells_case_apart,
                        const append::append_target* store) {
  return joiner(first, open_first, sources, options, open_options, tells_case_apart, store).run();
}

void add_sources(text::json& report, const std::vector<joined_source>& sources) {
  if (sources.empty()) return;
  text::json list = text::json::array();
  for (const joined_source& s : sources) {
    text::json notes = text::json::array();
    for (const std::string& note : s.notes) notes.push_back(text::escape_invalid_utf8(note));
    list.push_back({{"file", text::escape_name(s.file)},
                    {"bytes", s.bytes},
                    {"first", s.first},
                    {"count", s.count},
                    {"left_out", s.left_out},
                    {"notes", std::move(notes)}});
    if (s.left_out) list.back()["code"] = to_string(s.code);
  }
  report["sources"] = std::move(list);
}

}  // namespace zarrbits::conversion
