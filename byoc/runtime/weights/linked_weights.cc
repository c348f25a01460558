// Naming constants and finding them in loaded libraries; see linked_weights.h.
#include "weights/linked_weights.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>

#include "base/digest.h"
#include "base/error.h"
#include "memory/buffer.h"

namespace mxplan {
namespace {

// Closes what dlopen gave.
struct Handle {
  void* library;
  explicit Handle(void* opened) : library(opened) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { dlclose(library); }
};

// Names of the loaded libraries as the loader knows them, the last one first.
std::vector<std::string> LoadedLibraries() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
        return 0;
      },
      &names);
  return {names.rbegin(), names.rend()};
}

// -1 where the system names another symbol of that address, such as one without bytes.
int64_t SizeOfSymbol(const std::string& name, const void* address) {
  Dl_info info;
  void* symbol = nullptr;
  if (!dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) || !symbol) return -1;
  if (!info.dli_sname || name != info.dli_sname) return -1;
  return static_cast<int64_t>(static_cast<const ElfW(Sym)*>(symbol)->st_size);
}

}  // namespace

std::string WeightsSymbol(const std::vector<ConstantData>& constants) {
  Digester digester(0);
  for (const ConstantData& constant : constants) {
    const int64_t stored = constant.stored_bytes;  // where one ends and the next one begins
    digester.Add(&stored, sizeof(stored));
    digester.Add(constant.form.packed.data(), constant.form.packed.size());
    digester.Add(constant.serves.data(), constant.serves.size());
    digester.Add(constant.data, static_cast<size_t>(constant.stored_bytes));
  }
  Digest digest = digester.Take();
  char name[64];
  std::snprintf(name, sizeof(name), "mxplan_weights_%016llx%016llx",
                static_cast<unsigned long long>(digest[0]),
                static_cast<unsigned long long>(digest[1]));
  return name;
}

WeightsPlan PlanWeights(const std::vector<ConstantData>& constants) {
  WeightsPlan plan;
  for (const ConstantData& constant : constants) {
    plan.offsets.push_back(plan.bytes);
    constexpr int64_t kMost = int64_t{1} << 46;  // no address space holds more
    if (constant.stored_bytes < 0 || constant.stored_bytes > kMost - plan.bytes) {
      ThrowInvalidInput("constants of ", constant.stored_bytes, " bytes and more");
    }
    plan.bytes += AlignUp(constant.stored_bytes);
  }
  return plan;
}

std::shared_ptr<const char> FindWeights(const std::string& symbol, int64_t bytes) {
  // A symbol without bytes stands where the next one does, and the system cannot tell them apart.
  if (bytes == 0) return nullptr;
  for (const std::string& name : LoadedLibraries()) {
    void* opened = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!opened) continue;
    auto handle = std::make_shared<Handle>(opened);
    void* address = dlsym(opened, symbol.c_str());
    if (!address) continue;
    int64_t size = SizeOfSymbol(symbol, address);
    if (size >= 0 && size != bytes) {  // unknown, it is what the digest in its name says
      ThrowInvalidInput(name, ": the data ", symbol, " has ", size, " bytes, not ", bytes);
    }
    return {handle, static_cast<const char*>(address)};
  }
  ThrowInvalidInput("no loaded library has the data ", symbol,
                    "; export the whole compiled module, not a region of it");
}

}  // namespace mxplan
