// SPDX-License-Identifier: BSL-1.0
//
// A node of a store that cannot be read while others can: it is skipped, and named.
//
//   const std::string why = reason_unreadable([&] { array.emplace(folder); });
//   if (!why.empty()) skip(why);
//
#ifndef ZARRBITS_ZARR_READ_UNREADABLE_NODE_HPP
#define ZARRBITS_ZARR_READ_UNREADABLE_NODE_HPP

#include "zarr/read/store_reader.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace zarrbits::zarr {

// Why `read` fails for this node alone, or "". Throws errors that concern all nodes, such as a server that does not answer.
template <class F>
std::string reason_unreadable(F&& read) {
  try {
    read();
    return "";
  } catch (const not_supported& e) {
    return std::string("this reader does not support ") + e.what();
  } catch (const error& e) {
    if (e.kind() != errc::unsupported) throw;
    return e.what();
  } catch (const store_error& e) {
    if (e.code != errc::damaged_store) throw;
    return std::string("its metadata cannot be used: ") + e.what();
  } catch (const nlohmann::json::exception& e) {
    return std::string("its metadata cannot be used: ") + e.what();
  }
}

}  // namespace zarrbits::zarr

#endif
