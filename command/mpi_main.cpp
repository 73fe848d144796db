// SPDX-License-Identifier: BSL-1.0
//
// zarrbits-mpi: `mpirun -n N zarrbits-mpi convert IN.h5 OUT.zarr`. Rank 0 hands out units on request; each rank reads the file
// itself, with a serial libhdf5. libhdf5 never runs in a process of MPI: each rank has a child for it, forked before MPI starts.
// So a file that makes libhdf5 crash costs one unit, and the job continues.
//
#include "command/command_line.hpp"
#include "command/convert_arguments.hpp"
#include "command/mpi_worker.hpp"
#include "command/remote_options.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/version.hpp>

#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace zarrbits::command {

namespace {

constexpr int tag_request = 1, tag_answer = 2;
constexpr const char* no_more = "end";

void send(const std::string& text, int rank, int tag) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, rank, tag, MPI_COMM_WORLD);
}

// Empty if there is no message. MPI's own waiting keeps a processor busy that the children need.
std::optional<std::pair<int, std::string>> receive(int source, int tag) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(source, tag, MPI_COMM_WORLD, &there, &status);
  if (!there) return {};
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string text(static_cast<std::size_t>(size), '\0');
  MPI_Recv(text.data(), size, MPI_CHAR, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return std::pair{status.MPI_SOURCE, std::move(text)};
}

std::string wait_for(int source, int tag) {
  for (;;) {
    if (auto message = receive(source, tag)) return std::move(message->second);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Rank 0: the remaining units, the errors, and which ranks are still working.
class dispatcher {
 public:
  dispatcher(mpi_worker& own, int size) : own_(own), working_(size) {}

  // Hands out all units. Returns true where all were made.
  bool run() {
    for (const std::string& line : own_.all_units()) waiting_.push_back(line);
    serve(0, "");
    while (working_ > 0) {
      if (own_works_) {
        if (const auto answer = own_.answer(std::chrono::milliseconds(2))) serve(0, *answer);
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      while (auto request = receive(MPI_ANY_SOURCE, tag_request)) serve(request->first, request->second);
    }
    if (!waiting_.empty()) complain(std::to_string(waiting_.size()) + " units were not made: no rank was left for them");
    return failures_ == 0 && waiting_.empty();
  }

 private:
  // `result` of the unit before: "" where there was none or it was made, else what went wrong; "!" in front where the worker is
  // gone.
  void serve(int rank, std::string result) {
    const bool gone = result.starts_with('!');
    if (gone) result.erase(0, 1);
    if (!result.empty()) complain("rank " + std::to_string(rank) + ": " + result);
    const bool more = !gone && !waiting_.empty();
    if (!more) --working_;
    if (rank == 0) own_works_ = more;
    if (more) {
      if (rank == 0) own_.begin(waiting_.front());
      else send(waiting_.front(), rank, tag_answer);
      waiting_.pop_front();
    } else if (rank != 0) {
      send(no_more, rank, tag_answer);
    }
  }

  void complain(const std::string& what) {
    ++failures_;
    print_error(what);
  }

  mpi_worker& own_;
  std::deque<std::string> waiting_;
  int working_;
  bool own_works_ = true;
  std::uint64_t failures_ = 0;
};

void work(mpi_worker& own) {
  std::string result;
  for (;;) {
    send(result, 0, tag_request);
    const std::string unit = wait_for(0, tag_answer);
    if (unit == no_more) return;
    own.begin(unit);
    result = own.wait();
  }
}

int status_of_all(int status) {
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return status;
}

int run(mpi_worker& own, int rank, int size) {
  // only rank 0 reports errors of the command line and the files; -1: none, continue
  int status = -1;
  if (rank == 0) status = own.start(rank, size);
  status = status_of_all(status);
  if (status >= 0) return status;
  bool started = true;
  if (rank != 0) started = own.start(rank, size) < 0;
  bool whole = true;
  if (rank == 0) {
    whole = dispatcher(own, size).run();
  } else if (started) {
    work(own);
  } else {
    send("!it could not begin", 0, tag_request);
    wait_for(0, tag_answer);
  }
  own.leave();
  MPI_Barrier(MPI_COMM_WORLD);  // whoever writes the metadata is alone with the store
  if (rank == 0) {
    if (whole) {
      status = own.finish();
    } else {
      print_error("the store is unfinished; the same command with --resume makes what is missing");
      status = exit_failure;
    }
  }
  return status_of_all(status);
}

}  // namespace

}  // namespace zarrbits::command

int main(int argc, char** argv) {
  using namespace zarrbits::command;
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::cout << "zarrbits-mpi " ZARRBITS_VERSION_STRING "\n";
    return 0;
  }
  if (argc < 2 || std::strcmp(argv[1], "convert") != 0) {
    const bool help = argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0);
    (help ? std::cout : std::cerr)
        << "mpirun -n N zarrbits-mpi convert IN.h5 OUT.zarr [OPTIONS]\n"
           "Converts one file with the ranks of an MPI job; zarrbits-mpi convert --help lists the options.\n";
    return help ? 0 : static_cast<int>(exit_usage);
  }
  std::vector<std::string> arguments = take_arguments(argc, argv);  // before there is a child
  std::vector<char*> pointers = pointers_to(arguments);
  std::signal(SIGPIPE, SIG_IGN);                  // a child that is gone shows in its answer
  mpi_worker own(argc - 1, pointers.data() + 1);  // before MPI
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int status = run(own, rank, size);
  MPI_Finalize();
  // mpirun takes the first status that is not 0 for a failure and says so at length; one is enough
  return rank == 0 ? status : 0;
}
