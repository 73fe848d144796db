// SPDX-License-Identifier: BSL-1.0
//
// libFuzzer over what users write: command lines of convert, plan and finalize, with the patterns, compressions and shapes in
// them; and the settings of S3. Nothing is converted. What is refused is a usage_error or a zarrbits::error with a sentence.
//
// An input begins with a letter: c, p or f (a command line, an argument in each line), s (a profile file of S3, the first line is
// the target).
#include "fuzz.hpp"

#include "command/command_line.hpp"
#include "command/convert_arguments.hpp"
#include "text/selection.hpp"
#ifdef ZARRBITS_WITH_S3
#include "remote/s3_settings.hpp"
#endif

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace zarrbits;

namespace {

void command_line(command::convert_kind kind, std::string_view text) {
  std::vector<std::string> words = {"convert"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    words.emplace_back(text.substr(0, end).substr(0, text.substr(0, end).find('\0')));
    text.remove_prefix(std::min(text.size(), end + 1));
    if (words.back().starts_with("--report")) return;  // whether it can be written is tried
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  command::convert_arguments arguments;
  if (command::parse_convert_arguments(arguments, kind, static_cast<int>(words.size()), argv.data())) return;
  const convert_options& options = arguments.options;
  check_options(options);  // accepted once, accepted again
  text::selection wanted(options.selection.include, options.selection.exclude);
  for (const char* path : {"/", "/a", "/a/b.raw", "/g1/g2/temperature [K]"}) (void)wanted.matches(path);
  split_source(options.source.name);
}

#ifdef ZARRBITS_WITH_S3
void s3_settings(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view file = text.substr(std::min(text.size(), end + 1));
  const int descriptor = ::memfd_create("profile", MFD_CLOEXEC);
  if (descriptor < 0 || ::write(descriptor, file.data(), file.size()) != static_cast<ssize_t>(file.size())) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  for (const char* name : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) ::setenv(name, path.c_str(), 1);
  try {
    const auto s = remote::read_s3_settings("s3://" + std::string(text.substr(0, end)), {});
    fuzz::require(s.credentials && !s.bucket.empty() && !s.region.empty() && !s.url.empty(), "settings are whole");
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
}
#endif

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::cout.setstate(std::ios::failbit);  // --help
  for (const char* name :
       {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"}) {
    ::unsetenv(name);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 'c': command_line(command::convert_kind::convert, text); break;
      case 'p': command_line(command::convert_kind::plan, text); break;
      case 'f': command_line(command::convert_kind::finalize, text); break;
#ifdef ZARRBITS_WITH_S3
      case 's': s3_settings(text); break;
#endif
      default: break;
    }
  } catch (const command::usage_error& e) {
    fuzz::require(*e.what() != 0, "what is refused has a sentence");
  } catch (const zarrbits::error& e) {
    fuzz::require(*e.what() != 0, "what is refused has a sentence");
  }
  return 0;
}
