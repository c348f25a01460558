// The tools of builders of executables: operands as descriptors, attributes and post-ops,
// primitives from the cache, arguments.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_STEP_BUILDER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_STEP_BUILDER_H_

#include <functional>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "library/executable.h"
#include "onednn/builder/described_program.h"
#include "onednn/builder/memory_stage.h"
#include "onednn/engine.h"
#include "onednn/layout.h"
#include "onednn/packing/packing.h"
#include "onednn/primitives/implementation_choice.h"
#include "onednn/primitives/primitive_cache.h"
#include "onednn/primitives/refusals.h"
#include "onednn/propagation.h"
#include "program/step_attributes.h"

namespace mxplan {

// A step as its builder sees it.  Operands are named by role; missing ones, attributes of the
// wrong type and the like throw InvalidInput.
class StepBuilder {
 public:
  StepBuilder(const Step& step, DescribedProgram* program, bool lists_alternatives)
      : step_(step),
        program_(program),
        lists_alternatives_(lists_alternatives),
        choice_{"", RefusalsOf(step, program->resolved())},
        post_ops_(step.post_ops) {}

  const Step& step() const { return step_; }
  bool Has(const char* role) const { return step_.Find(role) >= 0; }
  int Id(const char* role) const;
  const ResolvedValue& Get(int value) const { return program_->Get(value); }
  const ResolvedValue& Get(const char* role) const { return Get(Id(role)); }
  size_t Rank(const char* role) const { return Get(role).dims.size(); }

  // Descriptor of an operand; "any" stays.
  dnnl::memory::desc Desc(int value) const { return program_->Desc(value); }
  dnnl::memory::desc Desc(const char* role) const { return Desc(Id(role)); }
  // Of a tensor of `dims` laid out like an operand.
  dnnl::memory::desc Desc(const Dims& dims, const char* role) const;
  // The same for a primitive that does not choose: "any" becomes the plain layout for good.
  dnnl::memory::desc Fixed(int value);
  dnnl::memory::desc Fixed(const char* role) { return Fixed(Id(role)); }
  // The same for dst of a step that moves bytes: "any" becomes the layout of src.
  dnnl::memory::desc FixedLike(const char* role, const dnnl::memory::desc& other);
  // The same for weights: "any" if they are a constant, which is then packed.
  dnnl::memory::desc Weights(const char* role) const;
  // The same for weights that another layout than theirs is made of in every call, if they are no
  // constant; their binding is `repacked`.
  dnnl::memory::desc AnyWeights(const char* role) const;
  bool IsConstant(const char* role) const;
  // A constant operand in another form than it has.
  MemoryArgument Packed(int id, int value, const dnnl::memory::desc& to,
                        const Packing& packing = {}) const;

  int64_t Integer(const char* name) const { return IntegerOf(step_, name); }
  double Real(const char* name) const { return RealOf(step_, name); }
  bool Flag(const char* name) const { return FlagOf(step_, name); }
  const std::string& Text(const char* name) const { return TextOf(step_, name); }
  // States along which axes of the weights, as the primitive sees them, a vector of scales stands:
  // a bit for each.  For primitives that are added from now on.
  void ScaleWeightsAlong(int mask) { weights_mask_ = mask; }

  const std::vector<int64_t>& Integers(const char* name) const { return IntegersOf(step_, name); }
  const std::vector<int64_t>& Integers(const char* name, size_t count, int64_t low) const {
    return IntegersOf(step_, name, count, low);
  }

  bool HasPostOp(PostOp::Kind kind) const;
  // States that primitives see dst, and with it operands of binary post-ops, in another shape.
  using Shown = dnnl::memory::desc (*)(const dnnl::memory::desc&);
  void ShowPostOps(Shown shown) { shown_ = shown; }

  // True if one of the runtime's own implementations is refused for the step, which notes it.
  bool Refuses(const std::string& implementation);
  // True unless the stages so far, together, are an implementation that is refused: they are then
  // dropped, which is noted, and the step is to be built in another way.
  bool KeepsWhole();
  // Ends the step where every implementation it has was refused.
  [[noreturn]] void ThrowRefused();
  // States that the step asks for `implementation` and gets another.
  void StateMissing(const std::string& implementation) { executable_.missing = implementation; }

  // Opens the choice among oneDNN's implementations: primitives added from now on are the one of
  // this name, or oneDNN's first where the name is empty or not to be had.
  void Prefer(const std::string& implementation);
  // Lists one of the runtime's own implementations among those that could be preferred.
  void OfferAlternative(const std::string& implementation);

  // Builds the step as `bare`, which leaves bias and post-ops out, and then its epilogue as
  // primitives of their own that work on dst, if a refusal is about the two together: the
  // implementation that is refused then serves.  False, with nothing built, if there is no such
  // refusal, or if the result is refused as well.
  bool BuildEpilogueApart(const std::function<void()>& bare);

  // Adds a primitive whose arguments are `bindings` (pairs of DNNL_ARG_* and value), the post-ops
  // and the scratchpad.  `described` is what Primitive::primitive_desc takes between the kind of
  // propagation, or else the engine, and the attributes; equal ones share a primitive.  Values that
  // were "any" take the layout the primitive wants; packed weights too.
  static constexpr int kOfTheStep = -1;  // no value: memory of the step's own, one for each id
  struct Binding {
    int id;
    int value;
    dnnl::memory::desc seen = {};  // the value's bytes in another shape, if not empty
    dnnl::memory::desc through =
        {};  // constants only: the order their bytes are brought into first
    bool repacked =
        false;  // no constant: converted in the step, from or to what the primitive wants
  };
  template <typename Primitive, typename... Described>
  void Add(const std::vector<Binding>& bindings, const Described&... described) {
    AddForward<Primitive>(kInference, bindings, described...);
  }
  // The same for a primitive that also gives what gradients are made of.
  template <typename Primitive, typename... Described>
  void AddForTraining(const std::vector<Binding>& bindings, const Described&... described) {
    AddForward<Primitive>(kTraining, bindings, described...);
  }
  // The same for a gradient, which oneDNN makes by a forward primitive as a hint: `hint`, which
  // HintOf makes.  It follows from `described`, so the key holds it.
  template <typename Primitive, typename Hint, typename... Described>
  void AddBackward(const std::vector<Binding>& bindings, const Hint& hint,
                   const Described&... described) {
    PrimitiveKey key(typeid(Primitive));
    (key.Put(described), ...);
    dnnl::primitive_attr attr = Attr(&key);
    // oneDNN points to the hint without holding it, and asks it again for another implementation.
    std::optional<decltype(hint(attr))> forward;
    auto describe = [&] {
      if (!forward) forward.emplace(hint(attr));
      return DescribePrimitive<Primitive>(kBackward, described..., *forward, attr);
    };
    AddPrimitive(GetPrimitive<Primitive>(key, choice_, describe), bindings);
  }
  // Gives the descriptor of a forward primitive in training, by the attributes.
  template <typename Forward, typename... Described>
  static auto HintOf(const Described&... described) {
    return [=](const dnnl::primitive_attr& attr) {
      return DescribePrimitive<Forward>(kTraining, described..., attr);
    };
  }
  // Adds a plain reorder between two views; none where there is nothing in them.
  void AddReorder(int src, const dnnl::memory::desc& src_desc, int dst,
                  const dnnl::memory::desc& dst_desc);
  // Adds one between src and dst with the step's scales and zero points, vectors along `axis`.
  void AddRequantization(const dnnl::memory::desc& src, const dnnl::memory::desc& dst,
                         int64_t axis);
  void AddStage(std::unique_ptr<const Stage> stage, const std::string& implementation);
  // Needs of stages that come without a primitive's descriptor.
  void NeedScratchpad(int64_t bytes);
  void NeedWeights(int64_t bytes) { executable_.weights_bytes += bytes; }
  void StateError(double relative_error) { executable_.relative_error = relative_error; }

  // The step's executable; throws Unsupported if its stages together are a refused implementation.
  Executable Take();

 private:
  template <typename Primitive, typename... Described>
  void AddForward(Propagation propagation, const std::vector<Binding>& bindings,
                  const Described&... described) {
    const std::optional<PostOp> apart = SetFunctionApart();
    PrimitiveKey key(typeid(Primitive));
    key.Put(propagation);
    (key.Put(described), ...);
    dnnl::primitive_attr attr = Attr(&key);
    auto describe = [&] { return DescribePrimitive<Primitive>(propagation, described..., attr); };
    AddPrimitive(GetPrimitive<Primitive>(key, choice_, describe), bindings);
    if constexpr (std::is_base_of_v<dnnl::primitive_desc, typename Primitive::primitive_desc>) {
      if (may_prefer_ && lists_alternatives_) ListAlternatives(describe());
    }
    if (apart) AddFunction(*apart);
  }
  // Takes the last post-op from those of the next primitive, if a stage behind it is to apply it,
  // which AddFunction adds; post-ops are then as they were.
  std::optional<PostOp> SetFunctionApart();
  void AddFunction(const PostOp& function);
  dnnl::memory::desc PostOpDesc(int value) const {
    return shown_ ? shown_(Desc(value)) : Desc(value);
  }
  // The step's scales, zero points and post-ops, and the user's scratchpad; what distinguishes them
  // goes into the key.
  dnnl::primitive_attr Attr(PrimitiveKey* key) const;
  // Scales and zero points alone (quantized.cc), and the arguments that hold their numbers.
  void PutQuantization(dnnl::primitive_attr* attr, PrimitiveKey* key) const;
  void BindQuantization(std::vector<MemoryArgument>* arguments) const;
  void AddPrimitive(const PrimitivePointer& made, const std::vector<Binding>& bindings);
  // The epilogue on dst: each binary with what follows as its post-ops, elementwise functions
  // alone.
  void AddEpilogue();
  void AddBinaryOnDst(dnnl::algorithm algorithm, const Binding& second);
  void NoteRefused(const std::vector<RefusedImplementation>& refused);
  // Of what follows `first`, all but reference code and what is refused.
  void ListAlternatives(dnnl::primitive_desc first);
  // Adds the scratchpad a primitive asks for to its arguments.
  void BindScratchpad(const dnnl::primitive_desc_base& pd, std::vector<MemoryArgument>* arguments);
  MemoryArgument Bind(const dnnl::primitive_desc_base& pd, const Binding& binding);
  // The operand in another layout, in a part of the scratchpad that is the step's until its end.
  MemoryArgument Repacked(const Binding& binding, const dnnl::memory::desc& given,
                          const dnnl::memory::desc& wanted);
  void AddReorder(const MemoryArgument& from, const MemoryArgument& to);
  // A part of the scratchpad that is the step's until its end.
  MemoryArgument Kept(int id, const dnnl::memory::desc& desc);

  const Step& step_;
  DescribedProgram* program_;
  bool lists_alternatives_;
  bool may_prefer_ = false;
  int weights_mask_ = 0;   // of a vector of scales
  Shown shown_ = nullptr;  // of post-ops' operands
  int tensor_mask_ = 0;    // likewise, of src and dst
  Choice choice_;
  std::vector<PostOp> post_ops_;  // of primitives that are added from now on
  int64_t kept_bytes_ = 0;  // at the beginning of the scratchpad, which stages may not overwrite
  std::map<int, MemoryArgument> of_the_step_;                          // by their ids
  std::vector<std::pair<MemoryArgument, MemoryArgument>> to_convert_;  // behind the next primitive
  Executable executable_;
};

// Makes the executable of a step, on request with what else oneDNN has for it.  What oneDNN refuses
// is Unsupported.
Executable BuildExecutable(const Step& step, DescribedProgram* program, bool lists_alternatives);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_BUILDER_STEP_BUILDER_H_
