// SPDX-License-Identifier: BSL-1.0
//
// An unfinished store in words and as JSON: its source, how far it is, and how to continue.
//
#ifndef ZARRBITS_COMMAND_UNFINISHED_TEXT_HPP
#define ZARRBITS_COMMAND_UNFINISHED_TEXT_HPP

#include <zarrbits/inspect.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace zarrbits::command {

void print_unfinished(const std::string& name, const unfinished_store& store);
nlohmann::ordered_json unfinished_json(const std::string& name, const unfinished_store& store);

}  // namespace zarrbits::command

#endif
