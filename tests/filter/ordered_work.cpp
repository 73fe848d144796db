// SPDX-License-Identifier: BSL-1.0
//
// The threads of <zarrbits/hdf5.hpp> where memory runs out: fewer of them do the work, or it ends with an exception.
//
#include <zarrbits/detail/ordered_work.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <new>
#include <sched.h>

namespace {

thread_local int left = -1;  // allocations until one fails, of this thread; negative: none does

}  // namespace

void* operator new(std::size_t size) {
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size != 0 ? size : 1); }
// where it is inlined, gcc sees that new is not free's
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_CASE(no_memory_for_a_thread_is_not_the_end_of_the_process) {
  constexpr std::size_t things = 100, threads = 8;
  int failed = 0, done = 0;
  for (int memory = 0; memory < 40; ++memory) {
    for (const bool make_first : {true, false}) {
      std::size_t used = 0, made[things] = {};
      bool is_done = false;
      left = memory;
      try {
        zarrbits::hdf5::detail::ordered_work work(things, threads);
        const auto make = [&](std::size_t i, std::size_t) { ++made[i]; };
        const auto use = [&](std::size_t i, std::size_t) { used += i == used; };
        if (make_first) work.make_then_use(make, use);
        else work.use_then_make(use, make);
        is_done = true;
      } catch (const std::bad_alloc&) {
      }
      left = -1;
      failed += !is_done;
      done += is_done;
      if (!is_done) continue;
      BOOST_TEST(used == things);
      for (const std::size_t n : made) BOOST_TEST(n == 1);
    }
  }
  BOOST_TEST(failed > 0);
  BOOST_TEST(done > 0);
}

BOOST_AUTO_TEST_CASE(threads_are_as_many_as_the_process_may_use) {
  cpu_set_t all, one;
  BOOST_REQUIRE_EQUAL(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (unsigned cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  BOOST_CHECK_EQUAL(zarrbits::hdf5::detail::threads_or_all(0), static_cast<unsigned>(CPU_COUNT(&all)));
  BOOST_REQUIRE_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
  BOOST_CHECK_EQUAL(zarrbits::hdf5::detail::threads_or_all(0), 1U);
  BOOST_CHECK_EQUAL(zarrbits::hdf5::detail::threads_or_all(3), 3U);
  sched_setaffinity(0, sizeof all, &all);
}
