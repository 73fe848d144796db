// SPDX-License-Identifier: BSL-1.0
#include "command/location.hpp"

#include "command/command_line.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>

namespace zarrbits::command {

namespace {

// "%20" is a space; "?" and "#" are characters as others in the name of a file.
std::string decoded_path(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      result += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string path_of_file_url(const std::string& argument, std::string_view rest) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view host = rest.substr(0, slash);
  if (!host.empty() && host != "localhost")
    throw usage_error(quote(argument) + " is a file of the machine " + quote(std::string(host)) +
                      "; use the path that it has here");
  return decoded_path(rest.substr(slash));
}

}  // namespace

std::string location_name(const std::string& argument) {
  const std::size_t end = argument.find("://");
  const auto is_of_scheme = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '.' || c == '-';
  };
  std::error_code e;
  if (end == std::string::npos || end < 2 || !std::isalpha(static_cast<unsigned char>(argument[0])) ||
      !std::all_of(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), is_of_scheme) ||
      std::filesystem::exists(argument, e))
    return argument;
  std::string scheme = argument.substr(0, end);
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  const std::string rest = argument.substr(end + 3);
  if (scheme == "file") return path_of_file_url(argument, rest);
  // s3a and s3n are Hadoop's names, gcs is fsspec's
  static const std::map<std::string, std::string> reached = {{"s3", "s3"},  {"s3a", "s3"},    {"s3n", "s3"},     {"gs", "gs"},
                                                             {"gcs", "gs"}, {"http", "http"}, {"https", "https"}};
  static constexpr std::string_view azure[] = {"az", "abfs", "abfss", "adl"};
  if (const auto known = reached.find(scheme); known != reached.end()) return known->second + "://" + rest;
  if (std::find(std::begin(azure), std::end(azure), scheme) != std::end(azure)) {
    throw usage_error("Azure is not reached as \"" + scheme +
                      "://\"; name a source by its https:// URL, signed if need be, and write a store to a local folder, which " +
                      "other programs copy");
  }
  throw usage_error("\"" + scheme +
                    "://\" is not a scheme that zarrbits knows; use a path, s3://BUCKET/KEY, gs://BUCKET/KEY or an https:// URL");
}

std::vector<std::string> with_location_names(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    // these are requested elsewhere, or by other programs
    const std::string& previous = arguments[i - 1];
    if (previous != "--base" && previous != "--endpoint" && previous != "--header") arguments[i] = location_name(arguments[i]);
  }
  return arguments;
}

}  // namespace zarrbits::command
