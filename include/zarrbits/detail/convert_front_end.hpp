// SPDX-License-Identifier: BSL-1.0
//
// What a program around convert() adds to it, such as zarrbits' own command. Not for others: it may change at any time.
//
#ifndef ZARRBITS_DETAIL_CONVERT_FRONT_END_HPP
#define ZARRBITS_DETAIL_CONVERT_FRONT_END_HPP

#include <zarrbits/convert.hpp>

#include <functional>
#include <string>
#include <vector>

namespace zarrbits {

struct convert_front_end {
  // The command, which an unfinished store keeps: for the error if a store was begun with other options. Without secrets.
  std::vector<std::string> command = {};
  // Shows such a command in a sentence.
  std::function<std::string(const std::vector<std::string>&)> show_command = {};
  // Sentences name options in backquotes, as in "replace it with `overwrite`". Each reason passes through this function on its
  // way into the store and the report, so that the program can reword options. (Exceptions and warnings are its own anyway.)
  std::function<std::string(const std::string& reason)> wording = {};
  // Called before the last step, which completes the store; an exception from it ends the conversion. The place to write reports.
  std::function<void(const convert_result&)> before_done = {};
  // A string unique to this run: distinguishes what this run leaves, if it is killed, from what others leave.
  std::string run = {};
  bool is_source_temporary = false;  // what the source has itself is not referred to, but copied
  bool measure_first = false;        // add up the stored bytes first, for a progress bar
};

// That of the options; without one, one that adds nothing.
inline const convert_front_end& front_end_of(const convert_options& options) {
  static const convert_front_end defaults;
  return options.front_end ? *options.front_end : defaults;
}

}  // namespace zarrbits

#endif
