# Writes OUTPUT, a header with the hash over the files named in LIST (paths relative to ROOT count, so that two
# checkouts of the same sources agree) and VERSION.
file(STRINGS ${LIST} files)
set(text "${VERSION}\n")
foreach(file IN LISTS files)
  file(SHA256 ${file} hash)
  file(RELATIVE_PATH name ${ROOT} ${file})
  string(APPEND text "${hash} ${name}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE ${OUTPUT} "#define PTXBENCH_BUILD_ID \"${id}\"\n")
