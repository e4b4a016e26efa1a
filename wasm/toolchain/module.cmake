# The module of the npm package: wasm/*.cc over the library, linked twice. The first glue is for browsers; the second,
# `.node.mjs`, for Node. Their .wasm files are the same bytes, which the build asserts, so that one is shipped.
file(GLOB module_sources CONFIGURE_DEPENDS wasm/*.cc)

set(module_name headlight-simd)
if(HEADLIGHT_RELAXED)
  set(module_name headlight-relaxed)
endif()
if(HEADLIGHT_THREADS)
  string(APPEND module_name -threads)
endif()

# The lab is in the modules of one thread only: those with threads, which a chat takes, stay 32 kB smaller for it.
if(HEADLIGHT_THREADS)
  list(FILTER module_sources EXCLUDE REGEX "bind_(lab|positions)\\.cc$")
endif()
add_library(headlight_bindings OBJECT ${module_sources})
if(HEADLIGHT_THREADS)
  target_compile_definitions(headlight_bindings PRIVATE HEADLIGHT_NO_LAB)
endif()
target_include_directories(headlight_bindings PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(headlight_bindings PRIVATE $<$<CONFIG:Release>:-Oz>)
target_link_libraries(headlight_bindings PUBLIC headlight)

# headlight_module(<target> <suffix> <link options...>)
function(headlight_module target suffix)
  add_executable(${target})
  target_link_libraries(${target} PRIVATE headlight_bindings)
  # -Os here is about Binaryen's inlining across functions: 11 kB less, the same speed of the kernels.
  target_link_options(${target} PRIVATE -Os -lembind
    -sMODULARIZE=1 -sEXPORT_ES6=1 -sDYNAMIC_EXECUTION=0 -sFILESYSTEM=0 -sWASM_BIGINT=1
    -sEXPORTED_RUNTIME_METHODS=HEAPU8
    # Grown once, to the size computed from the model's header: exact steps instead of 20 % more.
    -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sMEMORY_GROWTH_LINEAR_STEP=1MB
    # The default of 64 KiB is overrun without a sign.
    -sSTACK_SIZE=1MB -sDEFAULT_PTHREAD_STACK_SIZE=1MB
    ${ARGN})
  if(HEADLIGHT_THREADS)
    # The loader makes the shared memory, and says how many workers to start before the module is ready.
    target_link_options(${target} PRIVATE -sIMPORTED_MEMORY=1
      "-sPTHREAD_POOL_SIZE=Module[\"headlightThreads\"]" -Wno-pthreads-mem-growth)
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${module_name} SUFFIX ${suffix}
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/module")
endfunction()

headlight_module(headlight_module .mjs -sENVIRONMENT=web,worker -sUSE_ES6_IMPORT_META=0)
headlight_module(headlight_module_node .node.mjs -sENVIRONMENT=node)
add_dependencies(headlight_module_node headlight_module)
add_custom_command(TARGET headlight_module_node POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E compare_files ${module_name}.wasm ${module_name}.node.wasm
  WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/module"
  COMMENT "${module_name}: one .wasm serves the browser and the Node glue" VERBATIM)
add_custom_target(headlight_modules DEPENDS headlight_module headlight_module_node)
