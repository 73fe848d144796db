// SPDX-License-Identifier: BSL-1.0
//
// The meaning of stored numbers by the CF conventions: packing, missing values, units of time. Joined files may have different
// numbers of equal meaning, and the store may have others again.
//
//   const cf_meaning source_meaning = *meaning_in_source(dataset, {}), store_meaning = *meaning_in_store(node, array, {});
//   if (!same_value(source_meaning, 3, store_meaning, 7)) ...
//
#ifndef ZARRBITS_VERIFY_CF_MEANING_HPP
#define ZARRBITS_VERIFY_CF_MEANING_HPP

#include "verify/cf_time.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <hdf5.h>
#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::verification {

struct cf_meaning {
  long double scale = 1, offset = 0;  // value = stored * scale + offset
  std::vector<long double> missing;   // stored numbers that mean "missing"; NaN always does
  std::string units, calendar;
  std::optional<time_scale> epoch;  // of units "days since ..."
  long double wrap = 0;             // 2^bits of an integer to which netCDF's "_Unsigned" gives the other sign, or 0
  bool exact = true;                // integers without packing
  long double precision = 0;        // relative precision of the floats that carry it

  bool operator==(const cf_meaning& other) const;
};

// The units of time and the calendar of the variable that names another one as its bounds or climatology: the latter has them,
// too, where it does not give its own. "": there is no such variable.
struct inherited_units {
  std::string units, calendar;
  std::string path;  // of that variable
};

// Both take numbers only; empty for other types. The first throws source_error.
std::optional<cf_meaning> meaning_in_source(hid_t dataset, const inherited_units& lent);
std::optional<cf_meaning> meaning_in_store(const nlohmann::json& node, const zarr::zarr_array& array,
                                           const inherited_units& lent);

// A number of the store; `t` is a type that meaning_in_store() accepted.
long double store_number(const zarr::zarr_type& t, const std::byte* p);

// Like meaning_in_source(), for numbers of any size, for instant().
std::optional<cf_meaning> meaning_of_numbers(hid_t dataset, const inherited_units& lent);

// The meaning of a number, to be compared with others; of times, microseconds since the calendar's year 0. Empty if it is
// missing.
std::optional<long double> instant(const cf_meaning& meaning, long double stored);

// The attributes that describe packed numbers; an array of unpacked ones has none of them.
const std::set<std::string>& attributes_of_packed_numbers();

bool same_value(const cf_meaning& source_meaning, long double source, const cf_meaning& store_meaning, long double store);

}  // namespace zarrbits::verification

#endif
