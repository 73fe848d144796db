// SPDX-License-Identifier: BSL-1.0
//
// The output on the terminal at the end of a conversion.
//
#ifndef ZARRBITS_COMMAND_SUMMARY_HPP
#define ZARRBITS_COMMAND_SUMMARY_HPP

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace zarrbits::command {

// Each object that was skipped or is lossy, as a sentence on standard error.
void print_losses(const convert_result& r);
// Prints the objects and bytes of each outcome, then sizes, time and rate. On standard error.
void print_summary(const convert_result& r);

void print_left_out(const std::vector<joined_source>& sources);
// "3 stores joined, with 2 notes on them: ..." and the most important notes; "" if none are joined.
std::string joined_text(const std::vector<joined_source>& sources, const char* kind);

// "links: 3 copied, 1 kept as a note" and the end of the line; "" without links.
std::string links_line(const link_counts& links);

// The notes on files that are joined, a line each: one that several files have is told once. First those on values, types and
// sizes; of the others (joined_source::minor_notes) all, or none. `max_lines`: lines.
std::string notes_text(const std::vector<joined_source>& sources, bool with_minor, std::size_t max_lines);

}  // namespace zarrbits::command

#endif
