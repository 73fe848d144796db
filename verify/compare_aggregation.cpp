// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_aggregation.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/registered_decoders.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "io/remote_url.hpp"
#include "text/name_escaping.hpp"
#include "text/percent.hpp"
#include "verify/blocks.hpp"
#include "verify/cf_meaning.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/hdf5_types.hpp"
#include "verify/source_values.hpp"
#include "verify/value_format.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t max_fragments = 1U << 20;
constexpr std::uint64_t max_name_bytes = 64U << 20;  // of all names of fragments
constexpr const char* packing_names[] = {"scale_factor", "add_offset"};

std::string quoted_text(const std::string& name) { return format_text(text::escape_name(name)); }

[[noreturn]] void refuse_aggregation(const std::string& reason) {
  throw source_error(reason + ", so that its fragments cannot be read");
}

std::vector<std::string> words_in(hid_t variable, const char* attribute) {
  const std::vector<std::string> texts = hdf5::text_attribute(variable, attribute);
  if (texts.size() != 1) refuse_aggregation("has an attribute " + quoted_text(attribute) + " that is not a text");
  std::istringstream in(texts[0]);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool is_number_type(hid_t type) { return H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT; }

bool are_same_numbers(hid_t a, hid_t b) {
  return is_number_type(a) && H5Tget_class(a) == H5Tget_class(b) && H5Tget_size(a) == H5Tget_size(b) &&
         (H5Tget_class(a) == H5T_FLOAT || H5Tget_sign(a) == H5Tget_sign(b));
}

// The number that an attribute is; nothing without it.
std::optional<long double> attribute_number(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return {};
  const hdf5::handle attribute = checked(H5Aopen(object, name, H5P_DEFAULT), "cannot open an attribute"),
                     type = checked(H5Aget_type(attribute.get()), "cannot read a datatype"),
                     space = checked(H5Aget_space(attribute.get()), "cannot read a dataspace");
  if (!is_number_type(type.get()) || H5Sget_simple_extent_npoints(space.get()) != 1)
    refuse_aggregation("has an attribute " + quoted_text(name) + " that is not a number");
  long double number = 0;
  check(H5Aread(attribute.get(), H5T_NATIVE_LDOUBLE, &number), "cannot read an attribute");
  return number;
}

bool are_same_attributes(const std::optional<long double>& a, const std::optional<long double>& b) {
  return a.has_value() == b.has_value() && (!a || *a == *b || (std::isnan(*a) && std::isnan(*b)));
}

std::vector<std::uint64_t> shape_of_dataset(hid_t dataset) {
  const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the dataspace");
  return H5Sget_simple_extent_type(space.get()) == H5S_SIMPLE ? extent_of(space.get()) : std::vector<std::uint64_t>();
}

std::vector<std::string> strings_in(hid_t dataset, const std::string& name) {
  const hdf5::handle type = checked(H5Dget_type(dataset), "cannot read the datatype");
  const std::uint64_t n = product(shape_of_dataset(dataset));
  if (H5Tget_class(type.get()) != H5T_STRING) refuse_aggregation("names " + quoted_text(name) + ", which is not a list of texts");
  if (n > max_fragments) refuse_aggregation("has more than " + std::to_string(max_fragments) + " fragments");
  const bool is_variable = H5Tis_variable_str(type.get()) > 0;
  const std::size_t size = is_variable ? sizeof(char*) : H5Tget_size(type.get());
  if (size > max_name_bytes / std::max<std::uint64_t>(n, 1))
    refuse_aggregation("names " + quoted_text(name) + ", whose texts are too long");
  std::vector<std::byte> values(static_cast<std::size_t>(n) * size);
  hdf5::vlen_allocator allocator(max_name_bytes);
  check(H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, is_variable ? allocator.transfer() : H5P_DEFAULT, values.data()),
        "cannot read the names of the fragments");
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < n; ++i) {
    const char* text = reinterpret_cast<const char*>(values.data() + i * size);
    if (!is_variable) {
      strings.emplace_back(text, ::strnlen(text, size));
      while (H5Tget_strpad(type.get()) == H5T_STR_SPACEPAD && strings.back().ends_with(' ')) strings.back().pop_back();
      continue;
    }
    std::memcpy(&text, values.data() + i * size, sizeof text);
    strings.emplace_back(text ? text : "");
  }
  return strings;
}

// For each dimension of a fragment in its file, the one of its part of the array; none for those of one element that only one of
// both has. Nothing if the shapes are not the same without such dimensions.
std::optional<std::vector<std::optional<std::size_t>>> match_dimensions(const std::vector<std::uint64_t>& stored,
                                                                        const std::vector<std::uint64_t>& part) {
  std::vector<std::optional<std::size_t>> result;
  std::size_t d = 0;
  for (const std::uint64_t n : stored) {
    while (d < part.size() && part[d] != n && part[d] == 1) ++d;
    if (d < part.size() && part[d] == n) result.emplace_back(d++);
    else if (n == 1) result.emplace_back();
    else return {};
  }
  while (d < part.size() && part[d] == 1) ++d;
  return d == part.size() ? std::optional(result) : std::nullopt;
}

void read_elements(hid_t dataset, hid_t memory, const std::vector<std::uint64_t>& start, const std::vector<std::uint64_t>& count,
                   void* out) {
  const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the dataspace");
  const std::vector<hsize_t> first(start.begin(), start.end()), extent(count.begin(), count.end());
  const hsize_t n = product(count);
  const hdf5::handle memory_space = checked(H5Screate_simple(1, &n, nullptr), "cannot prepare to read");
  if (!first.empty())
    check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, extent.data(), nullptr),
          "cannot prepare to read");
  check(H5Dread(dataset, memory, memory_space.get(), space.get(), H5P_DEFAULT, out), "cannot read the values");
}

std::string format_number_of(hid_t memory, const void* value) {
  if (H5Tget_class(memory) == H5T_INTEGER) {
    std::vector<std::byte> bytes(std::max(H5Tget_size(memory), sizeof(std::int64_t)));
    std::memcpy(bytes.data(), value, H5Tget_size(memory));
    const bool is_signed = H5Tget_sign(memory) == H5T_SGN_2;
    check(H5Tconvert(memory, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, 1, bytes.data(), nullptr, H5P_DEFAULT),
          "cannot convert a value");
    std::int64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return is_signed ? std::to_string(number) : std::to_string(static_cast<std::uint64_t>(number));
  }
  std::vector<std::byte> bytes(std::max(H5Tget_size(memory), sizeof(double)));
  std::memcpy(bytes.data(), value, H5Tget_size(memory));
  check(H5Tconvert(memory, H5T_NATIVE_DOUBLE, 1, bytes.data(), nullptr, H5P_DEFAULT), "cannot convert a value");
  double number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}

}  // namespace

std::set<std::string> aggregation_comparison::unshared_attributes(hid_t first) {
  std::set<std::string> names{"aggregated_dimensions", "aggregated_data"};
  if (std::any_of(std::begin(packing_names), std::end(packing_names),
                  [&](const char* name) { return H5Aexists(first, name) > 0; }))
    names.insert(attributes_of_packed_numbers().begin(), attributes_of_packed_numbers().end());
  return names;
}

void aggregation_comparison::run() {
  try {
    compare();
  } catch (const zarrbits::error& e) {
    add_reason(f_, verdict::unreadable, std::string("cannot be compared: ") + e.what());
  } catch (const std::runtime_error& e) {  // source_error, hdf5::failure, io::read_error, zarr::not_supported
    add_reason(f_, verdict::unreadable, std::string("cannot be compared: in the second file, it ") + e.what());
  }
}

void aggregation_comparison::compare() {
  const auto needs = hdf5::find_external_dependencies(first_, *context_.first.policy());
  if (!needs.obstacle.empty() || needs.refused > 0)
    return add_reason(f_, verdict::unreadable,
                      "cannot be read: " + (needs.obstacle.empty() ? needs.refusal_reason : needs.obstacle.sentence));
  dims_ = shape_of_dataset(first_);
  if (!compare_types()) return;
  read_features();
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    std::uint64_t length = 0;
    for (const std::uint64_t n : lengths_[d]) length = sum(length, n);
    if (length != dims_[d])
      return add_reason(f_, verdict::differs,
                        "has " + std::to_string(dims_[d]) + " elements along dimension " + std::to_string(d) +
                            ", and in the second file fragments of " + std::to_string(length));
  }
  index counts, position(dims_.size(), 0);
  for (const index& lengths : lengths_) counts.push_back(lengths.size());
  if (product(counts) == 0) return;
  std::size_t d = 0;
  do {
    if (!compare_fragment(position)) return;
    for (d = dims_.size(); d-- > 0 && ++position[d] == counts[d];) position[d] = 0;
  } while (d < dims_.size());
  if (opened_) opened_->require_unchanged();
}

// False if they differ. An aggregation variable has the type of the unpacked values.
bool aggregation_comparison::compare_types() {
  const hdf5::handle type = checked(H5Dget_type(first_), "cannot read the datatype"),
                     other = checked(H5Dget_type(second_), "cannot read the datatype");
  if (!is_number_type(type.get())) {
    add_reason(f_, verdict::differs, "is not of numbers, which an aggregation variable in the second file is");
    return false;
  }
  const bool is_packed = std::any_of(std::begin(packing_names), std::end(packing_names),
                                     [&](const char* name) { return H5Aexists(first_, name) > 0; });
  const bool is_unpacked = std::none_of(std::begin(packing_names), std::end(packing_names),
                                        [&](const char* name) { return H5Aexists(second_, name) > 0; });
  if (is_packed ? H5Tget_class(other.get()) != H5T_FLOAT || !is_unpacked : !are_same_numbers(type.get(), other.get())) {
    add_reason(f_, verdict::differs, "has another type than the aggregation variable in the second file");
    return false;
  }
  memory_ = checked(H5Tget_native_type(type.get(), H5T_DIR_ASCEND), "cannot read the datatype");
  return true;
}

// As the conventions look for names (section 2.7): in the variable's group, and in those above it.
hdf5::handle aggregation_comparison::open_in_scope(const std::string& name) const {
  const hdf5::handle file = checked(H5Iget_file_id(second_), "cannot find the file");
  char path[4096];
  const ssize_t length = H5Iget_name(second_, path, sizeof path);
  if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path) refuse_aggregation("has a path that is too long");
  for (std::string group(path, static_cast<std::size_t>(length)); !group.empty();) {
    group.erase(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
    hdf5::handle dataset(H5Dopen2(file.get(), (name.starts_with('/') ? name : group + "/" + name).c_str(), H5P_DEFAULT));
    H5Eclear2(H5E_DEFAULT);
    if (dataset) return dataset;
  }
  refuse_aggregation("names the variable " + quoted_text(name) + ", which does not exist");
}

void aggregation_comparison::read_features() {
  const std::vector<std::string> dimensions = words_in(second_, "aggregated_dimensions"),
                                 words = words_in(second_, "aggregated_data");
  if (dimensions.size() != dims_.size())
    refuse_aggregation("has " + std::to_string(dimensions.size()) + " \"aggregated_dimensions\" in place of " +
                       std::to_string(dims_.size()));
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (const index shape = shape_of_dataset(open_in_scope(dimensions[d]).get()); shape != index{dims_[d]})
      refuse_aggregation("has a dimension " + quoted_text(dimensions[d]) + " of another length than " + std::to_string(dims_[d]));
  }
  std::map<std::string, hdf5::handle> variables;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& key = words[i];
    if (key != "map:" && key != "uris:" && key != "identifiers:")
      refuse_aggregation("has " + quoted_text(key) + " among its \"aggregated_data\", which this reader does not support");
    hdf5::handle& variable = variables[key.substr(0, key.size() - 1)] = open_in_scope(words[i + 1]);
    char path[4096];
    const ssize_t length = H5Iget_name(variable.get(), path, sizeof path);
    if (length > 0 && static_cast<std::size_t>(length) < sizeof path) features_.insert(path);
  }
  if (variables.size() != 3 || words.size() != 6)
    refuse_aggregation("has \"aggregated_data\" that are not one map, uris and identifiers each");
  const hid_t map = variables["map"].get();
  const hdf5::handle type = checked(H5Dget_type(map), "cannot read the datatype");
  const index shape = shape_of_dataset(map);
  if (H5Tget_class(type.get()) != H5T_INTEGER || shape.size() != 2 || shape[0] != dims_.size() || product(shape) > max_fragments)
    refuse_aggregation("has a map that is not a table with the lengths of fragments, a row for each dimension");
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(product(shape)));
  check(H5Dread(map, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()), "cannot read the map");
  const std::optional<long double> missing = attribute_number(map, "_FillValue");
  index counts;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    index& lengths = lengths_.emplace_back();
    bool has_ended = false;
    for (std::size_t i = 0; i < shape[1]; ++i) {
      const std::int64_t n = numbers[d * static_cast<std::size_t>(shape[1]) + i];
      const bool is_missing = missing && static_cast<long double>(n) == *missing;
      if (!is_missing && (has_ended || n <= 0))
        refuse_aggregation("has a map with " + std::to_string(n) + " in place of a length");
      has_ended = has_ended || is_missing;
      if (!is_missing) lengths.push_back(static_cast<std::uint64_t>(n));
    }
    counts.push_back(lengths.size());
  }
  uris_ = strings_in(variables["uris"].get(), "uris");
  identifiers_ = strings_in(variables["identifiers"].get(), "identifiers");
  const bool is_one_name = identifiers_.size() == 1 && shape_of_dataset(variables["identifiers"].get()).empty();
  if (shape_of_dataset(variables["uris"].get()) != counts ||
      (!is_one_name && shape_of_dataset(variables["identifiers"].get()) != counts))
    refuse_aggregation("has other numbers of uris or identifiers than its map has fragments");
}

// Only files that may be read for the second file, or as sources.
void aggregation_comparison::open_file(const std::string& uri) {
  if (opened_ && opened_name_ == uri) return;
  if (opened_) opened_->require_unchanged();
  opened_.reset();
  namespace fs = std::filesystem;
  std::string name = uri;
  if (!io::is_remote(uri)) {
    const bool is_absolute = uri.starts_with("file://");
    const std::size_t colon = uri.find(':');
    if (!is_absolute && colon < uri.find('/'))
      refuse_aggregation("names a fragment by the URI " + quoted_text(uri) + ", which this reader does not support");
    const std::optional<std::string> path = text::percent_decode(is_absolute ? uri.substr(std::strlen("file://")) : uri);
    if (!path || path->empty()) refuse_aggregation("names a fragment by " + quoted_text(uri) + ", which is not a URI");
    name = (fs::absolute(file_).parent_path() / *path).lexically_normal().string();
  }
  const auto decision = context_.second.policy()->check(name);
  if (decision == hdf5::external_file_policy::decision::missing)
    refuse_aggregation("names the file " + quoted_text(name) + ", which does not exist");
  if (decision != hdf5::external_file_policy::decision::allowed) {
    const std::string reason = context_.second.policy()->refusal();
    context_.second.policy()->forget_refusal();
    refuse_aggregation("names a file that must not be read: " + reason);
  }
  const hdf5::handle access = checked(H5Pcreate(H5P_FILE_ACCESS), "cannot prepare to open a file");
  opened_ = std::make_unique<const hdf5::opened_source>(name, access.get(), options_.remote, options_.memory / 16,
                                                        options_.external, options_.lock, io::access_hint::partial, true);
  opened_name_ = uri;
}

// False at the first difference.
bool aggregation_comparison::compare_fragment(const index& position) {
  index first, shape;
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < position[d]; ++i) start += lengths_[d][i];
    first.push_back(start);
    shape.push_back(lengths_[d][static_cast<std::size_t>(position[d])]);
    number = number * lengths_[d].size() + position[d];
  }
  const std::string& uri = uris_[static_cast<std::size_t>(number)];
  const std::string& identifier = identifiers_[identifiers_.size() == 1 ? 0 : static_cast<std::size_t>(number)];
  open_file(uri);
  hdf5::handle dataset;
  // netCDF's name of a variable that is not the coordinates of the dimension of its name
  const std::size_t slash = identifier.rfind('/') == identifier.npos ? 0 : identifier.rfind('/') + 1;
  const std::string not_coordinates = identifier.substr(0, slash) + "_nc4_non_coord_" + identifier.substr(slash);
  for (const std::string& name : {not_coordinates, identifier}) {
    if (!dataset && !identifier.empty()) dataset = hdf5::handle(H5Dopen2(opened_->file(), name.c_str(), H5P_DEFAULT));
  }
  H5Eclear2(H5E_DEFAULT);
  if (!dataset)
    refuse_aggregation("names the variable " + quoted_text(identifier) + " of " + quoted_text(uri) + ", which does not exist");
  const auto needs = hdf5::find_external_dependencies(dataset.get(), *opened_->policy());
  if (!needs.obstacle.empty() || needs.refused > 0)
    refuse_aggregation("has a fragment in " + quoted_text(uri) + " whose values must not be read: " +
                       (needs.obstacle.empty() ? needs.refusal_reason : needs.obstacle.sentence));
  const hdf5::handle properties = checked(H5Dget_create_plist(dataset.get()), "cannot read the properties");
  hdf5::register_decoders(properties.get());
  const hdf5::handle type = checked(H5Dget_type(dataset.get()), "cannot read the datatype");
  bool is_alike = are_same_numbers(memory_.get(), type.get());
  for (const char* name : {"scale_factor", "add_offset", "_FillValue", "missing_value"})
    is_alike = is_alike && are_same_attributes(attribute_number(first_, name), attribute_number(dataset.get(), name));
  if (!is_alike) {
    add_reason(f_, verdict::differs, "has another type or packing than the fragment in " + quoted_text(uri));
    return false;
  }
  return compare_blocks(dataset.get(), first, shape, shape_of_dataset(dataset.get()));
}

bool aggregation_comparison::compare_blocks(hid_t fragment, const index& first, const index& shape, const index& stored) {
  const auto dimensions = match_dimensions(stored, shape);
  if (!dimensions) {
    add_reason(f_, verdict::differs,
               "has a part of the shape " + join(shape) + ", and in the second file a fragment of " + join(stored));
    return false;
  }
  const std::size_t size = H5Tget_size(memory_.get());
  return for_each_block(index(shape.size(), 0), shape, std::max<std::uint64_t>(1, context_.memory / size),
                        [&](const index& start, const index& count) {
    index begin = first, start_there(stored.size(), 0), count_there(stored.size(), 1);
    for (std::size_t d = 0; d < shape.size(); ++d) begin[d] += start[d];
    for (std::size_t i = 0; i < stored.size(); ++i) {
      if (!(*dimensions)[i]) continue;
      start_there[i] = start[*(*dimensions)[i]];
      count_there[i] = count[*(*dimensions)[i]];
    }
    const std::uint64_t n = product(count);
    std::vector<std::byte> values(static_cast<std::size_t>(n) * size), others(values.size());
    read_elements(first_, memory_.get(), begin, count, values.data());
    read_elements(fragment, memory_.get(), start_there, count_there, others.data());
    context_.report_progress(n * size);
    const auto difference = std::mismatch(values.begin(), values.end(), others.begin());
    if (difference.first == values.end()) {
      elements_ += n;
      return true;
    }
    std::uint64_t number = static_cast<std::uint64_t>(difference.first - values.begin()) / size;
    elements_ += number;
    const std::size_t offset = static_cast<std::size_t>(number) * size;
    index position = begin;
    for (std::size_t d = count.size(); d-- > 0; number /= count[d]) position[d] += number % count[d];
    report_element(position, values.data() + offset, others.data() + offset);
    return false;
  });
}

void aggregation_comparison::report_element(const index& position, const void* value, const void* other) {
  f_.has_index = true;
  f_.index = position;
  f_.source_value = format_number_of(memory_.get(), value);
  f_.store_value = format_number_of(memory_.get(), other);
  add_reason(f_, verdict::differs, in_both("has another value at " + join(position) + ": " + f_.source_value, f_.store_value));
}

}  // namespace zarrbits::verification
