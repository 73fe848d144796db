// SPDX-License-Identifier: BSL-1.0
//
// Damaged files make libhdf5 itself crash. What reads them runs in a child process, so that even then the user gets a sentence.
//
#ifndef ZARRBITS_COMMAND_CHILD_PROCESS_HPP
#define ZARRBITS_COMMAND_CHILD_PROCESS_HPP

#include <functional>
#include <string>

namespace zarrbits::cli {

// Calls `run` in a child process and returns its exit status. `run` tells what it is at with the function that it is given. Where the
// child dies, `clean_up` is called, and command_error says in which object of `file` that was; an interrupt ends this process as well.
int in_child(const std::string& file, const std::function<int(const std::function<void(const std::string&)>& at)>& run,
             const std::function<void()>& clean_up = {});

}  // namespace zarrbits::cli

#endif
