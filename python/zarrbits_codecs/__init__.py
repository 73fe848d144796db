# SPDX-License-Identifier: BSL-1.0
"""The codec `packbits` for zarr-python and numcodecs, which import it by themselves (their entry points): loading it must touch
nothing else in the process, so it is not in `zarrbits`, whose import prepares the HDF5 plugins. It is
`zarrbits.PackbitsCodec`."""
