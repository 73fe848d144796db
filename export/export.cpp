// SPDX-License-Identifier: BSL-1.0
//
// The public function export_store(): the file, which gets its name when it is complete.
//
#include <zarrbits/convert_options.hpp>
#include <zarrbits/export.hpp>
#include <zarrbits/source_name.hpp>

#include "compressors/buffer.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/from_zarr/join_stores.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "convert/pipeline/joining_order.hpp"
#include "export/file_writer.hpp"
#include "export/property_lists.hpp"
#include "hdf5/created_file.hpp"
#include "hdf5/file_pages.hpp"
#include "hdf5/foreign_format.hpp"
#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_access.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "zarr/read/zarr_reader.hpp"
#include "zarr/write/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

namespace {

// The bytes before the file proper, which `convert` noted.
std::vector<std::byte> user_block_of(const store_node& root) {
  const text::json& note = root.note("user_block");
  if (!note.is_object() || !note.value("base64", text::json()).is_string()) return {};
  return text::decode_base64(note["base64"].get_ref<const std::string&>()).value_or(std::vector<std::byte>());
}

bool is_block_size(std::size_t size) { return size >= 512 && std::has_single_bit(size); }

// For each new attribute in an object header of HDF5 1.6, libhdf5 looks at all others; the headers of 1.8 have an index. Chunks
// are found in the same way with both.
bool needs_headers_of_1_8(const store_tree& tree) {
  constexpr std::size_t many_attributes = 256;
  return tree.max_attributes > many_attributes;
}

hdf5::created_file create_file(const std::string& name, const export_options& options, const store_tree& tree, bool netcdf,
                               bool ordered, std::size_t user_block) {
  const hdf5::handle creation = make_property_list(H5P_FILE_CREATE);
  const hdf5::handle access(H5Pcreate(H5P_FILE_ACCESS), "create properties");
  constexpr unsigned in_order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  if (netcdf || ordered) hdf5::check(H5Pset_link_creation_order(creation, in_order), "track the order of links");
  if (netcdf) hdf5::check(H5Pset_attr_creation_order(creation, in_order), "track the order of attributes");
  if (user_block > 0) hdf5::check(H5Pset_userblock(creation, user_block), "reserve a user block");
  if (options.page_size > 0) {
    hdf5::require_pages_fit(options.store, options.page_size, user_block);
    hdf5::check(H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_PAGE, false, 1), "ask for pages");
    hdf5::check(H5Pset_file_space_page_size(creation, options.page_size), "set the size of pages");
  }
  if (options.format == file_format::latest)
    hdf5::check(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "ask for the latest format");
  else if (needs_headers_of_1_8(tree))
    hdf5::check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST), "ask for the format of HDF5 1.8");
  return {name, creation, access};
}

bool wants_netcdf(const export_options& options) { return options.netcdf.value_or(options.target.ends_with(".nc")); }

// A file that netCDF has to read has only what netCDF can hold; an HDF5 file comes back as it was, with its dimensions.
spec_rules rules_of(const store_tree& tree, const export_options& options, bool netcdf) {
  return {netcdf, netcdf && (wants_netcdf(options) || !tree.has_notes)};
}

std::string remedy_for(const std::string& reason) {
  return hdf5::is_of_system(reason) ? "; check the space and the permissions there" : "";
}

// A file within a store would become a part of it.
void refuse_target_in_store(const std::string& store, const std::string& target) {
  namespace fs = std::filesystem;
  std::error_code e;
  if (io::is_object_store(store) || !fs::is_directory(store, e)) return;
  const fs::path folder = fs::weakly_canonical(fs::absolute(store), e);
  const fs::path relative = fs::weakly_canonical(fs::absolute(target), e).lexically_relative(folder);
  if (e || relative.empty() || *relative.begin() == "..") return;
  throw error(errc::refused, "the target \"" + target + "\" lies in the store; choose another target", {target});
}

// What a conversion of the stores reads.
convert_options conversion_of(const export_options& options) {
  convert_options result;
  result.source.name = options.store;
  result.source.concat = options.concat;
  result.remote = options.remote;
  result.selection.include = options.include;
  result.selection.exclude = options.exclude;
  result.source.external = options.external;
  result.execution.keep_going = options.keep_going;
  result.execution.memory = options.memory;
  result.execution.note = options.note;
  return result;
}

// Joined arrays must be arrays of the file: of one that a sequence is made of, the parts would be lost.
void require_joined_in(const store_tree& tree, const conversion::source_nodes& joined) {
  std::set<std::string> arrays;
  for (const tree_node& n : tree.nodes) {
    if (n.joined) arrays.insert(n.joined->path);
  }
  for (const conversion::source_node& node : joined.nodes) {
    if (node.joined && node.selected && !arrays.contains(node.path))
      throw error(errc::unsupported,
                  "\"" + node.path +
                      "\" is a member of one dataset in an HDF5 file, and is not joined there; omit it with "
                      "`exclude`, or use a target such as OUT.zarr",
                  {node.path});
  }
}

// `opened_store`: the store that `root` is in. `joined`: of several stores, the nodes.
void write_file(const zarr::atomic_file& target, const zarr::store_folder& opened_store, const zarr::store_folder& root,
                const conversion::source_nodes& joined, const export_options& options, export_report& report) {
  const auto report_progress = [&](const std::string& path) {
    if (options.progress) options.progress(path, 0, 0);
  };
  // a copy of its target is better than a link that leads nowhere; netCDF has none into other files
  const auto is_link = [&](const text::json& link) {
    return leads_to_a_file(link, options.target) && !(wants_netcdf(options) && link.value("kind", text::json()) == "external");
  };
  store_tree tree = read_tree(root, opened_store, joined.nodes, options.include, options.exclude, is_link, report_progress);
  require_joined_in(tree, joined);
  report.netcdf = wants_netcdf(options) || (!options.netcdf && looks_like_netcdf(tree));
  const std::vector<std::byte> user_block = user_block_of(read_store_node(root));
  const bool has_block = is_block_size(user_block.size());
  hdf5::created_file file =
      create_file(target.temporary(), options, tree, report.netcdf, tree.nodes[0].is_ordered, has_block ? user_block.size() : 0);
  const spec_rules rules = rules_of(tree, options, report.netcdf);
  if (rules.netcdf_types) normalize_names(tree);
  file_writer(file, tree, rules, options, report).run();
  file.finish();
  if (user_block.empty()) return;
  exported_object& e = report.objects.emplace_back();
  e.path = "/";
  e.kind = object_kind::user_block;
  if (has_block) {
    target.write_at(0, user_block);
  } else {
    e.outcome = outcome::skipped;
    text::set_reason(e, reason_code::unsupported_feature, "its length is not a power of 2 from 512 on");
  }
}

}  // namespace

}  // namespace zarrbits::exporting

namespace zarrbits {

void check_options(const export_options& options) {
  if (options.target.empty()) throw error(errc::invalid_option, "there is no name of a file to write");
  if (io::is_object_store(options.target) || options.target.find("://") != std::string::npos)
    throw error(errc::invalid_option, "a file is written to a local disk, not to \"" + options.target +
                                          "\"; write it to a disk, and upload it from there");
  if (options.concat && (options.concat->is_new || options.concat->append))
    throw error(
        errc::invalid_option,
        "an HDF5 file is written from Zarr stores that are joined along a dimension of theirs; remove `is_new` and `append`");
  for (const std::string& name : conversion::given_sources(options.store, options.concat)) {
    if (options.concat && !zarr::is_read_as_store(name, true))
      throw error(errc::invalid_option,
                  "values of several files become a Zarr store, and not an HDF5 file, and \"" + name +
                      "\" is not a Zarr store; use a target such as OUT.zarr, and export that, or `references`",
                  {name});
  }
  const int max_level = options.filter == export_filter::zstd ? 22 : 9;
  if (options.filter != export_filter::none && (options.level < 1 || options.level > max_level))
    throw error(errc::invalid_option,
                "the level " + std::to_string(options.level) + " is not one of 1 to " + std::to_string(max_level));
  if (options.page_size != 0 && (options.page_size < 512 || options.page_size > (std::uint64_t{1} << 30)))
    throw error(errc::invalid_option,
                "`page_size` has 512 bytes to 1 GiB, not " + std::to_string(options.page_size) + "; set it to such a size");
  if (options.memory < min_memory)
    throw error(errc::invalid_option, "`memory` is " + text::format_bytes(options.memory) +
                                          ", too little to export; use at least " + text::format_bytes(min_memory));
}

export_report export_store(const export_options& requested) {
  check_options(requested);
  export_options options = requested;
  const auto begun = std::chrono::steady_clock::now();
  const hdf5::silence quiet;
  export_report report;
  report.store = options.store;
  report.target = options.target;
  zarr::as_public_errors(options.store, options.target, errc::damaged_source, [&] {
    const std::vector<std::string> names = conversion::given_sources(options.store, options.concat);
    remote::init_s3(options.concat ? options.concat->sources : std::vector<std::string>(), options.store, options.remote,
                    options.warning);
    for (const std::string& name : names) {
      zarr::probe_source(name, options.remote);
      exporting::refuse_target_in_store(split_source(name).file, options.target);
    }
    conversion::source_nodes joined;
    if (options.concat) {
      convert_options source = exporting::conversion_of(options);
      conversion::order_stores(source);
      joined = conversion::read_nodes(source, [&](const std::string& path) {
        if (options.progress) options.progress(path, 0, 0);
      });
      options.store = source.source.name;
      report.store = options.store;
      report.sources = joined.sources;
    }
    const source_name store = split_source(options.store);
    zarr::store_folder opened_store =
        zarr::open_store(store.file, options.remote, io::allowed_paths({store.file}, options.external), options.memory / 4,
                         zarr::access_pattern::sparse);
    opened_store.max_string_bytes = options.memory / 4;
    if (!options.concat) joined.roots = {opened_store};
    const auto state = [&] {
      std::uint64_t sum = 0;
      for (const zarr::store_folder& root : joined.roots) sum = sum * 31 + zarr::fingerprint(root);
      return sum;
    };
    const std::uint64_t initial_state = state();
    zarr::store_writer_options target_options;
    target_options.target =
        options.overwrite ? zarr::store_writer_options::if_exists::replace : zarr::store_writer_options::if_exists::refuse;
    target_options.sync = options.fsync;
    target_options.source = store.file;
    zarr::atomic_file target(options.target, zarr::unfinished_name(options.target), target_options,
                             {"an HDF5 file", hdf5::is_hdf5_file});
    try {
      exporting::write_file(target, opened_store, zarr::node_at(opened_store, store.object), joined, options, report);
    } catch (const compressors::corrupt_chunk& e) {
      throw error(errc::damaged_source,
                  (options.concat ? "a store is damaged: " : "\"" + options.store + "\" is damaged: ") + std::string(e.what()) +
                      "; leave such chunks out with `keep_going`",
                  {options.store});
    } catch (const conversion::unrepresentable_value& e) {
      throw error(errc::not_joinable, std::string("the stores cannot be joined: ") + e.what(), {options.store});
    } catch (const text::json::exception& e) {
      throw error(errc::damaged_source, "the metadata of \"" + options.store + "\" is invalid: " + e.what(), {options.store});
    } catch (const hdf5::failure& e) {
      throw error(errc::io_failed, "cannot write \"" + options.target + "\": " + e.what() + exporting::remedy_for(e.what()),
                  {options.target});
    }
    for (const zarr::store_folder& root : joined.roots) root.require_unchanged();
    if (state() != initial_state)
      throw error(
          errc::changed,
          "the store \"" + options.store + "\" was changed while it was exported; export it when no other process writes to it",
          {options.store});
    if (options.before_done) options.before_done(target.temporary(), report);
    std::error_code ignored;
    report.file_bytes = std::filesystem::file_size(target.temporary(), ignored);
    target.finish();
  });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return report;
}

}  // namespace zarrbits
