// SPDX-License-Identifier: BSL-1.0
#include "text/coded_reason.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace zarrbits {

namespace {

constexpr const char* reason_names[] = {"none",
                                        "not_selected",
                                        "parent_skipped",
                                        "unsupported_type",
                                        "unsupported_feature",
                                        "unsupported_codec",
                                        "missing_filter",
                                        "zarr_v3_only",
                                        "too_large",
                                        "invalid_name",
                                        "damaged",
                                        "unreadable",
                                        "lost_chunks",
                                        "missing_file",
                                        "refused_file",
                                        "not_joinable",
                                        "link_not_followed",
                                        "dangling_reference",
                                        "rounded",
                                        "changed_form",
                                        "bookkeeping"};
static_assert(std::size(reason_names) == static_cast<std::size_t>(reason_code::bookkeeping) + 1);

}  // namespace

const char* to_string(reason_code code) noexcept { return reason_names[static_cast<std::size_t>(code)]; }

}  // namespace zarrbits

namespace zarrbits::text {

reason_code reason_code_of(errc e) noexcept {
  switch (e) {
    case errc::not_found: return reason_code::missing_file;
    case errc::refused: return reason_code::refused_file;
    case errc::not_joinable:
    case errc::different: return reason_code::not_joinable;
    case errc::invalid_data_type:
    case errc::unsupported_data_type: return reason_code::unsupported_type;
    case errc::invalid_codec: return reason_code::unsupported_codec;
    case errc::unsupported: return reason_code::unsupported_feature;
    case errc::permission_denied:
    case errc::io_failed:
    case errc::busy:
    case errc::server_failed: return reason_code::unreadable;
    default: return reason_code::damaged;
  }
}

std::optional<reason_code> parse_reason_code(std::string_view name) noexcept {
  const auto match = std::find(std::begin(reason_names), std::end(reason_names), name);
  if (match == std::end(reason_names)) return {};
  return static_cast<reason_code>(match - std::begin(reason_names));
}

}  // namespace zarrbits::text
