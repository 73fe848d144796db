# SPDX-License-Identifier: BSL-1.0
"""The plugins are found by HDF5_PLUGIN_PATH alone, which libhdf5 reads when it is loaded."""

import os

os.environ["HDF5_PLUGIN_PATH"] = os.environ["ZARRBITS_PLUGINS"]
