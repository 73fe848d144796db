// SPDX-License-Identifier: BSL-1.0
//
// A dry run: what a conversion would do.
//
#include "convert/plan/plan_report.hpp"

#include "array/chunk_grid.hpp"
#include "convert/concat/join_files.hpp"
#include "convert/pipeline/compression.hpp"
#include "convert/plan/array_plan.hpp"
#include "convert/plan/chunk_grid_choice.hpp"
#include "text/format.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>

namespace zarrbits::conversion {

void list_other_files(const hdf5::external_file_policy& gate, std::vector<std::string>& read,
                      std::vector<convert_result::refused_file>& refused) {
  for (const std::string& file : gate.read()) read.push_back(text::escape_name(file));
  for (const auto& [file, reason] : gate.refused()) refused.push_back({text::escape_name(file), reason});
}

void add_other_files(nlohmann::ordered_json& report, const std::vector<std::string>& read,
                     const std::vector<convert_result::refused_file>& refused) {
  if (!read.empty()) report["other_files"] = read;
  if (refused.empty()) return;
  auto& list = report["refused_files"] = nlohmann::ordered_json::array();
  for (const auto& r : refused) list.push_back({{"file", r.file}, {"code", to_string(r.code)}, {"reason", r.reason}});
}

namespace {

using strategy = array_plan::strategy_type;

struct strategy_summary {
  outcome expected;
  const char* description;
};

strategy_summary summarize_strategy(const array_plan& a) {
  switch (a.strategy) {
    case strategy::copy: return {outcome::raw, "copied: stored as Zarr stores it"};
    case strategy::copy_zstd: return {outcome::raw, "copied, as zstd"};
    case strategy::copy_blosc: return {outcome::raw, "copied, as blosc"};
    case strategy::copy_native: return {outcome::raw, "copied, with numcodecs' names for the filters"};
    case strategy::packed: return {outcome::raw, "copied, as packbits"};
    case strategy::rewrap: return {outcome::rewrapped, "the payload kept, its frame changed or its checksum dropped"};
    case strategy::decode: return {outcome::recoded, "filters undone here, then encoded"};
    case strategy::read: return {outcome::recoded, "read by libhdf5, then encoded"};
  }
  return {outcome::recoded, ""};
}

// Bytes of the largest re-encoded chunk, without variable content.
std::uint64_t max_chunk_size(const array_plan& a) {
  constexpr std::uint64_t count = 4, length = 4;  // of vlen-utf8 and vlen-bytes: in front of a chunk, and of each element
  const std::uint64_t elements = a.data.grid.chunk_elements();
  const std::uint64_t element = !a.text ? a.element_size() : length + (hdf5::holds_references(a.leaf) ? 0 : a.view.size);
  const std::uint64_t plain = array::saturating_mul(elements, element) + (a.text ? count : 0);
  std::uint64_t size = max_compressed_size(a.target_compression, plain);
  if (a.fallback) size = std::max(size, max_compressed_size(*a.fallback, plain));
  return size;
}

// The most bytes that a chunk gains whose frame changes, or which is re-encoded because of its filter mask.
std::uint64_t max_frame_growth(const array_plan& a) { return a.chunk_bytes() / 255 + 64; }

// What a joined array has beyond the chunks of its files, which are put together from their values.
struct assembled_counts {
  std::uint64_t chunks = 0, all_chunks = 0;
  std::uint64_t elements = 0, all_elements = 0;
};

assembled_counts count_assembled(const hdf5::chunk_source& data) {
  if (!data.growing_axis() || !data.can_reuse_chunks()) return {};
  const hdf5::reused_chunks reused = data.reuse_on(data.grid);
  return {reused.chunks - reused.reused, reused.chunks, reused.elements - std::min(reused.elements, reused.reused_elements),
          reused.elements};
}

std::optional<planned_dataset::grid_choice> choice_of_grid(const hdf5::chunk_source& data) {
  const auto comparison = compare_grids(data);
  if (!comparison) return {};
  planned_dataset::grid_choice c;
  c.regular = {comparison->regular.chunks, comparison->regular.reused};
  c.rectilinear = {comparison->rectilinear.chunks, comparison->rectilinear.reused};
  c.used = data.grid.is_rectilinear() ? grid_type::rectilinear : grid_type::regular;
  const auto elements_to_assemble = [](const hdf5::reused_chunks& reused) {
    return reused.elements - std::min(reused.elements, reused.reused_elements);
  };
  const bool prefers_rectilinear = elements_to_assemble(comparison->rectilinear) < elements_to_assemble(comparison->regular) / 2;
  c.suggested = prefers_rectilinear ? grid_type::rectilinear : c.used;
  return c;
}

}  // namespace

std::uint64_t max_shard_index_bytes(const hdf5::chunk_source& data, std::uint64_t chunks) {
  constexpr std::uint64_t entry = 16, checksum = 4;
  return data.sharded() ? std::min(chunks, data.shards.chunks()) * (entry * data.shards.chunk_elements() + checksum) : 0;
}

void describe(planned_dataset& p, const dataset_plan& dataset, const convert_options& options) {
  const hdf5::chunk_source& data = dataset.data;
  if (dataset.parts().empty()) {
    p.how = "no elements: an array of length 0";
    p.objects = 1;
    return;
  }
  for (std::uint64_t k = 0; k < dataset.units(); ++k) {
    const chunk_range range = dataset.unit(k);
    p.units.push_back({range.first, range.count, range.bytes});
  }
  for (std::size_t i = 0; i < dataset.parts().size(); ++i) {
    ++p.objects;  // its metadata
    if (dataset.parts()[i].kind != dataset_part::kind_type::array) continue;
    const array_plan& a = *dataset.array(i);
    const std::uint64_t chunks =
        a.is_complete() ? data.grid.chunks() : data.max_stored_chunks();  // upper limit of those to write
    strategy_summary w = summarize_strategy(a);
    if (a.checksum || (a.strategy == strategy::copy_native && a.data.filters.filters.back().id == hdf5::lz4_filter))
      w.expected = std::max(w.expected, outcome::rewrapped);
    p.objects += data.sharded() ? std::min(chunks, data.shards.chunks()) : chunks;
    const std::uint64_t encoded = array::saturating_mul(chunks, max_chunk_size(a));
    const bool referred = options.target.references && w.expected == outcome::raw;
    const assembled_counts assembled = w.expected == outcome::recoded ? assembled_counts() : count_assembled(data);
    if (assembled.chunks > 0) {
      const double copied = 1 - static_cast<double>(assembled.elements) / static_cast<double>(assembled.all_elements);
      if (!referred) p.store_bytes += static_cast<std::uint64_t>(copied * static_cast<double>(data.stored_bytes));
      p.store_bytes += array::saturating_mul(assembled.elements, a.element_size());
    } else {
      p.store_bytes += w.expected == outcome::recoded ? encoded : referred ? 0 : data.stored_bytes;
      if (w.expected == outcome::rewrapped) p.store_bytes += array::saturating_mul(chunks, max_frame_growth(a));
    }
    // of texts, as much as the file can hold
    if (hdf5::holds_references(a.leaf) && w.expected == outcome::recoded) p.store_bytes += data.bytes->state().size;
    p.store_bytes += max_shard_index_bytes(data, chunks);
    if (a.checksum) p.store_bytes += 4 * chunks;
    if (dataset.parts().size() == 1) {
      if (w.expected != outcome::recoded) p.grids = choice_of_grid(data);
      p.outcome = w.expected;
      p.how = referred ? "referred to" + std::string(w.description).substr(std::string_view("copied").size()) : w.description;
      if (assembled.chunks > 0) {
        p.outcome = outcome::recoded;
        p.how += "; " + std::to_string(assembled.chunks) + " of " + text::pluralize(assembled.all_chunks, "chunk") +
                 " put together from the files' values";
      }
      if (w.expected == outcome::recoded && a.target_compression.kind != compressor::none)
        p.how += " as " + text_of(a.target_compression);
      const std::string only_v3 =
          options.target.references && options.target.zarr_format != zarr_format::v3
              ? metadata::v3_only_reason(a.stored_metadata(), !a.materialize && data.max_stored_chunks() < data.grid.chunks())
              : "";
      if (!only_v3.empty()) p.how += "; only for readers of Zarr v3: " + only_v3;
      p.codecs = text::json_text(a.stored_metadata().codecs);
      p.chunk_shape = a.meta.chunk;
      if (data.rechunked()) p.how += "; chunks of " + array::joined_text(data.grid.chunk);
    }
  }
  if (dataset.parts().size() > 1)
    p.how = "a group of " + text::pluralize(dataset.parts().size() - 1, "array") + ": no Zarr array can hold such values";
  else if (dataset.parts()[0].kind == dataset_part::kind_type::sequences) p.how = "a group: values, and offsets into them";
  for (const dataset_part& part : dataset.parts()) {
    if (part.kind != dataset_part::kind_type::sequences) continue;
    constexpr std::uint64_t offset = 8, padding = 1 << 20;  // of the last chunks
    p.store_bytes += data.bytes->state().size + array::saturating_mul(array::product(data.dims) + 1, offset) + padding;
  }
}

}  // namespace zarrbits::conversion

namespace zarrbits {

std::string convert_plan::json() const {
  using text::json;
  json list = json::array();
  for (const planned_dataset& d : datasets) {
    json units = json::array();
    for (const auto& u : d.units) units.push_back({{"first", u.first}, {"count", u.count}, {"bytes", u.bytes}});
    json j = {{"path", d.path}, {"outcome", to_string(d.outcome)}};
    if (d.outcome == outcome::skipped) j["code"] = to_string(d.code);
    j.update({{d.outcome == outcome::skipped ? "reason" : "how", text::escape_invalid_utf8(d.how)},
              {"objects", d.objects},
              {"source_bytes", d.source_bytes},
              {"store_bytes", d.store_bytes},
              {"units", std::move(units)}});
    if (d.estimated_bytes) j["estimated_bytes"] = *d.estimated_bytes;
    if (const auto& g = d.grids) {
      const auto count = [](const planned_dataset::grid_choice::count& c) {
        return json{{"chunks", c.chunks}, {"copied", c.copied}};
      };
      j["grids"] = {{"used", to_string(g->used)},
                    {"suggested", to_string(g->suggested)},
                    {"regular", count(g->regular)},
                    {"rectilinear", count(g->rectilinear)}};
    }
    if (const auto& c = d.compressed)
      j["compressed"] = {{"compress", c->compress}, {"store_bytes", c->store_bytes}, {"sampled", c->sampled}};
    if (!d.codecs.empty()) {
      j["codecs"] = text::parse_json(d.codecs);
      j["chunk_shape"] = d.chunk_shape;
    }
    list.push_back(std::move(j));
  }
  text::json j{{"version", 1},
               {"convention", to_string(convention)},
               {"links", {{"copied", links.copied}, {"kept", links.kept}, {"lost", links.lost}}},
               {"groups", groups},
               {"datasets", std::move(list)}};
  if (estimated_bytes) j["estimated_bytes"] = *estimated_bytes;
  if (free_bytes) j["free_bytes"] = *free_bytes;
  if (seconds) j["seconds"] = *seconds;
  conversion::add_other_files(j, other_files, refused_files);
  conversion::add_sources(j, sources);
  return text::json_text(j, 1) + "\n";
}

}  // namespace zarrbits
