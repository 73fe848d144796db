// SPDX-License-Identifier: BSL-1.0
//
// Resolves the references that an object of the source holds to paths of objects.
//
//   file_references references(source, dataset);
//   const text::json path = references.object(value);
//
#ifndef ZARRBITS_HDF5_FILE_REFERENCES_HPP
#define ZARRBITS_HDF5_FILE_REFERENCES_HPP

#include "hdf5/source_file.hpp"

namespace zarrbits::hdf5 {

class file_references final : public reference_reader {
 public:
  // `object`: an open object that holds the references. They are addresses in its file.
  file_references(const source_file& source, hid_t object) : source_(source), object_(object) {}
  text::json object(const void* reference) override;
  text::json region(const void* reference) override;

 private:
  const source_file& source_;
  hid_t object_;
};

// Adds what a region reference selects to the JSON of its target; false if that cannot be read.
bool add_selection(text::json& target, hid_t holder, const void* reference);

}  // namespace zarrbits::hdf5

#endif
