# cmake -DOUT=FILE -DFILES=a;b -DFOLDER=DIR -P write_strings.cmake: a C++ source with each file as a string.
set(text "// Made by write_strings.cmake.\n#include \"verify/judge_source.hpp\"\n\nnamespace ptxbench {\n\n")
string(APPEND text "const std::vector<JudgeSource>& judge_sources() {\n  static const std::vector<JudgeSource> sources = {\n")
foreach(name IN LISTS FILES)
  file(READ ${FOLDER}/${name} content)
  string(APPEND text "    {\"${name}\", R\"PTXBENCH(${content})PTXBENCH\"},\n")
endforeach()
string(APPEND text "  };\n  return sources;\n}\n\n}  // namespace ptxbench\n")
file(WRITE ${OUT} "${text}")
