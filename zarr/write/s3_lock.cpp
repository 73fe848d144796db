// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/s3_lock.hpp"

#include "io/files.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/json_text.hpp"
#include "zarr/write/s3_upload.hpp"
#include "zarr/write/s3_writer.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/version.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace zarrbits::zarr {

double s3_lock_seconds() { return std::max(2.0, remote::http_timeout()); }

std::string mark_text(const s3_mark& mark) {
  text::json document = {{"zarrbits", version()}, {"run", mark.run}, {"holder", mark.holder}, {"sink", mark.sink}};
  if (mark.shared) document["shared"] = true;
  return text::json_text(document) + "\n";
}

namespace {

constexpr std::size_t max_mark_bytes = 64 << 20;

bool is_conflict(const remote::s3_client::response& r) { return r.status == 409 || r.status == 412; }

// Until those that wrote a mark at the same moment have written it, too.
void wait_for_others() { std::this_thread::sleep_for(std::chrono::duration<double>(std::min(1.0, remote::http_timeout() / 10))); }

}  // namespace

bool s3_is_mark(std::string_view text) {
  const text::json j = text::parse_untrusted_json(text);
  return !text::text_member(j, "zarrbits").empty() && !text::text_member(j, "sink").empty();
}

bool s3_is_mark_of(std::string_view text, std::string_view run) { return parse_mark(text).run == run; }

s3_mark parse_mark(std::string_view text) {
  const text::json document = text::parse_untrusted_json(text);
  return {text::text_member(document, "run"), text::text_member(document, "holder"), text::text_member(document, "sink"),
          document.is_object() && document.value("shared", text::json()) == true};
}

std::string unfinished_key(std::string_view name) { return std::string(text::unfinished_folder) + "/" + std::string(name); }

s3_heartbeat::s3_heartbeat(remote::s3_client& client, std::string whole_key, std::string text,
                           std::function<std::uint64_t()> progress)
    : thread_([this, &client, key = std::move(whole_key), body = std::move(text),
               progress = std::move(progress)](const std::stop_token& end) {
        std::unique_lock lock(mutex_);
        std::uint64_t previous = progress();
        for (double quiet = 0; quiet < 3600; quiet += s3_lock_seconds() / 4) {
          if (const std::uint64_t current = progress(); current != previous) previous = current, quiet = 0;
          ends_.wait_for(lock, end, std::chrono::duration<double>(s3_lock_seconds() / 4), [] { return false; });
          if (end.stop_requested()) return;
          try {
            put_object(client, key, std::as_bytes(std::span(body.data(), body.size())));
          } catch (...) {  // the next heartbeat, or the next chunk, will report it
          }
        }
      }) {}

s3_lock::s3_lock(remote::s3_client& client, std::string folder, std::string target, work of)
    : client_(client), folder_(std::move(folder)), target_(std::move(target)), token_(io::unique_token()), work_(of) {
  set_run("", false);
}

zarrbits::error s3_lock::busy_error() const {
  return zarrbits::error(errc::busy,
                         work_ == work::append
                             ? "another process is appending to \"" + target_ + "\"; wait until it ends, then append"
                             : "another conversion is writing to \"" + target_ + "\"; wait for it or choose another name",
                         {target_});
}

void s3_lock::require_idle(const std::vector<remote::s3_entry>& objects) {
  const auto current_mark = client_.send({.key = mark_key(), .max_body_bytes = max_mark_bytes});
  if (current_mark.status == 404) return;
  const auto server_time = remote::seconds_of(current_mark.date);
  const bool is_shared = parse_mark(current_mark.body).shared;
  for (const remote::s3_entry& e : objects) {
    if (is_shared && !e.key.starts_with(folder_ + s3_alive)) continue;
    const auto modified = remote::seconds_of(e.modified);
    if (!server_time || !modified || *server_time - *modified >= s3_lock_seconds()) continue;
    throw zarrbits::error(
        errc::busy,
        std::string(work_ == work::append ? "another process was appending to \"" : "another conversion wrote to \"") + target_ +
            "\" a moment ago; wait for it, or, if it was killed, try again in " +
            std::to_string(static_cast<int>(std::ceil(s3_lock_seconds() - std::max(0.0, *server_time - *modified)))) + " seconds",
        {target_});
  }
}

bool s3_lock::is_owner() {
  const auto response = client_.send({.key = mark_key(), .max_body_bytes = max_mark_bytes});
  return response.status != 404 && response.body == mark_;
}

// Another process takes the target over if it sees no sign of life for s3_lock_seconds(), and signs of life come four times as
// often. So what was seen within half of that time still holds.
double s3_lock::require() {
  const double life = s3_lock_seconds();
  const std::lock_guard lock(lease_mutex_);
  const double now = remote::uptime();
  if (!lost_ && now - seen_ > life / 4) {
    const auto response = client_.send({.key = mark_key(), .max_body_bytes = max_mark_bytes});
    lost_ = response.status == 404 || response.body != leased_mark_;
    seen_ = now;
  }
  if (lost_) {
    throw zarrbits::error(errc::busy,
                          "\"" + target_ + "\" was taken over by another process while this one was stopped or could not reach " +
                              "the server; nothing more was written to it: inspect the target, then run the command again",
                          {target_});
  }
  return seen_ + life / 2;
}

bool s3_lock::share() {
  const double now = remote::uptime();
  auto response = client_.send({.key = mark_key(), .max_body_bytes = max_mark_bytes});
  if (response.status == 404) return false;
  {
    const std::lock_guard lock(lease_mutex_);
    leased_mark_ = std::move(response.body);
    seen_ = now;
  }
  client_.set_lease(this);
  return true;
}

bool s3_lock::acquire(bool taken_over) {
  const double begun = remote::uptime();
  const std::string key = mark_key();
  const auto body = std::as_bytes(std::span(mark_.data(), mark_.size()));
  std::map<std::string, std::string> only_if = client_.if_absent();
  if (taken_over) {
    const auto current_mark = client_.send({.method = "HEAD", .key = key});
    if (current_mark.status != 404) only_if = client_.if_unchanged(current_mark);
  }
  const auto response = client_.store({.method = "PUT", .key = key, .body = body, .only_if = only_if});
  // a lost attempt may have made it
  if (is_conflict(response) && !is_owner()) throw busy_error();
  bool is_conditional =
      is_conflict(response) || (response.status >= 200 && response.status < 300);  // does this server respect conditions?
  if (!is_conditional) put_object(client_, key, body);
  else is_conditional = is_conflict(client_.store({.method = "PUT", .key = key, .body = body, .only_if = client_.if_absent()}));
  if (!is_conditional || taken_over) {
    // the last writer has the lock
    wait_for_others();
    if (!is_owner()) throw busy_error();
  }
  {
    const std::lock_guard lock(lease_mutex_);
    leased_mark_ = mark_;
    seen_ = begun;
  }
  client_.set_lease(this);
  return is_conditional;
}

void s3_lock::mark_shared(bool has_mark) {
  set_mark({"", state_.holder, token_, true});
  const auto body = std::as_bytes(std::span(mark_.data(), mark_.size()));
  put_object(client_, folder_ + s3_alive + token_, body);
  if (has_mark) return;
  const auto response = client_.store({.method = "PUT", .key = mark_key(), .body = body, .only_if = client_.if_absent()});
  if (is_conflict(response) || (response.status >= 200 && response.status < 300)) return;
  // a server without conditions: the mark of the last of those that begin at once stays
  put_object(client_, mark_key(), body);
  wait_for_others();
}

bool s3_lock::supports_if_match() {
  return is_conflict(client_.store(
      {.method = "PUT",
       .key = mark_key(),
       .body = std::as_bytes(std::span(mark_.data(), mark_.size())),
       .only_if = client_.if_unchanged(
           {.etag = client_.settings().is_azure() ? "0x0" : "00000000000000000000000000000000", .generation = "1"})}));
}

void s3_lock::start_heartbeat(std::function<std::uint64_t()> progress) {
  if (heartbeat_) return;
  heartbeat_ = std::make_unique<s3_heartbeat>(client_, folder_ + s3_alive + token_, mark_, std::move(progress));
}

void s3_lock::release() {
  stop();
  end_lease();
  remove_sign_of_life();
  if (is_owner()) client_.send({.method = "DELETE", .key = mark_key()});
}

void s3_lock::release(const std::string& holder) {
  const auto read_mark = [&](const std::string& key) {
    const auto response = client_.send({.key = key, .max_body_bytes = max_mark_bytes});
    return parse_mark(response.status == 404 ? "" : response.body);
  };
  for (const remote::s3_entry& e : remote::list_objects(client_, folder_ + s3_alive, false, remote::no_limit)) {
    if (read_mark(e.key).holder == holder) client_.send({.method = "DELETE", .key = e.key});
  }
  const s3_mark mark = read_mark(mark_key());
  if (mark.holder == holder && !mark.shared) client_.send({.method = "DELETE", .key = mark_key()});
}

void s3_lock::remove_sign_of_life() { client_.send({.method = "DELETE", .key = folder_ + s3_alive + token_}); }

void s3_writer::open_target(const std::string& target, const store_writer_options& options) {
  using if_exists = store_writer_options::if_exists;
  const auto unfinished = remote::list_objects(client_, full_key(unfinished_key("")), false, remote::no_limit);
  const bool has_objects = !unfinished.empty() || !remote::list_objects(client_, full_key(""), false, 1).empty();
  lock_.set_run(options.run, !attaches(options.target));
  if (attaches(options.target)) return attach_target(target, options, unfinished, has_objects);
  const auto exists = [&] {
    return zarrbits::error(
        errc::already_exists,
        "the target \"" + target + "\"" +
            target_exists_message(options.target, text::is_zarrbits_plan(read_text(unfinished_key("plan"))), is_store()),
        {target});
  };
  if (options.target == if_exists::resume && try_resume(target, options, unfinished)) return;
  if (has_objects && options.target != if_exists::replace) throw exists();
  if (has_objects) {
    require_removable(target, !unfinished.empty());
    lock_.require_idle(unfinished);
  }
  const bool taken_over = std::any_of(unfinished.begin(), unfinished.end(),
                                      [&](const remote::s3_entry& e) { return e.key == full_key(unfinished_key(s3_begun)); });
  acquire_lock(target, options, taken_over);
  marked_ = true;
  try {
    if (!has_objects) {
      // another run may have begun and finished in between
      for (const remote::s3_entry& e : remote::list_objects(client_, full_key(""), false, 2)) {
        if (e.key != full_key(unfinished_key(s3_begun))) {
          remove_object(full_key(unfinished_key(s3_begun)));
          throw exists();
        }
      }
      return;
    }
    start_heartbeat();
    put_object(client_, full_key(unfinished_key(text::removal_marker)), {});
    remove_all(false);
    for (const remote::s3_entry& e : remote::list_objects(client_, full_key(""), false, remote::no_limit)) {
      if (!e.key.starts_with(full_key(unfinished_key("")))) {
        throw zarrbits::error(errc::busy,
                              client_.settings().server_name() + " did not remove \"" + e.key +
                                  "\" of the old store, or another program writes there; choose another name",
                              {target});
      }
    }
    remove_object(full_key(unfinished_key(text::removal_marker)));
  } catch (...) {
    marked_ = false;
    throw;
  }
}

// Takes over what a killed run left, and that alone. False if there is nothing of the kind.
bool s3_writer::try_resume(const std::string& target, const store_writer_options& options,
                           const std::vector<remote::s3_entry>& unfinished) {
  const auto has_object = [&](const char* name) {
    return std::any_of(unfinished.begin(), unfinished.end(),
                       [&](const remote::s3_entry& e) { return e.key == full_key(unfinished_key(name)); });
  };
  if (!has_object("plan") || has_object(text::removal_marker) || !text::is_zarrbits_plan(read_text(unfinished_key("plan"))))
    return false;
  lock_.require_idle(unfinished);
  lock_.set_run(options.run, false);  // the existing objects are not this run's alone
  acquire_lock(target, {}, has_object(s3_begun));
  abort_old_uploads();
  joined_ = found_unfinished_ = true;
  return true;
}

void s3_writer::attach_target(const std::string& target, const store_writer_options& options,
                              const std::vector<remote::s3_entry>& unfinished, bool has_objects) {
  const store_writer_options::if_exists existing = options.target;
  bool begun = false;
  for (const remote::s3_entry& e : unfinished) {
    if (e.key == full_key(unfinished_key(text::removal_marker))) {
      throw zarrbits::error(
          errc::already_exists,
          "the target \"" + target + "\" is an old store that was only partly removed; replace it with `overwrite`", {target});
    }
    begun |= e.key == full_key(unfinished_key(s3_begun));
  }
  if (has_objects && unfinished.empty())
    throw zarrbits::error(errc::already_exists,
                          "the target \"" + target + "\"" + target_exists_message(existing, false, is_store()), {target});
  if (unfinished.empty() && existing == store_writer_options::if_exists::finalize) throw nothing_to_finalize(target);
  found_unfinished_ = !unfinished.empty();
  if (existing == store_writer_options::if_exists::attach && !options.shared) {
    lock_.require_idle(unfinished);
    acquire_lock(target, options, begun);
  } else {
    is_shared_ = true;
    lock_.mark_shared(begun);
    lock_.share();
  }
  if (!unfinished.empty()) abort_stale_uploads(unfinished);
}

bool s3_writer::is_store() {
  return metadata::is_store_root([&](const char* key) { return read_text(key); });
}

bool s3_writer::has_own_note() {
  return text::is_zarrbits_plan(read_text(unfinished_key("plan"))) || s3_is_mark(read_text(unfinished_key(s3_begun)));
}

// Checks that --overwrite may remove the content: a Zarr store, or what a run of zarrbits left.
void s3_writer::require_removable(const std::string& target, bool unfinished) {
  if (is_store()) return;
  if (unfinished && has_own_note()) return;
  throw zarrbits::error(
      errc::already_exists,
      "the target \"" + target +
          "\" exists and is not a Zarr store, so `overwrite` does not remove it; choose another name or remove it yourself",
      {target});
}

void s3_writer::acquire_lock(const std::string& target, const store_writer_options& options, bool taken_over) {
  if (!lock_.acquire(taken_over) && options.warning) {
    options.warning(client_.settings().server_name() + " at " + client_.settings().url +
                    " does not support conditional writes: two conversions that start at the same moment in \"" + target +
                    "\" may both continue; make sure that there is only one");
  }
  is_exclusive_ = true;
}

bool s3_writer::put_new(std::string_view key, std::span<const std::byte> bytes) {
  const auto response = client_.store({.method = "PUT", .key = full_key(key), .body = bytes, .only_if = client_.if_absent()});
  if (response.status == 409 || response.status == 412) {  // a lost attempt may have made it
    const auto current = get(key);
    return current && std::equal(current->begin(), current->end(), bytes.begin(), bytes.end());
  }
  if (response.status < 200 || response.status >= 300) {  // a server without conditional writes
    if (get(key)) return false;
    put_object(client_, full_key(key), bytes);
  }
  record_write(key, bytes.size());
  return true;
}

}  // namespace zarrbits::zarr
