# Finds what the build takes from the pinned Python packages in the venv: Arrow C++ (inside pyarrow) and the
# declarations of CUDA and NVML. No GPU, driver or CUDA toolkit is needed to build.

set(HEBE_PYTHON "" CACHE FILEPATH "Python with the packages of requirements.lock (default: .venv, else python3)")
if(NOT HEBE_PYTHON)
  if(EXISTS "${CMAKE_SOURCE_DIR}/.venv/bin/python")
    set(HEBE_PYTHON "${CMAKE_SOURCE_DIR}/.venv/bin/python")
  else()
    find_program(HEBE_PYTHON_FOUND python3 REQUIRED)
    set(HEBE_PYTHON "${HEBE_PYTHON_FOUND}")
  endif()
endif()

function(hebe_python_path result code)
  execute_process(COMMAND "${HEBE_PYTHON}" -c "${code}" OUTPUT_VARIABLE out OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_VARIABLE err RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${HEBE_PYTHON} cannot find ${result}; run ./check, which installs requirements.lock.\n${err}")
  endif()
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

# Arrow C++: pyarrow's own libraries carry a version suffix that the linker's -l does not find.
hebe_python_path(HEBE_ARROW_DIR "import pyarrow; print(pyarrow.get_library_dirs()[0])")
hebe_python_path(HEBE_ARROW_INCLUDE "import pyarrow; print(pyarrow.get_include())")
foreach(library arrow parquet)
  file(GLOB found "${HEBE_ARROW_DIR}/lib${library}.so.*")
  if(NOT found)
    message(FATAL_ERROR "no lib${library}.so.* in ${HEBE_ARROW_DIR}")
  endif()
  list(GET found 0 found)
  add_library(Arrow::${library} SHARED IMPORTED)
  set_target_properties(Arrow::${library} PROPERTIES IMPORTED_LOCATION "${found}"
    INTERFACE_INCLUDE_DIRECTORIES "${HEBE_ARROW_INCLUDE}")
endforeach()
target_link_libraries(Arrow::parquet INTERFACE Arrow::arrow)

# CUDA and NVML declarations, at build time only; the libraries are opened at run time.
hebe_python_path(HEBE_SITE "import sysconfig; print(sysconfig.get_paths()['purelib'])")
find_path(HEBE_CUDA_INCLUDE cuda.h HINTS "${HEBE_SITE}/nvidia/cu13/include" "$ENV{CUDA_HOME}/include" NO_CACHE REQUIRED)
find_path(HEBE_NVML_INCLUDE nvml.h HINTS "${HEBE_SITE}/nvidia/cu13/include" "$ENV{CUDA_HOME}/include" NO_CACHE REQUIRED)
add_library(hebe_cuda_headers INTERFACE)
target_include_directories(hebe_cuda_headers SYSTEM INTERFACE "${HEBE_CUDA_INCLUDE}" "${HEBE_NVML_INCLUDE}")
