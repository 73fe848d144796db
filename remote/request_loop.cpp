// SPDX-License-Identifier: BSL-1.0
#include "remote/request_loop.hpp"

namespace zarrbits::remote {

namespace {

constexpr unsigned max_mismatches = 3;  // attempts whose responses do not belong to the request

}  // namespace

void request_loop::run() {
  for (unsigned mismatches = 0;;) {
    retry_policy::throw_if_cancelled(server());
    http_client::response got = send(tries_.timeout());
    if (got.status == 429 || got.status == 503) ++slowed_down_;
    const std::size_t bytes = got.received + got.body.size();
    next_step step = judge(got);
    if (step == next_step::accept && !got.error && got.status == 206 && !got.has(range_)) step = next_step::wrong_range;
    if (step == next_step::accept) return;
    if (step == next_step::repeat) continue;
    const bool is_mismatch = step == next_step::mismatch || step == next_step::wrong_range;
    // a name that is misspelt is not worth as much patience as a network that fails in the middle
    const bool is_misspelt = got.no_such_host && !is_known_host_ && tries_.attempts() >= max_mismatches;
    const bool again = is_mismatch ? ++mismatches < max_mismatches : step == next_step::retry && !is_misspelt;
    if (again && tries_.wait(got.summary() + " from " + server(), got.retry_after())) continue;
    if (step != next_step::wrong_range) refuse(got);
    refuse_range(got, std::to_string(got.status) + attempts_text() + ": " + std::to_string(bytes) + " bytes and the range \"" +
                          std::string(got.header("content-range").substr(0, 80)) + "\", but " +
                          (range_.size > 0 ? "bytes " + io::range_text(range_) : std::string("no range")) + " were wanted");
  }
}

}  // namespace zarrbits::remote
