// SPDX-License-Identifier: BSL-1.0
//
// Compares the note of the order in which the links of a group were created with that of the file.
//
#include "text/name_escaping.hpp"
#include "text/reserved_names.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/source_values.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

herr_t collect_escaped(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(text::escape_name(name));
  return 0;
}

}  // namespace

void metadata_comparison::order(hid_t group, const node_pair& n) {
  const json note = n.notes().value("order", json());
  if (note.is_null()) return;
  const std::string key = std::string(text::annotation_key) + ".order";
  std::vector<std::string> stored, source;
  for (const json& name : note) stored.push_back(name.is_string() ? name.get<std::string>() : "");
  hsize_t position = 0;
  if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, collect_escaped, &source) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return report_extra(n, "note", key);  // the file does not have this order
  }
  // a part of a file has a part of the names
  const auto keep_common = [](std::vector<std::string>& names, const std::vector<std::string>& other_names) {
    const std::set<std::string> allowed_names(other_names.begin(), other_names.end());
    std::erase_if(names, [&](const std::string& name) { return !allowed_names.contains(name); });
  };
  keep_common(stored, source);
  keep_common(source, stored);
  if (stored == source) return report_finding(n, "note", key, verdict::equal, "");
  report_finding(n, "note", key, verdict::differs,
                 "has a different note " + key + ": the links of the group were created in another order");
}

}  // namespace zarrbits::verification
