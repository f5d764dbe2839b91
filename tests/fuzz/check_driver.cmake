# Runs PROGRAM on one seed, WAY, and checks exit status and the input that it leaves behind in FOLDER.
file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/seeds/seed ${WAY})
set(failure ${FOLDER}/failure.bin)
set(seconds 0)
if(WAY STREQUAL "mutated")
  set(seconds 20)  # ends long before, at the first mutation that destroys the word
endif()
execute_process(
  COMMAND ${PROGRAM} --seconds=${seconds} --seed=7 --timeout=1 --failure=${failure} ${FOLDER}/seeds
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(WAY STREQUAL "none")
  if(NOT status EQUAL 0 OR EXISTS ${failure})
    message(FATAL_ERROR "a harmless input failed (${status}): ${output}")
  endif()
  return()
endif()
if(status EQUAL 0)
  message(FATAL_ERROR "'${WAY}' passed: ${output}")
endif()
if(NOT EXISTS ${failure} OR NOT output MATCHES "the input is in [^\n]*failure.bin")
  message(FATAL_ERROR "'${WAY}' left no input (${status}): ${output}")
endif()
file(READ ${failure} input HEX)
string(HEX ${WAY} seed)
if(WAY STREQUAL "mutated")
  # What was found must fail again from its file.
  execute_process(COMMAND ${PROGRAM} --failure=${FOLDER}/again.bin ${failure}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    message(FATAL_ERROR "the input ${input} does not fail again")
  endif()
elseif(NOT input STREQUAL seed)
  message(FATAL_ERROR "'${WAY}' left the input ${input}, expected ${seed}")
endif()
