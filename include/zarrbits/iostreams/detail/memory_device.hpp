// SPDX-License-Identifier: BSL-1.0
//
// Which devices below a filter are memory.
//
#ifndef ZARRBITS_IOSTREAMS_DETAIL_MEMORY_DEVICE_HPP
#define ZARRBITS_IOSTREAMS_DETAIL_MEMORY_DEVICE_HPP

#include <boost/iostreams/categories.hpp>
#include <boost/iostreams/positioning.hpp>
#include <boost/iostreams/traits.hpp>

#include <concepts>
#include <ios>
#include <type_traits>

namespace zarrbits::iostreams::detail {

// compose() wraps devices that are memory (Boost's "direct" devices) in one that has a position, and operator* returns the device
// itself.
template <class Device>
concept memory_device = requires(Device& device) {
  { device.seek(0, std::ios_base::cur, std::ios_base::out) } -> std::convertible_to<std::streampos>;
  requires boost::iostreams::is_direct<std::remove_cvref_t<decltype(*device)>>::value;
  // if reading and writing have separate positions, seek() does not return one of them
  requires !std::is_convertible_v<typename Device::category, boost::iostreams::bidirectional> &&
      !std::is_convertible_v<typename Device::category, boost::iostreams::dual_seekable>;
};

// The parameter of a class template with one parameter.
template <class T>
struct wrapped {
  using type = void;
};
template <template <class> class Wrapper, class Inner>
struct wrapped<Wrapper<Inner>> {
  using type = Inner;
};

// The same inside the adapter that Boost puts around every device when it closes a filter: it holds a reference to the device,
// and seeks as the device does.
template <class Device, class Inner = typename wrapped<Device>::type>
concept around_memory_device = memory_device<Inner> && std::constructible_from<Device, Inner&> && requires(Device& device) {
  { device.seek(0, std::ios_base::cur, std::ios_base::out) } -> std::convertible_to<std::streampos>;
};

template <class Device>
concept is_memory = memory_device<Device> || around_memory_device<Device>;

}  // namespace zarrbits::iostreams::detail

#endif
