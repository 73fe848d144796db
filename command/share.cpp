// SPDX-License-Identifier: BSL-1.0
#include "command/share.hpp"

#include "command/command_line.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace zarrbits::cli {

namespace {

std::optional<unsigned> number(const char* name) {
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

}  // namespace

convert_options::share_type parse_share(const std::string& option, const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) throw usage_error(option + " is a share and their number, such as 0/4, not " + quote(text));
  const std::uint64_t index = parse_count(option, text.substr(0, slash)), count = parse_count(option, text.substr(slash + 1));
  if (count == 0 || count > 1'000'000 || index >= count) {
    throw usage_error(option + " " + text + ": shares are counted from 0, so that the last of 4 is 3/4");
  }
  return {static_cast<unsigned>(index), static_cast<unsigned>(count)};
}

std::optional<named_share> share_of_environment() {
  named_share found{{0, 1}, ""};
  const auto id = number("SLURM_ARRAY_TASK_ID"), tasks = number("SLURM_ARRAY_TASK_COUNT");
  if (id && tasks && *tasks > 1) {
    const unsigned first = number("SLURM_ARRAY_TASK_MIN").value_or(0), step = number("SLURM_ARRAY_TASK_STEP").value_or(1);
    const unsigned index = *id < first ? *tasks : (*id - first) / (step ? step : 1);
    if (index >= *tasks) {
      throw usage_error("the tasks of the Slurm array are not evenly spaced; say with --partition which share this one is to do");
    }
    found = {{index, *tasks}, "the Slurm array"};
  }
  for (const launcher& l : launchers) {
    const auto rank = number(l.rank), size = number(l.size);
    if (!rank || !size || *size <= 1 || *rank >= *size) continue;
    found.share = {found.share.index * *size + *rank, found.share.count * *size};
    found.origin += (found.origin.empty() ? "" : " and ") + std::string(l.name);
    break;
  }
  if (found.share.count <= 1) return {};
  return found;
}

}  // namespace zarrbits::cli
