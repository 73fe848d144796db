// SPDX-License-Identifier: BSL-1.0
//
// Sequences are a group: `values` has all their elements in order, `offsets` the start of each sequence and the end of the last
// one. For sequences of sequences, `offsets` counts inner sequences, whose own bounds are in `offsets_1`, and so on. Both sides
// are read in order.
//
#include "verify/blocks.hpp"
#include "verify/compare_dataset.hpp"
#include "verify/decode/plain_codec_chain.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t rows_at_once = 4096;  // their content is in memory too

}  // namespace

// An array of the store whose rows are read in order.
class row_reader {
 public:
  explicit row_reader(const zarr::store_folder& folder) : array_(folder, make_plain_decoder) {
    const auto &shape = array_.shape(), &chunk = array_.chunk_shape();
    if (shape.empty()) throw zarr::store_error("an array of sequences has no dimensions");
    if (!array_.is_regular())
      throw zarr::not_supported(reason_code::unsupported_feature, "sequences in a rectilinear chunk grid");
    if (!std::equal(shape.begin() + 1, shape.end(), chunk.begin() + 1))
      throw zarr::not_supported(reason_code::unsupported_feature, "chunks that divide the values of sequences");
  }
  const zarr::zarr_array& array() const noexcept { return array_; }
  std::uint64_t size() const noexcept { return array_.shape()[0]; }
  // Element `k` of row `i`, which must exist; rows have `width` elements.
  zarr_element element_at(std::uint64_t i, std::uint64_t k = 0, std::uint64_t width = 1) {
    const std::uint64_t n = array_.chunk_shape()[0];
    if (!loaded_ || i / n != chunk_) {
      chunk_ = i / n;
      std::vector<std::uint64_t> index(array_.shape().size(), 0);
      index[0] = chunk_;
      present_ = array_.read_chunk(index, values_);
      loaded_ = true;
    }
    return present_ ? element_of(array_.type(), values_, static_cast<std::size_t>(i % n * width + k))
                    : element_of(array_.type(), array_.fill(), 0);
  }

 private:
  zarr::zarr_array array_;
  zarr::element_buffer values_;
  std::uint64_t chunk_ = 0;
  bool loaded_ = false;
  bool present_ = false;
};

// Compares consecutive values of the source with those of the store. False if it reported a difference.
class dataset_comparison::values {
 public:
  virtual ~values() = default;
  // `container_index`: the indices of their container. `first`: the index of the first value in it.
  virtual bool take(const std::byte* source, std::uint64_t count, const index& container_index, std::uint64_t first) = 0;
  // Call at the end of the source.
  virtual bool finish() = 0;
};

class dataset_comparison::fixed_values final : public values {
 public:
  fixed_values(dataset_comparison& owner, const view& v, const source_type& type, const zarr::store_folder& folder)
      : owner_(owner), view_(v), type_(type), leaf_(&type), rows_(folder) {
    index expected_shape{rows_.size()};
    const index& shape = rows_.array().shape();
    while (leaf_->kind == source_kind::array && shape.size() > expected_shape.size()) {
      expected_shape.insert(expected_shape.end(), leaf_->dims.begin(), leaf_->dims.end());
      leaf_ = &leaf_->members[0].type;
    }
    if (leaf_->kind == source_kind::opaque && rows_.array().type().name == "uint8" && shape.size() == expected_shape.size() + 1) {
      expected_shape.push_back(leaf_->size);
      byte_.kind = source_kind::integer;
      byte_.size = 1;
      leaf_ = &byte_;
    }
    if (expected_shape != shape) throw zarr::store_error("the values of sequences have the shape " + join(shape));
    width_ = product(expected_shape.data() + 1, expected_shape.data() + expected_shape.size());
    comparison_.emplace(*leaf_, rows_.array().type(), owner.objects_);
    if (comparison_->types() == likeness::different)
      throw zarr::store_error("the values of sequences have a different data type: " + comparison_->reason());
    if (comparison_->types() == likeness::unknown)
      throw zarr::not_supported(reason_code::unsupported_type, comparison_->reason());
  }

  bool take(const std::byte* source, std::uint64_t count, const index& container_index, std::uint64_t first) override {
    if (count > rows_.size() - compared_) throw zarr::store_error("there are fewer values of sequences than the source has");
    for (std::uint64_t i = 0; i < count; ++i, ++compared_) {
      for (std::uint64_t k = 0; k < width_; ++k) {
        difference d;
        const likeness l =
            comparison_->compare(source + i * type_.size + k * leaf_->size, rows_.element_at(compared_, k, width_), d);
        if (l == likeness::different) {
          index coordinates = container_index;
          coordinates.push_back(first + i);
          return owner_.report_difference(view_, coordinates, d);
        }
        ++(l == likeness::equal ? owner_.elements_ : owner_.unchecked_);
      }
    }
    return true;
  }

  bool finish() override {
    if (compared_ == rows_.size()) return true;
    owner_.conclude(verdict::differs, "has " + std::to_string(compared_) + " values, but the store has more", view_.member());
    return false;
  }

 private:
  dataset_comparison& owner_;
  const view& view_;
  const source_type& type_;
  const source_type* leaf_;
  source_type byte_;
  row_reader rows_;
  std::optional<comparison> comparison_;
  std::uint64_t width_ = 1;
  std::uint64_t compared_ = 0;
};

class dataset_comparison::sequence_values final : public values {
 public:
  // `level`: the number of sequences around these in the same group.
  sequence_values(dataset_comparison& owner, const view& v, const source_type& type, const zarr::store_folder& folder,
                  unsigned level)
      : owner_(owner), view_(v), offsets_(folder / name_of_offsets(level)) {
    const zarr::zarr_type& t = offsets_.array().type();
    if ((t.kind != zarr::zarr_kind::signed_integer && t.kind != zarr::zarr_kind::unsigned_integer) || t.size != 8)
      throw zarr::not_supported(reason_code::unsupported_type, "offsets of the type " + t.name);
    if (offsets_.array().shape().size() != 1) throw zarr::store_error("the offsets of sequences have more than one dimension");
    if (offsets_.size() == 0 || offset(0) != 0) throw zarr::store_error("the offsets of sequences do not begin with 0");
    const source_type& base = type.members[0].type;
    if (base.kind == source_kind::sequence) inner_ = std::make_unique<sequence_values>(owner, v, base, folder, level + 1);
    else inner_ = owner.make_values(v, base, folder / "values");
    if (level > 0) return;
    zarr::child_nodes children(folder, zarr::read_node(folder));
    children.match("values");
    const source_type* t2 = &type;
    for (unsigned l = 0; t2->kind == source_kind::sequence; t2 = &t2->members[0].type) children.match(name_of_offsets(l++));
    owner.add_rest(children);
  }

  bool take(const std::byte* source, std::uint64_t count, const index& container_index, std::uint64_t first) override {
    index inside = container_index;
    inside.push_back(0);
    for (std::uint64_t i = 0; i < count; ++i, ++compared_) {
      hvl_t sequence;
      std::memcpy(&sequence, source + i * sizeof sequence, sizeof sequence);
      if (!sequence.p) sequence.len = 0;
      inside.back() = first + i;
      if (compared_ + 1 >= offsets_.size()) {
        owner_.conclude(verdict::differs,
                        "has more sequences than the store, which has " + std::to_string(offsets_.size()) + " offsets",
                        view_.member());
        return false;
      }
      const std::uint64_t end = offset(compared_ + 1);
      if (end < begin_ || end - begin_ != sequence.len) {
        owner_.conclude(verdict::differs,
                        "differs in sequence " + join(inside) + ": " + std::to_string(sequence.len) +
                            " elements in the source, offsets " + std::to_string(begin_) + " and " + std::to_string(end) +
                            " in the store",
                        view_.member());
        return false;
      }
      if (!inner_->take(static_cast<const std::byte*>(sequence.p), sequence.len, inside, 0)) return false;
      begin_ = end;
    }
    return true;
  }

  bool finish() override {
    if (offsets_.size() == compared_ + 1) return inner_->finish();
    owner_.conclude(
        verdict::differs,
        "has " + std::to_string(compared_) + " sequences, but the store has " + std::to_string(offsets_.size()) + " offsets",
        view_.member());
    return false;
  }

 private:
  static std::string name_of_offsets(unsigned level) { return level == 0 ? "offsets" : "offsets_" + std::to_string(level); }
  std::uint64_t offset(std::uint64_t i) {
    std::uint64_t o = 0;
    std::memcpy(&o, offsets_.element_at(i).bytes, sizeof o);
    return o;
  }

  dataset_comparison& owner_;
  const view& view_;
  row_reader offsets_;
  std::unique_ptr<values> inner_;
  std::uint64_t compared_ = 0;
  std::uint64_t begin_ = 0;
};

// Compounds that Zarr's struct cannot hold: a group with a node for each member.
class dataset_comparison::member_values final : public values {
 public:
  member_values(dataset_comparison& owner, const view& v, const source_type& type, const zarr::store_folder& folder)
      : type_(type) {
    zarr::child_nodes children(folder, zarr::read_node(folder));
    for (const source_member& m : type.members) {
      if (m.type.kind == source_kind::unsupported || m.type.size == 0)
        throw zarr::not_supported(reason_code::unsupported_type, m.type.name + " in sequences");
      const std::vector<zarr::store_folder> matches = children.match(m.name);
      if (matches.empty()) throw zarr::store_error("member " + m.name + " of the values of sequences is not there");
      if (matches.size() > 1)
        throw zarr::not_supported(reason_code::unsupported_feature, "several spellings of one name, " + m.name);
      members_.push_back(owner.make_values(v, m.type, matches[0]));
    }
    owner.add_rest(children);
  }

  bool take(const std::byte* source, std::uint64_t count, const index& container_index, std::uint64_t first) override {
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::size_t m = 0; m < members_.size(); ++m) {
        if (!members_[m]->take(source + i * type_.size + type_.members[m].offset, 1, container_index, first + i)) return false;
      }
    }
    return true;
  }

  bool finish() override {
    return std::all_of(members_.begin(), members_.end(), [](const auto& m) { return m->finish(); });
  }

 private:
  const source_type& type_;
  std::vector<std::unique_ptr<values>> members_;
};

std::unique_ptr<dataset_comparison::values> dataset_comparison::make_values(const view& v, const source_type& type,
                                                                            const zarr::store_folder& folder) {
  check_older(folder, v.member());
  if (type.kind == source_kind::sequence) return std::make_unique<sequence_values>(*this, v, type, folder, 0);
  if (zarr::kind_of(folder) == metadata::node_kind::group) {
    if (type.kind != source_kind::compound)
      throw zarr::not_supported(reason_code::unsupported_type, type.name + " in a group of their own");
    return std::make_unique<member_values>(*this, v, type, folder);
  }
  return std::make_unique<fixed_values>(*this, v, type, folder);
}

void dataset_comparison::sequences(const view& v, const zarr::store_folder& folder) {
  const source_type* leaf = &v.type;
  std::uint64_t inside = 1;  // sequences in one element of the source
  for (; leaf->kind == source_kind::array; leaf = &leaf->members[0].type) inside *= product(leaf->dims);
  const std::unique_ptr<values> store = make_values(v, *leaf, folder);
  source_values source(v.type, v.memory_type);
  const std::uint64_t unchecked_before = unchecked_;
  std::uint64_t compared = 0;
  const bool is_completed =
      for_each_block(index(dims_.size(), 0), dims_, rows_at_once, [&](const index& start, const index& count) {
        source.read(dataset_, start, count);
        progress_(product(count) * v.type.size);
        const std::uint64_t n = product(count) * inside;
        if (!store->take(source.data(), n, {}, compared)) return false;
        compared += n;
        return true;
      });
  if (!is_completed || !store->finish()) return;
  if (unchecked_ > unchecked_before) {
    conclude(verdict::unchecked,
             "was compared in part: " + std::to_string(unchecked_ - unchecked_before) + " elements are of types that were not",
             v.member());
  }
}

}  // namespace zarrbits::verification
