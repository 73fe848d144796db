// SPDX-License-Identifier: BSL-1.0
//
// Compares a dataset with an aggregation variable of another file (CF-1.13, section 2.8): follows its attributes to the
// fragments, by none of the code that writes such variables, and compares each value of these, as it is stored.
//
//   aggregation_comparison c(first, second, context, options, f);
//   c.run();
//
#ifndef ZARRBITS_VERIFY_COMPARE_AGGREGATION_HPP
#define ZARRBITS_VERIFY_COMPARE_AGGREGATION_HPP

#include "verify/hdf5_side.hpp"

#include <cstdint>
#include <hdf5.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::verification {

class aggregation_comparison {
 public:
  // `file`: the name of the second file, which has the aggregation variable. What it finds goes to `f`.
  aggregation_comparison(hid_t first, hid_t second, const hdf5_context& context, const verify_options& options,
                         const std::string& file, finding& f)
      : first_(first), second_(second), context_(context), options_(options), file_(file), f_(f) {}

  void run();
  // Elements that are equal.
  std::uint64_t elements() const noexcept { return elements_; }
  // The variables of the second file that its attributes name.
  const std::set<std::string>& features() const noexcept { return features_; }
  // Attributes that an aggregation variable does not share with what it stands for.
  static std::set<std::string> unshared_attributes(hid_t first);

 private:
  using index = std::vector<std::uint64_t>;

  void compare();
  bool compare_types();
  void read_features();
  hdf5::handle open_in_scope(const std::string& name) const;
  bool compare_fragment(const index& position);
  void open_file(const std::string& uri);
  bool compare_blocks(hid_t fragment, const index& first, const index& shape, const index& stored);
  void report_element(const index& position, const void* value, const void* other);

  hid_t first_, second_;
  const hdf5_context& context_;
  const verify_options& options_;
  const std::string& file_;
  finding& f_;
  index dims_;
  hdf5::handle memory_ = {};
  std::vector<index> lengths_ = {};  // of the fragments along each dimension
  std::vector<std::string> uris_ = {}, identifiers_ = {};
  std::set<std::string> features_ = {};
  std::string opened_name_ = {};
  std::unique_ptr<const hdf5::opened_source> opened_ = nullptr;
  std::uint64_t elements_ = 0;
};

}  // namespace zarrbits::verification

#endif
