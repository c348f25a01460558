// Calls of a compiled model's function from Python: of arrays that are plainly right, without a
// look at anything that an earlier call has looked at.
//
// Types are known from the signature.  Shapes are those that Python has checked once, with all its
// rules and messages, and then accepted here; whatever else comes goes back to Python as None.
//
// A result is never memory of the caller's, nor of another result: what a function hands through,
// or gives back twice, is copied.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ffi/errors.h"
#include "memory/buffer.h"

namespace mxplan {
namespace {

namespace ffi = tvm::ffi;

constexpr size_t kMaxShapes = 64;  // of one function that are known to be right

// Counts of calls, for tests and reports.
struct CallCounters {
  int64_t calls = 0;
  int64_t refused = 0;  // left to Python
  int64_t copied = 0;   // inputs that did not begin where kernels want them
  int64_t held = 0;     // tensors made for such copies
  int64_t parted = 0;  // results that stood in an input or another result, and got their own memory

  ffi::Array<int64_t> List() const { return {calls, refused, copied, held, parted}; }
};

char* DataOf(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

ffi::Tensor NewTensor(const DLTensor& like) {
  struct Owned {
    std::shared_ptr<Buffer> buffer;
    void AllocData(DLTensor* tensor) { tensor->data = buffer->data(); }
    void FreeData(DLTensor*) {}
  };
  auto bytes = static_cast<int64_t>(ffi::GetDataSize(like));
  return ffi::Tensor::FromNDAlloc(Owned{std::make_shared<Buffer>(bytes)},
                                  ffi::ShapeView(like.shape, static_cast<size_t>(like.ndim)),
                                  like.dtype, like.device);
}

bool SameShape(const DLTensor& a, const DLTensor& b) {
  return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape);
}

// One input of a function: the caller's own memory where kernels can read it there, else a copy of
// it in a tensor that is kept from call to call, unless a result still stands in it.
class Input {
 public:
  const ffi::Tensor& Take(const ffi::Tensor& given, CallCounters* counters) {
    const DLTensor* from = given.GetDLTensorPtr();
    // numpy gives tensors without elements strides of 0, which kernels refuse.
    is_copy_ = reinterpret_cast<uintptr_t>(DataOf(*from)) % kAlignment != 0 ||
               ffi::GetDataSize(*from) == 0;
    if (!is_copy_) return given;
    bool fits = held_.defined() && held_.unique() && SameShape(*held_.GetDLTensorPtr(), *from);
    if (!fits) {
      held_ = NewTensor(*from);
      ++counters->held;
    }
    std::memcpy(held_.data_ptr(), DataOf(*from), ffi::GetDataSize(*from));
    ++counters->copied;
    return held_;
  }
  bool is_copy() const { return is_copy_; }

 private:
  ffi::Tensor held_;
  bool is_copy_ = false;
};

bool Overlap(const DLTensor& a, const DLTensor& b) {
  const char* from = DataOf(a);
  const char* other = DataOf(b);
  return from < other + ffi::GetDataSize(b) && other < from + ffi::GetDataSize(a);
}

bool IsPlain(const DLTensor& tensor) {
  return tensor.device.device_type == kDLCPU && tensor.byte_offset == 0 &&
         ffi::IsContiguous(tensor);
}

// A function of the virtual machine with the memory of its calls.  For one call at a time.
class Caller {
 public:
  explicit Caller(ffi::Function main) : main_(std::move(main)) {}

  // `given` outlives the call.
  ffi::Any Run(const std::vector<ffi::Tensor>& given) {
    inputs_.resize(given.size());
    views_.clear();
    for (size_t i = 0; i < given.size(); ++i) {
      views_.emplace_back(inputs_[i].Take(given[i], &counters_));
    }
    ffi::Any result;
    main_.CallPacked(views_.data(), static_cast<int32_t>(views_.size()), &result);
    ++counters_.calls;
    results_.clear();
    return Parted(std::move(result), given);
  }
  CallCounters& counters() { return counters_; }

 private:
  // The result with memory of its own wherever it stood in the caller's.
  ffi::Any Parted(ffi::Any result, const std::vector<ffi::Tensor>& given) {
    if (auto tensor = result.as<ffi::Tensor>()) {
      const DLTensor* from = tensor->GetDLTensorPtr();
      if (!IsPlain(*from)) return result;
      if (!StandsInInput(*from, given) && !StandsInResult(*from)) {
        results_.push_back(*from);
        return result;
      }
      ffi::Tensor copy = NewTensor(*from);
      std::memcpy(copy.data_ptr(), DataOf(*from), ffi::GetDataSize(*from));
      ++counters_.parted;
      return copy;
    }
    auto list = result.as<ffi::Array<ffi::Any>>();
    if (!list) return result;
    for (int64_t i = 0; i < static_cast<int64_t>(list->size()); ++i) {
      ffi::Any part = (*list)[i];
      ffi::Any own = Parted(part, given);
      if (!own.same_as(part)) list->Set(i, own);
    }
    return *std::move(list);
  }

  bool StandsInInput(const DLTensor& tensor, const std::vector<ffi::Tensor>& given) const {
    for (size_t i = 0; i < given.size(); ++i) {
      if (!inputs_[i].is_copy() && Overlap(tensor, *given[i].GetDLTensorPtr())) return true;
    }
    return false;
  }

  bool StandsInResult(const DLTensor& tensor) const {
    return std::any_of(results_.begin(), results_.end(),
                       [&](const DLTensor& other) { return Overlap(tensor, other); });
  }

  ffi::Function main_;
  std::vector<Input> inputs_;
  std::vector<DLTensor> results_;  // of the call that runs, as far as they were looked at
  std::vector<ffi::AnyView> views_;
  CallCounters counters_;
};

// Calls with arrays that are new each time.  For one thread; a call from inside of a call is
// refused.
class CheckedCaller {
 public:
  CheckedCaller(ffi::Function main, std::vector<std::optional<DLDataType>> types)
      : caller_(std::move(main)), types_(std::move(types)) {}

  ffi::Any Call(const ffi::PackedArgs& args) {
    if (busy_) return nullptr;
    struct Turn {
      explicit Turn(CheckedCaller* owner) : owner(owner) { owner->busy_ = true; }
      ~Turn() {
        owner->busy_ = false;
        owner->given_.clear();
      }
      CheckedCaller* owner;
    } turn(this);
    if (Known(args)) return caller_.Run(given_);
    ++caller_.counters().refused;
    return nullptr;
  }

  // Calls with tensors of these shapes are right from now on.
  void Accept(const ffi::Array<ffi::Shape>& shapes) {
    std::vector<int64_t> extents;
    for (const ffi::Shape& shape : shapes) {
      extents.push_back(static_cast<int64_t>(shape.size()));
      extents.insert(extents.end(), shape.begin(), shape.end());
    }
    if (std::find(shapes_.begin(), shapes_.end(), extents) != shapes_.end()) return;
    if (shapes_.size() == kMaxShapes) shapes_.pop_back();
    shapes_.insert(shapes_.begin(), std::move(extents));
  }

  ffi::Array<int64_t> Counters() { return caller_.counters().List(); }

 private:
  // Whether all arguments are tensors as an earlier call had them.
  bool Known(const ffi::PackedArgs& args) {
    if (args.size() != static_cast<int>(types_.size())) return false;
    given_.clear();
    extents_.clear();
    for (int i = 0; i < args.size(); ++i) {
      auto tensor = args[i].try_cast<ffi::Tensor>();
      if (!tensor) return false;
      const DLTensor* raw = tensor->GetDLTensorPtr();
      const std::optional<DLDataType>& type = types_[static_cast<size_t>(i)];
      if (!IsPlain(*raw) || (type && !(raw->dtype == *type))) return false;
      extents_.push_back(raw->ndim);
      extents_.insert(extents_.end(), raw->shape, raw->shape + raw->ndim);
      given_.push_back(*std::move(tensor));
    }
    auto found = std::find(shapes_.begin(), shapes_.end(), extents_);
    if (found == shapes_.end()) return false;
    if (found != shapes_.begin()) std::rotate(shapes_.begin(), found, found + 1);
    return true;
  }

  Caller caller_;
  std::vector<std::optional<DLDataType>> types_;
  std::vector<std::vector<int64_t>> shapes_;  // used last, first
  std::vector<ffi::Tensor> given_;
  std::vector<int64_t> extents_;
  bool busy_ = false;
};

// Calls with the same arrays each time, read and written where they stand.  One call at a time;
// another thread's waits.
class BoundCaller {
 public:
  BoundCaller(ffi::Function main, const ffi::Array<ffi::Tensor>& inputs,
              const ffi::Array<ffi::Tensor>& outputs)
      : caller_(std::move(main)),
        inputs_(inputs.begin(), inputs.end()),
        outputs_(outputs.begin(), outputs.end()) {}

  // The result; None where it is in the outputs.
  ffi::Any Call() {
    std::lock_guard<std::mutex> lock(mutex_);
    ffi::Any result = caller_.Run(inputs_);
    if (outputs_.empty()) return result;
    if (auto list = result.as<ffi::Array<ffi::Any>>()) {
      if (list->size() != outputs_.size()) Misfit(list->size());
      for (size_t i = 0; i < outputs_.size(); ++i) {
        Copy((*list)[static_cast<int64_t>(i)].cast<ffi::Tensor>(), outputs_[i]);
      }
      return nullptr;
    }
    if (outputs_.size() != 1) Misfit(1);
    Copy(result.cast<ffi::Tensor>(), outputs_[0]);
    return nullptr;
  }

  ffi::Array<int64_t> Counters() {
    std::lock_guard<std::mutex> lock(mutex_);
    return caller_.counters().List();
  }

 private:
  [[noreturn]] void Misfit(size_t results) const {
    ThrowInvalidInput("out: ", outputs_.size(), " arrays given for ", results, " results");
  }

  static void Copy(const ffi::Tensor& result, const ffi::Tensor& output) {
    const DLTensor* from = result.GetDLTensorPtr();
    const DLTensor* to = output.GetDLTensorPtr();
    if (!SameShape(*from, *to) || !(from->dtype == to->dtype)) {
      ThrowInvalidInput("out: a result has another shape or element type than when it was bound");
    }
    std::memcpy(DataOf(*to), DataOf(*from), ffi::GetDataSize(*from));
  }

  std::mutex mutex_;
  Caller caller_;
  std::vector<ffi::Tensor> inputs_;
  std::vector<ffi::Tensor> outputs_;
};

// The function that calls, and one that counts.
ffi::Array<ffi::Function> MakeBoundCaller(ffi::Function main, const ffi::Array<ffi::Tensor>& inputs,
                                          const ffi::Array<ffi::Tensor>& outputs) {
  auto caller = std::make_shared<BoundCaller>(std::move(main), inputs, outputs);
  return {ffi::Function::FromTyped([caller] { return Guard([&] { return caller->Call(); }); }),
          ffi::Function::FromTyped([caller] { return caller->Counters(); })};
}

// The function that calls, one that accepts shapes, and one that counts.  A type of '' is any.
ffi::Array<ffi::Function> MakeCaller(ffi::Function main, const ffi::Array<ffi::String>& types) {
  std::vector<std::optional<DLDataType>> known;
  for (const ffi::String& type : types) {
    known.push_back(type.empty() ? std::nullopt
                                 : std::make_optional(ffi::StringToDLDataType(type)));
  }
  auto caller = std::make_shared<CheckedCaller>(std::move(main), std::move(known));
  return {ffi::Function([caller](ffi::PackedArgs args, ffi::Any* result) {
            *result = Guard([&] { return caller->Call(args); });
          }),
          ffi::Function::FromTyped(
              [caller](const ffi::Array<ffi::Shape>& shapes) { caller->Accept(shapes); }),
          ffi::Function::FromTyped([caller] { return caller->Counters(); })};
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tvm_mxplan.calls.caller", MakeCaller)
      .def("tvm_mxplan.calls.bound", MakeBoundCaller);
}

}  // namespace
}  // namespace mxplan
