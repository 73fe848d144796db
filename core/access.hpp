// SPDX-License-Identifier: BSL-1.0
//
// The only access to the private state of the public classes.
//
#ifndef ZARRBITS_CORE_ACCESS_HPP
#define ZARRBITS_CORE_ACCESS_HPP

#include <zarrbits/codec.hpp>

#include <memory>
#include <utility>

namespace zarrbits::detail {

struct access {
  static codec make(std::shared_ptr<const codec_state> s) noexcept { return codec(std::move(s)); }
  static const codec_state& state(const codec& c) noexcept { return *c.state_; }
  static const data_type_info& info(const data_type& t) noexcept { return *t.info_; }
};

}  // namespace zarrbits::detail

#endif
