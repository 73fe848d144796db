// SPDX-License-Identifier: BSL-1.0
#include "remote/aws_config.hpp"

#include "io/files.hpp"
#include "text/node_names.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace zarrbits::remote {

namespace {

constexpr std::size_t max_config_bytes = 1 << 20;

std::string_view trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

// "lab" of "[profile lab]" or "[profile "lab"]"; in the credentials file, of "[lab]". Sections of other kinds keep their whole
// name.
std::string profile_of(std::string_view title, bool is_config) {
  constexpr std::string_view kind = "profile";
  if (!is_config || !title.starts_with(kind) || title.size() == kind.size()) return std::string(title);
  if (title[kind.size()] != ' ' && title[kind.size()] != '\t') return std::string(title);
  title = trimmed(title.substr(kind.size()));
  if (title.size() > 1 && (title.front() == '"' || title.front() == '\'') && title.front() == title.back())
    title = title.substr(1, title.size() - 2);
  return std::string(title);
}

// "[section]" and "name = value" lines. Indented lines below a name without a value belong to it: "endpoint_url" below "s3" is
// "s3.endpoint_url".
std::map<std::string, aws_config::section> parse(std::string_view file, bool is_config) {
  std::map<std::string, aws_config::section> sections;
  aws_config::section* current = nullptr;
  std::string parent;
  while (!file.empty()) {
    const std::string_view line = file.substr(0, file.find('\n')), text = trimmed(line);
    file.remove_prefix(std::min(file.size(), line.size() + 1));
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      const std::string_view title = trimmed(text.substr(1, text.find(']') - 1));
      // in the configuration, only "default" may stand without "profile"; other kinds, as "services x", keep their brackets
      const std::string name = profile_of(title, is_config);
      current = &sections[is_config && name == title && title != "default" ? "[" + name + "]" : name];
      parent.clear();
      continue;
    }
    const auto equals = text.find('=');
    if (!current || equals == std::string_view::npos) continue;
    const std::string name = text::case_fold(trimmed(text.substr(0, equals)));
    const std::string_view value = trimmed(text.substr(equals + 1));
    if (line.front() != ' ' && line.front() != '\t') {
      parent = value.empty() ? name + "." : "";
      (*current)[name] = value;
    } else if (!parent.empty()) {
      (*current)[parent + name] = value;
    }
  }
  return sections;
}

std::string file_name(const char* variable, const char* in_home) {
  const std::string named = environment_value(variable);
  if (named.empty()) return environment_value("HOME") + in_home;
  return named == "~" || named.starts_with("~/") ? environment_value("HOME") + named.substr(1) : named;
}

const aws_config::section& section_of(const std::map<std::string, aws_config::section>& file, const std::string& profile) {
  static const aws_config::section empty;
  const auto it = file.find(profile);
  return it == file.end() ? empty : it->second;
}

}  // namespace

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_true(const std::string& value) {
  const std::string text = text::case_fold(value);
  return text == "true" || text == "yes" || text == "on" || text == "1";
}

bool is_true_setting(const std::string& value) { return text::case_fold(value) == "true"; }

std::string ca_file_of(const remote_access& remote, const std::string& in_profile) {
  for (const std::string& name : {remote.ca_file, environment_value("AWS_CA_BUNDLE"), in_profile}) {
    if (!name.empty()) return name;
  }
  return environment_value("SSL_CERT_FILE");
}

std::optional<std::string> read_small_file(const std::string& path, std::size_t max_bytes) {
  const io::file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::string text(max_bytes, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  return text;
}

aws_config::aws_config()
    : credentials_(parse(
          read_small_file(file_name("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials"), max_config_bytes).value_or(""), false)),
      config_(parse(read_small_file(file_name("AWS_CONFIG_FILE", "/.aws/config"), max_config_bytes).value_or(""), true)) {}

bool aws_config::contains(const std::string& profile) const {
  return credentials_.contains(profile) || config_.contains(profile);
}

std::string aws_config::value(const std::string& profile, const std::string& name) const {
  for (const section* s : {&in_credentials(profile), &in_config(profile)}) {
    if (const auto it = s->find(name); it != s->end() && !it->second.empty()) return it->second;
  }
  return {};
}

std::string aws_config::value_in(const std::string& kind, const std::string& title, const std::string& name) const {
  const section& s = in_config("[" + kind + " " + title + "]");
  const auto it = s.find(name);
  return title.empty() || it == s.end() ? "" : it->second;
}

const aws_config::section& aws_config::in_credentials(const std::string& profile) const {
  return section_of(credentials_, profile);
}

const aws_config::section& aws_config::in_config(const std::string& profile) const { return section_of(config_, profile); }

}  // namespace zarrbits::remote
