// SPDX-License-Identifier: BSL-1.0
//
// What HDF5 makes of a filter's answers, flag by flag. First a filter that answers as it is told: these are the facts that ours
// relies on, and a libhdf5 in which one of them changes shows here. Then ours, in every row that it can come to.
#include "filter/plugins.hpp"
#include "h5_support.hpp"

#define ZARRBITS_HDF5_CONSTANTS_ONLY
#include <zarrbits/hdf5.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace h5_support;
namespace data = boost::unit_test::data;

namespace {

constexpr int probe_id = 300;

struct told {
  htri_t can_apply = 1;
  herr_t set_local = 0;
  bool works = true;
} answers;
struct {
  int can_apply = 0, set_local = 0, filter = 0;
} calls;

htri_t probe_can_apply(hid_t, hid_t, hid_t) {
  ++calls.can_apply;
  return answers.can_apply;
}
herr_t probe_set_local(hid_t, hid_t, hid_t) {
  ++calls.set_local;
  return answers.set_local;
}
std::size_t probe_filter(unsigned flags, std::size_t, const unsigned[], std::size_t nbytes, std::size_t*, void**) {
  ++calls.filter;
  return answers.works || (flags & H5Z_FLAG_REVERSE) ? nbytes : 0;
}

const H5Z_class2_t probe = {H5Z_CLASS_T_VERS, probe_id, 1, 1, "probe", probe_can_apply, probe_set_local, probe_filter};

struct setting {
  hid_t file = memory_file();
  setting() {
    BOOST_REQUIRE(H5Zregister(&probe) >= 0);
    BOOST_REQUIRE(H5Zregister(&zarrbits::filter::packbits_class) >= 0);
    BOOST_REQUIRE(H5Zregister(&zarrbits::filter::bytes_class) >= 0);
    calls = {};
    answers = {};
  }
  ~setting() { H5Fclose(file); }
  dataset create(unsigned flags) const { return dataset(file, H5T_STD_U16LE, 4, probe_id, flags, {}); }
};

const bytes_of four = {1, 0, 2, 0, 3, 0, 4, 0}, wide = {1, 0, 2, 0, 0, 0x10, 4, 0};

constexpr unsigned both_flags[] = {H5Z_FLAG_OPTIONAL, H5Z_FLAG_MANDATORY};

// A failing mandatory filter leaves libhdf5 in a state in which closing may crash: what happens then is the child's affair.
template <class F>
int in_child(F f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(what_hdf5_does, setting)

BOOST_AUTO_TEST_CASE(mandatory_and_can_apply_0_is_refused_at_creation) {
  answers.can_apply = 0;
  BOOST_TEST(create(H5Z_FLAG_MANDATORY).id < 0);
  BOOST_TEST(calls.set_local == 0);
}

BOOST_AUTO_TEST_CASE(optional_and_can_apply_0_stays_in_the_pipeline_and_is_called) {
  answers.can_apply = 0;
  const dataset d = create(H5Z_FLAG_OPTIONAL);
  BOOST_REQUIRE(d.id >= 0);
  BOOST_TEST(calls.set_local == 1);
  BOOST_TEST(d.write(four));
  BOOST_TEST(calls.filter > 0);
  const hid_t dcpl = H5Dget_create_plist(d.id);
  BOOST_TEST(H5Pget_nfilters(dcpl) == 1);
  H5Pclose(dcpl);
}

BOOST_DATA_TEST_CASE(a_negative_can_apply_is_refused_at_creation, data::make(both_flags), flags) {
  answers.can_apply = -1;
  BOOST_TEST(create(flags).id < 0);
  BOOST_TEST(calls.filter == 0);
}

BOOST_DATA_TEST_CASE(a_negative_set_local_is_refused_at_creation, data::make(both_flags), flags) {
  answers.set_local = -1;
  BOOST_TEST(create(flags).id < 0);
  BOOST_TEST(calls.can_apply == 1);
  BOOST_TEST(calls.filter == 0);
}

BOOST_DATA_TEST_CASE(optional_and_a_filter_that_fails_is_stored_raw, data::make({1, 0}), can_apply) {
  answers.can_apply = can_apply;
  answers.works = false;
  const dataset d = create(H5Z_FLAG_OPTIONAL);
  BOOST_REQUIRE(d.id >= 0);
  BOOST_TEST(d.write(four));
  std::uint32_t mask = 99;
  BOOST_TEST(d.stored(mask) == four);
  BOOST_TEST(mask == 1u);
  bytes_of back(four.size());
  BOOST_TEST(d.read(back));
  BOOST_TEST(back == four);
}

// The chunk is misread then: our filter never fails, so that no mask says anything of it.
BOOST_DATA_TEST_CASE(a_chunk_written_again_with_the_same_size_keeps_its_old_mask, data::make({true, false}), works_first) {
  {
    const dataset d = create(H5Z_FLAG_OPTIONAL);
    BOOST_REQUIRE(H5Olink(d.id, file, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    for (const bool works : {works_first, !works_first}) {
      answers.works = works;
      BOOST_TEST(d.write(works ? four : wide));
    }
  }
  const hid_t again = H5Dopen2(file, "x", H5P_DEFAULT);  // an open dataset remembers the mask that should be there
  const hsize_t origin = 0;
  bytes_of found(four.size());
  std::uint32_t mask = 99;
  BOOST_TEST(H5Dread_chunk(again, H5P_DEFAULT, &origin, &mask, found.data()) >= 0);
  H5Dclose(again);
  BOOST_TEST(found == (works_first ? wide : four));
  BOOST_TEST(mask == (works_first ? 0u : 1u));
}

BOOST_AUTO_TEST_CASE(mandatory_and_a_filter_that_fails_is_created_and_fails_at_the_flush) {
  answers.works = false;
  const int status = in_child([this] {
    const dataset d = create(H5Z_FLAG_MANDATORY);
    if (d.id < 0) return 1;
    if (H5Dwrite(d.id, H5T_STD_U16LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, four.data()) < 0) return 2;  // it is in the cache yet
    return H5Dflush(d.id) < 0 ? 10 : 3;
  });
  BOOST_TEST(status == 10);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(what_ours_does, setting)

// Each in a process of its own: it is said once in a process.
struct loss {
  unsigned policy;
  std::vector<unsigned> quiet;  // is created first, without a word
  const char* says;
};
const loss warned_of[] = {
    {ZARRBITS_HDF5_RANGE_ERROR, {12, ZARRBITS_HDF5_RANGE_RAW}, "makes the write fail"},
    {ZARRBITS_HDF5_RANGE_TRUNCATE, {12, ZARRBITS_HDF5_RANGE_RAW, 4}, "data is lost"},
    {ZARRBITS_HDF5_RANGE_TRUNCATE, {16, ZARRBITS_HDF5_RANGE_TRUNCATE}, "data is lost"},  // drops no bits
};

BOOST_DATA_TEST_CASE(a_policy_that_loses_something_is_warned_of_once, data::xrange(std::size(warned_of)), index) {
  const loss& c = warned_of[index];
  const int status = in_child([this, &c] {
    char text[4096] = "";
    std::FILE* log = std::tmpfile();
    if (!log || dup2(fileno(log), 2) < 0) return 1;
    if (dataset(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_MANDATORY, c.quiet).id < 0) return 5;
    if (std::fseek(log, 0, SEEK_END) != 0 || std::ftell(log) != 0) return 2;
    for (int i = 0; i < 3; ++i)
      if (dataset(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12, c.policy}).id < 0) return 6;
    std::rewind(log);
    if (std::fread(text, 1, sizeof text - 1, log) == 0) return 3;
    const char* first = std::strstr(text, c.says);
    return first && !std::strstr(first + 1, c.says) ? 10 : 4;
  });
  BOOST_TEST(status == 10);
}

BOOST_DATA_TEST_CASE(whatever_can_be_known_is_refused_at_creation, data::make(both_flags), flags) {
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 5);
  const dataset of_text(file, text, 4, ZARRBITS_HDF5_PACKBITS_ID, flags, {}),
      no_bits(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, flags, {}),
      too_many(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, flags, {17});
  for (const dataset* d : {&of_text, &no_bits, &too_many}) {
    BOOST_TEST(d->id < 0);
    BOOST_TEST(d->error.rfind("zarrbits: packbits: ", 0) == 0u, d->error);
  }
  H5Tclose(text);
}

BOOST_DATA_TEST_CASE(values_that_fit_are_packed, data::make(both_flags), flags) {
  const dataset d(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, flags, {12});
  BOOST_REQUIRE_MESSAGE(d.id >= 0, d.error);
  BOOST_TEST(d.write(four));
  std::uint32_t mask = 99;
  BOOST_TEST(d.stored(mask).size() == 6u);
  BOOST_TEST(mask == 0u);
  bytes_of back(four.size());
  BOOST_TEST(d.read(back));
  BOOST_TEST(back == four);
  // the flag is the user's
  const hid_t dcpl = H5Dget_create_plist(d.id);
  unsigned found = 99;
  std::size_t n = 0;
  H5Pget_filter_by_id2(dcpl, ZARRBITS_HDF5_PACKBITS_ID, &found, &n, nullptr, 0, nullptr, nullptr);
  BOOST_TEST(found == flags);
  H5Pclose(dcpl);
}

// Success, and a length that tells: the filter mask says nothing.
BOOST_DATA_TEST_CASE(a_value_that_does_not_fit_leaves_the_chunk_as_it_is,
                     data::make(both_flags) * data::make({ZARRBITS_HDF5_RANGE_RAW, ZARRBITS_HDF5_RANGE_REPORT}), flags, policy) {
  const dataset d(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, flags, {12, policy});
  BOOST_REQUIRE_MESSAGE(d.id >= 0, d.error);
  BOOST_TEST(d.write(wide));
  std::uint32_t mask = 99;
  BOOST_TEST(d.stored(mask) == wide);
  BOOST_TEST(mask == 0u);
  bytes_of back(wide.size());
  BOOST_TEST(d.read(back));
  BOOST_TEST(back == wide);
}

// Length alone tells a packed chunk from a raw one.
BOOST_AUTO_TEST_CASE(what_is_as_large_packed_as_raw_is_refused_unless_nothing_can_be_stored_raw) {
  struct {
    hsize_t elements;
    unsigned flags;
    std::vector<unsigned> cd;
    bool refused;
  } const rows[] = {
      {1, H5Z_FLAG_OPTIONAL, {12}, true},
      {1, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_RANGE_REPORT}, true},
      {1, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_RANGE_TRUNCATE}, false},
      {1, H5Z_FLAG_MANDATORY, {12}, true},
      {1, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_RANGE_ERROR}, false},
      {1, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_PADDING_LAST_BYTE}, false},  // 3 bytes instead of 2
      {1, H5Z_FLAG_OPTIONAL, {16}, false},                                   // there is no value that does not fit
      {2, H5Z_FLAG_OPTIONAL, {12}, false},
      {2, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_PADDING_FIRST_BYTE}, true},
      {16, H5Z_FLAG_OPTIONAL, {15}, false},
      {8, H5Z_FLAG_OPTIONAL, {15, ZARRBITS_HDF5_PADDING_LAST_BYTE}, true},
  };
  for (const auto& row : rows)
    BOOST_TEST_CONTEXT(row.elements << " elements, flags " << row.flags << ", bits " << row.cd[0] << ", options "
                                    << (row.cd.size() > 1 ? row.cd[1] : 0)) {
      const dataset d(file, H5T_STD_U16LE, row.elements, ZARRBITS_HDF5_PACKBITS_ID, row.flags, row.cd);
      BOOST_TEST((d.id < 0) == row.refused);
      BOOST_TEST((d.error.find("as many unpacked") != std::string::npos) == row.refused, d.error);
    }
}

// Earlier plugins left the chunk out of the filter, with a mask or, in parallel HDF5, without.
BOOST_AUTO_TEST_CASE(a_chunk_as_large_as_a_raw_one_is_raw_whatever_its_mask_says) {
  for (const std::uint32_t mask : {0u, 1u}) {
    const dataset d(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12});
    bytes_of back(wide.size());
    BOOST_TEST(d.store(wide, mask));
    BOOST_TEST(d.read(back));
    BOOST_TEST(back == wide);
  }
  const dataset cut(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_RANGE_TRUNCATE});
  bytes_of back(wide.size());
  BOOST_TEST(cut.store(wide, 0));
  BOOST_TEST(!cut.read(back));
  BOOST_TEST(our_sentence().find("damaged") != std::string::npos);
}

// What the policy is for: the flag is then the plugin's.
BOOST_DATA_TEST_CASE(with_the_policy_error_a_value_that_does_not_fit_fails_at_the_flush_with_our_sentence, data::make(both_flags),
                     flags) {
  const int status = in_child([&] {
    const dataset d(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, flags, {12, ZARRBITS_HDF5_RANGE_ERROR});
    if (d.id < 0) return 1;
    if (H5Dwrite(d.id, H5T_STD_U16LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide.data()) < 0) return 2;
    if (H5Dflush(d.id) >= 0) return 3;
    return our_sentence().find("0x1000") != std::string::npos ? 10 : 4;
  });
  BOOST_TEST(status == 10);
}

// A dataset of an earlier plugin, or of HDF5 2.0 without its integrity checks, whose chunks are as large packed as unpacked.
BOOST_AUTO_TEST_CASE(where_length_does_not_tell_a_misfit_is_still_refused) {
  const dataset pattern(file, H5T_STD_U16LE, 1, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_RANGE_TRUNCATE});
  BOOST_REQUIRE_MESSAGE(pattern.id >= 0, pattern.error);
  std::vector<unsigned> cd = pattern.parameters(ZARRBITS_HDF5_PACKBITS_ID);
  cd[1] = ZARRBITS_HDF5_RANGE_RAW;
  void* chunk = std::malloc(2);
  std::size_t size = 2;
  std::memcpy(chunk, "\0\x10", 2);
  BOOST_TEST(zarrbits::filter::packbits_class.filter(0, cd.size(), cd.data(), 2, &size, &chunk) == 0u);
  std::memcpy(chunk, "\0\x01", 2);
  BOOST_TEST(zarrbits::filter::packbits_class.filter(0, cd.size(), cd.data(), 2, &size, &chunk) == 2u);
  std::free(chunk);
}

// Parameters as a user gives them: nobody resolved them when the dataset was created.
BOOST_AUTO_TEST_CASE(with_parameters_that_were_never_resolved_chunks_pass_through) {
  for (const auto* filter : {&zarrbits::filter::packbits_class, &zarrbits::filter::bytes_class})
    for (std::size_t n = 0; n <= (filter == &zarrbits::filter::bytes_class ? 1u : 4u); ++n)
      for (const unsigned flags : {0u, unsigned{H5Z_FLAG_OPTIONAL}, unsigned{H5Z_FLAG_REVERSE}}) {
        const unsigned cd[4] = {12, 0, 0, 0};
        void* chunk = std::malloc(8);
        std::size_t size = 8;
        std::memcpy(chunk, wide.data(), 8);
        BOOST_TEST(filter->filter(flags, n, cd, 8, &size, &chunk) == 8u);
        BOOST_TEST(std::memcmp(chunk, wide.data(), 8) == 0);
        std::free(chunk);
      }
}

// HDF5 up to 2.0 takes optional filters for such types without asking them, but asks can_apply when a process writes again.
BOOST_DATA_TEST_CASE(data_of_variable_length_pass_through_before_and_after_reopening, data::make({0, 1, 2}), what) {
  const char* const path = "variable.h5";
  const hid_t text = H5Tcopy(H5T_C_S1), list = H5Tvlen_create(H5T_STD_I32LE), both = H5Tcreate(H5T_COMPOUND, 8 + sizeof(hvl_t));
  H5Tset_size(text, H5T_VARIABLE);
  H5Tinsert(both, "s", 0, text);
  H5Tinsert(both, "l", 8, list);
  const hid_t type = what == 0 ? text : what == 1 ? list : both;
  int numbers[] = {1, 2, 3};
  const char* const words[4] = {"a", "bc", "", "def"};
  hvl_t lists[4] = {{1, numbers}, {3, numbers}, {0, nullptr}, {2, numbers}};
  struct row {
    const char* s;
    hvl_t l;
  } rows[4] = {{"a", {1, numbers}}, {"b", {2, numbers}}, {"", {0, nullptr}}, {"c", {3, numbers}}};
  const void* const values = what == 0 ? static_cast<const void*>(words) : what == 1 ? static_cast<const void*>(lists) : rows;
  hsize_t n = 4;
  const hsize_t most = H5S_UNLIMITED, chunk = 3;
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, &most);
  H5Pset_chunk(dcpl, 1, &chunk);
  const unsigned cd[] = {12};
  H5Pset_filter(dcpl, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, 1, cd);
  hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t d = H5Dcreate2(f, "x", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  BOOST_REQUIRE(d >= 0);
  BOOST_TEST(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  BOOST_TEST(H5Dclose(d) >= 0);
  BOOST_TEST(H5Fclose(f) >= 0);
  f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  d = H5Dopen2(f, "x", H5P_DEFAULT);
  BOOST_TEST(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
  n = 9;
  BOOST_TEST(H5Dset_extent(d, &n) >= 0);
  BOOST_TEST(H5Dclose(d) >= 0);
  BOOST_TEST(H5Fclose(f) >= 0);
  f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  d = H5Dopen2(f, "x", H5P_DEFAULT);
  std::vector<row> room(9);
  BOOST_REQUIRE(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, room.data()) >= 0);
  const auto* lists_back = reinterpret_cast<const hvl_t*>(room.data());
  if (what == 0) BOOST_TEST(std::string(reinterpret_cast<const char* const*>(room.data())[3]) == "def");
  if (what == 1) BOOST_TEST((lists_back[1].len == 3 && static_cast<const int*>(lists_back[1].p)[2] == 3));
  if (what == 2) BOOST_TEST((room[3].l.len == 3 && std::string(room[1].s) == "b"));
  const hid_t all = H5Dget_space(d);
  H5Dvlen_reclaim(type, all, H5P_DEFAULT, room.data());
  H5Dclose(d);
  H5Fclose(f);
  std::remove(path);
  for (const hid_t t : {text, list, both}) H5Tclose(t);
  H5Sclose(all);
  H5Sclose(space);
  H5Pclose(dcpl);
}

BOOST_AUTO_TEST_CASE(what_may_take_four_gigabytes_in_the_file_is_refused) {
  const hsize_t most = (std::uint64_t{1} << 31) - 8;  // of values of two bytes: HDF5 1.10 itself takes no more than 4 GiB
  const dataset large(file, H5T_STD_U16LE, most, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12}),
      longer(file, H5T_STD_U16LE, most + 7, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12}),
      cut(file, H5T_STD_U16LE, most + 7, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12, ZARRBITS_HDF5_RANGE_TRUNCATE}),
      swapped(file, H5T_STD_U16LE, most + 7, ZARRBITS_HDF5_BYTES_ID, H5Z_FLAG_OPTIONAL, {1});
  BOOST_TEST(large.id >= 0, large.error);
  BOOST_TEST(longer.error.find("less than 4 GiB") != std::string::npos, longer.error);
  BOOST_TEST(cut.id >= 0, cut.error);
  BOOST_TEST(swapped.error.find("less than 4 GiB") != std::string::npos, swapped.error);
}

BOOST_AUTO_TEST_SUITE_END()
