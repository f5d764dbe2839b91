# One CMake target a folder of src/. A folder links exactly the folders that it may include
# (docs/architecture.md, "Who may include whom"); tools/check_includes.py checks the includes themselves.

add_library(blockdraft_options INTERFACE)
target_include_directories(blockdraft_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
set(cxx_options -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  # Designated initializers leave out what keeps its default.
  -Wno-missing-field-initializers
  # A product and a sum are two roundings on every path that does not ask for a fused one: the accumulation order,
  # and with it every bit of the output, must not depend on the compiler's mood.
  -ffp-contract=off)
if(BLOCKDRAFT_WERROR)
  list(APPEND cxx_options -Werror)
endif()
target_compile_options(blockdraft_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${cxx_options}>")
if(BLOCKDRAFT_CUDA)
  target_compile_definitions(blockdraft_options INTERFACE BLOCKDRAFT_HAS_CUDA)
  # --fmad=false for the reason of -ffp-contract=off.
  set(cuda_options --fmad=false --expt-relaxed-constexpr -Wno-deprecated-gpu-targets -Xcompiler=-Wall,-Wextra)
  if(BLOCKDRAFT_WERROR)
    list(APPEND cuda_options -Werror=all-warnings)
  endif()
  target_compile_options(blockdraft_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>")
endif()
if(BLOCKDRAFT_SANITIZE)
  # -O1: the suite runs under sanitizers too, and unoptimized kernels would take an hour.
  target_compile_options(blockdraft_options INTERFACE -fsanitize=${BLOCKDRAFT_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1)
  target_link_options(blockdraft_options INTERFACE -fsanitize=${BLOCKDRAFT_SANITIZE})
endif()
target_link_libraries(blockdraft_options INTERFACE Threads::Threads fmt::fmt)

# blockdraft_module(NAME SOURCES ... [CUDA_SOURCES ...] MODULES ... [LIBRARIES ...])
# CUDA_SOURCES belong to builds with CUDA only.
function(blockdraft_module NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;CUDA_SOURCES;MODULES;LIBRARIES" ${ARGN})
  if(BLOCKDRAFT_CUDA)
    list(APPEND ARG_SOURCES ${ARG_CUDA_SOURCES})
  endif()
  add_library(blockdraft_${NAME} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_MODULES PREPEND blockdraft_)
  target_link_libraries(blockdraft_${NAME} PUBLIC blockdraft_options ${ARG_MODULES} PRIVATE ${ARG_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY BLOCKDRAFT_MODULES ${NAME})
endfunction()

# Runs a test of this folder again with each instruction set that BLOCKDRAFT_CPU_ISA may name; skipped, with the reason
# in its output, where the processor does not have it.
function(blockdraft_test_each_isa NAME)
  get_test_property(${NAME} LABELS labels)
  foreach(isa portable avx2 avx512 avx512_bf16)
    add_test(NAME ${NAME}_${isa} COMMAND ${ARGN})
    set_tests_properties(${NAME}_${isa} PROPERTIES LABELS "${labels}" TIMEOUT 1800
      ENVIRONMENT BLOCKDRAFT_CPU_ISA=${isa} SKIP_REGULAR_EXPRESSION ", this processor has [a-z0-9_]+ at most")
  endforeach()
endfunction()

# blockdraft_test(NAME SOURCES ... MODULES ... [LIBRARIES ...] [LABELS ...] [TIMEOUT seconds])
# One GoogleTest program; LABELS default to "fast".
function(blockdraft_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;MODULES;LIBRARIES;LABELS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  list(TRANSFORM ARG_MODULES PREPEND blockdraft_)
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${NAME} PRIVATE ${ARG_MODULES} blockdraft_options ${ARG_LIBRARIES} GTest::gtest_main GTest::gmock)
  target_compile_definitions(${NAME} PRIVATE BLOCKDRAFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1800)
  endif()
  add_test(NAME ${NAME} COMMAND ${NAME})
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
