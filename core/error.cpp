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
      case errc::element_count_mismatch: return "the number of elements differs from the declared one";
      case errc::buffer_too_small: return "the output buffer is too small";
      case errc::partial_element: return "the size of a buffer is not a whole number of elements";
      case errc::element_size_mismatch: return "the elements in memory do not have the size that the data type requires";
      case errc::invalid_range: return "the range of elements is outside the chunk";
      case errc::invalid_option: return "an option, or a combination of options, is wrong";
      case errc::no_match: return "an option matches nothing in the source";
      case errc::not_found: return "something does not exist";
      case errc::already_exists: return "the target exists";
      case errc::permission_denied: return "permission denied";
      case errc::no_space: return "no space left";
      case errc::io_failed: return "reading or writing failed";
      case errc::damaged_source: return "the source is damaged, or is not an HDF5 file";
      case errc::damaged_store: return "the store is damaged";
      case errc::unsupported: return "it is not supported";
      case errc::refused: return "a limit or a rule for untrusted files forbids it";
      case errc::changed: return "a file or a store changed in the meantime";
      case errc::busy: return "another process is using it";
      case errc::different: return "the store was made from a different source, or with different options";
      case errc::not_joinable: return "the files do not belong together";
      case errc::incomplete: return "parts of the store are missing";
      case errc::server_failed: return "a server failed";
    }
    return "unknown error";
  }
};

}  // namespace

const char* to_string(errc e) noexcept {
  switch (e) {
    case errc::invalid_data_type: return "invalid_data_type";
    case errc::invalid_codec: return "invalid_codec";
    case errc::invalid_configuration: return "invalid_configuration";
    case errc::unsupported_data_type: return "unsupported_data_type";
    case errc::element_count_required: return "element_count_required";
    case errc::size_overflow: return "size_overflow";
    case errc::value_does_not_fit: return "value_does_not_fit";
    case errc::invalid_bool: return "invalid_bool";
    case errc::truncated: return "truncated";
    case errc::trailing_data: return "trailing_data";
    case errc::invalid_padding_count: return "invalid_padding_count";
    case errc::nonzero_padding: return "nonzero_padding";
    case errc::element_count_mismatch: return "element_count_mismatch";
    case errc::buffer_too_small: return "buffer_too_small";
    case errc::invalid_range: return "invalid_range";
    case errc::partial_element: return "partial_element";
    case errc::element_size_mismatch: return "element_size_mismatch";
    case errc::invalid_option: return "invalid_option";
    case errc::no_match: return "no_match";
    case errc::not_found: return "not_found";
    case errc::already_exists: return "already_exists";
    case errc::permission_denied: return "permission_denied";
    case errc::no_space: return "no_space";
    case errc::io_failed: return "io_failed";
    case errc::damaged_source: return "damaged_source";
    case errc::damaged_store: return "damaged_store";
    case errc::unsupported: return "unsupported";
    case errc::refused: return "refused";
    case errc::changed: return "changed";
    case errc::busy: return "busy";
    case errc::different: return "different";
    case errc::not_joinable: return "not_joinable";
    case errc::incomplete: return "incomplete";
    case errc::server_failed: return "server_failed";
  }
  return "unknown";
}

const std::error_category& error_category() noexcept {
  static const category instance;
  return instance;
}

}  // namespace zarrbits
