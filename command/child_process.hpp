// SPDX-License-Identifier: BSL-1.0
//
// Damaged files make libhdf5 itself crash, or never come back. What reads them runs in a child process, so that even then the
// user gets a sentence, and so that somebody is left to clean up where a signal ends the work.
//
#ifndef ZARRBITS_COMMAND_CHILD_PROCESS_HPP
#define ZARRBITS_COMMAND_CHILD_PROCESS_HPP

#include <functional>
#include <string>

namespace zarrbits::cli {

// Calls `run` in a child process and returns its exit status. `run` tells what it is at with the function that it is given; "":
// nothing is read any more, what follows may take any time. Where the child dies, or has to be killed because it does not go on,
// `clean_up` is called, and command_error says in which object of `file` that was. SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE
// end both processes, whichever of them they were sent to: `clean_up` is called, and this process dies of that signal. The child
// does not outlive this process.
int in_child(const std::string& file, const std::function<int(const std::function<void(const std::string&)>& at)>& run,
             const std::function<void()>& clean_up = {});

// In a process that was just forked: it ends when `parent` does.
void end_with(int parent);

}  // namespace zarrbits::cli

#endif
