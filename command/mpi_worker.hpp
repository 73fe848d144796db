// SPDX-License-Identifier: BSL-1.0
//
// The process that reads and writes for one rank. It is a child of the rank, made before MPI begins, and answers over a pipe.
//
#ifndef ZARRBITS_COMMAND_MPI_WORKER_HPP
#define ZARRBITS_COMMAND_MPI_WORKER_HPP

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace zarrbits::command {

class mpi_worker {
 public:
  // Forks. argv is that of `zarrbits convert`.
  mpi_worker(int argc, char** argv);
  ~mpi_worker();
  mpi_worker(const mpi_worker&) = delete;
  mpi_worker& operator=(const mpi_worker&) = delete;

  // Reads the command line and opens source and store. -1 where the work can begin, else the exit status: the child has said why,
  // on rank 0.
  int start(int rank, int size);
  // What the journal lacks, a line for each unit. Rank 0 only.
  const std::vector<std::string>& all_units() const { return units_; }

  // Makes a unit, which is one of these lines.
  void begin(const std::string& unit);
  // "" when it is made; else the reason, with "!" in front if the process is gone. Nothing: it is still at work after that time.
  std::optional<std::string> answer(std::chrono::milliseconds time);
  std::string wait();

  // Closes the store, which another rank may then finish; or this one.
  void leave();
  // Writes the metadata, the report and the table. The exit status.
  int finish();

 private:
  [[noreturn]] void serve(int argc, char** argv);
  std::optional<std::string> line(int milliseconds);  // nothing: not there yet; gone_ where it never comes
  void say(const std::string& text);
  std::string ending();

  std::string folder_;  // for a file that combines several; the child makes it
  int fd_ = -1;
  pid_t child_ = -1;
  bool gone_ = false;
  std::string read_, unit_;
  std::vector<std::string> units_;
};

}  // namespace zarrbits::command

#endif
