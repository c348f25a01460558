// A step as stages: actions that take a stream and addresses.  A stage is made once by a library
// and never changes; what a call changes is in a StageCall.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_STAGE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "library/form.h"

namespace mxplan {

// A queue of a library's work, one for each thread.
class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Returns when all work is done.
  virtual void Wait() = 0;
};

struct Argument {
  enum class Source : uint8_t {
    kValue,       // the value's bytes
    kPacked,      // a constant, packed once into `form` (or as it is)
    kScratchpad,  // the step's scratchpad, from byte `offset`
  };
  Source source = Source::kValue;
  int value = -1;
  int64_t offset = 0;
  std::shared_ptr<const Form> form = {};
};

// The part of a stage that one context has for itself: addresses, memory objects.  Not for two
// threads at once.
class StageCall {
 public:
  StageCall() = default;
  virtual ~StageCall() = default;
  StageCall(const StageCall&) = delete;
  StageCall& operator=(const StageCall&) = delete;

  // `argument` counts along the stage's arguments.  An address stays until another one is set.
  virtual void SetAddress(size_t argument, void* address) = 0;
  // Every argument has its address.  Throws Error; the caller adds the step's name.
  virtual void Run(Stream* stream) = 0;
};

// One action of a step; it runs when those before it have finished.
class Stage {
 public:
  explicit Stage(std::vector<Argument> arguments) : arguments_(std::move(arguments)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const std::vector<Argument>& arguments() const { return arguments_; }
  // The stage outlives its calls.
  virtual std::unique_ptr<StageCall> NewCall() const = 0;

 private:
  std::vector<Argument> arguments_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_STAGE_H_
