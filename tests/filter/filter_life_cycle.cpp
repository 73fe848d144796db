// SPDX-License-Identifier: BSL-1.0
//
// What HDF5 makes of a filter's answers, flag by flag. First a filter that answers as it is told: these are the facts that ours
// relies on, and a libhdf5 in which one of them changes shows here. Then ours, in every row that it can come to.
#include "filter/packbits_plugin.hpp"
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

// The chunk is misread then. Our filter relies on it that this does not happen where the size differs.
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

BOOST_DATA_TEST_CASE(optional_and_a_value_that_does_not_fit_is_stored_raw,
                     data::make({ZARRBITS_HDF5_RANGE_RAW, ZARRBITS_HDF5_RANGE_REPORT}), policy) {
  const dataset d(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12, policy});
  BOOST_REQUIRE_MESSAGE(d.id >= 0, d.error);
  BOOST_TEST(d.write(wide));
  std::uint32_t mask = 99;
  BOOST_TEST(d.stored(mask) == wide);
  BOOST_TEST(mask == 1u);
  bytes_of back(wide.size());
  BOOST_TEST(d.read(back));
  BOOST_TEST(back == wide);
}

// The rule that no packed chunk is as large as a raw one: libhdf5 leaves the filter mask of a chunk that it writes again with the
// same size.
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
      {1, H5Z_FLAG_MANDATORY, {12}, false},
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

BOOST_AUTO_TEST_CASE(before_another_filter_than_fletcher32_it_is_mandatory) {
  const auto flags_with = [this](auto after, unsigned options) {
    const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t n = 1;
    const unsigned cd[] = {12, options};
    H5Pset_chunk(dcpl, 1, &n);
    H5Pset_filter(dcpl, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, 2, cd);
    after(dcpl);
    const hid_t space = H5Screate_simple(1, &n, nullptr), d = H5Dcreate_anon(file, H5T_STD_U16LE, space, dcpl, H5P_DEFAULT);
    H5Pclose(dcpl);
    unsigned found = 99;
    if (d >= 0) {
      const hid_t created = H5Dget_create_plist(d);
      H5Pget_filter_by_id2(created, ZARRBITS_HDF5_PACKBITS_ID, &found, nullptr, nullptr, 0, nullptr, nullptr);
      H5Pclose(created);
      H5Dclose(d);
    }
    H5Sclose(space);
    return found;
  };
  const auto deflate = [](hid_t p) { H5Pset_deflate(p, 1); };
  const auto checksum = [](hid_t p) { H5Pset_fletcher32(p); };
  const auto optional_checksum = [](hid_t p) { H5Pset_filter(p, H5Z_FILTER_FLETCHER32, H5Z_FLAG_OPTIONAL, 0, nullptr); };
  const auto both = [](hid_t p) {
    H5Pset_fletcher32(p);
    H5Pset_shuffle(p);
  };
  BOOST_TEST(flags_with(deflate, 0) == unsigned{H5Z_FLAG_MANDATORY});
  BOOST_TEST(flags_with(both, 0) == unsigned{H5Z_FLAG_MANDATORY});
  BOOST_TEST(flags_with(optional_checksum, 0) == unsigned{H5Z_FLAG_MANDATORY});
  BOOST_TEST(flags_with(deflate, ZARRBITS_HDF5_RANGE_TRUNCATE) == unsigned{H5Z_FLAG_OPTIONAL});
  BOOST_TEST(flags_with(checksum, 0) == 99u);  // one element: refused as above
}

// Parallel HDF5 stores a chunk that did not fit so.
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

BOOST_AUTO_TEST_CASE(mandatory_and_a_value_that_does_not_fit_fails_at_the_flush_with_our_sentence) {
  const int status = in_child([this] {
    const dataset d(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_MANDATORY, {12});
    if (d.id < 0) return 1;
    if (H5Dwrite(d.id, H5T_STD_U16LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide.data()) < 0) return 2;
    if (H5Dflush(d.id) >= 0) return 3;
    return our_sentence().find("0x1000") != std::string::npos ? 10 : 4;
  });
  BOOST_TEST(status == 10);
}

BOOST_AUTO_TEST_CASE(a_mandatory_filter_is_warned_of_where_a_log_is_asked_for) {
  const int status = in_child([this] {
    char text[4096] = "";
    std::FILE* log = std::tmpfile();
    if (!log || dup2(fileno(log), 2) < 0) return 1;
    setenv("ZARRBITS_HDF5_LOG", "1", 1);
    const dataset optional(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_OPTIONAL, {12});
    const dataset cut(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_MANDATORY, {12, ZARRBITS_HDF5_RANGE_TRUNCATE});
    if (std::fseek(log, 0, SEEK_END) != 0 || std::ftell(log) != 0) return 2;
    const dataset mandatory(file, H5T_STD_U16LE, 4, ZARRBITS_HDF5_PACKBITS_ID, H5Z_FLAG_MANDATORY, {12});
    std::rewind(log);
    if (std::fread(text, 1, sizeof text - 1, log) == 0) return 3;
    return mandatory.id >= 0 && std::strstr(text, "mandatory") ? 10 : 4;
  });
  BOOST_TEST(status == 10);
}

BOOST_AUTO_TEST_SUITE_END()
