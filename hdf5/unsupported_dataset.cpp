// SPDX-License-Identifier: BSL-1.0
#include "hdf5/unsupported_dataset.hpp"

#include "compressors/buffer.hpp"
#include "hdf5/h5.hpp"

#include <zarrbits/error.hpp>

#include <new>

namespace zarrbits::hdf5 {

unsupported_dataset missing_filter(const std::string& names) {
  return unsupported_dataset(
      reason_code::missing_filter,
      "it needs HDF5 filter " + names + ", which is not installed (HDF5_PLUGIN_PATH names the folder of plugins)");
}

std::optional<text::coded_reason> skip_reason(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const unsupported_dataset& e) {
    return e.reason();
  } catch (const failure& e) {
    return e.reason();
  } catch (const compressors::corrupt_chunk& e) {
    return text::coded_reason{reason_code::damaged, e.what()};
  } catch (const zarrbits::error& e) {
    if (!is_codec_error(e)) throw;
    return text::coded_reason{reason_code::damaged, e.what()};
  } catch (const std::bad_alloc&) {
    return text::coded_reason{reason_code::too_large, "it needs more memory than there is"};
  } catch (const std::length_error&) {
    return text::coded_reason{reason_code::too_large, "it needs more memory than there is"};
  }
}

}  // namespace zarrbits::hdf5
