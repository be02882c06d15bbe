# The install tree: headers, both libraries, the worker, the command, and the CMake package.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ptxbench)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ptxbench DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ptxbench_core ptxbench_shared EXPORT ptxbenchTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(ptxbench-worker PROPERTIES EXPORT_NAME worker)
install(TARGETS ptxbench-worker EXPORT ptxbenchTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS ptxbench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT ptxbenchTargets NAMESPACE ptxbench:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ptxbenchConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ptxbenchConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ptxbenchConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ptxbenchConfig.cmake ${PROJECT_BINARY_DIR}/ptxbenchConfigVersion.cmake
        DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/knowledge_packs DESTINATION ${CMAKE_INSTALL_DATADIR}/ptxbench)
