// SPDX-License-Identifier: BSL-1.0
#include "convert/run/link_policy.hpp"

#include "text/node_names.hpp"
#include "text/shown.hpp"
#include "text/words.hpp"

#include <functional>
#include <string>
#include <utility>

namespace zarrbits::conversion {

namespace {

using visitor = std::function<void(const std::string& path, const hdf5::extra_link&)>;

void for_each_link(const hdf5::source_file& source, const visitor& visit) {
  for (const hdf5::source_object& o : source.objects()) {
    for (const hdf5::extra_link& link : o.links) {
      if (link.selected) visit(text::join_path(o.path, text::shown(link.name)), link);
    }
  }
}

bool is_lost(const hdf5::extra_link& link) {
  return (link.kind == "broken" && !link.left_out) || (!link.not_copied.empty() && !link.leads_back);
}

// The number of links of a kind, and a description of the first.
struct some_links {
  std::uint64_t count = 0;
  std::string first;
  void add(std::string said) {
    if (count++ == 0) first = std::move(said);
  }
  std::string and_others() const { return first + (count > 1 ? " and others" : ""); }
};

}  // namespace

void follow_links(hdf5::source_file& source, const convert_options& options, const conventions::convention_rules* rules, bool tells_case_apart) {
  const bool pure = options.convention == convention::none || options.concat;  // joined files are compared object by object
  if (options.links ? *options.links != link_policy::copy : pure) return;
  source.follow_links(options.links || (rules && rules->links_are_objects), tells_case_apart);
}

link_counts count_links(const hdf5::source_file& source) {
  link_counts all;
  for_each_link(source, [&](const std::string&, const hdf5::extra_link& link) {
    ++(link.copied ? all.copied : is_lost(link) ? all.lost : all.kept);
  });
  return all;
}

void refuse_links(const hdf5::source_file& source, const convert_options& options) {
  if (options.links != link_policy::refuse) return;
  some_links all;
  for_each_link(source, [&](const std::string& path, const hdf5::extra_link& link) {
    if (link.kind == "broken") return;
    all.add(link.kind + " link \"" + path + "\"" + (link.target.empty() ? "" : " to \"" + link.target + "\""));
  });
  if (all.count == 0) return;
  throw zarrbits::error(errc::refused,
                        "\"" + options.source + "\" has " + text::counted(all.count, "link") + ", and `links` is refuse: " +
                            all.and_others() + "; keep stores them as notes, copy includes their targets",
                        {options.source});
}

void warn_of_links(const hdf5::source_file& source, const convert_options& options) {
  some_links outside, back, lost;
  for_each_link(source, [&](const std::string& path, const hdf5::extra_link& link) {
    if (link.leads_back) back.add("\"" + path + "\"");
    else if (!link.not_copied.empty()) lost.add("\"" + path + "\": " + link.not_copied);
    else if (link.kind == "external" && !link.copied) outside.add("\"" + link.file + "\"");
  });
  const std::string has = "\"" + options.source + "\" has ";
  // a file that has only such links would become an empty store, without any notice
  if (outside.count > 0) {
    options.warning(has + text::counted(outside.count, "link") + " into other files (" + outside.and_others() +
                    "), which the store keeps as notes: their targets are not in it; `links` copy includes them");
  }
  if (lost.count > 0) {
    options.warning(has + text::counted(lost.count, "link") + " whose targets cannot be copied, and which the store keeps as notes (" +
                    lost.and_others() + ")");
  }
  if (back.count > 0) {
    options.warning(has + text::counted(back.count, "link") + " back to a group that contains them (" + back.and_others() +
                    "), which the store keeps as notes");
  }
}

void add_lost_links(const hdf5::source_file& source, convert_plan& plan) {
  for_each_link(source, [&](const std::string& path, const hdf5::extra_link& link) {
    if (!is_lost(link) && !link.left_out) return;
    planned_dataset lost;
    lost.path = path;
    lost.outcome = outcome::skipped;
    lost.how = link.kind == "broken" ? link.detail : link.not_copied;
    plan.datasets.push_back(std::move(lost));
  });
}

}  // namespace zarrbits::conversion
