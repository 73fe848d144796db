// SPDX-License-Identifier: BSL-1.0
#include <zarrbits/hdf5_decoders.hpp>
#include <zarrbits/hdf5_file.h>
#include <zarrbits/hdf5_file.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#define ZARRBITS_EXPORTED __attribute__((visibility("default")))

struct zarrbits_hdf5_file {
  zarrbits::hdf5_file file;
};
struct zarrbits_hdf5_dataset {
  zarrbits::hdf5_dataset dataset;
};

namespace {

using zarrbits::errc;

thread_local std::string last_sentence;
thread_local int last_code = 0;

int record(errc code, const char* sentence) noexcept {
  last_code = static_cast<int>(code);
  try {
    last_sentence = sentence;
  } catch (...) {
    last_sentence.clear();
  }
  return last_code;
}

// 0, or the number of the error that `f` threw.
template <class F>
int guard(const F& f) noexcept {
  try {
    f();
    return 0;
  } catch (const zarrbits::error& e) {
    return record(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    return record(errc::size_overflow, "there is not enough memory; read a smaller box");
  } catch (const std::exception& e) {
    return record(errc::io_failed, e.what());
  } catch (...) {
    return record(errc::io_failed, "an unknown error");
  }
}

template <class Bytes>
char* copy_of(const Bytes& bytes, size_t* size) {
  char* copy = static_cast<char*>(std::malloc(bytes.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, bytes.data(), bytes.size());
  copy[bytes.size()] = '\0';
  *size = bytes.size();
  return copy;
}

void set_option(zarrbits::hdf5_file_options& o, std::string_view name, std::string_view value) {
  const auto number = [&](auto& target) {
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), target);
    if (failed != std::errc() || end != value.data() + value.size())
      throw zarrbits::error(errc::invalid_option,
                            "`" + std::string(name) + "` is \"" + std::string(value) + "\"; use a whole number");
  };
  const std::string text(value);
  const bool flag = value == "1";
  if (name == "threads") number(o.threads);
  else if (name == "chunk_cache") number(o.chunk_cache);
  else if (name == "remote_cache") number(o.remote_cache);
  else if (name == "connections") number(o.remote.connections);
  else if (name == "lock") o.lock = flag;
  else if (name == "external") o.external.push_back(text);
  else if (name == "endpoint") o.remote.endpoint = text;
  else if (name == "profile") o.remote.profile = text;
  else if (name == "ca_file") o.remote.ca_file = text;
  else if (name == "header") o.remote.headers.push_back(text);
  else if (name == "no_sign_request") o.remote.no_sign_request = flag;
  else if (name == "request_payer") o.remote.request_payer = flag;
  else if (name == "follow_private") o.remote.follow_private = flag;
  else if (name == "no_etag") o.remote.no_etag = flag;
  else throw zarrbits::error(errc::invalid_option, "there is no option \"" + std::string(name) + "\"; remove it");
}

zarrbits::hdf5_file_options parse_options(std::string_view lines) {
  zarrbits::hdf5_file_options options;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::string_view name = line.substr(0, line.find(' '));
    set_option(options, name, line.substr(std::min(line.size(), name.size() + 1)));
  }
  return options;
}

zarrbits::hdf5_box box_of(size_t rank, const uint64_t* first, const uint64_t* count, const uint64_t* step) {
  const auto numbers = [&](const uint64_t* p) {
    return p ? std::vector<std::uint64_t>(p, p + rank) : std::vector<std::uint64_t>();
  };
  return {numbers(first), numbers(count), numbers(step)};
}

std::vector<zarrbits::hdf5::chunk_filter> filters_of(std::span<const unsigned> numbers) {
  std::vector<zarrbits::hdf5::chunk_filter> filters;
  while (!numbers.empty()) {
    if (numbers.size() < 2 || numbers[1] > numbers.size() - 2)
      throw zarrbits::error(errc::invalid_option, "`filters` ends within a filter; pass all parameters of each");
    const std::span<const unsigned> values = numbers.subspan(2, numbers[1]);
    filters.push_back({static_cast<int>(numbers[0]), {values.begin(), values.end()}});
    numbers = numbers.subspan(2 + values.size());
  }
  return filters;
}

}  // namespace

extern "C" {

ZARRBITS_EXPORTED int zarrbits_hdf5_interface(void) { return 1; }
ZARRBITS_EXPORTED const char* zarrbits_hdf5_error(void) { return last_sentence.c_str(); }
ZARRBITS_EXPORTED int zarrbits_hdf5_error_code(void) { return last_code; }

ZARRBITS_EXPORTED zarrbits_hdf5_file* zarrbits_hdf5_open(const char* path, const char* options) {
  zarrbits_hdf5_file* file = nullptr;
  guard([&] { file = new zarrbits_hdf5_file{zarrbits::hdf5_file(path, parse_options(options))}; });
  return file;
}

ZARRBITS_EXPORTED void zarrbits_hdf5_close(zarrbits_hdf5_file* file) { delete file; }

ZARRBITS_EXPORTED char* zarrbits_hdf5_describe(const zarrbits_hdf5_file* file, const char* path, size_t* size) {
  char* bytes = nullptr;
  guard([&] { bytes = copy_of(file->file.describe(path), size); });
  return bytes;
}

ZARRBITS_EXPORTED char* zarrbits_hdf5_attributes(const zarrbits_hdf5_file* file, const char* path, size_t* size) {
  char* bytes = nullptr;
  guard([&] { bytes = copy_of(file->file.attributes(path), size); });
  return bytes;
}

ZARRBITS_EXPORTED void zarrbits_hdf5_free(char* bytes) { std::free(bytes); }

ZARRBITS_EXPORTED zarrbits_hdf5_dataset* zarrbits_hdf5_open_dataset(const zarrbits_hdf5_file* file, const char* path) {
  zarrbits_hdf5_dataset* dataset = nullptr;
  guard([&] { dataset = new zarrbits_hdf5_dataset{file->file.dataset(path)}; });
  return dataset;
}

ZARRBITS_EXPORTED void zarrbits_hdf5_close_dataset(zarrbits_hdf5_dataset* dataset) { delete dataset; }

ZARRBITS_EXPORTED int zarrbits_hdf5_read(const zarrbits_hdf5_dataset* dataset, size_t rank, const uint64_t* first,
                                         const uint64_t* count, const uint64_t* step, void* out, size_t size) {
  return guard([&] { dataset->dataset.read(box_of(rank, first, count, step), {static_cast<std::byte*>(out), size}); });
}

ZARRBITS_EXPORTED char* zarrbits_hdf5_read_packed(const zarrbits_hdf5_dataset* dataset, size_t rank, const uint64_t* first,
                                                  const uint64_t* count, const uint64_t* step, size_t* size) {
  char* bytes = nullptr;
  guard([&] { bytes = copy_of(dataset->dataset.read_packed(box_of(rank, first, count, step)), size); });
  return bytes;
}

ZARRBITS_EXPORTED void zarrbits_hdf5_statistics(const zarrbits_hdf5_file* file, uint64_t out[5]) {
  const zarrbits::hdf5_statistics s = file->file.statistics();
  const std::uint64_t numbers[] = {s.decoded_chunks, s.cached_chunks, s.empty_chunks, s.plain_bytes, s.libhdf5_values};
  std::memcpy(out, numbers, sizeof numbers);
}

ZARRBITS_EXPORTED int zarrbits_hdf5_has_decoders(const unsigned* filters, size_t length) {
  bool result = false;
  guard([&] { result = zarrbits::hdf5::has_decoders(filters_of({filters, length})); });
  return result ? 1 : 0;
}

ZARRBITS_EXPORTED int zarrbits_hdf5_has_encoders(const unsigned* filters, size_t length) {
  bool result = false;
  guard([&] { result = zarrbits::hdf5::has_encoders(filters_of({filters, length})); });
  return result ? 1 : 0;
}

ZARRBITS_EXPORTED int zarrbits_hdf5_decode_chunk(const unsigned* filters, size_t length, unsigned mask, const void* stored,
                                                 size_t stored_size, void* values, size_t size) {
  return guard([&] {
    zarrbits::hdf5::decode_chunk(filters_of({filters, length}), mask, {static_cast<const std::byte*>(stored), stored_size},
                                 {static_cast<std::byte*>(values), size});
  });
}

ZARRBITS_EXPORTED char* zarrbits_hdf5_encode_chunk(const unsigned* filters, size_t length, const void* values, size_t size,
                                                   size_t* stored_size) {
  char* bytes = nullptr;
  guard([&] {
    bytes = copy_of(zarrbits::hdf5::encode_chunk(filters_of({filters, length}), {static_cast<const std::byte*>(values), size}),
                    stored_size);
  });
  return bytes;
}

}  // extern "C"
