// SPDX-License-Identifier: BSL-1.0
//
// A conversion, whatever its source is.
//
#ifndef ZARRBITS_CONVERT_OPEN_CONVERSION_HPP
#define ZARRBITS_CONVERT_OPEN_CONVERSION_HPP

#include "convert/concat/joined_parts.hpp"
#include "convert/pipeline/converter.hpp"
#include "text/json_text.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/convert.hpp>

#include <memory>
#include <string>

namespace zarrbits::conversion {

// Throws zarrbits::error, and what with_public_errors() turns into it.
std::unique_ptr<converter> open_conversion(const convert_options& options, converter::mode run_mode,
                                           const start_time& started = {});

// Calls `run`, and turns errors of stores that are read into zarrbits::error.
template <class Run>
auto with_public_errors(const convert_options& options, Run&& run) {
  const std::string source = split_source(options.source.name).file;
  try {
    return run();
  } catch (const error&) {
    throw;
  } catch (const zarr::store_error& e) {
    throw error(e.code == errc::damaged_store ? errc::damaged_source : e.code, e.what(), {source});
  } catch (const zarr::not_supported& e) {
    throw error(errc::unsupported, "\"" + source + "\" cannot be read: this reader does not support " + e.what(), {source});
  } catch (const text::json::exception& e) {
    throw error(errc::damaged_source, "the metadata of \"" + source + "\" are invalid: " + e.what(), {source});
  } catch (const unrepresentable_value& e) {
    throw error(errc::not_joinable, std::string("the stores cannot be joined: ") + e.what(), {source});
  }
}

}  // namespace zarrbits::conversion

#endif
