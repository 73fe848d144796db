// SPDX-License-Identifier: BSL-1.0
#include "remote/remote_object.hpp"

#include "io/remote_url.hpp"

#include <zarrbits/error.hpp>

namespace zarrbits::remote {

#ifdef ZARRBITS_WITH_S3

std::unique_ptr<remote_object> find_object(const std::string& name, const remote_access& remote) {
  return io::is_object_store(name) ? find_s3_object(name, remote) : find_web_object(name, remote);
}

#else

std::unique_ptr<remote_object> find_object(const std::string& name, const remote_access&) {
  throw zarrbits::error(errc::unsupported,
                        "this zarrbits was built without libcurl and cannot read \"" + name +
                            "\"; build it with -DZARRBITS_S3=ON, or download the file first",
                        {name});
}

#endif

}  // namespace zarrbits::remote
