// SPDX-License-Identifier: BSL-1.0
//
// A store under a prefix of an S3 bucket, with the same keys as a directory would have.
//
#ifndef ZARRBITS_CONVERT_STORE_S3_HPP
#define ZARRBITS_CONVERT_STORE_S3_HPP

#include "convert/store/s3_client.hpp"
#include "convert/store/sink.hpp"

namespace zarrbits::conversion {

class s3_sink final : public sink {
 public:
  s3_sink(const std::string& target, const sink_options& options);
  ~s3_sink() override;

  using sink::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  std::unique_ptr<object_writer> begin(std::string_view key) override;
  std::optional<std::vector<std::byte>> get(std::string_view key) override;
  std::vector<std::string> list(std::string_view folder) override;
  void append(std::string_view key, std::string_view text) override;
  void remove(std::string_view folder) override;
  void finish() override;

  // Removes what is below the prefix if it is marked as unfinished.
  static bool remove_unfinished(const std::string& target, const std::string& endpoint);

 private:
  class writer;

  std::string whole(std::string_view key) const;
  void put_object(const std::string& key, std::span<const std::byte> bytes);
  void remove_object(const std::string& whole_key);
  // Whole keys that begin with a whole key; with `folders`, those in deeper folders stand as one that ends in "/". At most `most`.
  std::vector<std::string> find(const std::string& start, bool folders, std::size_t most);
  void remove_all(bool mark_too);

  s3_client client_;
  const std::string token_;
  std::atomic<std::uint64_t> next_line_ = 0;
  bool joined_ = false, finished_ = false, marked_ = false;
};

}  // namespace zarrbits::conversion

#endif
