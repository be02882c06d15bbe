# The layers of the library, lowest first; tests/lint/layers.sh reads this list and fails on an include that goes up or
# sideways. Layers written with a colon after a number share a row: they may not include each other.
# Contracts are a pack's, and name families of instructions: so pack lies above sass.
set(PTXBENCH_LAYERS
    1:core 2:trace 3:plan 3:ptx 4:compile 4:sass 5:pack 5:device 6:emulator 7:verify 8:bench 8:count 9:worker 10:evaluate
    11:llm 12:agent 13:fixit 13:report)

# ptxbench_layer(NAME): an OBJECT library ptxbench_layer_NAME from src/NAME/*.cpp (main.cpp excepted).
function(ptxbench_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(ptxbench_layer_${name} OBJECT ${sources})
  target_include_directories(ptxbench_layer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(ptxbench_layer_${name} PRIVATE ptxbench_flags PtxbenchCuda::headers simdjson::simdjson OpenSSL::Crypto
                                                 Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY PTXBENCH_LAYER_TARGETS ptxbench_layer_${name})
endfunction()
