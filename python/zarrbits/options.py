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
            "With --concat: given (the default), name, or value, which is the first one of the dimension's variable"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or go back"),
        'include': ('PATTERN',
            'Convert only what this pattern of paths matches, with the groups above and all below; may be given again'),
        'exclude': ('PATTERN',
            'Leave out what this pattern matches, with all below; may be given again'),
        'links': ('keep|copy|refuse',
            'Soft links, links into other files and further hard links: copy (what they lead to), keep (as notes) or refuse. Default: '
            "copy links into other files, and links that the convention's readers follow"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. May be given again"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'codec': ('bytes|packbits',
            'bytes, or packbits for bool and integers (zarr-python reads it with our package). Default: bytes, but chunks that the '
            'packbits filter made are copied as packbits'),
        'bits': ('[PATTERN=]N|auto',
            'With packbits. N: pack the integers of every dataset whose values all fit in N bits, others stay bytes. PATTERN=N or '
            'PATTERN=FIRST-LAST: the bits of the datasets that the pattern matches (the last one counts), where a value that does not '
            'fit is an error. auto: the bits that suggest finds. May be given again'),
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
            'Add the codec crc32c as the last one: each chunk ends with its checksum. All readers but GDAL check it'),
        'consolidate': ('',
            "Also put the metadata of all nodes into the root group's zarr.json; the default of the conventions netcdf and anndata"),
        'no_consolidate': ('',
            'Never do so'),
        'virtual': ('',
            'Write references to a file OUT.json or a folder OUT.parquet: chunks stay in the source, and are not copied'),
        'inline': ('BYTES',
            'With --virtual: objects of at most this size that are not chunks of the source go among the references, up to a quarter '
            'of --memory in all (default: 1024)'),
        'overwrite': ('',
            'Replace a Zarr store that exists, or an unfinished one with what is done of it'),
        'resume': ('',
            'Go on with an unfinished store, whose plan has the options that are not given here, or begin one; if this run fails, '
            'what is done stays. The same command as before continues by itself'),
        'partition': ('slurm|mpi|I/N',
            'Make the chunks of one share and write no metadata; when all shares are done, finalize does. I/N: share I of N, from 0; '
            'slurm: the task of a Slurm array, and the rank in it; mpi: the rank that mpirun or srun assigns. Without it: the whole '
            "store, whatever a launcher's variables say"),
        'threads': ('N',
            'Threads that make chunks, and processes that read the metadata of many files (default: the processors that the process '
            'may use)'),
        'memory': ('BYTES',
            'Limit the memory of the process, such as 512M (the default), at least 16M; a chunk that needs more is made alone, after '
            'a warning'),
        'fsync': ('',
            'Flush everything to the disk (fsync) before it counts as done'),
        'keep_going': ('',
            'Leave out chunks that cannot be read, and name them, instead of stopping'),
        'allow_expansion': ('',
            'Decode chunks that become more than 1,000 times larger, beyond --memory'),
        'endpoint': ('URL',
            "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'report': ('FILE.json',
            'Write what became of each object to this file, as JSON'),
        'allow_lossy': ('',
            'Exit status 0 although something was skipped or rounded'),
    },
    'finalize': {
        'concat': ('DIMENSION',
            'Join several files along this dimension: its name, or PATTERN:N for axis N of the datasets. A source may also be '
            '@LIST.txt or a quoted "*.nc"'),
        'concat_new': ('DIMENSION',
            'Join several files along a new dimension of this name: each file is one step of it. It becomes the first dimension of '
            'all datasets but the dimension scales'),
        'order': ('ORDER',
            "With --concat: given (the default), name, or value, which is the first one of the dimension's variable"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or go back"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. May be given again"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'consolidate': ('',
            "Also put the metadata of all nodes into the root group's zarr.json; the default of the conventions netcdf and anndata"),
        'no_consolidate': ('',
            'Never do so'),
        'fsync': ('',
            'Flush everything to the disk (fsync) before it counts as done'),
        'endpoint': ('URL',
            "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'report': ('FILE.json',
            'Write what became of each object to this file, as JSON'),
        'allow_lossy': ('',
            'Exit status 0 although something was skipped or rounded'),
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
            "With --concat: given (the default), name, or value, which is the first one of the dimension's variable"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or go back"),
        'include': ('PATTERN',
            'Convert only what this pattern of paths matches, with the groups above and all below; may be given again'),
        'exclude': ('PATTERN',
            'Leave out what this pattern matches, with all below; may be given again'),
        'links': ('keep|copy|refuse',
            'Soft links, links into other files and further hard links: copy (what they lead to), keep (as notes) or refuse. Default: '
            "copy links into other files, and links that the convention's readers follow"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. May be given again"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
        'codec': ('bytes|packbits',
            'bytes, or packbits for bool and integers (zarr-python reads it with our package). Default: bytes, but chunks that the '
            'packbits filter made are copied as packbits'),
        'bits': ('[PATTERN=]N|auto',
            'With packbits. N: pack the integers of every dataset whose values all fit in N bits, others stay bytes. PATTERN=N or '
            'PATTERN=FIRST-LAST: the bits of the datasets that the pattern matches (the last one counts), where a value that does not '
            'fit is an error. auto: the bits that suggest finds. May be given again'),
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
            'Add the codec crc32c as the last one: each chunk ends with its checksum. All readers but GDAL check it'),
        'virtual': ('',
            'Write references to a file OUT.json or a folder OUT.parquet: chunks stay in the source, and are not copied'),
        'inline': ('BYTES',
            'With --virtual: objects of at most this size that are not chunks of the source go among the references, up to a quarter '
            'of --memory in all (default: 1024)'),
        'keep_going': ('',
            'Leave out chunks that cannot be read, and name them, instead of stopping'),
        'allow_expansion': ('',
            'Decode chunks that become more than 1,000 times larger, beyond --memory'),
        'endpoint': ('URL',
            "With s3:// (source or store): the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'allow_lossy': ('',
            'Exit status 0 although something was skipped or rounded'),
    },
    'verify': {
        'include': ('PATTERN',
            'As given to convert: only this has to be in the store; may be given again'),
        'exclude': ('PATTERN',
            'As given to convert: this need not be in the store; may be given again'),
        'endpoint': ('URL',
            "With s3://: the server, if it is not Amazon's (or set AWS_ENDPOINT_URL)"),
        'external': ('DIR|all',
            'Also read other files of the source (external storage, sources of virtual datasets) in folder DIR and below, or, with '
            "all, anywhere. Default: only in the source's own folder and below. May be given again"),
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
            "With --concat: given (the default), name, or value, which is the first one of the dimension's variable"),
        'different': ('HOW',
            'With --concat, where datasets without the dimension differ between the files: refuse (the default), take those of the '
            'first file (first), or leave them out (skip)'),
        'allow_overlap': ('',
            "With --concat: values of the dimension's variable may occur twice, or go back"),
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
            "all, anywhere. Default: only in the source's own folder and below. May be given again"),
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
    },
    'doctor': {
        'no_lock': ('',
            'Open the HDF5 file without a lock, even while another process has it open for writing. Data may then be half written'),
    },
}
