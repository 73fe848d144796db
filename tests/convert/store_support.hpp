// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_TESTS_CONVERT_STORE_SUPPORT_HPP
#define ZARRBITS_TESTS_CONVERT_STORE_SUPPORT_HPP

#include "tests/convert/support.hpp"

#include "io/files.hpp"
#include "zarr/write/store_writer.hpp"

// Stores in folders, as the tests of sinks open them.
namespace store_support {

using zarrbits::error;
using zarrbits::io::file_descriptor;
using zarrbits::io::read_error;
using zarrbits::zarr::make_store_writer;
using zarrbits::zarr::store_writer;
using zarrbits::zarr::store_writer_options;

namespace fs = std::filesystem;

inline constexpr store_writer_options::if_exists refuse = store_writer_options::if_exists::refuse,
                                                 replace = store_writer_options::if_exists::replace,
                                                 join = store_writer_options::if_exists::attach;

inline std::unique_ptr<store_writer> open(const std::string& target, store_writer_options::if_exists existing = refuse,
                                          const std::string& source = {}) {
  return make_store_writer(target, {.target = existing, .source = source});
}

// Without the lock of who writes.
inline std::size_t files_below(const std::string& path) {
  std::size_t files = 0;
  for (const auto& e : fs::recursive_directory_iterator(path)) files += e.is_regular_file() && e.path().filename() != "lock";
  return files;
}

inline const std::string group = R"({"zarr_format": 3, "node_type": "group"})",
                         plan = R"({"zarrbits": "1", "source": "in.h5", "options": {}})";

// One of several that share a plan.
inline std::unique_ptr<store_writer> share(const std::string& target) {
  auto s = make_store_writer(target, {.target = join, .shared = true});
  s->put_new(".zarrbits-unfinished/plan", std::as_bytes(std::span(plan.data(), plan.size())));
  return s;
}

inline std::string text(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : "(none)";
}

inline auto says(const std::string& part) {
  return [part](const zarrbits::error& e) { return std::string(e.what()).find(part) != std::string::npos; };
}

}  // namespace store_support
#endif
