// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/s3_lock.hpp"

#include "io/files.hpp"
#include "text/json_text.hpp"
#include "zarr/write/s3_sink.hpp"
#include "zarr/write/s3_upload.hpp"
#include "zarr/write/sink.hpp"

#include <zarrbits/version.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

namespace zarrbits::zarr {

double s3_lock_seconds() { return std::max(2.0, io::http_patience()); }

std::string s3_mark(std::string_view run, std::string_view sink) {
  return text::json_text({{"zarrbits", version()}, {"run", std::string(run)}, {"sink", std::string(sink)}}) + "\n";
}

namespace {

constexpr std::size_t longest_mark = 64 << 20;

bool refused(const io::s3_client::response& r) { return r.status == 409 || r.status == 412; }

std::string string_in(const text::json& j, const char* name) {
  const auto found = j.is_object() ? j.find(name) : j.end();
  return j.is_object() && found != j.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

bool s3_is_mark(std::string_view text) {
  const text::json j = text::parse_foreign_json(text);
  return !string_in(j, "zarrbits").empty() && !string_in(j, "sink").empty();
}

bool s3_is_mark_of(std::string_view text, std::string_view run) { return string_in(text::parse_foreign_json(text), "run") == run; }

std::optional<double> seconds_of(const std::string& time) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT"}) {
    std::tm utc{};
    if (::strptime(time.c_str(), form, &utc)) return static_cast<double>(::timegm(&utc));
  }
  return std::nullopt;
}

std::string in_unfinished(std::string_view name) { return std::string(text::unfinished_folder) + "/" + std::string(name); }

s3_heartbeat::s3_heartbeat(io::s3_client& client, std::string whole_key, std::function<std::uint64_t()> progress)
    : thread_([this, &client, key = std::move(whole_key), progress = std::move(progress)](const std::stop_token& end) {
        std::unique_lock held(mutex_);
        std::uint64_t before = progress();
        for (double quiet = 0; quiet < 3600; quiet += s3_lock_seconds() / 4) {
          if (const std::uint64_t now = progress(); now != before) before = now, quiet = 0;
          ends_.wait_for(held, end, std::chrono::duration<double>(s3_lock_seconds() / 4), [] { return false; });
          if (end.stop_requested()) return;
          try {
            put_object(client, key, {});
          } catch (...) {  // the next heartbeat, or the next chunk, will report it
          }
        }
      }) {}

s3_lock::s3_lock(io::s3_client& client, std::string folder, std::string target, work of)
    : client_(client), folder_(std::move(folder)), target_(std::move(target)), token_(io::unique_token()), work_(of) {
  set_run("");
}

zarrbits::error s3_lock::taken() const {
  return zarrbits::error(errc::busy,
                         work_ == work::append
                             ? "another process is appending to \"" + target_ + "\"; wait until it ends, then append"
                             : "another conversion is writing to \"" + target_ + "\"; wait for it or choose another name",
                         {target_});
}

void s3_lock::require_idle(const std::vector<io::s3_entry>& there) {
  if (there.empty()) return;
  const auto now = seconds_of(client_.send({.method = "HEAD", .key = mark_key()}).date);
  for (const io::s3_entry& e : there) {
    const auto then = seconds_of(e.modified);
    if (!now || !then || *now - *then >= s3_lock_seconds()) continue;
    throw zarrbits::error(
        errc::busy,
        std::string(work_ == work::append ? "another process was appending to \"" : "another conversion wrote to \"") + target_ +
            "\" a moment ago; wait for it, or, if it was killed, try again in " +
            std::to_string(static_cast<int>(std::ceil(s3_lock_seconds() - std::max(0.0, *now - *then)))) + " seconds",
        {target_});
  }
}

bool s3_lock::is_ours() {
  const auto answer = client_.send({.key = mark_key(), .longest = longest_mark});
  return answer.status != 404 && answer.body == mark_;
}

bool s3_lock::take(bool taken_over) {
  const std::string key = mark_key();
  const auto body = std::as_bytes(std::span(mark_.data(), mark_.size()));
  std::map<std::string, std::string> only_if = {{"if-none-match", "*"}};
  if (taken_over) {
    const auto there = client_.send({.method = "HEAD", .key = key});
    if (there.status != 404) only_if = {{"if-match", "\"" + there.etag + "\""}};
  }
  const auto answer = client_.store({.method = "PUT", .key = key, .body = body, .only_if = only_if});
  // a lost attempt may have made it
  if (refused(answer) && !is_ours()) throw taken();
  bool kept = refused(answer) || (answer.status >= 200 && answer.status < 300);  // does this server respect conditions?
  if (!kept) put_object(client_, key, body);
  else kept = refused(client_.store({.method = "PUT", .key = key, .body = body, .only_if = {{"if-none-match", "*"}}}));
  if (!kept || taken_over) {
    // the last writer has the lock
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(1.0, io::http_patience() / 10)));
    if (!is_ours()) throw taken();
  }
  return kept;
}

bool s3_lock::respects_matches() {
  return refused(client_.store({.method = "PUT",
                                .key = mark_key(),
                                .body = std::as_bytes(std::span(mark_.data(), mark_.size())),
                                .only_if = {{"if-match", "\"00000000000000000000000000000000\""}}}));
}

void s3_lock::beat(std::function<std::uint64_t()> progress) {
  if (heartbeat_) return;
  heartbeat_ = std::make_unique<s3_heartbeat>(client_, folder_ + s3_alive + token_, std::move(progress));
}

void s3_lock::release() {
  stop();
  client_.send({.method = "DELETE", .key = folder_ + s3_alive + token_});
  if (is_ours()) client_.send({.method = "DELETE", .key = mark_key()});
}

void s3_sink::open_target(const std::string& target, const sink_options& options) {
  using existing = sink_options::existing;
  const auto unfinished = io::list_objects(client_, whole(in_unfinished("")), false, io::all_of_them);
  const bool anything = !unfinished.empty() || !io::list_objects(client_, whole(""), false, 1).empty();
  lock_.set_run(options.run);
  if (joins(options.target)) return join_target(target, options.target, unfinished, anything);
  const auto exists = [&] {
    return zarrbits::error(
        errc::already_exists,
        "the target \"" + target + "\"" +
            in_the_way(options.target, text::is_own_plan(text_of(in_unfinished("plan"))), text::is_zarr_node(text_of("zarr.json"))),
        {target});
  };
  if (options.target == existing::go_on && can_go_on(target, unfinished)) return;
  if (anything && options.target != existing::replace) throw exists();
  if (anything) {
    require_removable(target, !unfinished.empty());
    lock_.require_idle(unfinished);
  }
  const bool taken_over = std::any_of(unfinished.begin(), unfinished.end(),
                                      [&](const io::s3_entry& e) { return e.key == whole(in_unfinished(s3_begun)); });
  lock(target, options, taken_over);
  marked_ = true;
  try {
    if (!anything) {
      // another run may have begun and finished in between
      for (const io::s3_entry& e : io::list_objects(client_, whole(""), false, 2)) {
        if (e.key != whole(in_unfinished(s3_begun))) {
          remove_object(whole(in_unfinished(s3_begun)));
          throw exists();
        }
      }
      return;
    }
    beat();
    put_object(client_, whole(in_unfinished(text::removing)), {});
    remove_all(false);
    for (const io::s3_entry& e : io::list_objects(client_, whole(""), false, io::all_of_them)) {
      if (!e.key.starts_with(whole(in_unfinished("")))) {
        throw zarrbits::error(errc::busy,
                              "the S3 server did not remove \"" + e.key +
                                  "\" of the old store, or another program writes there; choose another name",
                              {target});
      }
    }
    remove_object(whole(in_unfinished(text::removing)));
  } catch (...) {
    marked_ = false;
    throw;
  }
}

// Takes over what a killed run left, and that alone. False if there is nothing of the kind.
bool s3_sink::can_go_on(const std::string& target, const std::vector<io::s3_entry>& unfinished) {
  const auto has = [&](const char* name) {
    return std::any_of(unfinished.begin(), unfinished.end(),
                       [&](const io::s3_entry& e) { return e.key == whole(in_unfinished(name)); });
  };
  if (!has("plan") || has(text::removing) || !text::is_own_plan(text_of(in_unfinished("plan")))) return false;
  lock_.require_idle(unfinished);
  lock_.set_run("");  // what is here is not this run's alone
  lock(target, {}, has(s3_begun));
  joined_ = found_unfinished_ = true;
  return true;
}

void s3_sink::join_target(const std::string& target, sink_options::existing existing, const std::vector<io::s3_entry>& unfinished,
                          bool anything) {
  bool begun = false;
  for (const io::s3_entry& e : unfinished) {
    if (e.key == whole(in_unfinished(text::removing))) {
      throw zarrbits::error(
          errc::already_exists,
          "the target \"" + target + "\" is an old store that was only partly removed; replace it with `overwrite`", {target});
    }
    begun |= e.key == whole(in_unfinished(s3_begun));
  }
  if (anything && unfinished.empty())
    throw zarrbits::error(errc::already_exists,
                          "the target \"" + target + "\"" + in_the_way(existing, false, text::is_zarr_node(text_of("zarr.json"))),
                          {target});
  if (unfinished.empty() && existing == sink_options::existing::finish) throw nothing_to_finish(target);
  found_unfinished_ = !unfinished.empty();
  if (!begun) put_object(client_, lock_.mark_key(), std::as_bytes(std::span(lock_.mark().data(), lock_.mark().size())));
}

bool s3_sink::has_own_note() {
  return text::is_own_plan(text_of(in_unfinished("plan"))) || s3_is_mark(text_of(in_unfinished(s3_begun)));
}

// Checks that --overwrite may remove the content: a Zarr v3 store, or what a run of zarrbits left.
void s3_sink::require_removable(const std::string& target, bool unfinished) {
  if (text::is_zarr_node(text_of("zarr.json"))) return;
  if (unfinished && has_own_note()) return;
  throw zarrbits::error(
      errc::already_exists,
      "the target \"" + target +
          "\" exists and is not a Zarr v3 store, so `overwrite` does not remove it; choose another name or remove it yourself",
      {target});
}

void s3_sink::lock(const std::string& target, const sink_options& options, bool taken_over) {
  if (!lock_.take(taken_over) && options.warning) {
    options.warning("the S3 server at " + client_.settings().url +
                    " does not support conditional writes (If-None-Match): two conversions that start at the same moment in \"" +
                    target + "\" may both continue; make sure that there is only one");
  }
}

bool s3_sink::put_new(std::string_view key, std::span<const std::byte> bytes) {
  const auto answer = client_.store({.method = "PUT", .key = whole(key), .body = bytes, .only_if = {{"if-none-match", "*"}}});
  if (answer.status == 409 || answer.status == 412) {  // a lost attempt may have made it
    const auto there = get(key);
    return there && std::equal(there->begin(), there->end(), bytes.begin(), bytes.end());
  }
  if (answer.status < 200 || answer.status >= 300) {  // a server without conditional writes
    if (get(key)) return false;
    put_object(client_, whole(key), bytes);
  }
  written(key, bytes.size());
  return true;
}

}  // namespace zarrbits::zarr
