// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/dimension_chunks.hpp"

#include "text/selection.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>

namespace zarrbits::conversion {

namespace {

bool matches(const dimension_chunks& requested, const std::string& path) {
  return requested.pattern.empty() || text::selection({requested.pattern}, {}).matches(path);
}

// A few names for a message.
std::string listed(const std::set<std::string>& names) {
  constexpr std::size_t max_names = 12;
  std::string list;
  std::size_t n = 0;
  for (const std::string& name : names) {
    if (++n > max_names) return list + ", ...";
    list += (list.empty() ? "" : ", ") + name;
  }
  return list;
}

}  // namespace

bool use_dimension_chunks(const std::vector<dimension_chunks>& requested, const std::string& path,
                          const std::vector<std::string>& names, const array::extents& shape, array::extents& chunk,
                          std::optional<std::size_t> growing) {
  bool is_requested = false;
  const auto use = [&](const dimension_chunks& r) {
    for (const auto& along : r.lengths) {
      for (std::size_t d = 0; d < std::min(names.size(), shape.size()); ++d) {
        if (names[d] != along.dimension) continue;
        const std::uint64_t extent = std::max<std::uint64_t>(1, shape[d]), length = along.length == 0 ? extent : along.length;
        is_requested = true;
        // beyond the edge only where more may follow, or where the array has such chunks already
        if (length != chunk[d]) chunk[d] = d == growing ? length : std::min(length, extent);
      }
    }
  };
  for (const bool by_pattern : {false, true}) {
    for (const dimension_chunks& r : requested) {
      if (r.pattern.empty() != by_pattern && matches(r, path)) use(r);
    }
  }
  return is_requested;
}

void check_dimension_chunks(const std::vector<dimension_chunks>& requested) {
  for (const dimension_chunks& r : requested) {
    if (!r.pattern.empty()) text::selection({r.pattern}, {});
    for (const auto& along : r.lengths) {
      if (along.dimension.empty()) throw zarrbits::error(errc::invalid_option, "`chunk` has a dimension without a name");
      if (along.length > std::uint64_t{1} << 62)
        throw zarrbits::error(errc::invalid_option, "the length of `chunk` along \"" + along.dimension + "\" is too large");
    }
  }
}

dimension_chunks_check::dimension_chunks_check(const std::vector<dimension_chunks>& requested) {
  for (const dimension_chunks& r : requested) entries_.push_back({&r, false, {}});
}

void dimension_chunks_check::add(const std::string& path, const std::vector<std::string>& names) {
  for (entry& e : entries_) {
    if (!matches(*e.requested, path)) continue;
    e.matched = true;
    for (const std::string& name : names) {
      if (!name.empty()) e.names.insert(name);
    }
  }
}

void dimension_chunks_check::require_all_matched() const {
  for (const entry& e : entries_) {
    const std::string& pattern = e.requested->pattern;
    if (!e.matched && !pattern.empty())
      throw zarrbits::error(errc::no_match, "`chunk` \"" + pattern + "\" matches no array; \"zarrbits inspect\" lists them");
    for (const auto& along : e.requested->lengths) {
      if (e.names.contains(along.dimension)) continue;
      const std::string arrays = pattern.empty() ? "no array" : "no array that \"" + pattern + "\" matches",
                        existing = e.names.empty() ? "none of their dimensions has a name; use a shape, such as 100x200"
                                                   : "the dimensions are " + listed(e.names);
      throw zarrbits::error(errc::no_match,
                            "`chunk` names the dimension \"" + along.dimension + "\", which " + arrays + " has: " + existing);
    }
  }
}

}  // namespace zarrbits::conversion
