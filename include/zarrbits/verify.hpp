// SPDX-License-Identifier: BSL-1.0
//
// Does a Zarr v3 store hold what an HDF5 file holds? By a path that shares nothing with what makes chunks: values come from
// H5Dread on one side, from zarr.json and the chunks on the other, decoded by a reader of their own.
//
//   const zarrbits::verify_result r = zarrbits::verify({.source = "in.h5", .store = "out.zarr"});
//   if (r.failed()) for (const auto& f : r.findings) std::cout << f.path << ": " << f.reason << '\n';
//
// Compared are the hierarchy, the shape, data type and fill value of every dataset, every element, every attribute, the names of
// dimensions, links and named types. What the store says of itself is no reason to leave anything out: a selection is the
// caller's, and what only the store says was not wanted is `unchecked`.
//
// Links as zarrbits/convert.hpp does, and is called from one thread at a time for the same reason.
//
#ifndef ZARRBITS_VERIFY_HPP
#define ZARRBITS_VERIFY_HPP

#include <zarrbits/convert.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits {

// The source or the store cannot be opened at all, or an option means nothing. what() is a sentence.
struct verify_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// In the order of severity: of several verdicts on one dataset, the last one counts.
enum class verdict {
  equal,       // all that is compared is the same
  unchecked,   // nothing was found to differ, but something could not be compared
  unreadable,  // libhdf5 cannot read it
  missing,     // not in the store
  differs,     // `reason` says what does
};
inline constexpr std::size_t verdict_count = 5;  // how many there are
// Its name, as `zarrbits verify` prints it.
const char* to_string(verdict v) noexcept;

// One object of the source, or something that belongs to it.
struct finding {
  std::string path;                  // in the source
  std::string store_path;            // in the store; empty where it is missing
  std::string kind;                  // "group", "dataset", "attribute", "dimension names", "link", "named type", "note"
  std::string attribute;             // its name, of an attribute; "zarrbits.maxshape", of a note
  verdict outcome = verdict::equal;  // what was found
  std::string reason;                // a sentence; empty where all is equal
  bool has_index = false;            // outcome `differs` at the element `index`
  std::vector<std::uint64_t> index;  // of that element
  std::string field;                 // of a compound; where in a list of an attribute
  std::string source_value;          // of that element or attribute, in the source
  std::string store_value;           // and in the store
};

// What a node of the store has and the object of the source has not.
struct extra {
  std::string store_path;  // of the node
  std::string kind;        // "attribute", "link", "named type", "note"
  std::string name;        // its name
};

// What was compared, and what was found.
struct verify_result {
  std::vector<finding> findings;                               // all that is not equal
  std::array<std::uint64_t, verdict_count> groups{};           // how many, by verdict
  std::array<std::uint64_t, verdict_count> datasets{};         // how many, by verdict
  std::array<std::uint64_t, verdict_count> attributes{};       // how many, by verdict
  std::array<std::uint64_t, verdict_count> dimension_names{};  // of how many arrays, by verdict
  std::array<std::uint64_t, verdict_count> links{};            // how many that are no nodes of the store, by verdict
  std::array<std::uint64_t, verdict_count> named_types{};      // how many, by verdict
  std::array<std::uint64_t, verdict_count> notes{};  // what the attribute "zarrbits" says of types, limits and names, by verdict
  std::uint64_t elements = 0;                        // compared
  std::uint64_t elements_unchecked = 0;              // of datasets that are `unchecked`
  std::vector<std::string> only_in_store;            // nodes that the source does not have
  std::vector<extra> extras;                         // of nodes that it has

  // True where something differs, is missing or cannot be read.
  bool failed() const noexcept;
  // True where something could not be compared, or the store has more than the source.
  bool incomplete() const noexcept;
};

// What to compare.
struct verify_options {
  std::string source = {};  // an HDF5 file, or that one of its objects which is the store's root: "in.h5:/a/b"
  // As convert_options has it: each dataset of each file is compared with its place in the array; numbers that were put in the
  // terms of the first file by what they mean; all but values with the first file alone.
  std::optional<concatenation> concat = {};
  std::string store = {};     // a directory, a file "x.zip", or "s3://bucket/prefix"
  std::string endpoint = {};  // URL of an S3 server; "" asks the environment (AWS_ENDPOINT_URL), and is Amazon's otherwise
  std::vector<std::string> include = {};   // patterns of what the store is to hold, as convert_options has them
  std::vector<std::string> exclude = {};   // and of what it need not hold
  std::vector<std::string> external = {};  // folders in which the source's other files may be read, as convert_options has them
  bool lock = true;                        // of the source, as convert_options has it
  // What convert was asked for: with copy, what a link leads to is missing where only a note of it is in the store; with keep the
  // note is enough. Not set: where convert copies it of itself and the store has a note alone, it is unchecked.
  std::optional<link_policy> links = {};
  std::function<void(const std::string& path)> progress = {};     // the object at hand; again and again, as it goes on
  std::function<void(const std::string& sentence)> warning = {};  // a promise that this run cannot keep
};

// Throws verify_error where an option means nothing. verify() does so before anything else.
void check_options(const verify_options& options);

// True where there is a store that no conversion has left unfinished. What is in it is not looked at.
[[nodiscard]] bool is_whole_store(const verify_options& options);

// Compares. Throws verify_error; what is wrong with one object is in the result.
[[nodiscard]] verify_result verify(const verify_options& options);

}  // namespace zarrbits

#endif
