# CMake toolchain file of the wasm-* presets: finds an Emscripten that is new enough and hands over to its own
# toolchain file. Looked for, in this order: the folder named by HEADLIGHT_EMSCRIPTEN_ROOT (cache or environment),
# `emcc` on PATH (emsdk, Debian 13), the cache folder that wasm/toolchain/emscripten.sh fills (Debian 12).
# The compiler is always called by its own path, so an older one on PATH is never picked up.

# Older releases emit relaxed-SIMD opcodes from before the standard, which no browser accepts.
set(HEADLIGHT_EMSCRIPTEN_MINIMUM 3.1.60)

# Sets `out` to the version of the Emscripten in folder `root`, or to "" if there is none that runs.
function(headlight_emscripten_version root out)
  set(${out} "" PARENT_SCOPE)
  if(EXISTS "${root}/emcc.py")
    execute_process(COMMAND "${root}/emcc" --version OUTPUT_VARIABLE text ERROR_QUIET)
    if(text MATCHES "^emcc [^\n]* ([0-9]+\\.[0-9]+\\.[0-9]+)")
      set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

# Sets `out` to the folder of the first candidate that is new enough.
function(headlight_find_emscripten out)
  set(candidates "${HEADLIGHT_EMSCRIPTEN_ROOT}" "$ENV{HEADLIGHT_EMSCRIPTEN_ROOT}")
  find_program(emcc_on_path emcc NO_CACHE)
  if(emcc_on_path)
    file(REAL_PATH "${emcc_on_path}" emcc_on_path)
    cmake_path(GET emcc_on_path PARENT_PATH root_on_path)
    list(APPEND candidates "${root_on_path}")
  endif()
  set(cache "$ENV{XDG_CACHE_HOME}")
  if(NOT cache)
    set(cache "$ENV{HOME}/.cache")
  endif()
  list(APPEND candidates "${cache}/headlight/toolchain-1/root/usr/share/emscripten")
  foreach(root IN LISTS candidates)
    headlight_emscripten_version("${root}" version)
    if(version VERSION_GREATER_EQUAL HEADLIGHT_EMSCRIPTEN_MINIMUM)
      set(${out} "${root}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "No Emscripten ${HEADLIGHT_EMSCRIPTEN_MINIMUM} or newer found. "
    "On Debian 12 run `npm run setup`; elsewhere activate a current emsdk so that emcc is on PATH.")
endfunction()

if(NOT EMSCRIPTEN_ROOT_PATH)
  headlight_find_emscripten(EMSCRIPTEN_ROOT_PATH)
  set(EMSCRIPTEN_ROOT_PATH "${EMSCRIPTEN_ROOT_PATH}" CACHE PATH "Folder of em++")
endif()
include("${EMSCRIPTEN_ROOT_PATH}/cmake/Modules/Platform/Emscripten.cmake")
