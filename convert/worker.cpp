// SPDX-License-Identifier: BSL-1.0
//
// Units that the caller assigns one by one: a conversion that many processes join.
//
#include <zarrbits/convert.hpp>

#include "convert/from_zarr/zarr_conversion.hpp"
#include "convert/run/hdf5_conversion.hpp"
#include "io/remote_url.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/write/store_writer.hpp"

#include <memory>
#include <utility>

namespace zarrbits {

using conversion::hdf5_conversion;

struct convert_worker::state {
  const hdf5::silence quiet = {};
  convert_options options;
  std::unique_ptr<hdf5_conversion> work = {};
  std::unique_ptr<conversion::zarr_worker> of_store = {};  // if the source is a Zarr store

  void join() { work = std::make_unique<hdf5_conversion>(options, hdf5_conversion::mode::worker); }
};

convert_worker::convert_worker(const convert_options& options) : state_(new state{.options = options}) {
  state_->options.source = io::redact_url(options.source);
  state_->options.overwrite = false;  // begin_store() has done this
  state_->options.resume = false;
  check_options(state_->options);
  if (zarr::is_read_as_store(state_->options.source, options.concat.has_value()))
    state_->of_store = conversion::join_conversion(state_->options);
  else state_->join();
}

convert_worker::~convert_worker() = default;
convert_worker::convert_worker(convert_worker&& other) noexcept = default;
convert_worker& convert_worker::operator=(convert_worker&& other) noexcept = default;

std::vector<convert_worker::unit> convert_worker::missing() {
  if (state_->of_store) return state_->of_store->missing();
  std::vector<unit> units;
  for (const auto& u : state_->work->units()) {
    if (!state_->work->has_result(u.id))
      units.push_back({u.id.dataset, u.id.number, state_->work->source().objects()[u.id.dataset].path});
  }
  return units;
}

void convert_worker::make(const unit& u) {
  if (state_->of_store) return state_->of_store->make(u);
  const conversion::planned_unit one[] = {{{u.dataset, u.number}, {}}};
  try {
    state_->work->run(one);
  } catch (...) {
    state_->join();  // other threads still hold the exception
    throw;
  }
}

void begin_store(const convert_options& options) {
  if (options.resume) return;
  using existing = zarr::store_writer_options::if_exists;
  zarr::make_store_writer(options.store, {.target = options.overwrite ? existing::replace : existing::resume,
                                          .source = split_source(options.source).file,
                                          .warning = options.warning,
                                          .references = options.references,
                                          .base = {},
                                          .formats = {},
                                          .remote = options.remote});
}

}  // namespace zarrbits
