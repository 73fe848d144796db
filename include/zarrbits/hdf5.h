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
 * Nothing here links to zarrbits: HDF5 loads the plugins at run time from the folders in HDF5_PLUGIN_PATH. docs/guide/hdf5.md has
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
 * A chunk that holds a value which does not fit stays as it is, and its length says so: writing it never fails, whether the
 * filter is optional or mandatory, and whatever filters follow. So a dataset is refused if its chunks are as large packed as
 * unpacked.
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
#define ZARRBITS_HDF5_RANGE_RAW 0u      /* stored as it is */
#define ZARRBITS_HDF5_RANGE_TRUNCATE 4u /* the bits that do not fit are dropped: data is lost */
#define ZARRBITS_HDF5_RANGE_REPORT 8u   /* as RAW, with a line on standard error, once for each dataset */
#define ZARRBITS_HDF5_RANGE_ERROR 12u   /* the write fails, if only in H5Fclose(); HDF5 may crash: docs/reference/filters.md */
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
 * Makes HDF5 load the plugin of a filter; if it does not find it, there is a sentence on the error stack, and the result is
 * negative.
 */
static inline herr_t zarrbits_hdf5_find(int id, const char* plugin) {
  if (H5Zfilter_avail(id) > 0) return 0;
  H5Epush2(H5E_DEFAULT, __FILE__, "zarrbits_hdf5_find", __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_NOFILTER,
           "zarrbits: HDF5 does not find %s (filter %d); set HDF5_PLUGIN_PATH to its folder before the program starts", plugin,
           id);
  return -1;
}

/*
 * Loads both filters. Call it first in a program that writes to datasets which exist already: HDF5 loads a plugin when a dataset
 * is created or read, never when it is written, and stores chunks without an optional filter that is not loaded, in silence.
 * Negative if HDF5 does not find one of them.
 */
static inline herr_t zarrbits_hdf5_load(void) {
  const herr_t packbits = zarrbits_hdf5_find(ZARRBITS_HDF5_PACKBITS_ID, "libzarrbits_packbits.so");
  const herr_t bytes = zarrbits_hdf5_find(ZARRBITS_HDF5_BYTES_ID, "libzarrbits_bytes.so");
  return packbits < 0 ? packbits : bytes;
}

/*
 * HDF5 would accept an optional filter that it cannot find, and store everything without it. This function refuses it.
 */
static inline herr_t zarrbits_hdf5_set_filter(hid_t dcpl, int id, const char* plugin, size_t n, const unsigned cd_values[]) {
  if (zarrbits_hdf5_find(id, plugin) < 0) return -1;
  return H5Pset_filter(dcpl, id, H5Z_FLAG_OPTIONAL, n, cd_values);
}

/*
 * Adds packbits to a dataset creation property list, as an optional filter. No filter but fletcher32 may stand before it; any may
 * follow. Negative where HDF5 does not find the plugin, and as H5Pset_filter(); a combination that the datatype does not allow is
 * reported by H5Dcreate().
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
