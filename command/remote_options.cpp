// SPDX-License-Identifier: BSL-1.0
#include "command/remote_options.hpp"

#include "command/command_line.hpp"
#include "io/remote_name.hpp"
#include "io/s3_access.hpp"

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
  app.add_option("--endpoint", remote.endpoint, "With s3://: the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)")
      ->type_name("URL")
      ->group(group);
  app.add_flag("--no-sign-request", remote.no_sign_request, "With s3://: read a public bucket, without credentials")
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
  app.add_option("--connections", remote.connections, "Requests at a time to the server of a source (16)")
      ->type_name("N")
      ->group(group);
}

void check_remote_options(remote_access& remote) {
  if (remote.connections < 1 || remote.connections > 256)
    throw usage_error("--connections is 1 to 256, not " + std::to_string(remote.connections));
  std::vector<std::string> all;
  for (const std::string& given : remote.headers) {
    if (!given.starts_with('@')) {
      all.push_back(given);
      continue;
    }
    std::ifstream file(given.substr(1));
    if (!file) throw usage_error("cannot read the file of headers " + quote(given.substr(1)) + ": " + std::strerror(errno));
    for (std::string line; std::getline(file, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) all.push_back(line);
    }
    if (file.bad()) throw usage_error("cannot read the file of headers " + quote(given.substr(1)));
  }
  remote.headers = std::move(all);
}

namespace {

void overwrite(char* old, std::string_view with) {
  const std::size_t size = std::strlen(old), n = std::min(size, with.size());
  std::memcpy(old, with.data(), n);
  std::memset(old + n, 0, size - n);
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
  for (std::string_view rest = text; !rest.empty();) {
    const std::string one(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals != std::string::npos && equals > 0) ::setenv(one.substr(0, equals).c_str(), one.c_str() + equals + 1, 1);
  }
}

}  // namespace

std::vector<std::string> without_header_values(int argc, const char* const* argv) {
  constexpr std::string_view header = "--header", hidden = "(hidden)";
  std::vector<std::string> all;
  for (int i = 0; i < argc; ++i) {
    std::string given = argv[i];
    if (i > 0 && argv[i - 1] == header && !given.starts_with('@')) given = hidden;
    else if (given.starts_with(header) && given.size() > header.size() && given[header.size()] == '=' &&
             given.compare(header.size() + 1, 1, "@") != 0)
      given = std::string(header) + "=" + std::string(hidden);
    all.push_back(std::move(given));
  }
  return all;
}

std::vector<std::string> take_arguments(int argc, char** argv) {
  if (const char* descriptor = std::getenv("ZARRBITS_SECRETS_FD")) take_secrets(descriptor);
  std::vector<std::string> all;
  for (int i = 0; i < argc; ++i) {
    std::string given = argv[i];
    constexpr std::string_view elsewhere = "@ZARRBITS_ARGUMENT_";
    if (given.starts_with(elsewhere)) {
      const char* value = std::getenv(given.c_str() + 1);
      given = io::public_name(value ? value : given);
      ::unsetenv(argv[i] + 1);
    }
    if (const std::string name = io::shown_url(given); name != given) {
      overwrite(argv[i], name);
      if (all.empty() || all.back() != "--endpoint") given = io::public_name(given);  // one with a user is refused later
    }
    all.push_back(std::move(given));
  }
  if (std::any_of(all.begin(), all.end(), [](const std::string& a) { return a.find("://") != a.npos || a.starts_with('@'); }))
    io::prevent_core_dumps();  // the keys of servers are in memory
  const std::vector<std::string> hidden = without_header_values(argc, argv);
  for (int i = 0; i < argc; ++i) {
    if (hidden[static_cast<std::size_t>(i)] != argv[i]) overwrite(argv[i], hidden[static_cast<std::size_t>(i)]);
  }
  return all;
}

}  // namespace zarrbits::command
