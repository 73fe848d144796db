// SPDX-License-Identifier: BSL-1.0
//
// Units handed out one by one, from C++, and what inspect(), report_filters() and suggest_bits() say of a file.
//
#include "convert/from_hdf5/final_metadata.hpp"
#include "convert/from_hdf5/hdf5_source.hpp"
#include "support.hpp"

#include <zarrbits/inspect.hpp>
#include <zarrbits/verify.hpp>

#include <boost/test/unit_test.hpp>

#include <numeric>

using namespace support;

namespace {

// Three datasets; the store of a conversion by one process is at store().
class case_of_three : public conversion {
 public:
  case_of_three() {
    std::vector<std::int32_t> v(100);
    std::iota(v.begin(), v.end(), 0);
    for (const char* name : {"a", "b", "c"}) dataset(name, H5T_STD_I32LE, {100}, v, chunked({10}));
    run();
  }
  zarrbits::convert_options elsewhere(unsigned index) const {
    return {.source = {.name = source()},
            .target = {.name = folder() / "shared.zarr"},
            .execution = {.partition = zarrbits::partition{.index = index, .count = 2}}};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(workers_make_the_units_between_them) {
  const case_of_three c;
  begin_store(c.elsewhere(0));
  zarrbits::convert_options all = c.elsewhere(0);
  all.execution.partition.reset();
  {
    zarrbits::convert_worker first(c.elsewhere(0)), second(c.elsewhere(1));
    const auto units = first.missing();
    BOOST_REQUIRE(units.size() == 3U);
    BOOST_TEST(units[1].path == "/b");
    first.make(units[2]);
    second.make(units[0]);
    BOOST_CHECK_EXCEPTION((void)zarrbits::finalize(all), zarrbits::error,
                          [](const zarrbits::error& e) { return e.kind() == zarrbits::errc::busy; });
  }
  BOOST_CHECK_EXCEPTION((void)zarrbits::finalize(all), zarrbits::error,
                        [](const zarrbits::error& e) { return std::string(e.what()).starts_with("1 of 3 units are missing"); });
  {
    zarrbits::convert_worker third(c.elsewhere(0));
    BOOST_REQUIRE(third.missing().size() == 1U);
    third.make(third.missing()[0]);
  }
  BOOST_TEST(!zarrbits::finalize(all).has_losses());
  const auto r = zarrbits::verify({.source = all.source.name, .store = all.target.name});
  BOOST_TEST(r.elements == 300U);
  BOOST_TEST((!r.failed() && !r.incomplete()));
  BOOST_CHECK_THROW(begin_store(c.elsewhere(0)), zarrbits::error);
}

BOOST_AUTO_TEST_CASE(workers_convert_stores) {
  const case_of_three c;
  zarrbits::convert_options all{.source = {.name = c.store()}, .target = {.name = c.folder() / "again.zarr"}};
  zarrbits::convert_options mine = all;
  mine.execution.partition = zarrbits::partition{.index = 0, .count = 2};
  begin_store(mine);
  {
    zarrbits::convert_worker first(mine), second(mine);
    const auto units = first.missing();
    BOOST_REQUIRE(units.size() == 30U);  // three arrays of ten chunks
    BOOST_TEST(units[14].path == "/b");
    for (std::size_t i = 0; i + 1 < units.size(); ++i) (i % 2 == 0 ? first : second).make(units[i]);
    BOOST_CHECK_EXCEPTION(first.make({units[0].dataset, 99, "/a"}), zarrbits::error,
                          [](const zarrbits::error& e) { return e.what() == std::string("there is no unit 99 of \"/a\""); });
  }
  BOOST_CHECK_EXCEPTION((void)zarrbits::finalize(all), zarrbits::error,
                        [](const zarrbits::error& e) { return std::string(e.what()).starts_with("1 of 30 units are missing"); });
  {
    zarrbits::convert_worker third(mine);
    BOOST_REQUIRE(third.missing().size() == 1U);
    third.make(third.missing()[0]);
  }
  BOOST_TEST(!zarrbits::finalize(all).has_losses());
  const auto r = zarrbits::verify({.source = c.source(), .store = all.target.name});
  BOOST_TEST(r.elements == 300U);
  BOOST_TEST((!r.failed() && !r.incomplete()));
}

BOOST_AUTO_TEST_CASE(a_dataset_is_planned_once) {
  const case_of_three c;
  using zarrbits::conversion::hdf5_conversion;
  for (const std::uint64_t memory : {std::uint64_t{512} << 20, std::uint64_t{16} << 20}) {  // room for all, or for two
    zarrbits::convert_options o = c.elsewhere(0);
    o.execution.partition.reset();
    o.execution.memory = memory;
    hdf5_conversion all(o, hdf5_conversion::mode::full);
    std::vector<std::shared_ptr<zarrbits::conversion::dataset_plan>> plans;
    BOOST_TEST(all.units().size() == 3U);
    for (const std::size_t i : {1U, 2U, 3U}) plans.push_back(all.source().planned(i));
    all.run();
    for (const std::size_t i : {1U, 2U}) BOOST_TEST(all.source().opened(i).get() == plans[i - 1].get());
    BOOST_TEST((all.source().opened(3).get() == plans[2].get()) == (memory > 16U << 20));
    all.source().write_metadata();
    for (const auto& plan : plans) BOOST_TEST(plan.use_count() == 1);  // it is closed by who needs it last
  }
}

BOOST_AUTO_TEST_CASE(a_file_is_inspected) {
  const case_of_three c;
  for (const std::string& name : {c.source(), c.store()}) {
    const zarrbits::inspected_tree t = zarrbits::inspect({.name = name});
    BOOST_REQUIRE(t.nodes.size() == 4U);
    BOOST_TEST(t.nodes[1].path == "/a");
    BOOST_TEST(t.nodes[1].type == "int32");
    BOOST_TEST((t.nodes[1].chunk == std::vector<std::uint64_t>{10}));
    BOOST_TEST(t.nodes[1].objects == 10U);
    BOOST_TEST(t.nodes[1].stored_bytes == 400U);
  }
  const zarrbits::suggested_bits s = zarrbits::suggest_bits({.file = c.source()});
  BOOST_REQUIRE(s.datasets.size() == 3U);
  BOOST_TEST(s.datasets[0].first_bit == 0U);
  BOOST_TEST(s.datasets[0].last_bit == 7U);  // 99 takes seven bits, and the sign
  const zarrbits::filter_report r = zarrbits::report_filters({.file = c.source()});
  BOOST_TEST(r.datasets == 3U);
  BOOST_TEST(r.filtered.empty());
  BOOST_CHECK_THROW((void)zarrbits::inspect({.name = c.folder() / "nothing"}), zarrbits::error);
  BOOST_CHECK_THROW((void)zarrbits::suggest_bits({.file = c.folder() / "nothing"}), zarrbits::error);
}
