/* SPDX-License-Identifier: BSL-1.0 */
/*
 * packbits in collective writes of parallel HDF5: mpirun -n N collective FILE ID FLAGS
 *
 * Writes datasets of 3 chunks of 20 values, three times, so that chunks with a value that does not fit come, stay and go: values
 * are 0 ... 59 and the round, and 5000 in one place of a chunk. In "own" a rank writes whole chunks, in "shared" every N-th
 * value. FLAGS: 1 sets the filter as optional, 0 as mandatory.
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { chunks = 3, chunk_size = 20, total = chunks * chunk_size, rounds = 3 };

static int failed(const char* what) {
  fprintf(stderr, "%s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 3);
  return 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4 || total % ranks != 0) return failed("starting with these arguments");
  unsigned id = 0, flags = 0;
  if (sscanf(argv[2], "%u", &id) != 1 || sscanf(argv[3], "%u", &flags) != 1)
    return failed("reading the filter's number and flags");

  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), dxpl = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE);
  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  if (file < 0) return failed("creating the file");
  const char* const names[] = {"own",          "shared",          "own, fletcher32",          "shared, fletcher32",
                               "own, deflate", "shared, deflate", "own, deflate, fletcher32", "shared, deflate, fletcher32"};
  for (unsigned k = 0; k < sizeof names / sizeof *names; ++k) {
    const int deflate = strstr(names[k], "deflate") != NULL, shared = strstr(names[k], "shared") != NULL;
    const hsize_t all = total, chunk = chunk_size;
    const hid_t space = H5Screate_simple(1, &all, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const unsigned bits = 12;
    H5Pset_chunk(dcpl, 1, &chunk);
    H5Pset_filter(dcpl, (H5Z_filter_t)id, flags, 1, &bits);
    if (deflate) H5Pset_deflate(dcpl, 4);
    if (strstr(names[k], "fletcher32")) H5Pset_fletcher32(dcpl);
    const hid_t d = H5Dcreate2(file, names[k], H5T_STD_U16LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    if (d < 0) return failed("creating a dataset");
    const hsize_t count = (hsize_t)(total / ranks), stride = shared ? (hsize_t)ranks : 1,
                  first = shared ? (hsize_t)rank : (hsize_t)rank * count;
    const hid_t memory = H5Screate_simple(1, &count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &stride, &count, NULL);
    for (int round = 0; round < rounds; ++round) {
      unsigned short values[total];
      for (hsize_t i = 0; i < count; ++i) {
        const hsize_t at = first + i * stride;
        values[i] = (unsigned short)(at + (hsize_t)round);
        const int wide = (at / chunk_size + (hsize_t)round) % 2 == 0 && at % chunk_size == 5;
        if (wide) values[i] = 5000;
      }
      if (H5Dwrite(d, H5T_NATIVE_USHORT, memory, space, dxpl, values) < 0) return failed("writing");
    }
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(dcpl);
    if (H5Dclose(d) < 0) return failed("closing a dataset");
  }
  H5Pclose(dxpl);
  H5Pclose(fapl);
  if (H5Fclose(file) < 0) return failed("closing the file");
  MPI_Finalize();
  return 0;
}
