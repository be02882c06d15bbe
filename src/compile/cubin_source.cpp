// A .cubin source: base64 in a Solution, bytes through the API; checked as far as needs no knowledge of SASS.
#include "compile/compile_source.hpp"
#include "core/base64.hpp"

#include <elf.h>

#include <cstring>

namespace ptxbench {
namespace {

constexpr std::uint16_t kMachineCuda = 190;  // EM_CUDA

template <class T>
bool read_at(std::string_view bytes, std::uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

// Names of symbols that are used and not defined.
std::vector<std::string> undefined_symbols(std::string_view elf, const Elf64_Ehdr& header) {
  std::vector<std::string> names;
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table{}, strings{};
    if (!read_at(elf, header.e_shoff + std::uint64_t{sizeof(Elf64_Shdr)} * static_cast<unsigned>(i), table) ||
        table.sh_type != SHT_SYMTAB || table.sh_link >= header.e_shnum ||
        !read_at(elf, header.e_shoff + std::uint64_t{sizeof(Elf64_Shdr)} * table.sh_link, strings))
      continue;
    Elf64_Sym symbol{};
    for (std::uint64_t at = 0;
         at + sizeof(symbol) <= table.sh_size && read_at(elf, table.sh_offset + at, symbol);
         at += sizeof(symbol)) {
      if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
      const std::uint64_t begin = strings.sh_offset + symbol.st_name;
      if (begin >= elf.size()) continue;
      const std::string_view rest = elf.substr(begin, 256);
      names.emplace_back(rest.substr(0, rest.find('\0')));
    }
  }
  return names;
}

}  // namespace

SourceResult take_cubin(const CompileTools& tools, const BoundSource& source, std::string_view content) {
  SourceResult result;
  result.ok = true;
  result.module.source = source.path;
  std::string decoded;
  if (!content.starts_with(ELFMAG)) {
    Result<std::string> bytes = base64_decode(content);
    if (!bytes || !bytes->starts_with(ELFMAG)) {
      fail(result, "cubin_invalid",
           source.path + " is neither a cubin nor one in base64" +
               (bytes ? "" : ": " + bytes.error().message));
      return result;
    }
    decoded = std::move(*bytes);
    content = decoded;
  }
  Elf64_Ehdr header{};
  if (!read_at(content, 0, header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != kMachineCuda) {
    fail(result, "cubin_invalid", source.path + " is an ELF file, and not one of CUDA's");
    return result;
  }
  // Until CUDA 12 the architecture is in the low byte of the flags, from CUDA 13 on in the next one.
  const int sm = static_cast<int>(header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff
                                                                     : header.e_flags & 0xff);
  if (sm / 10 != tools.arch.sm / 10)
    fail(result, "cubin_arch",
         source.path + " is for sm_" + std::to_string(sm) + ", and the device is " + tools.arch.name);
  std::string heap;
  for (const std::string& name : undefined_symbols(content, header))
    if (name == "malloc" || name == "free") heap += (heap.empty() ? "" : ", ") + name;
  if (!heap.empty()) fail_device_heap(result, source.path, heap);
  result.module.cubin.assign(content.begin(), content.end());
  for (const std::string& name : source.name_expressions) result.module.lowered.emplace_back(name, name);
  return result;
}

}  // namespace ptxbench
