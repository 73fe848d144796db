// SPDX-License-Identifier: BSL-1.0
#include "verify/hdf5_pairs.hpp"

#include "hdf5/link_value.hpp"
#include "text/name_escaping.hpp"
#include "verify/compare_links.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/hdf5_types.hpp"
#include "verify/value_format.hpp"

namespace zarrbits::verification {

namespace {

std::string quoted(const std::string& name) { return format_text(text::escape_name(name)); }

std::string kind_of_link(H5L_type_t type) {
  if (type == H5L_TYPE_HARD) return "a hard link";
  if (type == H5L_TYPE_SOFT) return "a soft link";
  if (type == H5L_TYPE_EXTERNAL) return "an external link";
  return "a user-defined link of class " + std::to_string(static_cast<int>(type));
}

// The value of a soft, external or user-defined link, as text.
std::string format_link(H5L_type_t type, const std::string& value) {
  if (type == H5L_TYPE_SOFT) return quoted(value.c_str());
  unsigned flags = 0;
  const char *file = nullptr, *object = nullptr;
  if (type != H5L_TYPE_EXTERNAL || H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &object) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return hex(reinterpret_cast<const std::byte*>(value.data()), value.size());
  }
  return quoted(object) + " in " + quoted(file);
}

std::map<std::string, const source_link*> links_by_name(const source_tree& tree, haddr_t group) {
  std::map<std::string, const source_link*> links;
  for (const source_link& l : tree.objects().at(group).links) links.emplace(l.name, &l);
  return links;
}

}  // namespace

const char* kind_of(H5O_type_t type) {
  return type == H5O_TYPE_GROUP ? "group" : type == H5O_TYPE_DATASET ? "dataset" : "named type";
}

bool hdf5_pairs::is_pair(haddr_t first, haddr_t second) const {
  const auto entry = partners_.find(first);
  return entry != partners_.end() && entry->second == second;
}

void hdf5_pairs::walk() {
  const source_object& a = first_.objects().at(first_.root());
  const source_object& b = second_.objects().at(second_.root());
  if (a.type != b.type) {
    finding f;
    f.path = first_.top();
    f.store_path = second_.top();
    f.kind = kind_of(a.type);
    f.outcome = verdict::differs;
    f.reason = in_both(std::string("is a ") + kind_of(a.type), std::string("a ") + kind_of(b.type));
    return add_finding(result_, std::move(f));
  }
  partners_[first_.root()] = second_.root();
  of_second_[second_.root()] = first_.root();
  add({a.type, first_.root(), second_.root(), first_.top(), second_.top(), true});
  while (!groups_.empty()) {
    const object_pair group = objects_[groups_.front()];
    groups_.pop_front();
    pair_group(group);
  }
  report_lone_links();
  report_lone_objects();
}

void hdf5_pairs::add(object_pair&& pair) {
  if (!visited_.insert({pair.first, pair.second}).second) return;
  if (pair.type == H5O_TYPE_GROUP) groups_.push_back(objects_.size());
  objects_.push_back(std::move(pair));
}

void hdf5_pairs::report_link(const std::string& group, const std::string& second_group, const std::string& name, verdict outcome,
                             const std::string& reason) {
  finding f;
  f.path = group;
  f.store_path = second_group;
  f.kind = "link";
  f.attribute = name;
  f.outcome = outcome;
  f.reason = reason;
  add_finding(result_, std::move(f));
}

void hdf5_pairs::pair_group(const object_pair& group) {
  const auto in_first = links_by_name(first_, group.first), in_second = links_by_name(second_, group.second);
  const source_object& object = first_.objects().at(group.first);
  // a selected group selects everything below it, except the root, which is part of every comparison
  const auto is_requested = [&](const std::string& name) {
    const std::string path = text::escape_name(child_path(group.path, name));
    return requested_.matches(path) || (group.first != first_.root() && object.selected && !requested_.excludes(path));
  };
  for (const auto& [name, a] : in_first) {
    const bool is_selected = is_requested(name);
    const auto entry = in_second.find(name);
    if (entry != in_second.end()) {
      const source_link& b = *entry->second;
      if (a->type == H5L_TYPE_HARD && b.type == H5L_TYPE_HARD) pair_hard_links(group, *a, b, is_selected);
      else if (is_selected) compare_links(group, *a, b);
      continue;
    }
    if (!is_selected) continue;
    if (a->type == H5L_TYPE_HARD && a->target != HADDR_UNDEF) {
      only_in_first_.push_back({group.path, name, a->target});
      continue;
    }
    report_link(group.path, group.second_path, name, verdict::missing,
                "has " + kind_of_link(a->type) + " " + quoted(name) + ", which is not in the second file");
  }
  for (const auto& [name, b] : in_second) {
    if (in_first.contains(name) || !is_requested(name)) continue;
    if (b->type == H5L_TYPE_HARD && b->target != HADDR_UNDEF) only_in_second_.push_back({group.second_path, name, b->target});
    else result_.extras.push_back({format_name(group.second_path), "link", format_name(name)});
  }
}

void hdf5_pairs::pair_hard_links(const object_pair& group, const source_link& a, const source_link& b, bool is_selected) {
  const std::string path = child_path(group.path, a.name);
  if (a.target == HADDR_UNDEF || b.target == HADDR_UNDEF) {
    reported_.insert(a.target);
    reported_in_second_.insert(b.target);
    if (!is_selected) return;
    const std::string reason =
        a.target == HADDR_UNDEF ? "that cannot be opened: " + a.reason : "that cannot be opened in the second file: " + b.reason;
    return report_link(group.path, group.second_path, a.name, verdict::unreadable,
                       "has a hard link " + quoted(a.name) + " to an object " + reason);
  }
  const source_object& x = first_.objects().at(a.target);
  const source_object& y = second_.objects().at(b.target);
  const auto of_x = partners_.find(a.target), of_y = of_second_.find(b.target);
  if (x.type != y.type) {
    reported_.insert(a.target);
    reported_in_second_.insert(b.target);
    if (!is_selected) return;
    return report_link(
        group.path, group.second_path, a.name, verdict::differs,
        in_both("has a " + std::string(kind_of(x.type)) + " " + quoted(a.name), "a " + std::string(kind_of(y.type))));
  }
  const bool is_new = of_x == partners_.end() && of_y == of_second_.end();
  if (is_new) {
    partners_[a.target] = b.target;
    of_second_[b.target] = a.target;
  } else if (is_selected && is_pair(a.target, b.target)) {
    report_link(group.path, group.second_path, a.name, verdict::equal, "");
  } else if (!is_pair(a.target, b.target)) {
    reported_.insert(a.target);
    reported_in_second_.insert(b.target);
    if (is_selected) {
      const bool is_shared = of_x != partners_.end();
      report_link(group.path, group.second_path, a.name, verdict::differs,
                  in_both("has a hard link " + quoted(a.name) + " to " +
                              (is_shared ? "the object " + quoted(x.path) : "an object of its own"),
                          of_y != of_second_.end() ? "to the object " + quoted(y.path) : "to an object of its own"));
    }
  }
  add({x.type, a.target, b.target, path, child_path(group.second_path, b.name), x.selected || y.selected});
}

void hdf5_pairs::compare_links(const object_pair& group, const source_link& a, const source_link& b) {
  const std::string has = "has " + kind_of_link(a.type) + " " + quoted(a.name);
  const auto report = [&](verdict outcome, const std::string& reason) {
    report_link(group.path, group.second_path, a.name, outcome, reason);
  };
  // a hard link in place of another one leads to an object that has no partner: this finding names it
  if (a.type == H5L_TYPE_HARD) reported_.insert(a.target);
  if (b.type == H5L_TYPE_HARD) reported_in_second_.insert(b.target);
  if (a.type != b.type) return report(verdict::differs, in_both(has, kind_of_link(b.type)));
  try {
    hdf5::register_link_class(a.type);  // else libhdf5 returns nothing
    const hdf5::handle first = first_.open(group.first), second = second_.open(group.second);
    const std::string value = link_value(first.get(), a.name), other = link_value(second.get(), b.name);
    if (value != other)
      return report(verdict::differs, in_both(has + " to " + format_link(a.type, value), format_link(b.type, other)));
    report(verdict::equal, "");
  } catch (const zarr::not_supported& e) {
    report(verdict::unreadable, has + " that cannot be compared: this reader does not support " + e.what());
  } catch (const source_error& e) {
    report(verdict::unreadable, has + " that cannot be read: " + e.what());
  } catch (const hdf5::failure& e) {
    report(verdict::unreadable, has + " that cannot be read: " + e.what());
  }
}

void hdf5_pairs::report_lone_links() {
  for (const lone_link& l : only_in_first_) {
    if (!partners_.contains(l.target) && !reported_.contains(l.target)) continue;  // the object itself is missing
    report_link(l.group, "", l.name, verdict::missing,
                "has a hard link " + quoted(l.name) + " to the object " + quoted(first_.objects().at(l.target).path) +
                    ", which is not in the second file");
  }
  for (const lone_link& l : only_in_second_) {
    if (of_second_.contains(l.target) || reported_in_second_.contains(l.target))
      result_.extras.push_back({format_name(l.group), "link", format_name(l.name)});
  }
}

void hdf5_pairs::report_lone_objects() {
  for (const auto& [address, o] : first_.objects()) {
    if (!o.selected || partners_.contains(address) || reported_.contains(address)) continue;
    finding f;
    f.path = o.path;
    f.kind = kind_of(o.type);
    f.outcome = verdict::missing;
    f.reason = "is not in the second file";
    add_finding(result_, std::move(f));
  }
  for (const auto& [address, o] : second_.objects()) {
    if (o.selected && !of_second_.contains(address) && !reported_in_second_.contains(address))
      result_.only_in_store.push_back(format_name(o.path));
  }
}

}  // namespace zarrbits::verification
