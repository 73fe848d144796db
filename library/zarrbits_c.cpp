// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/chunk.hpp>
#include <zarrbits/codec.hpp>
#include <zarrbits/version.hpp>
#include <zarrbits/zarrbits_c.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#ifdef _WIN32
#define ZARRBITS_EXPORTED __declspec(dllexport)
#else
#define ZARRBITS_EXPORTED __attribute__((visibility("default")))
#endif

struct zarrbits_codec {
  zarrbits::codec codec;
};

namespace {

std::span<const std::byte> bytes(const void* p, std::size_t size) { return {static_cast<const std::byte*>(p), size}; }
std::span<std::byte> bytes(void* p, std::size_t size) { return {static_cast<std::byte*>(p), size}; }

zarrbits_result result_of(const zarrbits::chunk_result& r, std::uint64_t* element) {
  if (r) return ZARRBITS_OK;
  if (r.failure.code == zarrbits::errc::invalid_padding_count) return ZARRBITS_WRONG_CHUNK;
  if (r.failure.code == zarrbits::errc::value_does_not_fit || r.failure.code == zarrbits::errc::invalid_bool) {
    if (element) *element = r.failure.element;
    return ZARRBITS_REFUSED_ELEMENT;
  }
  return ZARRBITS_WRONG_SIZE;
}

}  // namespace

extern "C" {

ZARRBITS_EXPORTED int zarrbits_interface(void) { return 2; }

ZARRBITS_EXPORTED const char* zarrbits_version(void) { return ZARRBITS_VERSION_STRING; }

ZARRBITS_EXPORTED zarrbits_codec* zarrbits_make_codec(const char* codec_json, const char* data_type, char* reason, size_t size) {
  std::string_view sentence = "no reason given";
  const auto write_reason = [&] {
    if (size == 0) return;
    const std::size_t n = std::min(sentence.size(), size - 1);
    std::memcpy(reason, sentence.data(), n);
    reason[n] = '\0';
  };
  try {
    return new zarrbits_codec{zarrbits::parse_codec(codec_json, data_type)};
  } catch (const std::exception& e) {
    sentence = e.what();
    write_reason();
  } catch (...) {
    write_reason();
  }
  return nullptr;
}

ZARRBITS_EXPORTED void zarrbits_free_codec(zarrbits_codec* codec) { delete codec; }

ZARRBITS_EXPORTED zarrbits_result zarrbits_encoded_size(const zarrbits_codec* codec, uint64_t elements, uint64_t* size) {
  try {
    *size = codec->codec.encoded_size(elements);
    return ZARRBITS_OK;
  } catch (...) {
    return ZARRBITS_WRONG_SIZE;
  }
}

ZARRBITS_EXPORTED zarrbits_result zarrbits_encoded_range(const zarrbits_codec* codec, uint64_t elements, uint64_t first,
                                                         uint64_t count, uint64_t* offset, uint64_t* size) {
  try {
    const zarrbits::byte_range range = codec->codec.encoded_range(elements, {first, count});
    *offset = range.offset;
    *size = range.size;
    return ZARRBITS_OK;
  } catch (...) {
    return ZARRBITS_WRONG_SIZE;
  }
}

ZARRBITS_EXPORTED zarrbits_result zarrbits_encode(const zarrbits_codec* codec, const void* elements, size_t elements_size,
                                                  void* chunk, size_t chunk_size, uint64_t* element) {
  return result_of(zarrbits::encode_chunk(codec->codec, bytes(elements, elements_size), bytes(chunk, chunk_size)), element);
}

ZARRBITS_EXPORTED zarrbits_result zarrbits_decode(const zarrbits_codec* codec, const void* chunk, size_t chunk_size,
                                                  void* elements, size_t elements_size, uint64_t* element) {
  return result_of(zarrbits::decode_chunk(codec->codec, bytes(chunk, chunk_size), bytes(elements, elements_size)), element);
}

ZARRBITS_EXPORTED zarrbits_result zarrbits_decode_range(const zarrbits_codec* codec, uint64_t chunk_elements, uint64_t first,
                                                        const void* chunk_bytes, size_t bytes_size, void* elements,
                                                        size_t elements_size, uint64_t* element) {
  const std::size_t element_size = codec->codec.element_size();
  if (elements_size % element_size != 0) return ZARRBITS_WRONG_SIZE;
  return result_of(zarrbits::decode_range_bytes(codec->codec, chunk_elements, bytes(chunk_bytes, bytes_size),
                                                {first, elements_size / element_size}, bytes(elements, elements_size)),
                   element);
}

}  // extern "C"
