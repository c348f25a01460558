// Constants as an object file; see linked_weights.h.
//
// One section of data and one symbol, written straight from where the constants are.  They are a
// group of the symbol's name, so that a library in which several regions have the same constants,
// such as those for sizes of one batch, has them once.  The section
// is of the large data model (.lrodata), so that gigabytes of weights do not come to stand between
// a library's code and its data.
#include <elf.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "memory/buffer.h"
#include "weights/linked_weights.h"

namespace mxplan {
namespace {

constexpr int64_t kPage = 4096;
constexpr uint64_t kLarge = 0x10000000;  // SHF_X86_64_LARGE, which not every elf.h has

// Sections in the order of their numbers.
enum Section : uint16_t {
  kNone,
  kGroup,
  kData,
  kStack,
  kSymbols,
  kNames,
  kSectionNames,
  kSections
};

constexpr char kSectionNameBytes[] =
    "\0.lrodata.mxplan\0.note.GNU-stack\0.symtab\0.strtab\0.shstrtab\0.group";
constexpr uint32_t kNameAt[kSections] = {0, 59, 1, 17, 33, 41, 49};
// Linkers keep one of all groups of a name, and weights of equal names are equal.
constexpr std::array<uint32_t, 2> kGroupWords = {GRP_COMDAT, kData};

struct Header {
  Elf64_Ehdr elf{};
  std::array<Elf64_Shdr, kSections> sections{};
  std::array<Elf64_Sym, 2> symbols{};
  std::string names;
};

Header MakeHeader(const std::string& symbol, int64_t bytes) {
  Header h;
  h.names = std::string(1, '\0') + symbol + '\0';
  std::memcpy(h.elf.e_ident, ELFMAG, SELFMAG);
  h.elf.e_ident[EI_CLASS] = ELFCLASS64;
  h.elf.e_ident[EI_DATA] = ELFDATA2LSB;
  h.elf.e_ident[EI_VERSION] = EV_CURRENT;
  h.elf.e_type = ET_REL;
  h.elf.e_machine = EM_X86_64;
  h.elf.e_version = EV_CURRENT;
  h.elf.e_ehsize = sizeof(Elf64_Ehdr);
  h.elf.e_shentsize = sizeof(Elf64_Shdr);
  h.elf.e_shnum = kSections;
  h.elf.e_shstrndx = kSectionNames;

  // Behind the ELF header: sections, symbols, names; on the next page the data.
  uint64_t at = sizeof(Elf64_Ehdr);
  h.elf.e_shoff = at;
  at += sizeof(h.sections);
  auto place = [&](Section section, uint32_t type, uint64_t size, uint64_t alignment) {
    Elf64_Shdr& entry = h.sections[section];
    at = (at + alignment - 1) / alignment * alignment;
    entry.sh_name = kNameAt[section];
    entry.sh_type = type;
    entry.sh_offset = at;
    entry.sh_size = size;
    entry.sh_addralign = alignment;
    at += size;
  };
  place(kSymbols, SHT_SYMTAB, sizeof(h.symbols), 8);
  place(kNames, SHT_STRTAB, h.names.size(), 1);
  place(kSectionNames, SHT_STRTAB, sizeof(kSectionNameBytes), 1);
  place(kGroup, SHT_GROUP, sizeof(kGroupWords), 4);
  place(kStack, SHT_PROGBITS, 0, 1);
  place(kData, SHT_PROGBITS, static_cast<uint64_t>(bytes), kPage);
  h.sections[kGroup].sh_entsize = sizeof(uint32_t);
  h.sections[kGroup].sh_link = kSymbols;
  h.sections[kGroup].sh_info = 1;  // the symbol that names it
  h.sections[kData].sh_flags = SHF_ALLOC | SHF_GROUP | kLarge;
  h.sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  h.sections[kSymbols].sh_link = kNames;
  h.sections[kSymbols].sh_info = 1;  // the first symbol that is not local

  h.symbols[1].st_name = 1;
  h.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  h.symbols[1].st_shndx = kData;
  h.symbols[1].st_size = static_cast<uint64_t>(bytes);
  return h;
}

void PadTo(std::ofstream* file, uint64_t offset) {
  auto at = static_cast<uint64_t>(file->tellp());
  if (offset > at) *file << std::string(offset - at, '\0');
}

}  // namespace

void WriteWeightsObject(const std::string& path, const std::string& symbol,
                        const std::vector<ConstantData>& constants) {
  WeightsPlan plan = PlanWeights(constants);
  Header h = MakeHeader(symbol, plan.bytes);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&h.elf), sizeof(h.elf));
  file.write(reinterpret_cast<const char*>(h.sections.data()), sizeof(h.sections));
  PadTo(&file, h.sections[kSymbols].sh_offset);
  file.write(reinterpret_cast<const char*>(h.symbols.data()), sizeof(h.symbols));
  file << h.names;
  file.write(kSectionNameBytes, sizeof(kSectionNameBytes));
  PadTo(&file, h.sections[kGroup].sh_offset);
  file.write(reinterpret_cast<const char*>(kGroupWords.data()), sizeof(kGroupWords));
  uint64_t base = h.sections[kData].sh_offset;
  for (size_t i = 0; i < constants.size() && file; ++i) {
    PadTo(&file, base + static_cast<uint64_t>(plan.offsets[i]));
    file.write(constants[i].data, constants[i].stored_bytes);
  }
  if (file) PadTo(&file, base + static_cast<uint64_t>(plan.bytes));
  file.close();
  if (!file) ThrowUnsupported(path, ": the weights cannot be written (", std::strerror(errno), ")");
}

}  // namespace mxplan
