# SPDX-License-Identifier: BSL-1.0
# Made by docs/man/docstrings.py from the command's --help.
"""For each verb of the command, its options: what their value is ("" for none), and what they do."""

OPTIONS: dict[str, dict[str, tuple[str, str]]] = {
    'convert': {
        'concat': ('DIMENSION',
            'Join several files along this dimension: its name, or PATTERN:N for axis N of the datasets. A source may also be '
            '@LIST.txt or a quoted "*.nc"'),
        'concat_new': ('DIMENSION',
            'Join several files along a new dimension of this name: each file is one step of it. It becomes the first dimension of '
            'all datasets but the dimension scales'),
        'append': ('DIMENSION',
            'Append these files to an existing store, along this dimension; files that are already in it are skipped'),
        'order': ('ORDER',
            "With --concat: given (the default), name, or value (the first of the dimension's variable)"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or change direction"),
        'include': ('PATTERN',
            'Convert only what this path pattern matches, with the groups above and everything below; can be repeated'),
        'exclude': ('PATTERN',
            'Leave out what this pattern matches, and everything below it; can be repeated'),
        'links': ('keep|copy|refuse',
            'Soft links, links into other files and further hard links: copy (their targets), keep (as notes) or refuse. Default: '
            "copy links into other files, and links that the convention's readers follow"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. Can be repeated"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'codec': ('bytes|packbits',
            'bytes, or packbits for bool and integers (zarr-python reads it with the zarrbits package). Default: bytes, but chunks '
            'that the packbits filter made are copied as packbits'),
        'bits': ('[PATTERN=]N|auto',
            'With packbits. N: pack the integers of every dataset whose values all fit in N bits, others stay bytes. PATTERN=N or '
            'PATTERN=FIRST-LAST: the bits of the datasets that the pattern matches (the last match counts), where a value that does '
            'not fit is an error. auto: the bits that suggest finds. Can be repeated'),
        'convention': ('NAME',
            "What the store's readers expect: none, netcdf, anndata, nwb, nexus, matlab or pytables. Default: recognised from the "
            'file'),
        'profile': ('NAME',
            'portable (codecs that all readers have; the default), native (stored chunks copied as numcodecs.* codecs), or recode'),
        'compress': ('HOW',
            'Encode everything again: none, gzip:6, zstd:3, blosc:zstd:5, blosc:lz4:5:bitshuffle; implies --profile recode'),
        'chunk': ('SHAPE',
            'Chunks of this shape for datasets of its rank, such as 100x200 or 100,200 (rank 1: 100,); implies --profile recode'),
        'shard': ('BYTES|SHAPE',
            'Put many chunks into one file or object (a shard): a size before compression, such as 64M, or a shape, such as '
            '1000x2000, for datasets of its rank'),
        'checksum': ('crc32c',
            'Add the codec crc32c as the last one: each chunk ends with its checksum. All readers except GDAL check it'),
        'consolidate': ('',
            "Also put the metadata of all nodes into the root group's zarr.json; the default of the conventions netcdf and anndata"),
        'no_consolidate': ('',
            'Do not consolidate metadata'),
        'virtual': ('',
            "Write references in kerchunk's format, to a file OUT.json or a folder OUT.parquet: chunks stay in the source"),
        'inline': ('BYTES',
            'With --virtual: objects of at most this size that are not chunks of the source are stored in the references, up to a '
            'quarter of --memory in all (default: 1024)'),
        'overwrite': ('',
            'Replace an existing Zarr store, or an unfinished one together with the work that is done'),
        'resume': ('',
            'Continue an unfinished store, or begin one. Options that are not given are taken from its plan. If this run fails, what '
            'is done is kept. Repeating the original command continues, too'),
        'partition': ('slurm|mpi|I/N',
            'Write the chunks of one share, but no metadata; finalize writes it when all shares are done. I/N: share I of N, from 0; '
            'slurm: the task of a Slurm array, and the rank in it; mpi: the rank that mpirun or srun assigns. Without it: the whole '
            'store, even under a launcher'),
        'threads': ('N',
            'Threads that make chunks, and processes that read the metadata of many files (default: the processors that the process '
            'may use)'),
        'memory': ('BYTES',
            'Limit the memory of the process, such as 512M (the default), at least 16M; a chunk that needs more is processed alone, '
            'after a warning'),
        'fsync': ('',
            'Flush everything to the disk (fsync) before it counts as done'),
        'keep_going': ('',
            'Leave out chunks that cannot be read, and report them, instead of stopping'),
        'allow_expansion': ('',
            'Allow chunks to decode to more than 1,000 times their size, beyond --memory'),
        'endpoint': ('URL',
            "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'report': ('FILE.json',
            'Write a report on each object to this file, as JSON'),
        'allow_lossy': ('',
            'Exit status 0 even if something was skipped or rounded'),
    },
    'finalize': {
        'concat': ('DIMENSION',
            'Join several files along this dimension: its name, or PATTERN:N for axis N of the datasets. A source may also be '
            '@LIST.txt or a quoted "*.nc"'),
        'concat_new': ('DIMENSION',
            'Join several files along a new dimension of this name: each file is one step of it. It becomes the first dimension of '
            'all datasets but the dimension scales'),
        'order': ('ORDER',
            "With --concat: given (the default), name, or value (the first of the dimension's variable)"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or change direction"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. Can be repeated"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'consolidate': ('',
            "Also put the metadata of all nodes into the root group's zarr.json; the default of the conventions netcdf and anndata"),
        'no_consolidate': ('',
            'Do not consolidate metadata'),
        'fsync': ('',
            'Flush everything to the disk (fsync) before it counts as done'),
        'endpoint': ('URL',
            "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'report': ('FILE.json',
            'Write a report on each object to this file, as JSON'),
        'allow_lossy': ('',
            'Exit status 0 even if something was skipped or rounded'),
    },
    'plan': {
        'concat': ('DIMENSION',
            'Join several files along this dimension: its name, or PATTERN:N for axis N of the datasets. A source may also be '
            '@LIST.txt or a quoted "*.nc"'),
        'concat_new': ('DIMENSION',
            'Join several files along a new dimension of this name: each file is one step of it. It becomes the first dimension of '
            'all datasets but the dimension scales'),
        'append': ('DIMENSION',
            'Append these files to an existing store, along this dimension; files that are already in it are skipped'),
        'order': ('ORDER',
            "With --concat: given (the default), name, or value (the first of the dimension's variable)"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or change direction"),
        'include': ('PATTERN',
            'Convert only what this path pattern matches, with the groups above and everything below; can be repeated'),
        'exclude': ('PATTERN',
            'Leave out what this pattern matches, and everything below it; can be repeated'),
        'links': ('keep|copy|refuse',
            'Soft links, links into other files and further hard links: copy (their targets), keep (as notes) or refuse. Default: '
            "copy links into other files, and links that the convention's readers follow"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. Can be repeated"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'codec': ('bytes|packbits',
            'bytes, or packbits for bool and integers (zarr-python reads it with the zarrbits package). Default: bytes, but chunks '
            'that the packbits filter made are copied as packbits'),
        'bits': ('[PATTERN=]N|auto',
            'With packbits. N: pack the integers of every dataset whose values all fit in N bits, others stay bytes. PATTERN=N or '
            'PATTERN=FIRST-LAST: the bits of the datasets that the pattern matches (the last match counts), where a value that does '
            'not fit is an error. auto: the bits that suggest finds. Can be repeated'),
        'convention': ('NAME',
            "What the store's readers expect: none, netcdf, anndata, nwb, nexus, matlab or pytables. Default: recognised from the "
            'file'),
        'profile': ('NAME',
            'portable (codecs that all readers have; the default), native (stored chunks copied as numcodecs.* codecs), or recode'),
        'compress': ('HOW',
            'Encode everything again: none, gzip:6, zstd:3, blosc:zstd:5, blosc:lz4:5:bitshuffle; implies --profile recode'),
        'chunk': ('SHAPE',
            'Chunks of this shape for datasets of its rank, such as 100x200 or 100,200 (rank 1: 100,); implies --profile recode'),
        'shard': ('BYTES|SHAPE',
            'Put many chunks into one file or object (a shard): a size before compression, such as 64M, or a shape, such as '
            '1000x2000, for datasets of its rank'),
        'checksum': ('crc32c',
            'Add the codec crc32c as the last one: each chunk ends with its checksum. All readers except GDAL check it'),
        'virtual': ('',
            "Write references in kerchunk's format, to a file OUT.json or a folder OUT.parquet: chunks stay in the source"),
        'inline': ('BYTES',
            'With --virtual: objects of at most this size that are not chunks of the source are stored in the references, up to a '
            'quarter of --memory in all (default: 1024)'),
        'keep_going': ('',
            'Leave out chunks that cannot be read, and report them, instead of stopping'),
        'allow_expansion': ('',
            'Allow chunks to decode to more than 1,000 times their size, beyond --memory'),
        'endpoint': ('URL',
            "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'allow_lossy': ('',
            'Exit status 0 even if something was skipped or rounded'),
    },
    'verify': {
        'include': ('PATTERN',
            'As given to convert: only this has to be in the store; can be repeated'),
        'exclude': ('PATTERN',
            'As given to convert: this need not be in the store; can be repeated'),
        'endpoint': ('URL',
            "With s3://: the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. Can be repeated"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'memory': ('BYTES',
            'Limit the memory for the references of a store, and for a chunk of strings, such as 512M (the default)'),
        'links': ('keep|copy',
            'As given to convert: with copy, the store must have what links lead to; with keep, notes are enough'),
        'concat': ('DIMENSION',
            'Join several files along this dimension: its name, or PATTERN:N for axis N of the datasets. A source may also be '
            '@LIST.txt or a quoted "*.nc"'),
        'concat_new': ('DIMENSION',
            'Join several files along a new dimension of this name: each file is one step of it. It becomes the first dimension of '
            'all datasets but the dimension scales'),
        'order': ('ORDER',
            "With --concat: given (the default), name, or value (the first of the dimension's variable)"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or change direction"),
        'part': ('',
            'With --concat: these are some of the files in the store, such as the one that was appended last; compares their values '
            'alone, where the store says that they are'),
    },
    'inspect': {
        'attributes': ('',
            'Also show the values of all attributes'),
        'endpoint': ('URL',
            "With s3://: the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'memory': ('BYTES',
            'Limit the memory for the references of a store, such as 512M (the default)'),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
    },
    'suggest': {
        'all': ('',
            'Also list the datasets that would gain little or nothing, and why'),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. Can be repeated"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
    },
    'doctor': {
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
    },
}
