// SPDX-License-Identifier: BSL-1.0
//
// What is in an S3 bucket.
//
#ifndef ZARRBITS_CONVERT_STORE_S3_LISTING_HPP
#define ZARRBITS_CONVERT_STORE_S3_LISTING_HPP

#include "convert/store/s3_client.hpp"

#include <boost/property_tree/ptree_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// Throws convert_error where a server's answer is no XML.
boost::property_tree::ptree parsed_xml(const std::string& xml);

struct s3_entry {
  std::string key;  // whole, with the prefix
  std::uint64_t size = 0;
};

constexpr std::size_t all_of_them = ~std::size_t{0};

// Objects whose whole keys begin with `start`; with `folders`, those in deeper folders stand as one that ends in "/". At least `most`, where
// there are so many.
std::vector<s3_entry> list_objects(s3_client& client, const std::string& start, bool folders, std::size_t most);

}  // namespace zarrbits::conversion

#endif
