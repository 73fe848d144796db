// SPDX-License-Identifier: BSL-1.0
//
// A store in one .zip file.
//
#include "io/files.hpp"
#include "io/zip_archive.hpp"
#include "zarr/read/sorted_keys.hpp"
#include "zarr/read/store_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

namespace {

using io::zip_archive;

// Turns errors of the file into errors of the store.
template <class F>
auto with_zip_errors(F&& f) {
  try {
    return f();
  } catch (const io::zip_error& e) {
    throw store_error(e.what());
  } catch (const io::zip_not_supported& e) {
    throw not_supported(reason_code::unsupported_feature, e.what());
  }
}

// The checksum distinguishes members after the archive was recreated.
io::file_state state_of_member(std::uint64_t size, std::uint32_t crc) {
  return {.regular = true, .size = size, .etag = std::to_string(crc)};
}

class zip_object final : public stored_object {
 public:
  zip_object(const zip_archive& archive, zip_archive::place place) : archive_(archive), place_(std::move(place)) {}
  std::uint64_t size() const override { return place_.size; }
  io::file_state state() const override { return state_of_member(place_.size, place_.crc); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    with_zip_errors([&] { archive_.read(place_, offset, out); });
  }
  std::optional<object_location> location() const override {
    return object_location{.descriptor = archive_.descriptor(), .offset = place_.offset};
  }

 private:
  const zip_archive& archive_;
  zip_archive::place place_;
};

// A member that is compressed: it is inflated as a whole, at the first read.
class deflated_object final : public stored_object {
 public:
  deflated_object(const zip_archive& archive, zip_archive::place place) : archive_(archive), place_(std::move(place)) {}
  std::uint64_t size() const override { return place_.size; }
  io::file_state state() const override { return state_of_member(place_.size, place_.crc); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::call_once(is_inflated_, [&] { bytes_ = with_zip_errors([&] { return archive_.inflated(place_); }); });
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  const zip_archive& archive_;
  zip_archive::place place_;
  mutable std::once_flag is_inflated_;
  mutable std::vector<std::byte> bytes_;
};

class zip_reader final : public store_reader {
 public:
  explicit zip_reader(const std::string& path) : path_(path), archive_(path) {}

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    auto entry = with_zip_errors([&] { return archive_.find(key); });
    if (!entry) return nullptr;
    if (entry->deflated) return std::make_unique<deflated_object>(archive_, std::move(*entry));
    return std::make_unique<zip_object>(archive_, std::move(*entry));
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    list_sorted(
        archive_.members(), folder, [](const zip_archive::member& m) { return state_of_member(m.size, m.crc); }, visit);
  }

  void require_unchanged() const override {
    if (io::state_of(archive_.descriptor()) == opened_) return;
    throw store_error("\"" + path_ + "\" changed while it was read; start over when no process is writing to it", errc::changed);
  }

 private:
  std::string path_;
  zip_archive archive_;
  io::file_state opened_ = io::state_of(archive_.descriptor());
};

}  // namespace

std::shared_ptr<const store_reader> open_zip(const std::string& path) {
  return with_zip_errors([&] { return std::make_shared<zip_reader>(path); });
}

}  // namespace zarrbits::zarr
