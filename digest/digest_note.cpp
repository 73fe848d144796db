// SPDX-License-Identifier: BSL-1.0
#include "digest/digest_note.hpp"

#include "append/staged_append.hpp"
#include "hdf5/h5.hpp"
#include "io/files.hpp"
#include "io/remote_url.hpp"
#include "io/store_kind.hpp"
#include "metadata/node.hpp"
#include "remote/s3_access.hpp"
#include "text/json_text.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/zarr_reader.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/digest.hpp>

#include <utility>

namespace zarrbits {

namespace digesting {

namespace {

const std::string form = std::string(text::digest_note_prefix) + "1: ";
constexpr std::size_t digest_digits = 64;

void note_in_file(const std::string& file, const std::string& digest) {
  const hdf5::silence quiet;
  const hdf5::handle access(H5Pcreate(H5P_FILE_ACCESS), "make properties of the file");
#if H5_VERSION_GE(1, 10, 7)
  hdf5::check(H5Pset_file_locking(access, false, true), "leave the lock to its owner");
#endif
  const hdf5::handle root(H5Fopen(file.c_str(), H5F_ACC_RDWR, access), "open the file"),
      type(H5Tcopy(H5T_C_S1), "make the type of its digest"), scalar(H5Screate(H5S_SCALAR), "make the space of its digest");
  const std::string note = format_note(digest);
  hdf5::check(H5Tset_size(type, note.size()), "set the length of its digest");
  if (H5Aexists(root, text::digest_attribute) > 0) hdf5::check(H5Adelete(root, text::digest_attribute), "remove its old digest");
  const hdf5::handle attribute(H5Acreate2(root, text::digest_attribute, type, scalar, H5P_DEFAULT, H5P_DEFAULT),
                               "create the attribute of its digest");
  hdf5::check(H5Awrite(attribute, type, note.data()), "write its digest");
}

// The new root takes the place of the old one as after an append: in one step, if no other process has changed it.
std::string note_in_store(const std::string& name, const std::string& digest, const remote_access& remote) {
  if (const io::store_kind kind = io::kind_of_target(name); kind == io::store_kind::zip || io::is_references(kind))
    return "a store in one file, or of references, is not changed";
  remote::init_s3({}, name, remote, {});
  const auto bytes = zarr::read_metadata_bytes(zarr::open_folder(name, remote));
  if (!bytes) return "a store of Zarr v2 has no place for it";
  const std::string_view old(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  text::json root = text::parse_untrusted_json(old);
  metadata::take_digest_note(root);
  metadata::set_note(root, text::digest_note_key, format_note(digest));
  const std::string updated = metadata::node_text(root), run = io::unique_token();
  try {
    const auto staged = append::staged_append::begin(name, {.run = run, .remote = remote});
    if (staged->is_complete()) staged->commit();  // of a run that was killed
    {
      const auto out = zarr::make_store_writer(
          staged->folder(), {.target = zarr::store_writer_options::if_exists::attach, .run = run, .remote = remote});
      out->put("zarr.json", updated);
      out->finish();
    }
    staged->declare({{"zarr.json", append::checksum_of_text(old), append::checksum_of_text(updated)}}, 0);
    staged->commit();
  } catch (const error& e) {
    if (e.kind() != errc::unsupported) throw;
    return "the server does not support conditional writes";
  }
  return {};
}

}  // namespace

std::string format_note(const std::string& digest) { return form + digest; }

std::string parse_note(const std::string& note) {
  const bool is_known = note.starts_with(form) && note.size() == form.size() + digest_digits &&
                        note.find_first_not_of("0123456789abcdef", form.size()) == std::string::npos;
  return is_known ? note.substr(form.size()) : "";
}

}  // namespace digesting

std::string note_digest(const std::string& name, const std::string& digest, const remote_access& remote) {
  return zarr::as_public_errors(name, name, errc::damaged_store, [&] {
    if (io::is_object_store(name) || zarr::is_store_name(name)) return digesting::note_in_store(name, digest, remote);
    try {
      digesting::note_in_file(name, digest);
    } catch (const hdf5::failure& e) {
      throw error(errc::io_failed, "cannot note the digest in \"" + name + "\": " + e.what(), {name});
    }
    return std::string();
  });
}

}  // namespace zarrbits
