// SPDX-License-Identifier: BSL-1.0
//
// The symbols that HDF5 looks for in libzarrbits_bytes.so, which exports no others.
#include "filter/export.hpp"
#include "filter/message.hpp"
#include "filter/plugins.hpp"

#include <zarrbits/version.hpp>

extern "C" {
ZARRBITS_FILTER_EXPORT int H5PLget_plugin_type() { return zarrbits::filter::plugin_type_filter; }
ZARRBITS_FILTER_EXPORT const void* H5PLget_plugin_info() { return &zarrbits::filter::bytes_class; }
ZARRBITS_FILTER_EXPORT const char* zarrbits_hdf5_version() { return ZARRBITS_VERSION_STRING; }
ZARRBITS_FILTER_EXPORT const char* zarrbits_hdf5_last_error() { return zarrbits::filter::last_error(); }
}
