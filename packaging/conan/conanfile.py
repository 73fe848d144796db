# SPDX-License-Identifier: BSL-1.0
# conan create packaging/conan: builds the checkout that it lies in. Conan's own index has the archive's address and SHA-256, in
# conandata.yml.
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class ZarrbitsConan(ConanFile):
    name = "zarrbits"
    description = "Zarr's bytes and packbits codecs, as streams and HDF5 plugins, and HDF5 to Zarr"
    license = "BSL-1.0"
    topics = ("zarr", "hdf5", "compression", "packbits")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "with_streams": [True, False], "with_convert": [True, False]}
    default_options = {"shared": False, "fPIC": True, "with_streams": True, "with_convert": False}

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._checkout, "include", "zarrbits", "version.hpp"))
        self.version = re.search(r'ZARRBITS_VERSION_STRING "([^"]+)"', header).group(1)

    def export_sources(self):
        copy(self, "*", self._checkout, self.export_sources_folder, excludes=("build/*", ".git/*", "packaging/*", "tests/*"))

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")
        if self.options.with_convert:
            self.options.with_streams.value = True

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("nlohmann_json/[>=3.10 <4]")
        if self.options.with_streams:
            self.requires("boost/[>=1.74 <2]", transitive_headers=True)
        if self.options.with_convert:
            self.requires("bzip2/[>=1.0.8 <2]")
            self.requires("c-blosc/[>=1.20 <2]")
            self.requires("cli11/[>=2.1 <3]")
            self.requires("hdf5/[>=1.10.5 <2]")
            self.requires("libcurl/[>=7.87 <9]")
            self.requires("libdeflate/[>=1.10 <2]")
            self.requires("liblzf/[>=3.6 <4]")
            self.requires("lz4/[>=1.9 <2]")
            self.requires("openssl/[>=1.1.1 <4]")
            self.requires("pugixml/[>=1.10 <2]")
            self.requires("zlib/[>=1.2.11 <2]")
            self.requires("zstd/[>=1.5 <2]")

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        deps = CMakeDeps(self)
        deps.set_property("hdf5", "cmake_find_mode", "none")  # CMake's own module finds it, by the paths below
        deps.generate()
        toolchain = CMakeToolchain(self)
        found = [d.cpp_info.aggregated_components() for d in self.dependencies.host.values() if d.package_folder]
        for variable, folders in (("CMAKE_INCLUDE_PATH", "includedirs"), ("CMAKE_LIBRARY_PATH", "libdirs")):
            toolchain.cache_variables[variable] = ";".join(folder for d in found for folder in getattr(d, folders))
        toolchain.cache_variables.update(
            ZARRBITS_SHARED=bool(self.options.shared),
            ZARRBITS_BUILD_STREAMS=bool(self.options.with_streams),
            ZARRBITS_BUILD_CONVERT=bool(self.options.with_convert),
            ZARRBITS_BUILD_TESTS=False,
            ZARRBITS_BUILD_EXAMPLES=False,
            CMAKE_UNITY_BUILD=True,
        )
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # the package's own CMake files, with their components
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "zarrbits"))
        self.cpp_info.libs = ["zarrbits_streams"] if self.options.with_streams else []
        self.cpp_info.libs += ["zarrbits_core"]
        if self.options.shared:
            self.cpp_info.defines = ["ZARRBITS_SHARED"]
        self.runenv_info.append_path("HDF5_PLUGIN_PATH", os.path.join(self.package_folder, "lib", "zarrbits", "plugins"))
