// The region module as TVM sees it.  This file alone knows the FFI: it unpacks tensors, hands them
// to a Region and turns errors into those of Python.
#include <oneapi/dnnl/dnnl_debug.h>
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "container.h"
#include "describe.h"
#include "error.h"
#include "linked_weights.h"
#include "memory_debug.h"
#include "observer.h"
#include "primitive_cache.h"
#include "region.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

constexpr const char* kKind = "mxplan_onednn";
constexpr const char* kWeightsKind = "mxplan.weights";  // no backend's name

[[noreturn]] void Rethrow(const Error& error) {
  // The kinds that tvm_mxplan/errors.py registers.
  auto kind = [&] {
    switch (error.kind()) {
      case ErrorKind::kInvalidInput:
        return "tvm_mxplan.InvalidInputError";
      case ErrorKind::kInvalidType:
        return "TypeError";
      case ErrorKind::kUnsupported:
        return "tvm_mxplan.UnsupportedError";
      default:
        return "tvm_mxplan.InternalError";
    }
  };
  throw ffi::Error(kind(), error.what(), TVMFFIBacktrace(__FILE__, __LINE__, __func__, 0));
}

template <typename F>
auto Guard(const F& function) -> decltype(function()) {
  try {
    return function();
  } catch (const Error& error) {
    Rethrow(error);
  } catch (const dnnl::error& error) {
    Rethrow(Error(ErrorKind::kInternal, Concat("oneDNN ", error.what())));
  } catch (const std::bad_alloc&) {
    Rethrow(Error(ErrorKind::kUnsupported, "out of memory"));
  }
}

// The name TVM gives a type, without allocating for the usual ones.
const char* DtypeName(DLDataType dtype) {
  struct Name {
    uint8_t code, bits;
    const char* name;
  };
  constexpr Name kNames[] = {
      {kDLFloat, 32, "float32"},   {kDLFloat, 64, "float64"}, {kDLFloat, 16, "float16"},
      {kDLBfloat, 16, "bfloat16"}, {kDLInt, 8, "int8"},       {kDLInt, 16, "int16"},
      {kDLInt, 32, "int32"},       {kDLInt, 64, "int64"},     {kDLUInt, 8, "uint8"},
      {kDLUInt, 16, "uint16"},     {kDLUInt, 32, "uint32"},   {kDLUInt, 64, "uint64"},
      {kDLBool, 8, "bool"}};
  for (const Name& entry : kNames) {
    if (entry.code == dtype.code && entry.bits == dtype.bits && dtype.lanes == 1) return entry.name;
  }
  return "a type unknown to oneDNN";
}

bool OnCpu(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost;
}

TensorRef ToRef(const DLTensor& tensor) {
  TensorRef ref;
  ref.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  ref.shape = tensor.shape;
  ref.strides = tensor.strides;
  ref.rank = tensor.ndim;
  ref.dtype = DtypeName(tensor.dtype);
  ref.on_cpu = OnCpu(tensor.device);
  return ref;
}

ConstantData ToConstant(const ffi::Tensor& tensor, int64_t number) {
  if (!tensor.IsContiguous() || !OnCpu(tensor.device())) {
    ThrowInvalidInput("constant ", number, " is not contiguous on the CPU");
  }
  const DLTensor* raw = tensor.GetDLTensorPtr();
  ConstantData constant;
  constant.dtype = DtypeName(raw->dtype);
  constant.shape.assign(raw->shape, raw->shape + raw->ndim);
  constant.data = static_cast<const char*>(raw->data) + raw->byte_offset;
  constant.bytes = (raw->dtype.bits + 7) / 8;
  for (int64_t dim : constant.shape) constant.bytes *= dim;
  constant.owner = std::make_shared<ffi::Tensor>(tensor);
  return constant;
}

// A tensor of bytes that somebody else owns.
ffi::Tensor ViewOfBytes(const Span& bytes) {
  struct Borrowed {
    void AllocData(DLTensor* tensor, char* data) { tensor->data = data; }
    void FreeData(DLTensor*) {}
  };
  int64_t shape[] = {bytes.end - bytes.begin};
  return ffi::Tensor::FromNDAlloc(Borrowed(), ffi::ShapeView(shape, 1), DLDataType{kDLUInt, 8, 1},
                                  DLDevice{kDLCPU, 0}, bytes.begin);
}

// An observer that hands on to functions of Python's.  begin(module, symbols) is called for each
// run, before(step, values, bytes) and after(step, value, bytes) around each step; the tensors of
// bytes are views that are good until the function returns.
class FunctionObserver final : public Observer {
 public:
  FunctionObserver(ffi::Function begin, ffi::Function before, ffi::Function after)
      : begin_(std::move(begin)), before_(std::move(before)), after_(std::move(after)) {}

  void Enter(ffi::Module module) { module_ = std::move(module); }

  void Begin(const std::vector<int64_t>& symbols) override {
    begin_(module_, ffi::Array<int64_t>(symbols.begin(), symbols.end()));
  }
  void Before(size_t step, const std::vector<Seen>& reads) override {
    ffi::Array<int64_t> values;
    ffi::Array<ffi::Tensor> bytes;
    for (const Seen& seen : reads) {
      values.push_back(seen.value);
      bytes.push_back(ViewOfBytes(seen.bytes));
    }
    before_(static_cast<int64_t>(step), values, bytes);
  }
  void After(size_t step, const Seen& dst) override {
    after_(static_cast<int64_t>(step), static_cast<int64_t>(dst.value), ViewOfBytes(dst.bytes));
  }

 private:
  ffi::Function begin_, before_, after_;
  ffi::Optional<ffi::Module> module_;
};

// The constants of a region, for export alone: TVM links the object file it writes into the
// library.
class WeightsModule final : public ffi::ModuleObj {
 public:
  WeightsModule(std::string symbol, std::vector<ConstantData> constants)
      : symbol_(std::move(symbol)), constants_(std::move(constants)) {}

  const char* kind() const final { return kWeightsKind; }
  int GetPropertyMask() const final { return ffi::Module::kCompilationExportable; }
  ffi::Array<ffi::String> GetWriteFormats() const final { return {"o"}; }
  ffi::Optional<ffi::Function> GetFunction(const ffi::String&) final { return std::nullopt; }

  void WriteToFile(const ffi::String& path, const ffi::String&) const final {
    Guard([&] { WriteWeightsObject(std::string(path), symbol_, constants_); });
  }

 private:
  std::string symbol_;
  std::vector<ConstantData> constants_;
};

class RegionModule final : public ffi::ModuleObj {
 public:
  RegionModule(std::string symbol, std::string program, std::vector<ConstantData> constants)
      : symbol_(std::move(symbol)),
        program_(std::move(program)),
        region_(Decode(program_), std::move(constants)) {}

  const char* kind() const final { return kKind; }
  int GetPropertyMask() const final {
    return ffi::Module::kBinarySerializable | ffi::Module::kRunnable;
  }

  ffi::Optional<ffi::Function> GetFunction(const ffi::String& name) final {
    ffi::ObjectPtr<ffi::Object> self = ffi::GetObjectPtr<ffi::Object>(this);
    if (name == symbol_) {
      return ffi::Function(
          [self, this](ffi::PackedArgs args, ffi::Any*) { Guard([&] { Run(args); }); });
    }
    if (name == "get_symbol") {
      return ffi::Function::FromTyped([self, this] { return ffi::String(symbol_); });
    }
    if (name == "get_const_vars") {
      return ffi::Function::FromTyped([] { return ffi::Array<ffi::String>(); });
    }
    if (name == "mxplan.program") {
      return ffi::Function::FromTyped([self, this] { return ffi::Bytes(program_); });
    }
    if (name == "mxplan.with_program") {
      return ffi::Function::FromTyped([self, this](const ffi::Bytes& program) {
        return Guard([&] { return WithProgram(std::string(program.data(), program.size())); });
      });
    }
    if (name == "mxplan.save") {
      return ffi::Function::FromTyped([self, this] { return SaveWithWeights(); });
    }
    if (name == "mxplan.split_weights") {
      return ffi::Function::FromTyped([self, this] { return SplitWeights(); });
    }
    if (name == "mxplan.prepare") {
      return ffi::Function::FromTyped([self, this] { Guard([&] { region_.Prepare(); }); });
    }
    if (name == "mxplan.stats") {
      return ffi::Function::FromTyped([self, this] { return ffi::String(region_.Stats()); });
    }
    return std::nullopt;
  }

  ffi::Bytes SaveToBytes() const final {
    return ffi::Bytes(Save(symbol_, program_, region_.constants(), weights_symbol_));
  }

  ffi::String InspectSource(const ffi::String&) const final {
    return ffi::String(ToText(region_.program()));
  }

 private:
  // From now on the module is saved without its constants; the module that is returned has them and
  // has to be exported with this one.
  ffi::Module SplitWeights() {
    weights_symbol_ = WeightsSymbol(symbol_ + program_, region_.constants());
    return ffi::Module(ffi::make_object<WeightsModule>(weights_symbol_, region_.constants()));
  }

  ffi::Bytes SaveWithWeights() const {
    return ffi::Bytes(Save(symbol_, program_, region_.constants()));
  }

  void Run(const ffi::PackedArgs& args) {
    thread_local std::vector<TensorRef> tensors;  // kept, so that a warm call allocates nothing
    tensors.clear();
    for (int i = 0; i < args.size(); ++i) {
      // Relax also hands over the shape that a reshape with symbols was given; the program has it.
      if (args[i].type_index() == ffi::TypeIndex::kTVMFFIShape) continue;
      std::optional<DLTensor*> tensor = args[i].try_cast<DLTensor*>();
      if (!tensor.has_value()) {
        throw Error(ErrorKind::kInvalidType,
                    Concat("region ", region_.program().name, ": argument ", i, " is no tensor"));
      }
      tensors.push_back(ToRef(**tensor));
    }
    if (auto* observer = dynamic_cast<FunctionObserver*>(ThreadObserver().get())) {
      observer->Enter(ffi::GetRef<ffi::Module>(this));
    }
    region_.Run(tensors);
  }

  // The same constants under another program, as when its values have moved.
  ffi::Module WithProgram(std::string program) const {
    auto made = ffi::make_object<RegionModule>(symbol_, std::move(program), region_.constants());
    made->weights_symbol_ = weights_symbol_;  // the data is the same
    return ffi::Module(made);
  }

  std::string symbol_;
  std::string program_;
  std::string weights_symbol_;  // not empty: the constants are exported beside the module
  Region region_;
};

ffi::Module MakeModule(std::string symbol, std::string program,
                       std::vector<ConstantData> constants) {
  return ffi::Module(
      ffi::make_object<RegionModule>(std::move(symbol), std::move(program), std::move(constants)));
}

ffi::Module Create(const ffi::String& symbol, const ffi::Bytes& program,
                   const ffi::Array<ffi::Tensor>& constants) {
  return Guard([&] {
    std::vector<ConstantData> data;
    for (const ffi::Tensor& tensor : constants) {
      data.push_back(ToConstant(tensor, static_cast<int64_t>(data.size())));
    }
    return MakeModule(symbol, std::string(program.data(), program.size()), std::move(data));
  });
}

// Points constants into the library that holds them.
void Link(const std::string& symbol, std::vector<ConstantData>* constants) {
  WeightsPlan plan = PlanWeights(*constants);
  std::shared_ptr<const char> data = FindWeights(symbol, plan.bytes);
  for (size_t i = 0; i < constants->size(); ++i) {
    ConstantData& constant = (*constants)[i];
    constant.data = data.get() + plan.offsets[i];
    constant.owner = data;
    constant.mapped = true;
  }
}

ffi::Module LoadFromBytes(const ffi::Bytes& bytes) {
  return Guard([&] {
    auto owner = std::make_shared<ffi::Bytes>(bytes);
    Container container = Load(std::string_view(owner->data(), owner->size()), owner);
    if (!container.weights.empty()) Link(container.weights, &container.constants);
    return MakeModule(std::move(container.symbol), std::move(container.program),
                      std::move(container.constants));
  });
}

ffi::String DescribeProgram(const ffi::Bytes& program, const ffi::Array<int64_t>& symbols) {
  return Guard([&] {
    return ffi::String(Describe(Decode(std::string_view(program.data(), program.size())),
                                std::vector<int64_t>(symbols.begin(), symbols.end())));
  });
}

ffi::String Version() {
  const dnnl_version_t* version = dnnl_version();
  return ffi::String(Concat(version->major, ".", version->minor, ".", version->patch));
}

ffi::String Abi() {
  return ffi::String(
      Concat(TVM_FFI_VERSION_MAJOR, ".", TVM_FFI_VERSION_MINOR, ".", TVM_FFI_VERSION_PATCH));
}

ffi::String Isa() { return ffi::String(dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa())); }

CacheStatistics StatisticsOf(const std::string& cache) {
  if (cache == "primitives") return PrimitiveStatistics();
  if (cache == "weights") return PackedWeightsStatistics();
  ThrowInvalidInput("no cache ", cache, "; expected primitives or weights");
}

ffi::Map<ffi::String, int64_t> CacheCounters(const ffi::String& cache) {
  return Guard([&] {
    CacheStatistics s = StatisticsOf(cache);
    return ffi::Map<ffi::String, int64_t>({{"hits", s.hits},
                                           {"misses", s.misses},
                                           {"evictions", s.evictions},
                                           {"entries", s.entries},
                                           {"bytes", s.bytes},
                                           {"most_entries", s.capacity.entries},
                                           {"most_bytes", s.capacity.bytes}});
  });
}

void SetCacheCapacity(const ffi::String& cache, int64_t entries, int64_t bytes) {
  Guard([&] {
    StatisticsOf(cache);  // the name is known
    (cache == "primitives" ? SetPrimitiveCapacity : SetPackedWeightsCapacity)({entries, bytes});
  });
}

// How many primitives oneDNN itself keeps, which are dead weight where they are in our cache too.
void SetLibraryCache(int64_t entries) {
  dnnl::set_primitive_cache_capacity(static_cast<int>(entries));
}

// What a module of any kind writes of itself into an exported library, its imports left out.
ffi::Bytes ModuleBytes(const ffi::Module& module) { return module->SaveToBytes(); }

// What to check at run time; 1 is memory, 0 nothing.
void SetDebug(int64_t what) { SetMemoryDebug(what != 0); }

void Observe(const ffi::Optional<ffi::Function>& begin, const ffi::Optional<ffi::Function>& before,
             const ffi::Optional<ffi::Function>& after) {
  bool any = begin.has_value() && before.has_value() && after.has_value();
  SetThreadObserver(
      any ? std::make_shared<FunctionObserver>(begin.value(), before.value(), after.value())
          : nullptr);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def("tvm_mxplan.onednn.create", Create)
      .def("tvm_mxplan.onednn.describe", DescribeProgram)
      .def("tvm_mxplan.onednn.version", Version)
      .def("tvm_mxplan.onednn.abi", Abi)
      .def("tvm_mxplan.onednn.isa", Isa)
      .def("tvm_mxplan.onednn.set_debug", SetDebug)
      .def("tvm_mxplan.onednn.observe", Observe)
      .def("tvm_mxplan.onednn.cache_counters", CacheCounters)
      .def("tvm_mxplan.onednn.set_cache_capacity", SetCacheCapacity)
      .def("tvm_mxplan.onednn.set_library_cache", SetLibraryCache)
      .def("tvm_mxplan.module_bytes", ModuleBytes)
      .def("ffi.Module.load_from_bytes.mxplan_onednn", LoadFromBytes);
}

}  // namespace
}  // namespace mxplan

// byoc/onednn/library.py finds this text in the file and compares it with the tvm-ffi installed,
// before it loads anything: registering with another version could crash.
#define MXPLAN_TEXT(x) #x
#define MXPLAN_STAMP(a, b, c) \
  "mxplan-tvm-ffi=" MXPLAN_TEXT(a) "." MXPLAN_TEXT(b) "." MXPLAN_TEXT(c) ";"
extern "C" __attribute__((visibility("default"))) const char* MxplanTvmFfiStamp() {
  return MXPLAN_STAMP(TVM_FFI_VERSION_MAJOR, TVM_FFI_VERSION_MINOR, TVM_FFI_VERSION_PATCH);
}
