// SPDX-License-Identifier: BSL-1.0
//
// Tables in text, as RFC 4180 has them: commas between fields, a record on each line, quotes around what has either.
//
//   for (const csv_record& r : parse_csv("file,x\n\"a,b.nc\",3\n")) r.fields;   // {"file", "x"}, then {"a,b.nc", "3"}
//
#ifndef ZARRBITS_TEXT_CSV_HPP
#define ZARRBITS_TEXT_CSV_HPP

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

struct csv_record {
  std::size_t line = 0;  // where it begins, from 1 on
  std::vector<std::string> fields;
};

// what() says the line and the reason.
struct csv_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Lines end with LF or CRLF; empty ones are left out, and so is a byte order mark. Throws csv_error.
std::vector<csv_record> parse_csv(std::string_view table);

}  // namespace zarrbits::text

#endif
