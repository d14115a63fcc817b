# Highway: headers only. An installed one, else a local source tree or a download, pinned.
set(TRUENORM_HIGHWAY_SOURCE "" CACHE PATH "A Highway source tree to use instead of an installed one")
set(TRUENORM_HIGHWAY_VERSION 1.0.3)

add_library(truenorm_highway INTERFACE)
# The headers stand alone: instruction sets are detected and dispatched in src/dispatch.cpp, so that no shared state of
# libhwy is touched.
target_compile_definitions(truenorm_highway INTERFACE HWY_STATIC_DEFINE)

if(NOT TRUENORM_HIGHWAY_SOURCE)
  find_path(TRUENORM_HIGHWAY_INCLUDE hwy/highway.h)
  mark_as_advanced(TRUENORM_HIGHWAY_INCLUDE)
endif()
if(NOT TRUENORM_HIGHWAY_SOURCE AND NOT TRUENORM_HIGHWAY_INCLUDE)
  include(FetchContent)
  message(STATUS "truenorm: no Highway found; fetching ${TRUENORM_HIGHWAY_VERSION}")
  FetchContent_Declare(highway
    URL https://github.com/google/highway/archive/refs/tags/${TRUENORM_HIGHWAY_VERSION}.tar.gz
    SOURCE_SUBDIR headers-only)
  FetchContent_MakeAvailable(highway)
  set(TRUENORM_HIGHWAY_SOURCE "${highway_SOURCE_DIR}")
endif()
if(TRUENORM_HIGHWAY_SOURCE)
  if(NOT EXISTS "${TRUENORM_HIGHWAY_SOURCE}/hwy/highway.h")
    message(FATAL_ERROR "truenorm: ${TRUENORM_HIGHWAY_SOURCE} has no hwy/highway.h")
  endif()
  target_include_directories(truenorm_highway SYSTEM INTERFACE "${TRUENORM_HIGHWAY_SOURCE}")
else()
  target_include_directories(truenorm_highway SYSTEM INTERFACE "${TRUENORM_HIGHWAY_INCLUDE}")
endif()
