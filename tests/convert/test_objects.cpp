// SPDX-License-Identifier: BSL-1.0
#include "tests/convert/support.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <set>

using namespace support;

namespace {

handle group(hid_t where, const char* name) {
  return handle(H5Gcreate2(where, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "make a group");
}

const std::vector<std::int32_t> three = {1, 2, 3};

}  // namespace

BOOST_AUTO_TEST_CASE(links_are_recorded_and_each_object_is_stored_once) {
  conversion c;
  {
    const handle a = group(c.file(), "a"), b = group(c.file(), "b");
    c.dataset("a/x", H5T_STD_I32LE, {3}, three);
    check(H5Lcreate_hard(c.file(), "a/x", b, "again", H5P_DEFAULT, H5P_DEFAULT), "link");
    check(H5Lcreate_hard(c.file(), "a", b, "up", H5P_DEFAULT, H5P_DEFAULT), "link");
    check(H5Lcreate_hard(c.file(), "b", a, "loop", H5P_DEFAULT, H5P_DEFAULT), "link");
    check(H5Lcreate_soft("/a/x", b, "soft", H5P_DEFAULT, H5P_DEFAULT), "link");
    check(H5Lcreate_soft("nowhere", b, "dangling", H5P_DEFAULT, H5P_DEFAULT), "link");
    check(H5Lcreate_external("other.h5", "/y", b, "external", H5P_DEFAULT, H5P_DEFAULT), "link");
    const handle t(H5Tcopy(H5T_STD_I32LE), "type");
    check(H5Tcommit2(b, "type", t, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "commit");
  }
  const auto& r = c.run({.selection = {.links = zarrbits::link_policy::keep}});
  BOOST_TEST(!r.has_losses());
  std::map<std::string, int> seen;
  for (const auto& o : r.objects) ++seen[o.path + "@" + o.attribute];
  for (const auto& [name, times] : seen) BOOST_TEST(times == 1, name);
  std::size_t links = 0;
  for (const auto& o : r.objects) links += o.kind == zarrbits::object_kind::link;
  BOOST_TEST(links ==
             6U);  // again, soft, dangling, external; and of a and b, which hold each other, the second way to one and the loop
  BOOST_TEST(c.has("a/x/zarr.json"));
  json all;
  for (const char* node : {"a", "a/loop", "b"}) {
    if (c.has(std::string(node) + "/zarr.json")) all[node] = c.notes(node);
  }
  const std::string text = all.dump();
  for (const char* word :
       {"\"soft\"", "\"/a/x\"", "\"nowhere\"", "\"other.h5\"", "\"/y\"", "\"again\"", "\"named_types\"", "\"type\""}) {
    BOOST_TEST(text.find(word) != std::string::npos, word << " in " << text);
  }
}

BOOST_AUTO_TEST_CASE(hostile_names_stay_inside_the_store) {
  const std::vector<std::string> names = {
      "..", "...", "a\\b", "__x", "zarr.json", "%2E", "caf\xE9", "new\nline", std::string(400, 'n'), "c"};
  conversion c;
  for (const std::string& n : names) {
    const handle space(H5Screate(H5S_SCALAR), "space");
    const handle d(H5Dcreate_anon(c.file(), H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT), "dataset");
    check(H5Olink(d, c.file(), n.c_str(), H5P_DEFAULT, H5P_DEFAULT), "link");
  }
  const auto& r = c.run();
  BOOST_TEST(!r.has_losses());
  std::set<std::string> places;
  for (const auto& o : r.objects) {
    if (o.kind != zarrbits::object_kind::dataset) continue;
    const std::string place = o.zarr_path.empty() ? o.path : o.zarr_path;
    BOOST_TEST(places.insert(place).second);
    BOOST_TEST(c.has(place.substr(1) + "/zarr.json"), place);
    const auto inside =
        std::filesystem::weakly_canonical(c.store() + place).lexically_relative(std::filesystem::weakly_canonical(c.store()));
    BOOST_TEST((!inside.empty() && *inside.begin() != ".."), place);
  }
  BOOST_TEST(places.size() == names.size());
  BOOST_TEST(c.notes("")["names"]["a%5Cb"] == "a\\b");
  BOOST_TEST(c.entry("/caf%E9").zarr_path.empty());  // the report writes the byte as the store does
}

BOOST_AUTO_TEST_CASE(the_report_is_json_and_agrees_with_itself) {
  conversion c;
  { const handle g = group(c.file(), "g"); }
  c.dataset("x", H5T_STD_I32LE, {3}, three);
  c.run();
  const json r = json::parse(c.result().report_json());
  BOOST_TEST(r["version"] == 1);
  std::map<std::string, int> counts;
  for (const json& o : r["objects"]) ++counts[o["outcome"].get<std::string>()];
  for (const auto& [name, n] : r["summary"].items()) {
    if (name != "lossy") BOOST_TEST(n == counts[name], name);
  }
  BOOST_TEST(r["summary"]["raw"] == 1);
  BOOST_TEST(r["objects"].size() == 3U);
}

BOOST_AUTO_TEST_CASE(dimensions_without_a_scale_share_a_name_by_length_and_never_twice_in_an_array) {
  conversion c;
  { const handle g = group(c.file(), "g"); }
  c.dataset("a", H5T_STD_I32LE, {3, 4, 3});
  c.dataset("b", H5T_STD_I32LE, {4, 3});
  c.dataset("g/c", H5T_STD_I32LE, {4});
  c.run();
  const json a = c.meta("a")["dimension_names"], b = c.meta("b")["dimension_names"], g = c.meta("g/c")["dimension_names"];
  BOOST_TEST(a.size() == 3U);
  BOOST_TEST(a[0] != a[2]);
  BOOST_TEST(a[0] != a[1]);
  BOOST_TEST(b[0] == a[1]);
  BOOST_TEST(b[1] == a[0]);
  BOOST_TEST(g[0] != a[1]);  // another group
}

BOOST_AUTO_TEST_CASE(objects_that_cannot_be_opened_are_named) {
  conversion c;
  c.dataset("x", H5T_STD_I32LE, {3}, three);
  const std::string source = c.source();
  haddr_t address = 0;
  {
    const handle d(H5Dopen2(c.file(), "x", H5P_DEFAULT), "open");
    H5O_info_t info;
    check(H5Oget_info2(d, &info, H5O_INFO_BASIC), "info");
    address = info.addr;
  }
  c.close();
  {
    std::fstream f(source, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(static_cast<std::streamoff>(address));
    f.write("\x77\x77\x77\x77", 4);
  }
  BOOST_TEST(c.run().has_losses());
  BOOST_TEST((c.entry("/x").kind == zarrbits::object_kind::link));
  BOOST_TEST((c.entry("/x").outcome == zarrbits::outcome::mapped));  // the name is kept
  BOOST_TEST(c.entry("/x").lossy);
  BOOST_TEST(!c.entry("/x").reason.empty());
  BOOST_TEST(c.notes("")["links"]["x"]["kind"] == "broken");
  BOOST_TEST(!c.has("x/zarr.json"));
}
