// SPDX-License-Identifier: BSL-1.0
// The converter from outside: it links with all that it needs, and errors come as its own exception, with a
// code and a place.
#include <zarrbits/convert.hpp>
#include <zarrbits/inspect.hpp>
#include <zarrbits/verify.hpp>

#include <cstdlib>
#include <iostream>

int main() {
  zarrbits::convert_options options;
  options.source.name = "there-is-no-such-file.h5";
  options.target.name = "never-made.zarr";
  try {
    (void)zarrbits::convert(options);
    std::cerr << "a file that does not exist was converted\n";
    return EXIT_FAILURE;
  } catch (const zarrbits::error& e) {
    if (std::string(e.what()).find(options.source.name) == std::string::npos) return EXIT_FAILURE;
    if (e.kind() != zarrbits::errc::not_found || e.place().file != options.source.name) return EXIT_FAILURE;
  }
  try {
    (void)zarrbits::verify({.source = options.source.name, .store = options.target.name});
    std::cerr << "a store that does not exist was verified\n";
    return EXIT_FAILURE;
  } catch (const zarrbits::error& e) {
    if (std::string(e.what()).find(options.target.name) == std::string::npos) return EXIT_FAILURE;
    if (e.kind() != zarrbits::errc::not_found || e.place().file != options.target.name) return EXIT_FAILURE;
  }
  try {
    (void)zarrbits::inspect({.name = options.source.name});
  } catch (const zarrbits::error& e) {
    return std::string(e.what()).find(options.source.name) != std::string::npos ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  std::cerr << "a file that does not exist was inspected\n";
  return EXIT_FAILURE;
}
