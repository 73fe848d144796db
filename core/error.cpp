// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/error.hpp>
#include <zarrbits/version.hpp>

namespace zarrbits {

const char* version() noexcept { return ZARRBITS_VERSION_STRING; }

namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "zarrbits"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::invalid_data_type: return "not a Zarr data type";
      case errc::invalid_codec: return "not a codec";
      case errc::invalid_configuration: return "wrong codec configuration";
      case errc::unsupported_data_type: return "the codec does not take this data type";
      case errc::element_count_required: return "the number of elements is needed before the data";
      case errc::size_overflow: return "a size is too large";
      case errc::value_does_not_fit: return "a value does not fit in the kept bits";
      case errc::invalid_bool: return "a bool is neither 0 nor 1";
      case errc::truncated: return "the data ends too early";
      case errc::trailing_data: return "the data continues after its end";
      case errc::invalid_padding_count: return "the padding count disagrees with the data";
      case errc::nonzero_padding: return "padding bits are not zero";
      case errc::element_count_mismatch: return "the number of elements is not the announced one";
      case errc::buffer_too_small: return "the output buffer is too small";
      case errc::partial_element: return "the size of a buffer is not a whole number of elements";
      case errc::element_size_mismatch: return "the elements in memory have another size than those of the data type";
      case errc::invalid_range: return "the range of elements is outside the chunk";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace zarrbits
