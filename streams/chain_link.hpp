// SPDX-License-Identifier: BSL-1.0
//
// What a stream buffer of a Boost chain hides from who is not derived from it.
//
#ifndef ZARRBITS_STREAMS_CHAIN_LINK_HPP
#define ZARRBITS_STREAMS_CHAIN_LINK_HPP

#include <boost/core/typeinfo.hpp>
#include <boost/iostreams/chain.hpp>

namespace zarrbits::iostreams::detail {

// Members of stream buffers that a derived class may use, on any of them.
struct chain_link : boost::iostreams::detail::linked_streambuf<char> {
  static bool sync(linked_streambuf<char>& b) { return (b.*&chain_link::strict_sync)(); }
  static const boost::core::typeinfo& type(const linked_streambuf<char>& b) { return (b.*&chain_link::component_type)(); }
  // The filter or device, if it is a T.
  template <class T>
  static T* component(linked_streambuf<char>& b) {
    return type(b) == BOOST_CORE_TYPEID(T) ? static_cast<T*>((b.*&chain_link::component_impl)()) : nullptr;
  }
};

}  // namespace zarrbits::iostreams::detail

#endif
