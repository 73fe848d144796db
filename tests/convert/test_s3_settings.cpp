// SPDX-License-Identifier: BSL-1.0
//
// Variables and profile files mean what they mean to botocore: tests/golden/s3_settings.json has the URL, the region and the key
// that it uses in each case.
//
#include "remote/s3_credentials.hpp"
#include "remote/s3_settings.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// As in s3_settings.py.
void set_environment(const nlohmann::json& document, const nlohmann::json& one, const fs::path& home) {
  std::vector<std::string> old;
  for (char** entry = environ; *entry; ++entry) {
    if (const std::string text = *entry; text.starts_with("AWS_")) old.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : old) ::unsetenv(name.c_str());
  const bool in_home = one.value("home", false);
  const std::string config = in_home ? ".aws/config" : "c.ini", credentials = in_home ? ".aws/credentials" : "k.ini";
  fs::create_directories(home / ".aws");
  write(home / config, one.value("config", ""));
  write(home / credentials, one.value("credentials", ""));
  std::map<std::string, std::string> variables = document["environment"];
  if (one.contains("env")) {
    for (const auto& [name, value] : one["env"].items()) variables[name] = value.get<std::string>();
  }
  variables["HOME"] = home;
  if (!in_home) {
    const std::string folder = one.value("tilde", false) ? "~" : home.string();
    variables["AWS_CONFIG_FILE"] = folder + "/" + config;
    variables["AWS_SHARED_CREDENTIALS_FILE"] = folder + "/" + credentials;
  }
  for (const auto& [name, value] : variables) {
    if (!value.empty()) ::setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(settings_are_those_of_botocore) {
  const char* const folder_of_tests = std::getenv("ZARRBITS_TEST_DATA");
  BOOST_TEST_REQUIRE(folder_of_tests);
  std::ifstream file(std::string(folder_of_tests) + "/golden/s3_settings.json");
  const auto document = nlohmann::json::parse(file);
  BOOST_TEST_REQUIRE(document["cases"].size() >= 60U);
  const fs::path folder = fs::temp_directory_path() / ("zarrbits-settings-" + std::to_string(::getpid()));
  int number = 0;
  for (const auto& one : document["cases"]) {
    BOOST_TEST_CONTEXT(one["name"].get<std::string>()) {
      const fs::path home = folder / std::to_string(number++);  // what was found is shared by all that have the same settings
      fs::create_directories(home);
      set_environment(document, one, home);
      const zarrbits::remote_access remote{.endpoint = one.value("endpoint", ""), .profile = one.value("profile", "")};
      const auto settings = zarrbits::remote::read_s3_settings("s3://" + one.value("bucket", "bucket") + "/a/key", remote);
      const auto& expected = one["expected"];
      BOOST_TEST(settings.url + "/a/key" == expected["url"].get<std::string>());
      BOOST_TEST(settings.region == expected["region"].get<std::string>());
      BOOST_TEST(settings.credentials->current().access_key == expected["key"].get<std::string>());
    }
  }
  fs::remove_all(folder);
}
