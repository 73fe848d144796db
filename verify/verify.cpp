// SPDX-License-Identifier: BSL-1.0
//
// The public functions: verify(), and the checks of options and store before it.
//
#include <zarrbits/verify.hpp>

#include "convert/concat/file_order.hpp"
#include "convert/io/s3_access.hpp"
#include "convert/text/names.hpp"
#include "convert/text/selection.hpp"
#include "verify/joined_files.hpp"
#include "verify/walk.hpp"
#include "verify/zarr/zarr_reader.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace zarrbits::verification {

namespace {

verify_result verify_one(const verify_options& options, const source_name& name, joined_arrays* joined, bool first) {
  verify_result result;
  walk all(options, name, joined, first, result);
  all.run();
  all.finish();
  return result;
}

// Everything but values is compared with the first file only.
verify_result verify_joined(const verify_options& options) {
  joined_arrays joined(*options.concat);
  verify_result all;
  bool first = true;
  convert_options files;
  files.source = options.source;
  files.concat = options.concat;
  conversion::source_options how;
  how.endpoint = options.endpoint;
  how.external = options.external;
  how.lock = options.lock;
  for (const std::string& source : conversion::ordered_sources(files, how)) {
    verify_result one = verify_one(options, split_source(source), &joined, first);
    joined.next_file();
    if (std::exchange(first, false)) {
      all = std::move(one);
      continue;
    }
    for (finding& f : one.findings) {
      if (f.kind != "dataset" || (f.outcome == verdict::missing && !joined.all_equal())) continue;
      f.reason += " (\"" + source + "\")";
      all.findings.push_back(std::move(f));
    }
    for (std::size_t i = 0; i < verdict_count; ++i) all.datasets[i] += one.datasets[i];
    all.elements += one.elements;
    all.elements_unchecked += one.elements_unchecked;
  }
  for (finding& f : joined.longer()) add_finding(all, std::move(f));
  return all;
}

}  // namespace

}  // namespace zarrbits::verification

namespace zarrbits {

const char* to_string(verdict v) noexcept {
  static const char* const names[verdict_count] = {"equal", "unchecked", "unreadable", "missing", "differs"};
  return names[static_cast<std::size_t>(v)];
}

bool verify_result::failed() const noexcept {
  return std::any_of(findings.begin(), findings.end(), [](const finding& f) { return f.outcome > verdict::unchecked; });
}

bool verify_result::incomplete() const noexcept {
  return !only_in_store.empty() || !extras.empty() ||
         std::any_of(findings.begin(), findings.end(), [](const finding& f) { return f.outcome == verdict::unchecked; });
}

void check_options(const verify_options& options) {
  try {
    conversion::selection(options.include, options.exclude);
  } catch (const convert_error& e) {
    throw verify_error(e.what());
  }
}

bool is_whole_store(const verify_options& options) {
  conversion::prepare_s3(conversion::given_sources(options.source, options.concat), options.store, options.endpoint, {});
  try {
    using verification::store_entry;
    const auto store = verification::open_store(options.store, options.endpoint,
                                                conversion::given_sources(options.source, options.concat), options.memory);
    bool begun = false;
    store.list([&](const store_entry& e) {
      if (!e.name.starts_with(conversion::own_prefix)) return true;
      begun = !e.is_folder || e.is_link;
      // a conversion that was killed as it ended may have left its lock, and nothing else
      if (!begun) {
        (store / e.name).list([&](const store_entry& inner) {
          begun = inner.name != conversion::lock_name;
          return !begun;
        });
      }
      return !begun;
    });
    return !begun;
  } catch (const verification::store_error&) {
    return false;
  }
}

verify_result verify(const verify_options& options) {
  check_options(options);
  const h5::silence quiet;
  try {
    conversion::prepare_s3(conversion::given_sources(options.source, options.concat), options.store, options.endpoint,
                           options.warning);
    if (options.concat) return verification::verify_joined(options);
    return verification::verify_one(options, split_source(options.source), nullptr, true);
  } catch (const std::runtime_error& e) {  // an error of the source, the store, or their names
    throw verify_error(e.what());
  }
}

}  // namespace zarrbits
