// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_hdf5_files.hpp"

#include "hdf5/dimensions.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/file_bytes.hpp"
#include "hdf5/foreign_format.hpp"
#include "hdf5/open_source.hpp"
#include "io/remote_url.hpp"
#include "text/selection.hpp"
#include "verify/compare_aggregation.hpp"
#include "verify/compare_hdf5_attributes.hpp"
#include "verify/compare_hdf5_dataset.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/comparison_progress.hpp"
#include "verify/hdf5_pairs.hpp"
#include "verify/tree_comparison.hpp"
#include "verify/value_format.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_slots = 12421;

hdf5::opened_source open_file(const verify_options& options, const source_name& name) {
  const hdf5::handle access = checked(H5Pcreate(H5P_FILE_ACCESS), "cannot prepare to open a file");
  check(H5Pset_cache(access.get(), 0, max_slots, static_cast<std::size_t>(options.memory / 8), 0.75),
        "cannot prepare to open a file");
  return hdf5::opened_source(name.file, access.get(), options.remote, options.memory / 8, options.external, options.lock,
                             extent_of(options, name), true);
}

std::string top_of(const source_name& name) { return name.object.empty() ? "/" : name.object; }

std::string comment_of(hid_t object) {
  constexpr ssize_t max_bytes = 16 << 20;
  const ssize_t n = H5Oget_comment(object, nullptr, 0);
  if (n < 0 || n > max_bytes) throw source_error("has a comment that cannot be read: " + hdf5_reason());
  std::string comment(static_cast<std::size_t>(n) + 1, '\0');
  if (n > 0 && H5Oget_comment(object, comment.data(), comment.size()) < 0)
    throw source_error("has a comment that cannot be read: " + hdf5_reason());
  comment.resize(static_cast<std::size_t>(n));
  return comment;
}

herr_t collect_link(hid_t, const char* name, const H5L_info_t*, void* out) {
  try {
    static_cast<std::vector<std::string>*>(out)->push_back(name);
    return 0;
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
}

bool is_link_order_tracked(hid_t group) {
  const hdf5::handle properties = checked(H5Gget_create_plist(group), "cannot read the properties of the group");
  unsigned flags = 0;
  check(H5Pget_link_creation_order(properties.get(), &flags), "cannot read the order of the links");
  return (flags & H5P_CRT_ORDER_TRACKED) != 0;
}

std::vector<std::string> links_in_order(hid_t group) {
  std::vector<std::string> names;
  hsize_t position = 0;
  check(H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, collect_link, &names), "cannot list the links");
  return names;
}

void keep_common(std::vector<std::string>& names, const std::vector<std::string>& other_names) {
  const std::set<std::string> common(other_names.begin(), other_names.end());
  std::erase_if(names, [&](const std::string& name) { return !common.contains(name); });
}

void compare_link_order(hid_t first, hid_t second, finding& f) {
  const bool is_tracked = is_link_order_tracked(first);
  if (is_tracked != is_link_order_tracked(second))
    return add_reason(
        f, verdict::differs,
        std::string("has links whose order of creation only the ") + (is_tracked ? "first" : "second") + " file tracks");
  if (!is_tracked) return;
  std::vector<std::string> a = links_in_order(first), b = links_in_order(second);
  keep_common(a, b);
  keep_common(b, a);
  if (a != b) add_reason(f, verdict::differs, "has links that were created in another order in the second file");
}

std::uint64_t user_block_size(hid_t file) {
  const hdf5::handle properties = checked(H5Fget_create_plist(file), "cannot read the properties of the file");
  hsize_t size = 0;
  check(H5Pget_userblock(properties.get(), &size), "cannot read the size of the user block");
  return size;
}

void compare_user_blocks(const hdf5::opened_source& first, const hdf5::opened_source& second, finding& f) {
  constexpr std::uint64_t piece = 1 << 20;
  const std::uint64_t size = user_block_size(first.file()), other_size = user_block_size(second.file());
  if (size != other_size)
    return add_reason(f, verdict::differs,
                      in_both("has a user block of " + std::to_string(size) + " bytes", std::to_string(other_size)));
  const hdf5::file_bytes bytes(first.chunks()), other_bytes(second.chunks());
  for (std::uint64_t done = 0; done < size; done += piece) {
    std::vector<std::byte> a(static_cast<std::size_t>(std::min(piece, size - done))), b(a.size());
    bytes.read(done, a);
    other_bytes.read(done, b);
    const auto difference = std::mismatch(a.begin(), a.end(), b.begin());
    if (difference.first == a.end()) continue;
    return add_reason(f, verdict::differs,
                      "has a user block with other bytes in the second file, first at byte " +
                          std::to_string(done + static_cast<std::uint64_t>(difference.first - a.begin())));
  }
}

class files_comparison {
 public:
  files_comparison(const verify_options& options, verify_result& result)
      : options_(options),
        progress_(options.progress),
        name_(split_source(options.source)),
        second_name_(split_source(options.store)),
        first_file_(open_file(options, name_)),
        second_file_(open_file(options, second_name_)),
        first_(first_file_.file(), top_of(name_), progress_),
        second_(second_file_.file(), top_of(second_name_), progress_),
        requested_(options.include, options.exclude),
        pairs_(first_, second_, requested_, result),
        elements_(first_, second_, pairs_),
        context_{first_file_,
                 second_file_,
                 elements_,
                 std::max<std::uint64_t>(options.memory / 8, 1 << 16),
                 [this](std::uint64_t bytes) { progress_.add_bytes(bytes); },
                 !options.is_combined},
        result_(result) {}

  void run() {
    text::selection claims;
    first_.select(requested_, claims);
    second_.select(requested_, claims);
    find_aggregations();
    pairs_.walk();
    requested_.require_all_matched();
    first_.count_work(progress_);
    for (const object_pair& p : pairs_.objects()) {
      if (!p.is_selected) continue;
      progress_.begin_object(p.path);
      compare(p);
      progress_.end_object(first_.objects().at(p.first).bytes);
    }
    first_file_.require_unchanged();
    second_file_.require_unchanged();
    std::erase_if(result_.only_in_store, [&](const std::string& path) { return of_aggregations_.contains(path); });
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const finding& a, const finding& b) { return a.path < b.path; });
  }

 private:
  // A file with aggregation variables also has variables that these name, with dimensions of their own, and leaves out lists of
  // its dimensions' users.
  void find_aggregations() {
    for (const auto& [address, o] : second_.objects()) {
      if (o.type != H5O_TYPE_DATASET) continue;
      const hdf5::handle dataset = second_.open(address);
      if (!dataset) continue;
      if (hdf5::is_aggregation_variable(dataset.get()))
        ignored_ = {
            "Conventions",         "CLASS",      "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid",
            "_Netcdf4Coordinates", "_nc3_strict"};
      else if (hdf5::is_dimension_without_variable(dataset.get())) of_aggregations_.insert(format_name(o.path));
    }
    if (ignored_.empty()) of_aggregations_.clear();
  }

  void compare_with_aggregation(hid_t a, hid_t b, finding& f) {
    std::set<std::string> ignored = ignored_;
    ignored.merge(aggregation_comparison::unshared_attributes(a));
    compare_hdf5_attributes(a, b, context_, f, result_, ignored);
    aggregation_comparison c(a, b, context_, options_, second_name_.file, f);
    c.run();
    for (const std::string& path : c.features()) of_aggregations_.insert(format_name(path));
    result_.elements += c.elements();
  }

  void compare(const object_pair& p) {
    finding f;
    f.path = p.path;
    f.store_path = p.second_path;
    f.kind = kind_of(p.type);
    const hdf5::handle a = first_.open(p.first), b = second_.open(p.second);
    if (!a || !b) {
      add_reason(f, verdict::unreadable, (a ? "cannot be opened in the second file: " : "cannot be opened: ") + hdf5_reason());
      return add_finding(result_, std::move(f));
    }
    try {
      if (comment_of(a.get()) != comment_of(b.get()))
        add_reason(f, verdict::differs,
                   in_both("has the comment " + format_text(comment_of(a.get())), format_text(comment_of(b.get()))));
      if (p.type == H5O_TYPE_GROUP) compare_group(p, a.get(), b.get(), f);
      else if (p.type == H5O_TYPE_NAMED_DATATYPE) compare_named_type(a.get(), b.get(), f);
    } catch (const std::runtime_error& e) {  // source_error, hdf5::failure, io::read_error
      add_reason(f, verdict::unreadable, e.what());
    }
    if (p.type == H5O_TYPE_DATASET && hdf5::is_aggregation_variable(b.get()) && !hdf5::is_aggregation_variable(a.get())) {
      compare_with_aggregation(a.get(), b.get(), f);
      return add_finding(result_, std::move(f));
    }
    compare_hdf5_attributes(a.get(), b.get(), context_, f, result_, ignored_);
    if (p.type == H5O_TYPE_DATASET) {
      hdf5_dataset_comparison c(a.get(), b.get(), context_, f);
      c.run();
      result_.elements += c.elements();
    }
    add_finding(result_, std::move(f));
  }

  void compare_group(const object_pair& p, hid_t a, hid_t b, finding& f) {
    for (const auto* group : {&first_.objects().at(p.first), &second_.objects().at(p.second)}) {
      if (!group->reason.empty()) return add_reason(f, verdict::unreadable, group->reason);
    }
    compare_link_order(a, b, f);
    if (p.path == "/" && p.second_path == "/") compare_user_blocks(first_file_, second_file_, f);
  }

  void compare_named_type(hid_t a, hid_t b, finding& f) {
    if (const std::string reason = datatype_difference(a, b); !reason.empty())
      add_reason(f, verdict::differs, "is a different type: " + reason);
  }

  const verify_options& options_;
  comparison_progress progress_;
  const source_name name_, second_name_;
  const hdf5::opened_source first_file_, second_file_;
  source_tree first_, second_;
  text::selection requested_;
  hdf5_pairs pairs_;
  element_comparison elements_;
  const hdf5_context context_;
  std::set<std::string> ignored_ = {};          // attributes that a file with aggregation variables has of its own
  std::set<std::string> of_aggregations_ = {};  // objects that only such a file has
  verify_result& result_;
};

}  // namespace

bool is_hdf5_name(const std::string& name) {
  namespace fs = std::filesystem;
  const std::string file = split_source(name).file;
  if (io::is_web(file)) return !zarr::is_store_name(file);
  if (io::is_remote(file)) {
    static const std::set<std::string> extensions = {".h5", ".hdf5", ".he5", ".nc", ".nc4"};
    return extensions.contains(fs::path(file).extension().string());
  }
  std::error_code e;
  return fs::is_regular_file(file, e) && hdf5::is_hdf5_file(file);
}

verify_result compare_hdf5_files(const verify_options& options) {
  verify_result result;
  result.is_hdf5_pair = true;
  files_comparison(options, result).run();
  return result;
}

}  // namespace zarrbits::verification
