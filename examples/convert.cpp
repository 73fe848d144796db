// SPDX-License-Identifier: BSL-1.0
//
// Converts an HDF5 file to a Zarr store, says what is not in the store, and compares the store with the file.
//
//   example_convert in.h5 out.zarr
//
#include <zarrbits/convert.hpp>
#include <zarrbits/verify.hpp>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "example_convert: pass an HDF5 file and the name of a new store\n";
    return 2;
  }
  try {
    const zarrbits::convert_result made = zarrbits::convert({.source = {.name = argv[1]}, .target = {.name = argv[2]}});
    for (const zarrbits::converted_object& o : made.objects) {
      if (o.outcome == zarrbits::outcome::skipped || o.lossy) std::cerr << o.path << ": " << o.reason << '\n';
    }
    std::cout << made.source_bytes << " bytes became " << made.store_bytes << " in " << made.store_objects << " files\n";

    const zarrbits::verify_result compared = zarrbits::verify({.source = argv[1], .store = argv[2]});
    for (const zarrbits::finding& f : compared.findings) std::cerr << f.path << ": " << f.reason << '\n';
    std::cout << compared.elements << " elements were compared\n";
    return compared.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
  } catch (const zarrbits::error& e) {
    std::cerr << "example_convert: " << e.what() << '\n';
    switch (e.kind()) {
      case zarrbits::errc::not_found: return 66;  // the codes of sysexits.h
      case zarrbits::errc::already_exists: return 73;
      case zarrbits::errc::busy:
      case zarrbits::errc::changed: return 75;  // worth another try
      default: return EXIT_FAILURE;
    }
  }
}
