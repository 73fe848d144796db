// SPDX-License-Identifier: BSL-1.0
#include "command/remote_options.hpp"

#include "command/command_line.hpp"
#include "command/location.hpp"
#include "io/remote_url.hpp"
#include "remote/s3_access.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <unistd.h>

namespace zarrbits::command {

void add_remote_options(CLI::App& app, remote_access& remote, const std::string& group) {
  app.add_option("--endpoint", remote.endpoint,
                 "With s3://, gs:// or az://: the server, if it is not Amazon's, Google's or Azure's (or set AWS_ENDPOINT_URL)")
      ->type_name("URL")
      ->group(group);
  app.add_flag("--no-sign-request", remote.no_sign_request,
               "With s3://, gs:// or az://: read a public bucket, without credentials")
      ->group(group);
  app.add_flag("--request-payer", remote.request_payer,
               "With s3:// or gs://: pay for the requests, as some buckets demand (or set AWS_REQUEST_PAYER or GS_USER_PROJECT)")
      ->group(group);
  app.add_option("--aws-profile", remote.profile, "With s3://: use this profile of ~/.aws (or set AWS_PROFILE)")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--header", remote.headers,
                 "With https://: send this header, as 'Authorization: Bearer TOKEN', to the server of the source alone; better "
                 "from a file, as @FILE with one on each line (or set ZARRBITS_HEADERS). Can be repeated")
      ->type_name("NAME:VALUE|@FILE")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--ca-file", remote.ca_file, "Trust the certificates in this file (or set AWS_CA_BUNDLE or SSL_CERT_FILE)")
      ->type_name("FILE.pem")
      ->group(group);
  app.add_flag("--follow-private", remote.follow_private,
               "With https://: follow redirects to addresses of this machine and of private networks")
      ->group(group);
  app.add_flag("--no-etag", remote.no_etag,
               "With https://: compare the length of a file, and not its ETag or time, which differ between mirrors")
      ->group(group);
  app.add_option("--connections", remote.connections, "Requests at a time to the server of a source (16)")
      ->type_name("N")
      ->group(group);
}

void check_remote_options(remote_access& remote) {
  if (remote.connections < 1 || remote.connections > 256)
    throw usage_error("--connections is 1 to 256, not " + std::to_string(remote.connections));
  std::vector<std::string> headers;
  for (const std::string& header : remote.headers) {
    if (!header.starts_with('@')) {
      headers.push_back(header);
      continue;
    }
    std::ifstream file(header.substr(1));
    if (!file) throw usage_error("cannot read the file of headers " + quote(header.substr(1)) + ": " + std::strerror(errno));
    for (std::string line; std::getline(file, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) headers.push_back(line);
    }
    if (file.bad()) throw usage_error("cannot read the file of headers " + quote(header.substr(1)));
  }
  remote.headers = std::move(headers);
}

namespace {

void overwrite(char* target, std::string_view replacement) {
  const std::size_t size = std::strlen(target), n = std::min(size, replacement.size());
  std::memcpy(target, replacement.data(), n);
  std::memset(target + n, 0, size - n);
}

// "NAME=VALUE" for each variable, each ended by a zero byte.
void take_secrets(const char* descriptor) {
  const int fd = std::atoi(descriptor);
  std::string text;
  char piece[4096];
  for (ssize_t n = 0; text.size() < (1U << 20); text.append(piece, static_cast<std::size_t>(n))) {
    n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) n = 0;
    else if (n <= 0) break;
  }
  ::close(fd);
  ::unsetenv("ZARRBITS_SECRETS_FD");
  for (std::string_view remaining = text; !remaining.empty();) {
    const std::string one(remaining.substr(0, remaining.find('\0')));
    remaining.remove_prefix(std::min(remaining.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos && equals > 0) ::setenv(one.substr(0, equals).c_str(), one.c_str() + equals + 1, 1);
  }
}

}  // namespace

std::vector<std::string> without_header_values(int argc, const char* const* argv) {
  constexpr std::string_view header = "--header", hidden = "(hidden)";
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    std::string argument = argv[i];
    if (i > 0 && argv[i - 1] == header && !argument.starts_with('@')) argument = hidden;
    else if (argument.starts_with(header) && argument.size() > header.size() && argument[header.size()] == '=' &&
             argument.compare(header.size() + 1, 1, "@") != 0)
      argument = std::string(header) + "=" + std::string(hidden);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

std::vector<std::string> take_arguments(int argc, char** argv) {
  if (const char* descriptor = std::getenv("ZARRBITS_SECRETS_FD")) take_secrets(descriptor);
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    std::string argument = argv[i];
    constexpr std::string_view elsewhere = "@ZARRBITS_ARGUMENT_";
    if (argument.starts_with(elsewhere)) {
      const char* value = std::getenv(argument.c_str() + 1);
      argument = io::redact_url(value ? value : argument);
      ::unsetenv(argv[i] + 1);
    }
    // "--option=URL" has a URL, too
    const std::size_t value_begin = argument.starts_with("--") ? argument.find('=') + 1 : 0;
    const bool is_place = value_begin == 0 && (arguments.empty() || !takes_other_url(arguments.back()));
    if (is_place) argument = with_known_scheme(argument);
    const std::string option = argument.substr(0, value_begin), value = argument.substr(value_begin);
    if (const std::string name = io::display_url(value); name != value) {
      overwrite(argv[i], option + name);
      const bool is_endpoint = option.empty() ? !arguments.empty() && arguments.back() == "--endpoint" : option == "--endpoint=";
      if (!is_endpoint) argument = option + io::redact_url(value);  // an endpoint with a user is refused later
    }
    arguments.push_back(std::move(argument));
  }
  if (std::any_of(arguments.begin(), arguments.end(),
                  [](const std::string& a) { return a.find("://") != a.npos || a.starts_with('@'); }))
    remote::prevent_core_dumps();  // the keys of servers are in memory
  const std::vector<std::string> hidden = without_header_values(argc, argv);
  for (int i = 0; i < argc; ++i) {
    if (hidden[static_cast<std::size_t>(i)] != argv[i]) overwrite(argv[i], hidden[static_cast<std::size_t>(i)]);
  }
  return arguments;
}

}  // namespace zarrbits::command
