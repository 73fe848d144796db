// SPDX-License-Identifier: BSL-1.0
#include "digest/object_hashes.hpp"

#include "io/byte_source.hpp"
#include "io/remote_url.hpp"
#include "io/thread_pool.hpp"
#include "remote/remote_file.hpp"
#include "remote/s3_access.hpp"
#include "text/node_names.hpp"
#include "text/sha256.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/convert.hpp>
#include <zarrbits/detail/processors.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#ifdef ZARRBITS_WITH_S3
#include <openssl/evp.h>
#endif

namespace zarrbits::digesting {

namespace {

using byte_reader = std::function<void(std::uint64_t offset, std::span<std::byte> bytes)>;

// Calls `add` with the bytes of an object, piece by piece.
template <class Add>
void for_each_piece(std::uint64_t size, const byte_reader& read, const Add& add) {
  constexpr std::uint64_t piece = 1U << 20;
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(size, piece)));
  for (std::uint64_t offset = 0; offset < size; offset += bytes.size()) {
    bytes.resize(static_cast<std::size_t>(std::min(piece, size - offset)));
    read(offset, bytes);
    add(bytes);
  }
}

std::string md5_of(std::uint64_t size, const byte_reader& read) {
#ifdef ZARRBITS_WITH_S3
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) == 1;
  for_each_piece(size, read, [&](std::span<const std::byte> bytes) {
    good = good && EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1;
  });
  if (!good || EVP_DigestFinal_ex(context.get(), hash, &length) != 1)
    throw error(errc::unsupported, "OpenSSL does not compute MD5 here; use a system that allows it");
  std::string digits;
  for (unsigned i = 0; i < length; ++i) {
    digits += "0123456789abcdef"[hash[i] >> 4];
    digits += "0123456789abcdef"[hash[i] & 15];
  }
  return digits;
#else
  (void)size, (void)read;
  throw error(errc::unsupported, "this build has no OpenSSL, which computes MD5; use one with S3");
#endif
}

std::string hash_of(hash_function function, std::uint64_t size, const byte_reader& read) {
  if (function == hash_function::md5) return md5_of(size, read);
  text::sha256 sum;
  for_each_piece(size, read, [&](std::span<const std::byte> bytes) { sum.add(bytes); });
  return sum.hex();
}

object_hash hash_file(const std::string& path, hash_function function) {
  const auto file = remote::open_bytes(path, {}, {});
  if (!file || !file->state().regular)
    throw error(errc::not_found, "cannot open \"" + path + "\"; check that it is a file, and can be read", {path});
  const std::uint64_t size = file->state().size;
  return {text::base_name(path), size,
          hash_of(function, size, [&](std::uint64_t offset, std::span<std::byte> bytes) { file->read(offset, bytes); })};
}

}  // namespace

std::string md5_of_text(const std::string& text) {
  return md5_of(text.size(), [&](std::uint64_t offset, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), text.data() + offset, bytes.size());
  });
}

std::vector<object_hash> hash_objects(const digest_options& options, hash_function function) {
  const std::string name = options.source;
  std::error_code e;
  if (!io::is_remote(name) && !std::filesystem::is_directory(name, e)) return {hash_file(name, function)};
  if (io::is_remote(name) && !(io::is_object_store(name) && zarr::is_store_name(name)))
    throw error(errc::unsupported, "objects of \"" + name + "\" cannot be listed; copy it to this machine", {name});
  remote::init_s3({name}, "", options.remote, options.warning);
  const zarr::store_folder root = zarr::open_folder(name, options.remote);
  std::vector<object_hash> objects;
  std::mutex mutex;
  std::uint64_t done = 0;
  io::thread_pool queue(options.threads ? options.threads : detail::usable_processors(), options.memory / 2);
  const std::function<void(const zarr::store_folder&)> visit = [&](const zarr::store_folder& folder) {
    std::vector<std::string> folders;
    folder.list([&](const zarr::store_entry& entry) {
      if (entry.is_folder) {
        folders.push_back(entry.name);
        return true;
      }
      queue.submit(2U << 20, [&, folder, leaf = entry.name] {
        const auto object = folder.open(leaf);
        if (!object) throw zarr::store_error("\"" + (folder / leaf).name() + "\" was removed while it was read", errc::changed);
        object_hash hash{(folder / leaf).path(), object->size(), {}};
        hash.hash =
            hash_of(function, hash.size, [&](std::uint64_t offset, std::span<std::byte> bytes) { object->read(offset, bytes); });
        const std::lock_guard lock(mutex);
        done += hash.size;
        if (options.progress) options.progress("/" + hash.name, done, 0);
        objects.push_back(std::move(hash));
      });
      return true;
    });
    for (const std::string& child : folders) visit(folder / child);
  };
  visit(root);
  queue.finish();
  std::sort(objects.begin(), objects.end(), [](const object_hash& a, const object_hash& b) { return a.name < b.name; });
  return objects;
}

}  // namespace zarrbits::digesting
