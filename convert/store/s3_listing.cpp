// SPDX-License-Identifier: BSL-1.0
#include "convert/store/s3_listing.hpp"

#include <zarrbits/convert.hpp>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include <cstdio>
#include <map>
#include <sstream>

namespace zarrbits::conversion {

namespace {

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() && std::sscanf(text.c_str() + i + 1, "%2x", &value) == 1) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

boost::property_tree::ptree parsed_xml(const std::string& xml) {
  try {
    boost::property_tree::ptree tree;
    std::istringstream in(xml);
    boost::property_tree::read_xml(in, tree);
    return tree;
  } catch (const boost::property_tree::xml_parser_error& e) {
    throw convert_error("the S3 server answers in a way that is not understood (" + e.message() + "); check --endpoint");
  }
}

std::vector<s3_entry> list_objects(s3_client& client, const std::string& start, bool folders, std::size_t most) {
  std::vector<s3_entry> entries;
  std::map<std::string, std::string> query = {{"encoding-type", "url"}, {"list-type", "2"}, {"prefix", start}};
  if (folders) query["delimiter"] = "/";
  if (most < 1000) query["max-keys"] = std::to_string(most);
  for (;;) {
    const auto answer = client.send({.query = query});
    if (answer.status == 404) {
      throw convert_error("there is no S3 bucket \"" + client.settings().bucket + "\" at " + client.settings().url + "; make it, or check --endpoint");
    }
    const auto tree = parsed_xml(answer.body);
    const auto result = tree.get_child_optional("ListBucketResult");
    if (!result) throw convert_error("the server at " + client.settings().url + " does not list as S3 does; check --endpoint");
    const bool encoded = result->get("EncodingType", std::string()) == "url";
    for (const auto& [name, value] : *result) {
      s3_entry e;
      if (name == "Contents") e = {value.get("Key", std::string()), value.get<std::uint64_t>("Size", 0)};
      else if (name == "CommonPrefixes") e.key = value.get("Prefix", std::string());
      else continue;
      if (encoded) e.key = percent_decoded(e.key);
      if (e.key.starts_with(start) && e.key.size() > start.size()) entries.push_back(std::move(e));
    }
    const std::string next = result->get("NextContinuationToken", std::string());
    if (result->get("IsTruncated", std::string()) != "true" || next.empty() || entries.size() >= most) return entries;
    query["continuation-token"] = next;
  }
}

}  // namespace zarrbits::conversion
