# Highway, headers only. The first that there is: a source tree that the caller names, an installed one, a download.
set(TRUENORM_HIGHWAY_SOURCE "" CACHE PATH "A Highway source tree to use instead of an installed one")
option(TRUENORM_HIGHWAY_FETCH "Fetch Highway even where one is installed" OFF)

if(NOT TRUENORM_HIGHWAY_SOURCE AND NOT TRUENORM_HIGHWAY_FETCH)
  find_path(TRUENORM_HIGHWAY_INCLUDE hwy/highway.h)
  mark_as_advanced(TRUENORM_HIGHWAY_INCLUDE)
endif()
if(TRUENORM_HIGHWAY_SOURCE)
  set(_highway "${TRUENORM_HIGHWAY_SOURCE}")
elseif(TRUENORM_HIGHWAY_INCLUDE AND NOT TRUENORM_HIGHWAY_FETCH)
  set(_highway "${TRUENORM_HIGHWAY_INCLUDE}")
else()
  # FETCHCONTENT_SOURCE_DIR_HIGHWAY replaces the download by a local tree, as for every project that FetchContent gets.
  message(STATUS "truenorm: fetching Highway (TRUENORM_HIGHWAY_SOURCE names a local tree instead)")
  include(FetchContent)
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW)  # unpacked files are as old as the unpacking
  endif()
  FetchContent_Declare(highway
    URL https://github.com/google/highway/archive/refs/tags/1.0.3.tar.gz
    URL_HASH SHA256=566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e
    SOURCE_SUBDIR none)  # headers only: nothing of it is built
  FetchContent_MakeAvailable(highway)
  set(_highway "${highway_SOURCE_DIR}")
endif()
if(NOT EXISTS "${_highway}/hwy/highway.h")
  message(FATAL_ERROR "truenorm: ${_highway} has no hwy/highway.h")
endif()

add_library(truenorm_highway INTERFACE)
target_include_directories(truenorm_highway SYSTEM INTERFACE "${_highway}")
# The headers stand alone: instruction sets are detected and dispatched in src/dispatch.cpp, so that no shared state of
# libhwy is touched.
target_compile_definitions(truenorm_highway INTERFACE HWY_STATIC_DEFINE)
