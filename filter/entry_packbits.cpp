// SPDX-License-Identifier: BSL-1.0
//
// What HDF5 looks for in libzarrbits_packbits.so: the only symbols that it exports.
#include "filter/packbits_plugin.hpp"

extern "C" {
__attribute__((visibility("default"))) int H5PLget_plugin_type() { return zarrbits::filter::plugin_type_filter; }
__attribute__((visibility("default"))) const void* H5PLget_plugin_info() { return &zarrbits::filter::packbits_class; }
}
