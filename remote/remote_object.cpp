// SPDX-License-Identifier: BSL-1.0
#include "remote/remote_object.hpp"

#include <zarrbits/error.hpp>

#ifndef ZARRBITS_WITH_S3
std::unique_ptr<zarrbits::remote::remote_object> zarrbits::remote::find_object(const std::string& name, const remote_access&) {
  throw zarrbits::error(errc::unsupported,
                        "this zarrbits was built without libcurl and cannot read \"" + name +
                            "\"; build it with -DZARRBITS_S3=ON, or download the file first",
                        {name});
}
#endif
