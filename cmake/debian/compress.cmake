# SPDX-License-Identifier: BSL-1.0
# Run by cpack before it packs: Debian's pages and changelogs are compressed.
file(GLOB_RECURSE files ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/zarrbits.1 ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/changelog
  ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/changelog.Debian)
foreach(file ${files})
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
