# The install tree: headers, the static core, the worker, the command, and the CMake package.
include(CMakePackageConfigHelpers)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ptxbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ptxbench_core EXPORT ptxbenchTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(program ptxbench-worker ptxbench)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
