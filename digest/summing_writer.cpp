// SPDX-License-Identifier: BSL-1.0
#include "digest/summing_writer.hpp"

#include "codecs/codec_chain.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"

#include <nlohmann/json.hpp>

#include <bit>
#include <mutex>
#include <utility>

namespace zarrbits::digesting {

namespace {

// Elements in little-endian order, and nothing else.
bool has_plain_codecs(const metadata::array_metadata& m) {
  return m.codecs == metadata::bytes_codecs(true, false) || m.codecs == metadata::bytes_codecs(false, false);
}

// The strings in a chunk, as vlen-utf8 and vlen-bytes begin it.
std::uint64_t count_strings(std::span<const std::byte> chunk) {
  std::uint64_t count = 0;
  for (std::size_t i = std::min<std::size_t>(4, chunk.size()); i-- > 0;)
    count = count << 8 | std::to_integer<std::uint8_t>(chunk[i]);
  return count;
}

}  // namespace

void summing_writer::begin_array(const std::string& store_path, const metadata::array_metadata& m) {
  const std::string key = metadata::chunk_key(store_path, {});
  const std::unique_lock lock(mutex_);
  if (const auto known = arrays_.find(key);
      known != arrays_.end() && known->second.data_type == m.data_type && known->second.codecs == m.codecs)
    return;
  const metadata::parsed_array parsed = zarr::as_store_errors(
      [&] { return metadata::parse_array(nlohmann::json(text::parse_untrusted_json(metadata::array_text(m)))); });
  const zarr::zarr_type type = zarr::parse_type(parsed.data_type);
  array_state state;
  state.store_path = store_path;
  state.data_type = m.data_type;
  state.codecs = m.codecs;
  state.chunk = m.chunk;
  state.decoder = codecs::make_decoder({parsed.codecs, parsed.data_type, type, m.chunk, max_string_bytes_});
  state.is_variable = type.variable();
  array::extents shape = m.shape;
  if (!shape.empty() && shape[0] == 0) {
    state.has_length = false;
    shape[0] = UINT64_MAX;
  }
  state.sum =
      std::make_shared<array_sum>(element_form(type, any_nan_), std::move(shape), zarr::parse_fill(type, parsed.fill_value));
  state.is_plain = state.sum->form().is_plain() && has_plain_codecs(m);
  arrays_.insert_or_assign(key, std::move(state));
}

void summing_writer::end_derived(const std::string& store_path, const metadata::array_metadata& m) {
  begin_array(store_path, m);
  const std::unique_lock lock(mutex_);
  array_state& state = arrays_.at(metadata::chunk_key(store_path, {}));
  state.sum->set_length(m.shape.at(0));
  state.has_length = true;
}

void summing_writer::drop(const std::string& store_path) {
  const std::unique_lock lock(mutex_);
  std::erase_if(arrays_, [&](const auto& entry) {
    const std::string& path = entry.second.store_path;
    return path == store_path || path.starts_with(text::join_path(store_path, ""));
  });
}

std::map<std::string, std::shared_ptr<const array_sum>> summing_writer::finished() {
  const std::unique_lock lock(mutex_);
  std::map<std::string, std::shared_ptr<const array_sum>> result;
  for (auto& [key, state] : arrays_) {
    if (!state.has_length) state.sum->set_length(0);
    result.emplace(state.store_path, state.sum);
  }
  return result;
}

void summing_writer::put(std::string_view key, std::span<const std::byte> bytes) {
  // behind the last part "c" are the coordinates
  std::size_t end = key.size();
  while (end > 0 && (key[end - 1] == '/' || (key[end - 1] >= '0' && key[end - 1] <= '9'))) --end;
  const array_state* state = nullptr;
  {
    const std::shared_lock lock(mutex_);
    const auto known = arrays_.find(key.substr(0, end));
    if (known == arrays_.end()) return;  // metadata
    state = &known->second;
  }
  const array::extents& shape = state->chunk;
  array::box chunk{array::extents(shape.size(), 0), shape};
  if (end < key.size()) {
    const auto index = metadata::chunk_coordinates(key.substr(end + 1));
    for (std::size_t d = 0; index && d < index->size(); ++d) chunk.first[d] = (*index)[d] * shape[d];
  }
  if (!state->has_length) {
    const std::uint64_t inner = array::product(std::span(shape).subspan(1)) * state->sum->form().size();
    chunk.shape[0] = state->is_variable ? count_strings(bytes) : bytes.size() / std::max<std::uint64_t>(1, inner);
  }
  if (state->is_plain) return state->sum->add(chunk, bytes);
  zarr::element_buffer values;
  std::vector<std::byte> stored(bytes.begin(), bytes.end());
  if (state->has_length) state->decoder->decode(std::move(stored), values);
  else state->decoder->decode(chunk.shape, std::move(stored), values);
  state->sum->add(chunk, values);
}

}  // namespace zarrbits::digesting
