// SPDX-License-Identifier: BSL-1.0
//
// A node of a store that cannot be read while others can: it is skipped, and named.
//
//   const text::coded_reason reason = reason_unreadable([&] { array.emplace(folder); });
//   if (!reason.empty()) skip(reason);
//
#ifndef ZARRBITS_ZARR_READ_UNREADABLE_NODE_HPP
#define ZARRBITS_ZARR_READ_UNREADABLE_NODE_HPP

#include "zarr/read/store_reader.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <exception>
#include <string>

namespace zarrbits::zarr {

inline text::coded_reason unsupported_node(const not_supported& e) {
  return {e.code, std::string("this reader does not support ") + e.what()};
}

inline text::coded_reason unusable_metadata(reason_code code, const std::exception& e) {
  return {code, std::string("its metadata cannot be used: ") + e.what()};
}

// Why `read` fails for this node alone; else empty. Throws errors that concern all nodes, such as a server that does not answer.
template <class F>
text::coded_reason reason_unreadable(F&& read) {
  try {
    read();
    return {};
  } catch (const not_supported& e) {
    return unsupported_node(e);
  } catch (const error& e) {
    if (e.kind() != errc::unsupported) throw;
    return {text::reason_code_of(e.kind()), e.what()};
  } catch (const store_error& e) {
    if (e.code != errc::damaged_store) throw;
    return unusable_metadata(e.reason, e);
  } catch (const nlohmann::json::exception& e) {
    return unusable_metadata(reason_code::damaged, e);
  }
}

}  // namespace zarrbits::zarr

#endif
