# Embeds the virtual headers (src/compile/headers/) in the compile layer, as they are; included by src/CMakeLists.txt.
file(GLOB ptxbench_virtual_headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compile/headers/*)
set(ptxbench_embedded_headers ${CMAKE_CURRENT_BINARY_DIR}/compile_virtual_headers.cpp)
add_custom_command(
  OUTPUT ${ptxbench_embedded_headers}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/compile/headers -DOUTPUT=${ptxbench_embedded_headers}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/compile/embed_headers.cmake
  DEPENDS ${ptxbench_virtual_headers} ${CMAKE_CURRENT_SOURCE_DIR}/compile/embed_headers.cmake
  COMMENT "Embedding the virtual headers" VERBATIM)
if(TARGET ptxbench_layer_compile)
  target_sources(ptxbench_layer_compile PRIVATE ${ptxbench_embedded_headers})
endif()
