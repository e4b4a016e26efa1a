# The header-only libraries of the C++ side: Highway, and for the tests doctest and nlohmann-json.
# Each is taken from the machine (the cache folder that emscripten.sh fills, or the system) or else fetched, pinned by
# its hash, and shown to the compiler as a link in one folder of its own: emcc must not see the rest of /usr/include.
include(FetchContent)

set(HEADLIGHT_DEPS_DIR "${CMAKE_BINARY_DIR}/deps/include")
file(MAKE_DIRECTORY "${HEADLIGHT_DEPS_DIR}")

set(headlight_cache "$ENV{XDG_CACHE_HOME}")
if(NOT headlight_cache)
  set(headlight_cache "$ENV{HOME}/.cache")
endif()

# headlight_header_library(<name> HEADER <h> URL <u> SHA256 <s> SUBDIR <d>) makes target headlight_<name> with the folder
# of <h> on its include path. SUBDIR: where inside the fetched archive that folder lies.
function(headlight_header_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HEADER;URL;SHA256;SUBDIR" "")
  find_path(headlight_${name}_DIR "${arg_HEADER}" NO_CMAKE_FIND_ROOT_PATH
    HINTS "${headlight_cache}/headlight/toolchain-1/include" PATHS /usr/include /usr/local/include)
  set(root "${headlight_${name}_DIR}")
  if(NOT root)
    message(STATUS "${arg_HEADER} is not on this machine: fetching ${arg_URL}")
    FetchContent_Declare(${name} URL "${arg_URL}" URL_HASH SHA256=${arg_SHA256}
      TIMEOUT 120 DOWNLOAD_EXTRACT_TIMESTAMP OFF SOURCE_SUBDIR no-build-of-its-own)
    FetchContent_MakeAvailable(${name})
    set(root "${${name}_SOURCE_DIR}/${arg_SUBDIR}")
  endif()
  cmake_path(GET arg_HEADER PARENT_PATH folder)
  file(CREATE_LINK "${root}/${folder}" "${HEADLIGHT_DEPS_DIR}/${folder}" SYMBOLIC)
  add_library(headlight_${name} INTERFACE)
  target_include_directories(headlight_${name} SYSTEM INTERFACE "${HEADLIGHT_DEPS_DIR}")
endfunction()

headlight_header_library(hwy HEADER hwy/highway.h SUBDIR .
  URL https://github.com/google/highway/archive/refs/tags/1.2.0.tar.gz
  SHA256 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343)
headlight_header_library(doctest HEADER doctest/doctest.h SUBDIR .
  URL https://github.com/doctest/doctest/archive/refs/tags/v2.4.11.tar.gz
  SHA256 632ed2c05a7f53fa961381497bf8069093f0d6628c5f26286161fbd32a560186)
headlight_header_library(json HEADER nlohmann/json.hpp SUBDIR include
  URL https://github.com/nlohmann/json/releases/download/v3.11.3/json.tar.xz
  SHA256 d6c65aca6b1ed68e7a182f4757257b107ae403032760ed6ef121c9d55e81757d)
