// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/store_writer.hpp"

#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "zarr/write/directory_writer.hpp"
#ifdef ZARRBITS_WITH_S3
#include "zarr/write/s3_writer.hpp"
#endif
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "zarr/write/partitioned_references.hpp"
#include "zarr/write/reference_store_writer.hpp"
#include "zarr/write/zip_writer.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

void check_key(std::string_view key) {
  constexpr std::size_t longest_key = 4095;
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part != "." && part != ".." && part.size() <= text::max_name_bytes &&
           part.find('\0') == std::string_view::npos;
  };
  bool good = key.size() <= longest_key;
  for (std::string_view rest = key; good;) {
    const std::size_t end = rest.find('/');
    good = is_part(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (good) return;
  std::string printable = text::escape_invalid_utf8(key.substr(0, 200));
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  throw zarrbits::error(errc::refused,
                        "\"" + printable +
                            "\" is not a valid key in a store: the unfinished store is damaged or malicious; start over "
                            "with `overwrite`, or choose another name");
}

void object_writer::append_range(int fd, std::uint64_t offset, std::uint64_t size) {
  io::require_range(fd, offset, size);
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(size, 1U << 20)));
  while (size > 0) {
    const auto part = std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(size, piece.size())));
    io::read_range(fd, offset, part);
    append(part);
    offset += part.size();
    size -= part.size();
  }
}

void store_writer::put_reference(std::string_view key, const std::string&, const io::file_state&, std::uint64_t, std::uint64_t) {
  throw std::logic_error("a store without references was asked to refer to \"" + std::string(key) + "\"");
}

void store_writer::put_range(std::string_view key, int fd, std::uint64_t offset, std::uint64_t size) {
  const auto object = begin(key);
  object->append_range(fd, offset, size);
  object->commit();
}

namespace {

class buffered_writer final : public object_writer {
 public:
  buffered_writer(store_writer& out, std::string_view key) : out_(out), key_(key) {}
  void append(std::span<const std::byte> bytes) override { waiting_.insert(waiting_.end(), bytes.begin(), bytes.end()); }
  void commit() override { out_.put(key_, std::span<const std::byte>(waiting_)); }

 private:
  store_writer& out_;
  std::string key_;
  std::vector<std::byte> waiting_;
};

}  // namespace

std::unique_ptr<object_writer> buffered_object(store_writer& out, std::string_view key) {
  return std::make_unique<buffered_writer>(out, key);
}

bool is_hdf5_name(const std::string& target) {
  std::error_code e;
  const std::string extension = fs::path(target).extension().string();
  constexpr std::string_view extensions[] = {".h5",  ".hdf5", ".hdf",  ".he5", ".nc",  ".nc4",
                                             ".cdf", ".h5ad", ".h5mu", ".nwb", ".nxs", ".mat"};
  return std::find(std::begin(extensions), std::end(extensions), extension) != std::end(extensions) &&
         !fs::is_directory(target, e);
}

bool is_one_file(const std::string& target) {
  const io::store_kind kind = io::kind_of_target(target);
  return kind == io::store_kind::zip || (io::is_references(kind) && !has_partitions(target));
}

bool has_partitions(const std::string& target) noexcept {
  std::error_code e;
  return io::is_references(io::kind_of_target(target)) && fs::exists(fs::symlink_status(io::partitions_path(target), e));
}

namespace {

// For references that are made in one run.
void remove_partitions(const std::string& target, const store_writer_options& options) {
  if (options.target == store_writer_options::if_exists::append || !has_partitions(target)) return;
  if (options.target != store_writer_options::if_exists::replace)
    throw zarrbits::error(errc::already_exists,
                          "\"" + target + "\" was begun in partitions, whose work is in \"" + io::partitions_path(target) +
                              "\"; \"zarrbits finalize\" completes it, `resume` makes what is missing, `overwrite` starts over",
                          {target});
  if (!partitioned_references::remove_work(target))
    throw zarrbits::error(errc::busy,
                          "another conversion is writing to \"" + io::partitions_path(target) +
                              "\", or it is not its folder; wait "
                              "for it, or choose another name",
                          {target});
}

}  // namespace

std::unique_ptr<store_writer> make_store_writer(const std::string& target, const store_writer_options& options) {
  using kind_type = io::store_kind;
  const kind_type kind = io::kind_of_target(target);
  const bool joined = attaches(options.target),
             has_plan = joined && (has_partitions(target) || options.target == store_writer_options::if_exists::finalize);
  if (joined && kind == kind_type::zip)
    throw zarrbits::error(errc::invalid_option,
                          "a .zip file is made in one run, not in partitions; choose a directory for \"" + target + "\"",
                          {target});
  if (kind == kind_type::web)
    throw zarrbits::error(
        errc::unsupported,
        "a store cannot be written to \"" + target +
            "\"; choose a directory, a .zip file, \"s3://bucket/prefix\", \"gs://bucket/prefix\" or \"az://container/prefix\"",
        {target});
  if (io::is_references(kind) != options.references.has_value() && !(io::is_references(kind) && has_plan))  // the plan says it
    throw zarrbits::error(errc::invalid_option,
                          options.references
                              ? "references are made in a local \"OUT.json\" or \"OUT.parquet\", not in \"" + target + "\"" +
                                    (kind == kind_type::object_store ? "; copy them there when they are made" : "")
                              : "\"" + target + "\" is a name for references; set `references`, or choose another name",
                          {target});
  if (kind == kind_type::object_store) {
#ifdef ZARRBITS_WITH_S3
    return std::make_unique<s3_writer>(target, options);
#else
    throw zarrbits::error(errc::unsupported,
                          "this zarrbits was built without libcurl and cannot write to \"" + target +
                              "\"; choose a directory, or build it with "
                              "-DZARRBITS_S3=ON",
                          {target});
#endif
  }
  if (io::is_references(kind) && joined) return std::make_unique<partitioned_references>(target, options);
  if (options.references) {
    remove_partitions(target, options);
    return std::make_unique<reference_store_writer>(target, *options.references, options);
  }
  if (kind == kind_type::zip) return std::make_unique<zip_writer>(target, options);
  return std::make_unique<directory_writer>(target, options);
}

std::string target_exists_message(store_writer_options::if_exists target, bool plan, bool node) {
  if (plan) return " exists and is an unfinished store; continue it with `resume`, or choose another name";
  const bool resumes = attaches(target);
  if (node && resumes)
    return " exists and is not an unfinished store: nothing is left to do (\"zarrbits verify\" compares it with its "
           "source)";
  if (node)
    return " exists and is a complete store (\"zarrbits verify\" compares it with its source); choose another name, or replace "
           "it "
           "with `overwrite`";
  return std::string(" exists and is ") + (resumes ? "not an unfinished store that can be resumed" : "not a Zarr store") +
         "; choose another name";
}

std::pair<std::uint64_t, std::uint64_t> count_reference_files(const std::string& target) {
  std::pair<std::uint64_t, std::uint64_t> total{0, 0};
  const auto add = [&](const fs::path& file) {
    std::error_code e;
    const std::uint64_t size = fs::file_size(file, e);
    if (e) return false;
    ++total.first;
    total.second += size;
    return true;
  };
  std::error_code e;
  for (fs::recursive_directory_iterator i(target, e), end; !e && i != end; i.increment(e)) add(i->path());
  add(target);
  for (std::size_t n = 0; add(io::data_file_path(target, n)); ++n) {
  }
  return total;
}

zarrbits::error nothing_to_finalize(const std::string& target) {
  return zarrbits::error(
      errc::not_found,
      "there is no unfinished store \"" + target + "\"; check the name of the store that the shares were written to", {target});
}

void remove_stale_lock(const std::string& target) noexcept {
  std::error_code e;
  if (has_partitions(target) && fs::exists(fs::symlink_status(target, e))) partitioned_references::remove_work(target);
  else if (io::kind_of_target(target) == io::store_kind::directory) directory_writer::remove_stale_lock(target);
}

void release_unfinished([[maybe_unused]] const std::string& target,
                        [[maybe_unused]] const store_writer_options& options) noexcept {
#ifdef ZARRBITS_WITH_S3
  try {
    if (io::is_object_store(target)) s3_writer::release(target, options);
  } catch (...) {  // the next run waits
  }
#endif
}

bool remove_unfinished(const std::string& target, const store_writer_options& options) noexcept {
  try {
    switch (io::kind_of_target(target)) {
      case io::store_kind::object_store:
#ifdef ZARRBITS_WITH_S3
        return s3_writer::remove_unfinished(target, options);
#else
        return false;
#endif
      case io::store_kind::json:
      case io::store_kind::parquet: return reference_store_writer::remove_unfinished(target);
      case io::store_kind::zip: return zip_writer::remove_unfinished(target);
      case io::store_kind::directory: return directory_writer::remove_unfinished(target, options);
      case io::store_kind::none:
      case io::store_kind::netcdf3:
      case io::store_kind::web: break;
    }
    return false;
  } catch (...) {
    return false;
  }
}

}  // namespace zarrbits::zarr
