# Embeds the judge's device code into the library, as strings: NVRTC compiles it once an architecture.
set(_judge_files judge.cu judge.h random.h values.h attention.h attention_kernels.h)
set(_judge_out ${CMAKE_CURRENT_BINARY_DIR}/verify/judge_source.cpp)
list(TRANSFORM _judge_files PREPEND ${CMAKE_CURRENT_LIST_DIR}/ OUTPUT_VARIABLE _judge_paths)
add_custom_command(
  OUTPUT ${_judge_out}
  COMMAND ${CMAKE_COMMAND} -DOUT=${_judge_out} "-DFILES=${_judge_files}" -DFOLDER=${CMAKE_CURRENT_LIST_DIR}
          -P ${CMAKE_CURRENT_LIST_DIR}/write_strings.cmake
  DEPENDS ${_judge_paths} ${CMAKE_CURRENT_LIST_DIR}/write_strings.cmake
  COMMENT "Embedding the judge's device code"
  VERBATIM)
target_sources(ptxbench_layer_verify PRIVATE ${_judge_out})
