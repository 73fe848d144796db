// SPDX-License-Identifier: BSL-1.0
//
// `--bits auto`: the bits that the values of each dataset need, as `zarrbits suggest` finds them.
//
#ifndef ZARRBITS_COMMAND_AUTO_BITS_HPP
#define ZARRBITS_COMMAND_AUTO_BITS_HPP

#include <zarrbits/convert.hpp>
#include <zarrbits/inspect.hpp>

#include <functional>
#include <string>

namespace zarrbits::command {

// Reads all values of the sources, and adds to options.bits_of each dataset that packbits makes smaller: before existing entries,
// so that bits given by name win. Throws usage_error for sources in S3, zarrbits::error.
void find_bits(convert_options& options, const std::function<void(const std::string& path)>& set_current);

// The value of --bits for a dataset: "/a=12", "/a=2-11". The path is a pattern that matches nothing else.
std::string bits_argument(const suggestion& s);
// Whether convert packs such a dataset. It packs no floats, and booleans without being asked for their bits.
bool is_packable(const suggestion& s);

}  // namespace zarrbits::command

#endif
