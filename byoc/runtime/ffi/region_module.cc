// The region module as TVM sees it: made from a program and constants, saved, loaded, run.
#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ffi/errors.h"
#include "ffi/library_functions.h"
#include "ffi/observer.h"
#include "ffi/tensors.h"
#include "ffi/weights_module.h"
#include "library/library.h"
#include "region/region.h"
#include "weights/container.h"
#include "weights/linked_weights.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

constexpr const char* kBeside = "beside";  // where weights are that a caller keeps

std::string KindOf(const std::string& library) { return "mxplan_" + library; }

class RegionModule final : public ffi::ModuleObj {
 public:
  RegionModule(const Library& library, std::string symbol, std::string program,
               std::vector<ConstantData> constants,
               Weights::Sharing sharing = Weights::Sharing::kProcess)
      : library_(library),
        kind_(KindOf(library.name())),
        symbol_(std::move(symbol)),
        program_(std::move(program)),
        region_(
            std::make_shared<Region>(Decode(program_), std::move(constants), library, sharing)) {}

  const char* kind() const final { return kind_.c_str(); }
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
    if (name == "mxplan.export_packed") {
      return ffi::Function::FromTyped(
          [self, this](bool packed) { Guard([&] { ExportPacked(packed); }); });
    }
    if (name == "mxplan.save_packed") {
      return ffi::Function::FromTyped([self, this] { return Guard([&] { return SavePacked(); }); });
    }
    if (name == "mxplan.prepare") {
      return ffi::Function::FromTyped([self, this] { Guard([&] { region_->Prepare(); }); });
    }
    if (name == "mxplan.keep") {
      return ffi::Function::FromTyped([self, this](int64_t specializations) {
        region_->Keep(static_cast<size_t>(std::max<int64_t>(specializations, 0)));
      });
    }
    if (name == "mxplan.stats") {
      return ffi::Function::FromTyped([self, this] { return ffi::String(region_->Stats()); });
    }
    return std::nullopt;
  }

  ffi::Bytes SaveToBytes() const final {
    if (!exported_) return SaveWithWeights();
    return Guard([&] { return ffi::Bytes(exported_->Save(symbol_, program_)); });
  }

  ffi::String InspectSource(const ffi::String&) const final {
    return ffi::String(ToText(region_->program()));
  }

 private:
  // From now on the module is saved without its constants; the module that is returned has them and
  // has to be exported with this one.
  ffi::Module SplitWeights() {
    exported_ = std::make_shared<ExportedWeights>(region_);
    return MakeWeightsModule(exported_);
  }

  // Whether split weights are exported as this machine's primitives want them.
  void ExportPacked(bool packed) {
    if (!exported_) ThrowInvalidInput("region ", symbol_, " has not split its weights");
    exported_->SetPacked(packed);
  }

  // The module without its weights, then these, each as its bytes, as this machine's primitives
  // want them.  LoadPacked puts the two together again.
  ffi::Array<ffi::Any> SavePacked() {
    std::vector<ConstantData> parts = region_->PackedConstants();
    ffi::Array<ffi::Any> saved;
    saved.push_back(ffi::Bytes(Save(symbol_, program_, parts, kBeside)));
    for (const ConstantData& part : parts) saved.push_back(TensorOfBytes(part));
    return saved;
  }

  ffi::Bytes SaveWithWeights() const {
    return ffi::Bytes(Save(symbol_, program_, region_->constants()));
  }

  void Run(const ffi::PackedArgs& args) {
    thread_local std::vector<TensorRef> tensors;  // kept, so that a warm call allocates nothing
    thread_local std::vector<int64_t> numbers;
    tensors.clear();
    numbers.clear();
    for (int i = 0; i < args.size(); ++i) {
      // Relax hands over shapes too: of a reshape, and of symbols that no input has as an extent.
      if (args[i].type_index() == ffi::TypeIndex::kTVMFFIShape) {
        auto shape = args[i].cast<ffi::Shape>();
        numbers.insert(numbers.end(), shape.begin(), shape.end());
        continue;
      }
      std::optional<DLTensor*> tensor = args[i].try_cast<DLTensor*>();
      if (!tensor.has_value()) {
        throw Error(ErrorKind::kInvalidType,
                    Concat("region ", region_->program().name, ": argument ", i, " is no tensor"));
      }
      tensors.push_back(ToRef(**tensor));
    }
    if (auto* observer = dynamic_cast<FunctionObserver*>(ThreadObserver().get())) {
      observer->Enter(ffi::GetRef<ffi::Module>(this));
    }
    region_->Run(tensors, numbers);
  }

  // The same constants under another program, as when its values have moved.
  ffi::Module WithProgram(std::string program) const {
    auto made =
        ffi::make_object<RegionModule>(library_, symbol_, std::move(program), region_->constants());
    if (exported_) exported_->SetRegion(made->region_);
    made->exported_ = exported_;
    return ffi::Module(made);
  }

  const Library& library_;
  std::string kind_;
  std::string symbol_;
  std::string program_;
  std::shared_ptr<ExportedWeights> exported_;  // constants that leave beside the module, if any do
  std::shared_ptr<Region> region_;
};

ffi::Module MakeModule(const Library& library, Container container) {
  return ffi::Module(ffi::make_object<RegionModule>(library, std::move(container.symbol),
                                                    std::move(container.program),
                                                    std::move(container.constants)));
}

ffi::Module Create(const Library& library, const ffi::String& symbol, const ffi::Bytes& program,
                   const ffi::Array<ffi::Tensor>& constants, Weights::Sharing sharing) {
  std::vector<ConstantData> data;
  for (const ffi::Tensor& tensor : constants) {
    data.push_back(ToConstant(tensor, static_cast<int64_t>(data.size())));
  }
  return ffi::Module(ffi::make_object<RegionModule>(library, std::string(symbol),
                                                    std::string(program.data(), program.size()),
                                                    std::move(data), sharing));
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

ffi::Module LoadFromBytes(const Library& library, const ffi::Bytes& bytes) {
  auto owner = std::make_shared<ffi::Bytes>(bytes);
  Container container = Load(std::string_view(owner->data(), owner->size()), owner, library);
  if (!container.weights.empty()) Link(container.weights, &container.constants);
  return MakeModule(library, std::move(container));
}

// `mapped`: the weights are pages of a file that nobody writes to.
ffi::Module LoadPacked(const Library& library, const ffi::Bytes& bytes,
                       const ffi::Array<ffi::Tensor>& weights, bool mapped) {
  Container container = Load(std::string_view(bytes.data(), bytes.size()), nullptr, library);
  size_t count = container.constants.size();
  if (container.weights != kBeside || weights.size() != count) {
    ThrowInvalidInput("a region with weights beside it: expected ", count, ", found ",
                      weights.size());
  }
  for (size_t i = 0; i < count; ++i) {
    ConstantData given = ToConstant(weights[static_cast<int64_t>(i)], static_cast<int64_t>(i));
    ConstantData& constant = container.constants[i];
    if (given.bytes != constant.stored_bytes) {
      ThrowInvalidInput("constant ", i, " is stored in ", constant.stored_bytes, " bytes, not ",
                        given.bytes);
    }
    constant.data = given.data;
    constant.owner = std::move(given.owner);
    constant.mapped = mapped;
  }
  return MakeModule(library, std::move(container));
}

}  // namespace

void RegisterModulesOf(const std::string& library) {
  auto creator = [library](Weights::Sharing sharing) {
    return [library, sharing](const ffi::String& symbol, const ffi::Bytes& program,
                              const ffi::Array<ffi::Tensor>& constants) {
      return Guard(
          [&] { return Create(FindLibrary(library), symbol, program, constants, sharing); });
    };
  };
  auto load_packed = [library](const ffi::Bytes& bytes, const ffi::Array<ffi::Tensor>& weights,
                               bool mapped) {
    return Guard([&] { return LoadPacked(FindLibrary(library), bytes, weights, mapped); });
  };
  auto load = [library](const ffi::Bytes& bytes) {
    return Guard([&] { return LoadFromBytes(FindLibrary(library), bytes); });
  };
  const std::string prefix = Concat("tvm_mxplan.", library, ".");
  tvm::ffi::reflection::GlobalDef()
      .def((prefix + "create").c_str(), creator(Weights::Sharing::kProcess))
      // A module that is called a few times and dropped.
      .def((prefix + "create_trial").c_str(), creator(Weights::Sharing::kNone))
      .def((prefix + "load_packed").c_str(), load_packed)
      .def(("ffi.Module.load_from_bytes." + KindOf(library)).c_str(), load);
}

}  // namespace mxplan
