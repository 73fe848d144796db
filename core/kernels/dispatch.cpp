// SPDX-License-Identifier: BSL-1.0
#include "core/kernels/kernels.hpp"

namespace zarrbits::detail {

namespace {
constexpr const kernel_table* tables[] = {&portable_kernels};
}

const kernel_table& kernels() noexcept { return portable_kernels; }

std::span<const kernel_table* const> all_kernels() noexcept { return tables; }

}  // namespace zarrbits::detail
