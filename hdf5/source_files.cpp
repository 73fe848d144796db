// SPDX-License-Identifier: BSL-1.0
#include "hdf5/source_files.hpp"

#include "hdf5/chunk_index.hpp"
#include "hdf5/source_dataset.hpp"
#include "io/files.hpp"
#include "io/remote_url.hpp"
#include "remote/remote_file.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cerrno>

namespace zarrbits::hdf5 {

namespace {

constexpr std::size_t max_open_sources = 64;  // open at the same time: a process may have 1,024

// Returns the value of `recent` for the key, or the one that `make` makes.
template <class List, class Key, class Make>
auto find_or(List& recent, const Key& key, std::size_t capacity, const Make& make) {
  const auto entry = std::find_if(recent.begin(), recent.end(), [&](const auto& item) { return item.first == key; });
  if (entry != recent.end()) recent.splice(recent.begin(), recent, entry);
  else recent.emplace_front(key, make());
  auto value = recent.front().second;
  if (recent.size() > capacity) recent.pop_back();
  return value;
}

[[noreturn]] void changed(const std::string& name) {
  throw zarrbits::error(
      errc::changed, "\"" + name + "\" changed while it was converted; convert again when no process is writing to it", {name});
}

}  // namespace

std::shared_ptr<source_file> source_files::open(const std::string& name) const {
  auto file = std::make_shared<source_file>(name, options_);
  file->limit_expansion(largest_expansion_);
  return file;
}

std::shared_ptr<source_file> source_files::opened(std::size_t file) const {
  if (first_ && files_[file].name == files_[0].name) return first_;
  return find_or(open_, file, max_open_, [&] {
    auto one = open(files_[file].name);
    if (one->state() != files_[file].state) changed(files_[file].name);
    return one;
  });
}

std::shared_ptr<const source_dataset> source_files::dataset(std::size_t number, haddr_t address) const {
  struct with_file {  // the target of a dataset
    std::shared_ptr<source_file> file;
    source_object object;
    std::unique_ptr<const source_dataset> data;
  };
  return find_or(datasets_, std::pair{number, address}, 2 * max_open_, [&]() -> std::shared_ptr<const source_dataset> {
    auto holder = std::make_shared<with_file>();
    holder->file = opened(number);
    holder->object.kind = source_object::kind_type::dataset;
    holder->object.place.address = address;
    holder->data = std::make_unique<const source_dataset>(*holder->file, holder->object);
    return {holder, holder->data.get()};
  });
}

std::uint64_t source_files::stored_size(const chunk_in_files& chunk) const {
  return dataset(chunk.file, chunk.address)->stored_size(chunk.first);
}

stored_chunk source_files::find_chunk(const chunk_in_files& chunk, std::uint64_t size) const {
  stored_chunk result = dataset(chunk.file, chunk.address)->find_chunk(chunk.first, size);
  result.file = chunk.file;
  return result;
}

std::shared_ptr<const io::byte_source> source_files::bytes(std::size_t file) const {
  const std::lock_guard guard(bytes_mutex_);
  return find_or(bytes_, file, max_open_sources, [&] {
    const entry& e = files_[file];
    auto one = remote::open_bytes(e.name, options_.remote, e.state);
    if (!one) io::throw_errno("cannot read the source", e.name, errno, "is it still there?");
    if (one->state() != e.state) changed(e.name);
    return one;
  });
}

void source_files::require_unchanged() const {
  for (std::size_t i = 0; i < files_.size(); ++i) require_unchanged(i);
}

void source_files::require_unchanged(std::size_t file) const {
  const entry& e = files_[file];
  if (!e.state.regular) return;
  const auto reopened = remote::open_bytes(e.name, options_.remote, e.state);
  if (!reopened || (reopened->remote() ? reopened->remote()->state_now() : reopened->state()) != e.state) changed(e.name);
}

void source_files::add(entry file) {
  any_remote_ = any_remote_ || io::is_remote(file.name);
  files_.push_back(std::move(file));
}

}  // namespace zarrbits::hdf5
