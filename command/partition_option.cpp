// SPDX-License-Identifier: BSL-1.0
#include "command/partition_option.hpp"

#include "command/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace zarrbits::command {

namespace {

std::optional<unsigned> number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (!text || !*text) return {};
  const std::string_view digits = text;
  unsigned n = 0;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (r.ec != std::errc() || r.ptr != digits.data() + digits.size()) return {};
  return n;
}

struct launcher {
  const char *name, *rank, *size;
};

// Slurm sets SLURM_PROCID and SLURM_NTASKS also in the batch script itself, which is one process; only srun sets
// SLURM_STEP_NUM_TASKS.
constexpr launcher launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PALS", "PALS_RANKID", "PALS_NRANKS"},
    {"PALS", "PALS_RANKID", "PMI_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

// The task of a Slurm array. Empty if there is only one.
std::optional<named_partition> task_of_array() {
  const auto id = number_from_environment("SLURM_ARRAY_TASK_ID"), tasks = number_from_environment("SLURM_ARRAY_TASK_COUNT");
  if (!id || !tasks || *tasks <= 1) return {};
  const unsigned first = number_from_environment("SLURM_ARRAY_TASK_MIN").value_or(0),
                 step = number_from_environment("SLURM_ARRAY_TASK_STEP").value_or(1);
  const unsigned index = *id < first ? *tasks : (*id - first) / (step ? step : 1);
  if (index >= *tasks) {
    throw usage_error(
        "the tasks of the Slurm array are not evenly spaced; say with --partition I/N which share this one is to do");
  }
  return named_partition{{index, *tasks}, "the Slurm array"};
}

// Empty if there is only one rank.
std::optional<named_partition> rank_of_launcher() {
  for (const launcher& l : launchers) {
    const auto rank = number_from_environment(l.rank), size = number_from_environment(l.size);
    if (rank && size && *size > 1 && *rank < *size) return named_partition{{*rank, *size}, l.name};
  }
  return {};
}

partition parse_partition_index(const std::string& option, const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos)
    throw usage_error(option + " is a share and their number, such as 0/4, or slurm or mpi, not " + quote(text));
  const std::uint64_t index = parse_count(option, text.substr(0, slash)), count = parse_count(option, text.substr(slash + 1));
  if (count == 0 || count > 1'000'000) throw usage_error(option + " " + text + ": there are 1 to 1,000,000 shares, such as 0/4");
  if (index >= count) {
    throw usage_error(option + " " + text + ": shares are numbered from 0, so the last of 4 is 3/4");
  }
  return {static_cast<unsigned>(index), static_cast<unsigned>(count)};
}

}  // namespace

named_partition parse_partition(const std::string& option, const std::string& text) {
  const bool slurm = text == "slurm";
  if (!slurm && text != "mpi") return {parse_partition_index(option, text), option};
  const auto task = slurm ? task_of_array() : std::nullopt, rank = rank_of_launcher();
  if (task && rank) {
    const auto &outer = task->partition, &inner = rank->partition;
    return {{outer.index * inner.count + inner.index, outer.count * inner.count}, task->origin + " and " + rank->origin};
  }
  if (task) return *task;
  if (rank) return *rank;
  const auto is_set = [](const launcher& l) { return number_from_environment(l.size).has_value(); };
  if (slurm ? std::getenv("SLURM_JOB_ID") != nullptr : std::any_of(std::begin(launchers), std::end(launchers), is_set))
    return {{0, 1}, text};  // a job of one task
  throw usage_error(option + " is " + text + ", but this process was not started by " +
                    (slurm ? "Slurm (SLURM_JOB_ID is not set)" : "mpirun or srun (no variable gives its rank)") +
                    "; pass I/N, or remove the option to convert everything");
}

std::optional<launcher_hint> launcher_of_environment() {
  const auto id = number_from_environment("SLURM_ARRAY_TASK_ID"), tasks = number_from_environment("SLURM_ARRAY_TASK_COUNT");
  if (id && tasks && *tasks > 1) return launcher_hint{"a Slurm array", "slurm"};
  if (const auto rank = rank_of_launcher()) return launcher_hint{rank->origin, rank->origin == "srun" ? "slurm" : "mpi"};
  return {};
}

}  // namespace zarrbits::command
