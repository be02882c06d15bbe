# cmake -DFOLDER=... -DOUTPUT=... -P embed_headers.cmake: writes the files of FOLDER as raw string literals.
file(GLOB headers RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT headers)
set(rows "")
foreach(header IN LISTS headers)
  file(READ ${FOLDER}/${header} text)
  string(APPEND rows "    {\"${header}\", R\"ptxbench_hdr(${text})ptxbench_hdr\"},\n")
endforeach()
list(LENGTH headers count)
file(WRITE ${OUTPUT}
"// Made by src/compile/embed_headers.cmake from src/compile/headers/.
#include \"compile/headers.hpp\"

namespace ptxbench {
namespace {
constexpr VirtualHeader kHeaders[${count}] = {
${rows}};
}  // namespace
std::span<const VirtualHeader> virtual_headers() { return kHeaders; }
}  // namespace ptxbench
")
