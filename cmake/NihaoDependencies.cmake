# Every dependency: what the system has (find_package), else FetchContent at a pinned release. A host decides with CMake's own
# switches: CMAKE_DISABLE_FIND_PACKAGE_<name>, FETCHCONTENT_SOURCE_DIR_<NAME> (a local copy, which wins over both),
# FETCHCONTENT_FULLY_DISCONNECTED (never fetch).
include(FetchContent)

# nihao_dependency(<package> <target> GIT <url> TAG <tag> [HEADERS <folder of the headers in the source>] [OPTIONAL])
# makes <target> exist. With HEADERS the fetched source is only an include folder, and its own CMakeLists.txt is not run.
# OPTIONAL: nothing is fetched, and a target that is not there is no error (a local copy named by the host counts as there).
macro(nihao_dependency package target)
  cmake_parse_arguments(NIHAO_DEP "OPTIONAL" "GIT;TAG;HEADERS" "" ${ARGN})
  string(TOUPPER "${package}" NIHAO_DEP_UPPER)
  string(TOLOWER "${package}" NIHAO_DEP_LOWER)
  if(NOT TARGET ${target} AND NOT FETCHCONTENT_SOURCE_DIR_${NIHAO_DEP_UPPER})
    find_package(${package} CONFIG QUIET GLOBAL)
  endif()
  if(NOT TARGET ${target} AND (NOT NIHAO_DEP_OPTIONAL OR FETCHCONTENT_SOURCE_DIR_${NIHAO_DEP_UPPER}))
    set(NIHAO_DEP_ARGS GIT_REPOSITORY "${NIHAO_DEP_GIT}" GIT_TAG "${NIHAO_DEP_TAG}" GIT_SHALLOW ON)
    if(NIHAO_DEP_HEADERS)
      FetchContent_Declare(${package} ${NIHAO_DEP_ARGS} SOURCE_SUBDIR its-own-build-is-not-run)
    else()
      FetchContent_Declare(${package} ${NIHAO_DEP_ARGS})
    endif()
    FetchContent_MakeAvailable(${package})
    if(NIHAO_DEP_HEADERS AND EXISTS "${${NIHAO_DEP_LOWER}_SOURCE_DIR}/${NIHAO_DEP_HEADERS}")
      add_library(${target} INTERFACE IMPORTED GLOBAL)
      target_include_directories(${target} SYSTEM INTERFACE "${${NIHAO_DEP_LOWER}_SOURCE_DIR}/${NIHAO_DEP_HEADERS}")
    endif()
    if(NOT TARGET ${target})
      message(FATAL_ERROR "nihao needs ${package}, which was neither found nor fetched. Install it (Debian's package is named in "
                          "CONTRIBUTING.md), or point FETCHCONTENT_SOURCE_DIR_${NIHAO_DEP_UPPER} at its source.")
    endif()
  endif()
endmacro()
