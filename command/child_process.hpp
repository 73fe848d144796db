// SPDX-License-Identifier: BSL-1.0
//
// Damaged files make libhdf5 itself crash or hang. So a child process reads them: even then the user gets a sentence, and the
// parent is left to clean up after a signal.
//
#ifndef ZARRBITS_COMMAND_CHILD_PROCESS_HPP
#define ZARRBITS_COMMAND_CHILD_PROCESS_HPP

#include <functional>
#include <string>

namespace zarrbits::command {

// Calls `run` in a child process and returns its exit status. `run` reports what it is working on to the function that it is
// given: the path of an object, or the name of another file than `file`, where an absolute name begins with "//"; "" means that
// reading is over, and what follows may take any time. If the child dies, or is killed because it makes no progress, `clean_up`
// is called, and command_error names the object of `file`, or that other file. SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE, sent
// to either process, end both: `clean_up` is called with `interrupted`, and this process dies of that signal. SIGKILL, sent to
// the child, is an interruption, too. The child does not outlive this process.
int run_in_subprocess(const std::string& file,
                      const std::function<int(const std::function<void(const std::string&)>& set_current)>& run,
                      const std::function<void(bool interrupted)>& clean_up = {});

// Call it in a process that was just forked: it then ends when `parent` does.
void exit_with_parent(int parent);

}  // namespace zarrbits::command

#endif
