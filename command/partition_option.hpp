// SPDX-License-Identifier: BSL-1.0
//
// The share of a conversion that this process makes, as --partition asks for it. Without that option, a launcher's variables in
// the environment change nothing: a job array may well convert one file per task.
//
#ifndef ZARRBITS_COMMAND_PARTITION_OPTION_HPP
#define ZARRBITS_COMMAND_PARTITION_OPTION_HPP

#include <zarrbits/convert.hpp>

#include <optional>
#include <string>

namespace zarrbits::command {

struct named_partition {
  zarrbits::partition partition;
  std::string origin;  // "--partition", "the Slurm array", ...
};

// "2/8"; "slurm": the task of a Slurm array, and the rank in it; "mpi": the rank that mpirun or srun assigned. Throws
// usage_error, also if the launcher's variables are missing.
named_partition parse_partition(const std::string& option, const std::string& text);

// The launcher whose variables say that this process is one of several, and the value of --partition that asks for it. Empty
// without such variables.
struct launcher_hint {
  std::string launcher, partition;
};
std::optional<launcher_hint> launcher_of_environment();

}  // namespace zarrbits::command

#endif
