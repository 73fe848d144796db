// SPDX-License-Identifier: BSL-1.0
//
// Names of remote files: secrets are not in them, and files stay apart.
//
#include "io/remote_url.hpp"

#include <zarrbits/source_name.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace zarrbits::io;

BOOST_AUTO_TEST_CASE(names_without_a_secret_stay) {
  for (const std::string name : {"in.h5", "s3://bucket/a?b", "gs://bucket/a?b", "https://host/a/b.nc",
                                 "http://host:8000/in.h5:/a/b", "a/https://host", "https://host", "https://host/x?~0123abcd"}) {
    BOOST_TEST(redact_url(name) == name);
    BOOST_TEST(display_url(name) == name);
  }
}

BOOST_AUTO_TEST_CASE(signatures_and_users_are_not_in_the_name) {
  for (const std::string url : {"https://host/x.nc?X-Amz-Signature=abc&X-Amz-Date=1", "https://host/x.nc?sig=abc&se=1&sp=r",
                                "https://host/x.nc?token=abc", "https://user:word@host/x.nc", "https://host/x.nc?",
                                "https://u@host/x.nc?Signature=a&Expires=1#part"}) {
    BOOST_TEST(redact_url(url) == "https://host/x.nc");
    BOOST_TEST(original_url("https://host/x.nc") == url.substr(0, url.find('#')));
  }
  // the last one that was given is the one that is asked for
  BOOST_TEST(redact_url("https://host/x.nc?sig=new") == "https://host/x.nc");
  BOOST_TEST(full_url("https://host/x.nc") == "https://host/x.nc?sig=new");
}

// They are refused, and the sentence that says so has no password.
BOOST_AUTO_TEST_CASE(users_of_other_services_are_masked) {
  for (const std::string url :
       {"s3://user:word@bucket/x.nc", "s3://user@bucket/x.nc", "s3://KEY:wo/rd@bucket/x.nc", "s3://a@b:wo/@rd@bucket/x.nc"}) {
    BOOST_TEST(redact_url(url) == "s3://***@bucket/x.nc");
    BOOST_TEST(display_url(url) == "s3://***@bucket/x.nc");
    BOOST_TEST(original_url("s3://***@bucket/x.nc") == "s3://***@bucket/x.nc");
  }
  for (const std::string scheme : {"ftp", "gs"})
    BOOST_TEST(redact_url(scheme + "://user:word@host/x.nc") == scheme + "://***@host/x.nc");
  // an object in a file, and keys with these characters
  for (const std::string name : {"s3://bucket/user@host/x", "s3://bucket/a:b@c", "s3://bucket:/a@b", "s3://bucket/x.h5:/a@b",
                                 "a/s3://u:w@b", "user@host:x", "://u:w@b"})
    BOOST_TEST(redact_url(name) == name);
}

BOOST_AUTO_TEST_CASE(files_that_a_query_tells_apart_have_different_names) {
  const std::string a = redact_url("https://host/get?file=a.nc&token=1"), b = redact_url("https://host/get?file=b.nc&token=1");
  BOOST_TEST(a != b);
  BOOST_TEST(a.starts_with("https://host/get?~"));
  BOOST_TEST(a.find("a.nc") == std::string::npos);
  BOOST_TEST(redact_url("https://host/get?token=2&file=a.nc") == a);  // of another day
  BOOST_TEST(full_url(a) == "https://host/get?token=2&file=a.nc");
  BOOST_TEST(redact_url(a) == a);
}

BOOST_AUTO_TEST_CASE(a_url_that_is_signed_again_is_the_same_file) {
  for (const std::string query : {
           "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=N&X-Amz-Date=N&X-Amz-Expires=N&X-Amz-SignedHeaders=host&"
           "X-Amz-Signature=N&x-id=GetObject",
           "AWSAccessKeyId=N&Signature=N&Expires=N",
           "AWSAccessKeyId=N&Signature=N&Expires=N&response-content-disposition=N",
           "X-Goog-Algorithm=G&X-Goog-Credential=N&X-Goog-Date=N&X-Goog-Expires=N&X-Goog-SignedHeaders=host&X-Goog-Signature=N",
           "GoogleAccessId=N&Expires=N&Signature=N",
           "Expires=N&KeyName=N&Signature=N",
           "URLPrefix=N&Expires=N&KeyName=N&Signature=N",
           "sv=2022&st=N&se=N&sr=b&sp=r&sig=N",
           "sv=2022&si=policy&sr=c&sig=N",
           "sv=2022&ss=b&srt=o&sp=r&se=N&st=N&spr=https&sip=N&sig=N",
           "skoid=N&sktid=N&skt=N&ske=N&sks=b&skv=N&sv=2022&se=N&sr=b&sp=r&saoid=N&scid=N&sig=N&rscd=N",
           "Expires=N&Signature=N&Key-Pair-Id=N",
           "Policy=N&Signature=N&Key-Pair-Id=N&Hash-Algorithm=N",
           "A-userid=N&Expires=N&Signature=N&Key-Pair-Id=N",
           "temp_url_sig=N&temp_url_expires=N",
           "temp_url_sig=N&temp_url_expires=N&temp_url_prefix=N&temp_url_ip_range=N&filename=N&inline",
           "OSSAccessKeyId=N&Expires=N&Signature=N&security-token=N",
           "x-oss-signature-version=N&x-oss-credential=N&x-oss-date=N&x-oss-expires=N&x-oss-signature=N&x-oss-security-token=N",
           "q-sign-algorithm=sha1&q-ak=N&q-sign-time=N&q-key-time=N&q-header-list=host&q-url-param-list=&q-signature=N&"
           "x-cos-security-token=N",
           "sign=N",
           "AccessKeyId=N&Expires=N&Signature=N&x-obs-security-token=N",
           "X-Tos-Algorithm=N&X-Tos-Credential=N&X-Tos-Date=N&X-Tos-Expires=N&X-Tos-Signature=N",
           "authorization=bce-auth-v1%2FN",
           "KSSAccessKeyId=N&Expires=N&Signature=N",
           "md5=N&expires=N",
           "hdnts=exp=N~hmac=N",
           "__token__=N",
           "wsSecret=N&wsTime=N",
           "auth_key=N",
           "tempauth=N",
           "authz=N",
           "token=N",
           "access_token=N",
           "token=N&expires=N",
       }) {
    const auto signed_by = [&](const std::string& value) {
      std::string text;
      for (std::size_t i = 0; i < query.size(); ++i) {
        const bool is_value = query[i] == 'N' && (i == 0 || query[i - 1] == '=' || query[i - 1] == 'F');
        text += is_value ? value : query.substr(i, 1);
      }
      return "https://host/x.nc?" + text;
    };
    BOOST_TEST(redact_url(signed_by("first")) == "https://host/x.nc", query);
    BOOST_TEST(redact_url(signed_by("second")) == "https://host/x.nc", query);
    BOOST_TEST(redact_url(signed_by("first") + "&file=a") != "https://host/x.nc", query);
    BOOST_TEST(!has_hashed_query(redact_url(signed_by("third"))));
  }
}

// Short names that have a meaning only next to a signature.
BOOST_AUTO_TEST_CASE(parameters_that_belong_to_no_signature_tell_files_apart) {
  for (const std::string name : {"se", "sp", "sr", "st", "si", "ss", "sv", "expires", "md5", "filename", "inline", "accesskeyid",
                                 "keyname", "persistentId", "id", "versionId", "file", "service"}) {
    const std::string a = redact_url("https://host/get?" + name + "=1"), b = redact_url("https://host/get?" + name + "=2");
    BOOST_TEST(a != b, name);
    BOOST_TEST(has_hashed_query(a), name);
  }
  BOOST_TEST(!has_hashed_query("s3://bucket/a?~0123abcd"));
  BOOST_TEST(!has_hashed_query("https://host/a?~0123abc"));
}

BOOST_AUTO_TEST_CASE(an_object_in_the_file_stays) {
  BOOST_TEST(redact_url("https://host/x.h5?sig=1:/a/b") == "https://host/x.h5:/a/b");
  BOOST_TEST(original_url("https://host/x.h5") == "https://host/x.h5?sig=1");
  const auto name = zarrbits::split_source("https://host:8000/x.h5?sig=1:/a/b/");
  BOOST_TEST(name.file == "https://host:8000/x.h5");
  BOOST_TEST(name.object == "/a/b");
  BOOST_TEST(zarrbits::split_source("https://host/x.h5:/").object.empty());
  // a URL in the query is no object
  BOOST_TEST(zarrbits::split_source("https://host/get?from=http://other/x.h5").object.empty());
}

BOOST_AUTO_TEST_CASE(requests_have_no_character_that_a_url_cannot_have) {
  BOOST_TEST(full_url("https://host/a b/\xC3\xA9\"%20") == "https://host/a%20b/%C3%A9%22%20");
}
