// SPDX-License-Identifier: BSL-1.0
//
// Units that the caller assigns one by one: a conversion that many processes join.
//
#include <zarrbits/convert.hpp>

#include "convert/open_conversion.hpp"
#include "convert/pipeline/target_options.hpp"
#include "hdf5/h5.hpp"
#include "io/remote_url.hpp"
#include "zarr/write/store_writer.hpp"

#include <memory>
#include <vector>

namespace zarrbits {

struct convert_worker::state {
  const hdf5::silence quiet = {};
  convert_options options;
  std::unique_ptr<conversion::converter> work = {};

  void join() {
    conversion::with_public_errors(options,
                                   [&] { work = conversion::open_conversion(options, conversion::converter::mode::worker); });
  }
};

convert_worker::convert_worker(const convert_options& options) : state_(new state{.options = options}) {
  state_->options.source.name = io::redact_url(options.source.name);
  state_->options.target.existing = existing_store::refuse;  // begin_store() has replaced it
  check_options(state_->options);
  state_->join();
}

convert_worker::~convert_worker() = default;
convert_worker::convert_worker(convert_worker&& other) noexcept = default;
convert_worker& convert_worker::operator=(convert_worker&& other) noexcept = default;

std::vector<convert_worker::unit> convert_worker::missing() {
  return conversion::with_public_errors(state_->options, [&] { return state_->work->missing_units(); });
}

void convert_worker::make(const unit& u) {
  const conversion::work_unit_id one[] = {{u.dataset, u.number}};
  try {
    conversion::with_public_errors(state_->options, [&] { state_->work->run(one); });
  } catch (...) {
    state_->join();  // other threads still hold the exception
    throw;
  }
}

void begin_store(const convert_options& options) {
  if (options.target.existing == existing_store::resume) return;
  using existing = zarr::store_writer_options::if_exists;
  zarr::make_store_writer(options.target.name,
                          {.target = options.target.existing == existing_store::overwrite ? existing::replace : existing::resume,
                           .source = split_source(options.source.name).file,
                           .warning = options.execution.warning,
                           .references = conversion::inline_limit(options.target),
                           .base = {},
                           .formats = {},
                           .remote = options.remote});
}

}  // namespace zarrbits
