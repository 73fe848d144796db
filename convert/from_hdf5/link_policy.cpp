// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/link_policy.hpp"

#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <functional>
#include <string>
#include <utility>

namespace zarrbits::conversion {

namespace {

using visitor = std::function<void(const std::string& path, const hdf5::extra_link&)>;

void for_each_link(const hdf5::source_file& source, const visitor& visit) {
  for (const hdf5::source_object& o : source.objects()) {
    for (const hdf5::extra_link& link : o.links) {
      if (link.selected) visit(text::join_path(o.path, text::escape_name(link.name)), link);
    }
  }
}

bool is_lost(const hdf5::extra_link& link) {
  return (link.kind == "broken" && !link.left_out) || (!link.not_copied.empty() && !link.is_cyclic);
}

// The number of links of a kind, and a description of the first.
struct link_summary {
  std::uint64_t count = 0;
  std::string first;
  void add(std::string description) {
    if (count++ == 0) first = std::move(description);
  }
  std::string and_others() const { return first + (count > 1 ? " and others" : ""); }
};

}  // namespace

void follow_links(hdf5::source_file& source, const convert_options& options, const conventions::convention_rules* rules,
                  bool tells_case_apart) {
  const bool pure =
      options.target.convention == convention::none || options.source.concat;  // joined files are compared object by object
  if (options.selection.links ? *options.selection.links != link_policy::copy : pure) return;
  source.follow_links(options.selection.links || (rules && rules->links_are_objects), tells_case_apart);
}

link_counts count_links(const hdf5::source_file& source) {
  link_counts counts;
  for_each_link(source, [&](const std::string&, const hdf5::extra_link& link) {
    ++(link.copied ? counts.copied : is_lost(link) ? counts.lost : counts.kept);
  });
  return counts;
}

void refuse_links(const hdf5::source_file& source, const convert_options& options) {
  if (options.selection.links != link_policy::refuse) return;
  link_summary refused;
  for_each_link(source, [&](const std::string& path, const hdf5::extra_link& link) {
    if (link.kind == "broken") return;
    refused.add(link.kind + " link \"" + path + "\"" + (link.target.empty() ? "" : " to \"" + link.target + "\""));
  });
  if (refused.count == 0) return;
  throw zarrbits::error(errc::refused,
                        "\"" + options.source.name + "\" has " + text::pluralize(refused.count, "link") +
                            ", and `links` is refuse: " + refused.and_others() +
                            "; keep stores them as notes, copy includes their targets",
                        {options.source.name});
}

void warn_of_links(const hdf5::source_file& source, const convert_options& options) {
  link_summary outside, cycles, uncopied;
  for_each_link(source, [&](const std::string& path, const hdf5::extra_link& link) {
    if (link.is_cyclic) cycles.add("\"" + path + "\"");
    else if (!link.not_copied.empty()) uncopied.add("\"" + path + "\": " + link.not_copied);
    else if (link.kind == "external" && !link.copied) outside.add("\"" + link.file + "\"");
  });
  const std::string prefix = "\"" + options.source.name + "\" has ";
  // a file that has only such links would become an empty store, without any notice
  if (outside.count > 0) {
    options.execution.warning(prefix + text::pluralize(outside.count, "link") + " into other files (" + outside.and_others() +
                              "), which the store keeps as notes: their targets are not in it; `links` copy includes them");
  }
  if (uncopied.count > 0) {
    options.execution.warning(prefix + text::pluralize(uncopied.count, "link") +
                              " whose targets cannot be copied, and which the store keeps as notes (" + uncopied.and_others() +
                              ")");
  }
  if (cycles.count > 0) {
    options.execution.warning(prefix + text::pluralize(cycles.count, "link") + " back to a group that contains them (" +
                              cycles.and_others() + "), which the store keeps as notes");
  }
}

void add_lost_links(const hdf5::source_file& source, convert_plan& plan) {
  for_each_link(source, [&](const std::string& path, const hdf5::extra_link& link) {
    if (!is_lost(link) && !link.left_out) return;
    planned_dataset entry;
    entry.path = path;
    entry.outcome = outcome::skipped;
    entry.how = link.kind == "broken" ? link.detail : link.not_copied;
    entry.code = link.code;
    plan.datasets.push_back(std::move(entry));
  });
}

}  // namespace zarrbits::conversion
