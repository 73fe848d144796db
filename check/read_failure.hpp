// SPDX-License-Identifier: BSL-1.0
//
// Which exceptions are findings: something that cannot be read is damaged, or not supported here. Others concern everything, such
// as a server that does not answer, and end the check.
//
//   if (const auto failure = read_failure_of([&] { array.decode(chunk, std::move(bytes), values); })) report(failure->reason);
//
#ifndef ZARRBITS_CHECK_READ_FAILURE_HPP
#define ZARRBITS_CHECK_READ_FAILURE_HPP

#include "compressors/buffer.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "io/files.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/check.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zarrbits::checking {

struct read_failure {
  finding_severity severity = finding_severity::problem;
  std::string reason;
};

// Empty if `run` returns. Throws exceptions that are not findings.
template <class F>
std::optional<read_failure> read_failure_of(F&& run) {
  const auto is_finding = [](errc code) {
    return code == errc::damaged_store || code == errc::damaged_source || code == errc::changed || code == errc::io_failed;
  };
  try {
    run();
    return {};
  } catch (const zarr::not_supported& e) {
    return read_failure{finding_severity::unchecked, std::string("this reader does not support ") + e.what()};
  } catch (const zarr::store_error& e) {
    // a reader that refuses to follow a reference or a symbolic link has seen no damage
    if (e.code == errc::unsupported || e.reason == reason_code::refused_file)
      return read_failure{finding_severity::unchecked, e.what()};
    if (!is_finding(e.code)) throw;
    return read_failure{finding_severity::problem, e.what()};
  } catch (const nlohmann::json::exception& e) {
    return read_failure{finding_severity::problem, e.what()};
  } catch (const hdf5::unsupported_dataset& e) {
    return read_failure{finding_severity::unchecked, e.what()};
  } catch (const hdf5::failure& e) {
    const bool is_newer = e.code == reason_code::unsupported_feature;
    return read_failure{is_newer ? finding_severity::unchecked : finding_severity::problem, e.what()};
  } catch (const compressors::corrupt_chunk& e) {
    return read_failure{finding_severity::problem, e.what()};
  } catch (const io::read_error& e) {
    return read_failure{finding_severity::problem, e.what()};
  } catch (const zarrbits::error& e) {
    if (e.kind() == errc::unsupported) return read_failure{finding_severity::unchecked, e.what()};
    if (!is_finding(e.kind()) && !is_codec_error(e)) throw;
    return read_failure{finding_severity::problem, e.what()};
  }
}

}  // namespace zarrbits::checking

#endif
