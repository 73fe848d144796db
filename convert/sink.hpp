// SPDX-License-Identifier: BSL-1.0
//
// Where a store goes: keys to bytes, and nothing else. A directory today; whatever can take an object under a key later.
//
//   directory_sink out("out.zarr", {.overwrite = false});
//   out.put("a/c/0/0", chunk);       // whole or not at all
//   out.put("zarr.json", metadata);  // last
//   out.finish();                    // without it the store is removed again
//
#ifndef ZARRBITS_CONVERT_SINK_HPP
#define ZARRBITS_CONVERT_SINK_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

class sink {
 public:
  virtual ~sink() = default;
  // Writes one object. Keys are "/"-separated, without empty parts, "." or "..". Throws convert_error.
  virtual void put(std::string_view key, std::span<const std::byte> bytes) = 0;
  // Removes everything below a key's folder ("a/b"): the half of a node that cannot be finished.
  virtual void remove(std::string_view folder) = 0;
  // All is written: the store is whole.
  virtual void finish() = 0;
  // False where two keys that differ in case alone would be one object.
  virtual bool tells_case_apart() const { return true; }

  void put(std::string_view key, std::string_view text) { put(key, std::as_bytes(std::span(text.data(), text.size()))); }
  std::uint64_t objects() const noexcept { return objects_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

 protected:
  std::uint64_t objects_ = 0;
  std::uint64_t bytes_ = 0;
};

class directory_sink final : public sink {
 public:
  struct parameters {
    bool overwrite = false;
    std::string source = {};  // the file that is read: a store that holds it is never removed
  };
  // Refuses a target that exists, unless `overwrite` is set and it is a Zarr store (or what a killed run left of one). Then the
  // metadata of the old store goes first, so that no reader takes a mixture of old and new for a whole store.
  directory_sink(std::string path, const parameters& p);
  ~directory_sink() override;
  directory_sink(const directory_sink&) = delete;
  directory_sink& operator=(const directory_sink&) = delete;

  using sink::put;
  void put(std::string_view key, std::span<const std::byte> bytes) override;
  void remove(std::string_view folder) override;
  void finish() override;
  bool tells_case_apart() const override { return tells_case_apart_; }

 private:
  void write_file(const std::string& path, std::span<const std::byte> bytes);
  std::string root_;
  bool created_root_ = false;
  bool finished_ = false;
  bool tells_case_apart_ = true;
  std::uint64_t next_temporary_ = 0;
};

// Writes a file so that it appears whole or not at all. Throws convert_error.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace zarrbits::conversion

#endif
