// SPDX-License-Identifier: BSL-1.0
//
// What streams throw.
//
//   try {
//     out.reset();
//   } catch (const zarrbits::iostreams::codec_error& e) {
//     std::cerr << e.what() << '\n';   // packbits: element 6 of uint16 is 0x1000, which does not fit in bits 0 to 11; ...
//     if (e.code() == zarrbits::errc::value_does_not_fit) std::cerr << e.failure().element << '\n';
//   }
//
#ifndef ZARRBITS_IOSTREAMS_CODEC_ERROR_HPP
#define ZARRBITS_IOSTREAMS_CODEC_ERROR_HPP

#include <zarrbits/detail/linkage.hpp>
#include <zarrbits/error.hpp>

#include <ios>
#include <memory>
#include <string>

namespace zarrbits::iostreams {

// Every error of zarrbits in a stream, or when a filter is made. what() is a complete sentence, code() an error_code that
// compares with zarrbits::errc, failure() has the element and the value.
class codec_error : public std::ios_base::failure {
 public:
  // With the sentence of codec::explain().
  codec_error(const zarrbits::failure& f, const std::string& sentence);

  // The sentence.
  const char* what() const noexcept override;
  // The refused element, and its value.
  const zarrbits::failure& failure() const noexcept { return failure_; }

 private:
  zarrbits::failure failure_;
  std::shared_ptr<const std::string> sentence_;  // shared, because copying an exception must not throw
};

}  // namespace zarrbits::iostreams

#endif
