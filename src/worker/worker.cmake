# The worker's build id, a hash over all sources of the library, and the place where it will be installed. A library
# refuses a worker of another build, because what they send each other may change with any commit.
file(GLOB_RECURSE PTXBENCH_HASHED_SOURCES CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/*.cpp ${PROJECT_SOURCE_DIR}/src/*.hpp ${PROJECT_SOURCE_DIR}/include/*.hpp)
set(_ptxbench_generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${_ptxbench_generated})
string(REPLACE ";" "\n" _ptxbench_list "${PTXBENCH_HASHED_SOURCES}")
file(CONFIGURE OUTPUT ${_ptxbench_generated}/hashed_sources.txt CONTENT "${_ptxbench_list}\n" @ONLY)
add_custom_command(
  OUTPUT ${_ptxbench_generated}/ptxbench_build_id.hpp
  COMMAND ${CMAKE_COMMAND} -DLIST=${_ptxbench_generated}/hashed_sources.txt -DROOT=${PROJECT_SOURCE_DIR}
          -DVERSION=${PROJECT_VERSION} -DOUTPUT=${_ptxbench_generated}/ptxbench_build_id.hpp
          -P ${CMAKE_CURRENT_SOURCE_DIR}/worker/build_id.cmake
  DEPENDS ${PTXBENCH_HASHED_SOURCES} ${_ptxbench_generated}/hashed_sources.txt
          ${CMAKE_CURRENT_SOURCE_DIR}/worker/build_id.cmake
  COMMENT "Hashing sources for the worker's build id"
  VERBATIM)
target_sources(ptxbench_layer_worker PRIVATE ${_ptxbench_generated}/ptxbench_build_id.hpp)
target_include_directories(ptxbench_layer_worker PRIVATE ${_ptxbench_generated})
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/worker/worker_path.cpp PROPERTIES COMPILE_DEFINITIONS
                            PTXBENCH_INSTALLED_WORKER="${CMAKE_INSTALL_FULL_BINDIR}/ptxbench-worker")
