// SPDX-License-Identifier: BSL-1.0
//
// What HDF5 looks for in libzarrbits_bytes.so: the only symbols that it exports.
#include "filter/bytes_plugin.hpp"
#include "filter/message.hpp"

extern "C" {
__attribute__((visibility("default"))) int H5PLget_plugin_type() { return zarrbits::filter::plugin_type_filter; }
__attribute__((visibility("default"))) const void* H5PLget_plugin_info() { return &zarrbits::filter::bytes_class; }
__attribute__((visibility("default"))) const char* zarrbits_hdf5_last_error() { return zarrbits::filter::last_error(); }
}
