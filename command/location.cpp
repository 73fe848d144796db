// SPDX-License-Identifier: BSL-1.0
#include "command/location.hpp"

#include "command/command_line.hpp"
#include "io/remote_url.hpp"
#include "text/percent.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

namespace zarrbits::command {

namespace {

struct url {
  std::string scheme;  // in lower case
  std::string rest;    // behind "://"
};

// Empty for a name without a scheme, and for that of an existing file.
std::optional<url> split_scheme(const std::string& name) {
  const std::size_t end = name.find("://");
  const auto is_of_scheme = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '.' || c == '-';
  };
  std::error_code e;
  if (end == std::string::npos || end < 2 || !std::isalpha(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end), is_of_scheme) ||
      std::filesystem::exists(name, e))
    return {};
  url u{name.substr(0, end), name.substr(end + 3)};
  std::transform(u.scheme.begin(), u.scheme.end(), u.scheme.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return u;
}

// "%20" is a space; "?" and "#" are characters as others in the name of a file.
std::string decoded_path(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int value = text::percent_escape_at(text, i);
    result += value < 0 ? text[i] : static_cast<char>(value);
    if (value >= 0) i += 2;
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

std::string with_known_scheme(const std::string& name) {
  // s3a and s3n are Hadoop's names, gcs is fsspec's, azure is obstore's
  static const std::map<std::string, std::string> reached = {
      {"s3", "s3"},    {"s3a", "s3"},    {"s3n", "s3"},      {"gs", "gs"},     {"gcs", "gs"},     {"az", "az"},
      {"azure", "az"}, {"abfs", "abfs"}, {"abfss", "abfss"}, {"http", "http"}, {"https", "https"}};
  const auto parts = split_scheme(name);
  const auto known = parts ? reached.find(parts->scheme) : reached.end();
  return known == reached.end() ? name : known->second + "://" + parts->rest;
}

std::string location_name(const std::string& argument) {
  const auto parts = split_scheme(argument);
  if (!parts) return argument;
  if (parts->scheme == "file") return path_of_file_url(argument, parts->rest);
  if (const std::string name = with_known_scheme(argument); io::is_remote(name)) return name;
  throw usage_error("\"" + parts->scheme +
                    "://\" is not a scheme that zarrbits knows; use a path, s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY "
                    "or an https:// URL");
}

bool takes_other_url(std::string_view option) { return option == "--base" || option == "--endpoint" || option == "--header"; }

std::vector<std::string> with_location_names(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!takes_other_url(arguments[i - 1])) arguments[i] = location_name(arguments[i]);
  }
  return arguments;
}

}  // namespace zarrbits::command
