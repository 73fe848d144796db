// SPDX-License-Identifier: BSL-1.0
//
// The share of a conversion that this process makes: given as an option, or by the launcher in the environment.
//
#ifndef ZARRBITS_COMMAND_SHARE_HPP
#define ZARRBITS_COMMAND_SHARE_HPP

#include <zarrbits/convert.hpp>

#include <optional>
#include <string>

namespace zarrbits::cli {

struct named_share {
  convert_options::share_type share;
  std::string origin;  // "--partition", "a Slurm array", ...
};

// "2/8". Throws usage_error.
convert_options::share_type parse_share(const std::string& option, const std::string& text);

// A task of a Slurm array, a rank of srun, Open MPI, PALS or PMI, or a rank in such a task. Nothing if there is only one.
std::optional<named_share> share_of_environment();

}  // namespace zarrbits::cli

#endif
