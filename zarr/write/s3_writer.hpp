// SPDX-License-Identifier: BSL-1.0
//
// A store under a prefix of an S3 bucket, with the same keys as a directory would have.
//
// While it is unfinished, `.zarrbits-unfinished/begun` names its owner. A conditional PUT makes that object, so the second of two
// conversions into one target is refused. A recent change there is the work of a conversion that still runs.
//
#ifndef ZARRBITS_ZARR_WRITE_S3_WRITER_HPP
#define ZARRBITS_ZARR_WRITE_S3_WRITER_HPP

#include "remote/s3_client.hpp"
#include "remote/s3_listing.hpp"
#include "zarr/write/s3_lock.hpp"
#include "zarr/write/store_writer.hpp"

#include <functional>
#include <memory>
#include <mutex>

namespace zarrbits::zarr {

class s3_writer final : public store_writer {
 public:
  s3_writer(const std::string& target, const store_writer_options& options);
  ~s3_writer() override;

  using store_writer::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override;
  bool put_new(std::string_view key, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override;
  void for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) override;
  void append(std::string_view key, std::string_view text) override;
  void remove(std::string_view folder) override;
  void finish() override;
  void keep_unfinished() override { keep_unfinished_ = true; }
  bool found_unfinished() const override { return found_unfinished_; }

  // Removes everything below the prefix if options.run began it and did not finish. Without a run: if any run did that does not
  // write any more. Of an append of options.run, only the lock.
  static bool remove_unfinished(const std::string& target, const store_writer_options& options);
  // Removes the lock of options.run, which was killed and leaves its work: the next run need not wait for it.
  static void release(const std::string& target, const store_writer_options& options);

 private:
  class writer;

  // Number of objects, their bytes, and a sum of hashes of keys and sizes: shows whether two lists have the same objects, in any
  // order.
  struct tally {
    std::uint64_t objects = 0, bytes = 0, hash = 0;
    void add(std::string_view key, std::uint64_t size);
    void subtract(std::string_view key, std::uint64_t size);
    bool operator==(const tally&) const = default;
  };

  s3_writer(const std::string& target, const remote_access& remote);  // for cleaning up
  std::string full_key(std::string_view key) const;
  std::string read_text(const std::string& key);  // "" if absent
  void open_target(const std::string& target, const store_writer_options& options);
  bool try_resume(const std::string& target, const store_writer_options& options,
                  const std::vector<remote::s3_entry>& unfinished);
  void attach_target(const std::string& target, const store_writer_options& options,
                     const std::vector<remote::s3_entry>& unfinished, bool has_objects);
  bool has_own_note();
  bool is_store();
  void remove_root();
  void release_append(std::string_view run);
  void require_removable(const std::string& target, bool unfinished);
  void acquire_lock(const std::string& target, const store_writer_options& options, bool taken_over);
  void start_heartbeat() {
    lock_.start_heartbeat([this] { return objects(); });
  }
  void require_all_listed();
  void record_write(std::string_view key, std::uint64_t size);
  void remove_object(const std::string& whole_key);
  void remove_all(bool mark_too);
  void abort_old_uploads();
  void abort_stale_uploads(const std::vector<remote::s3_entry>& unfinished);

  remote::s3_client client_;
  const std::string target_;
  std::mutex tally_mutex_;
  tally tally_;
  std::unordered_map<std::size_t, std::uint64_t>
      own_sizes_;         // sizes by hashes of keys: objects of this run, next to those of others
  std::string root_key_;  // of the object that makes this a store
  std::uint64_t root_size_ = 0;
  std::atomic<std::uint64_t> next_line_ = 0;
  bool joined_ = false, finished_ = false, keep_unfinished_ = false, marked_ = false, found_unfinished_ = false;
  bool is_exclusive_ = false, is_shared_ = false;  // whether other runs may write; of an object for cleaning up neither
  s3_lock lock_;                                   // declared last: its heartbeat uses the others
};

}  // namespace zarrbits::zarr

#endif
