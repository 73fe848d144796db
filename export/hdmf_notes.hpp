// SPDX-License-Identifier: BSL-1.0
//
// hdmf-zarr, which writes NWB files as Zarr, has links and references in attributes of its own. They become the notes that
// `convert` would have made of the links and references of a file, so that they are links and references in HDF5.
//
#ifndef ZARRBITS_EXPORT_HDMF_NOTES_HPP
#define ZARRBITS_EXPORT_HDMF_NOTES_HPP

#include "export/store_node.hpp"

namespace zarrbits::exporting {

// True for the root of a store that NWBZarrIO wrote.
bool is_nwb_root(const store_node& node);

// Notes of zarrbits that the node has already stay as they are.
void take_hdmf_notes(store_node& node);

}  // namespace zarrbits::exporting

#endif
