/* SPDX-License-Identifier: BSL-1.0 */
/*
 * The HDF5 filters of zarrbits, from C and C++:
 *
 *   #include <zarrbits/hdf5.h>
 *
 *   hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
 *   H5Pset_chunk(dcpl, 2, chunk);
 *   H5Pset_zarrbits_packbits(dcpl, 12, 0, 0);   // the low 12 bits of each integer
 *   hid_t d = H5Dcreate2(file, "camera", H5T_STD_U16LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
 *
 * Nothing here links to zarrbits: HDF5 loads the plugins at run time from the folders in HDF5_PLUGIN_PATH. docs/hdf5.md has
 * recipes for h5py, h5repack and nccopy.
 *
 * The parameters (cd_values) of packbits, of which 0 to 4 may be given; those left out are 0:
 *
 *   [0] bits       kept of each component; 0: what the datatype says (booleans, enumerations, bitfields and integers of reduced
 *                  precision, 4- and 6-bit floats). Plain integers and floats need a number.
 *   [1] options    ZARRBITS_HDF5_* below, or-ed
 *   [2] first bit  the lowest kept bit, counted from the least significant one; datatypes of reduced precision have their own
 *   [3] 0
 *
 * The parameter of bytes:
 *
 *   [0] byte order of the encoded chunk: ZARRBITS_HDF5_LITTLE_ENDIAN (also if left out) or ZARRBITS_HDF5_BIG_ENDIAN
 *
 * When a dataset is created, both filters replace these values by a longer list with the resolved parameters. A copy of that list
 * in another dataset means the same as these values.
 *
 * A chunk that holds a value which does not fit is stored without the filter (HDF5's filter mask), if the filter is optional in
 * the pipeline; that is why the functions below set it so. In a mandatory filter such a value makes the write fail when the chunk
 * is flushed. The plugin makes packbits mandatory where another filter than HDF5's fletcher32 follows, and refuses chunks that
 * are as large packed as they are: HDF5 would misread chunks that are raw at one time and packed at another.
 *
 * Errors are on HDF5's error stack. HDF5 1.14.5 to 2.1 lose those of reading and writing; each plugin also exports the last one
 * of the thread:
 *
 *   const char* zarrbits_hdf5_last_error(void);     // for dlsym(); "" if there was none
 */
#ifndef ZARRBITS_HDF5_H
#define ZARRBITS_HDF5_H

/*
 * Filter ids, from the range for use without registration. If the plugins are configured with other ids
 * (ZARRBITS_PACKBITS_FILTER_ID, ZARRBITS_BYTES_FILTER_ID), define these two accordingly; the CMake target zarrbits::hdf5 does.
 */
#ifndef ZARRBITS_HDF5_PACKBITS_ID
#define ZARRBITS_HDF5_PACKBITS_ID 45429 /* 0xB175 */
#endif
#ifndef ZARRBITS_HDF5_BYTES_ID
#define ZARRBITS_HDF5_BYTES_ID 45438 /* 0xB17E */
#endif

/* packbits, options bits 0-1: whether a byte gives the number of padding bits of a chunk, and where (Zarr: padding_encoding) */
#define ZARRBITS_HDF5_PADDING_NONE 0u
#define ZARRBITS_HDF5_PADDING_FIRST_BYTE 1u /* the first byte of the chunk */
#define ZARRBITS_HDF5_PADDING_LAST_BYTE 2u  /* the last byte of the chunk */
/* packbits, options bits 2-3: what happens to a chunk with a value that does not fit */
#define ZARRBITS_HDF5_RANGE_RAW 0u      /* stored as it is, if the filter is optional */
#define ZARRBITS_HDF5_RANGE_TRUNCATE 4u /* the bits that do not fit are dropped: data is lost */
#define ZARRBITS_HDF5_RANGE_REPORT 8u   /* as RAW, with a line on standard error */
/* packbits, options bit 4: most significant bit first, as numcodecs does; booleans only */
#define ZARRBITS_HDF5_MSB_FIRST 16u

/* bytes: the order of the encoded chunk */
#define ZARRBITS_HDF5_LITTLE_ENDIAN 0u /* the least significant byte first */
#define ZARRBITS_HDF5_BIG_ENDIAN 1u    /* the least significant byte last */

#ifndef ZARRBITS_HDF5_CONSTANTS_ONLY

#include <hdf5.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * HDF5 would accept an optional filter that it cannot find, and store everything without it. This function refuses it, with a
 * sentence on the error stack.
 */
static inline herr_t zarrbits_hdf5_set_filter(hid_t dcpl, int id, const char* plugin, size_t n, const unsigned cd_values[]) {
  if (H5Zfilter_avail(id) <= 0) {
    H5Epush2(H5E_DEFAULT, __FILE__, "zarrbits_hdf5_set_filter", __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_NOFILTER,
             "zarrbits: HDF5 does not find %s (filter %d); set HDF5_PLUGIN_PATH to its folder before the program starts", plugin,
             id);
    return -1;
  }
  return H5Pset_filter(dcpl, id, H5Z_FLAG_OPTIONAL, n, cd_values);
}

/*
 * Adds packbits to a dataset creation property list, as an optional filter. It must be the first filter of the list. fletcher32
 * may follow; so may deflate or another one, but a value that does not fit is an error then. Negative where HDF5 does not find
 * the plugin, and as H5Pset_filter(); a combination that the datatype does not allow is reported by H5Dcreate().
 */
static inline herr_t H5Pset_zarrbits_packbits(hid_t dcpl, unsigned bits, unsigned options, unsigned first_bit) {
  unsigned cd_values[3];
  cd_values[0] = bits;
  cd_values[1] = options;
  cd_values[2] = first_bit;
  return zarrbits_hdf5_set_filter(dcpl, ZARRBITS_HDF5_PACKBITS_ID, "libzarrbits_packbits.so", 3, cd_values);
}

/* Adds bytes: chunks in little (0) or big endian (not 0) byte order, whatever the datatype's. Must be the first filter as well.
 */
static inline herr_t H5Pset_zarrbits_bytes(hid_t dcpl, int big_endian) {
  unsigned cd_values[1];
  cd_values[0] = big_endian ? ZARRBITS_HDF5_BIG_ENDIAN : ZARRBITS_HDF5_LITTLE_ENDIAN;
  return zarrbits_hdf5_set_filter(dcpl, ZARRBITS_HDF5_BYTES_ID, "libzarrbits_bytes.so", 1, cd_values);
}

#ifdef __cplusplus
}
#endif

#endif /* ZARRBITS_HDF5_CONSTANTS_ONLY */
#endif /* ZARRBITS_HDF5_H */
