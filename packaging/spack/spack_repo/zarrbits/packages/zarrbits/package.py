# SPDX-License-Identifier: BSL-1.0
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Zarrbits(CMakePackage):
    """Zarr's bytes and packbits codecs for C++, as Boost.Iostreams filters and as HDF5 plugins, and a converter from HDF5
    to Zarr v3."""

    license("BSL-1.0")

    # `spack develop --path CHECKOUT zarrbits@0.2.0`; the archive of a release needs an url and its sha256 here
    version("0.2.0")

    variant("shared", default=True, description="The core as a shared library")
    variant("streams", default=True, description="Boost.Iostreams filters")
    variant("plugins", default=True, description="HDF5 filter plugins")
    variant("convert", default=True, description="HDF5 to Zarr, and the command zarrbits")
    variant("s3", default=True, when="+convert", description="Files and stores in S3")

    conflicts("~streams", when="+convert", msg="the converter needs the streams")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("boost@1.74:", when="+streams")
    with when("+convert"):
        depends_on("cli11", type="build")
        depends_on("hdf5@1.10.5: ~mpi")
        depends_on("zlib-api")
        depends_on("libdeflate")
        depends_on("zstd")
        depends_on("c-blosc")
        depends_on("lz4")
        depends_on("bzip2")
        depends_on("liblzf")
    with when("+s3"):
        depends_on("curl@7.87:")
        depends_on("openssl@1.1.1:")
        depends_on("pugixml")

    conflicts("%gcc@:11")
    conflicts("%clang@:13")

    def cmake_args(self):
        return [
            self.define_from_variant("ZARRBITS_SHARED", "shared"),
            self.define_from_variant("ZARRBITS_BUILD_STREAMS", "streams"),
            self.define_from_variant("ZARRBITS_BUILD_FILTER", "plugins"),
            self.define_from_variant("ZARRBITS_BUILD_CONVERT", "convert"),
            self.define("ZARRBITS_S3", self.spec.satisfies("+s3")),
            self.define("ZARRBITS_BUILD_TESTS", False),
            self.define("ZARRBITS_BUILD_EXAMPLES", False),
            self.define("CMAKE_UNITY_BUILD", True),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
        ]

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        if self.spec.satisfies("+plugins"):
            env.prepend_path("HDF5_PLUGIN_PATH", join_path(self.prefix.lib, "zarrbits", "plugins"))
