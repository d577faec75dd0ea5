# Many sources as one: most of the time of a build from nothing goes into reading the same headers again. What may stand
# together, so that it means what it means alone: compile_together.py. With HEBE_UNITY off every source is compiled alone.
option(HEBE_UNITY "Compile the sources of a target in groups: from nothing in two thirds of the time, one edit in more" OFF)

# hebe_together(RESULT NAME SOURCE...): in RESULT, what to compile instead of these sources of the target NAME.
function(hebe_together result name)
  set(sources ${ARGN})
  list(TRANSFORM sources PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  if(HEBE_UNITY)
    execute_process(COMMAND "${HEBE_PYTHON}" "${CMAKE_SOURCE_DIR}/cmake/compile_together.py" --folder "${CMAKE_BINARY_DIR}/together/${name}"
                      --roots "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include" -- ${sources}
                    OUTPUT_VARIABLE sources OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "cmake/compile_together.py failed for ${name}; -DHEBE_UNITY=OFF does without it")
    endif()
    string(REPLACE "\n" ";" sources "${sources}")
  endif()
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()
