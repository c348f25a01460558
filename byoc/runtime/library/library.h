// The door through which a library of kernels comes in: what it implements, and where it is found.
//
// All else in the rooms around this one knows regions, weights and memory, and no library.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_LIBRARY_H_
#define TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_LIBRARY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "library/executable.h"
#include "memory/space.h"
#include "program/resolved.h"
#include "program/shapes/step_shapes.h"
#include "weights/constant.h"

namespace mxplan {

// The settings of the process and the calling thread that decide which executables a library makes,
// and how many bytes they need: an executable is for the state it was made in.
struct ProcessState {
  int threads = 1;        // that a library's kernels may use
  bool parallel = false;  // called from inside of a parallel region, which gives no more threads
  std::array<int64_t, 2> settings{};  // of the library's own: its instruction set, its device

  bool operator==(const ProcessState& other) const {
    return threads == other.threads && parallel == other.parallel && settings == other.settings;
  }
};

// Makes the executables of one resolved program.  For one thread.
class Builder {
 public:
  virtual ~Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // The executable of a step of the program, on request with what else the library has for it.
  // Throws Error with the step's name: InvalidInput where it breaks the rules of its kind
  // (step_rules.h), Unsupported where the library refuses.
  Executable Build(const Step& step, bool lists_alternatives);

 protected:
  explicit Builder(Resolved* resolved, StepLimits limits = {})
      : resolved_(resolved), limits_(limits) {}

 private:
  // Of a step that keeps the rules.  Values in layout "any" take the layout that is chosen, which
  // is written into the resolved program.
  virtual Executable Make(const Step& step, bool lists_alternatives) = 0;

  Resolved* resolved_;
  StepLimits limits_;
};

// The work of a context's runs, kept to be done again as one: a graph of a GPU's.  For one context.
class Replay {
 public:
  Replay() = default;
  virtual ~Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Does `work`, or what it did for the same `addresses` before.  Throws what `work` throws.
  virtual void Run(const std::vector<void*>& addresses, const std::function<void()>& work) = 0;
};

// A library of kernels, as the process has it once.  Safe to call from many threads; what it throws
// is Error.
class Library : public LayoutSource {
 public:
  virtual const char* name() const = 0;   // in the kinds of modules and the names of functions
  virtual const char* title() const = 0;  // in messages

  // Of the calling thread, now.  Asked for on every call, so it allocates nothing.
  virtual ProcessState State() const = 0;
  virtual Stream* ThreadStream() const = 0;
  // Sets the number of threads that its kernels may use, for the calling thread; nothing where they
  // run on none of this process's.
  virtual void SetThreads(int) const {}
  // The memory of the inputs, outputs, constants and arenas of its regions.
  virtual const MemorySpace& memory() const { return HostMemory(); }

  // Of a context of the program on the calling thread's device; null where runs are not kept.
  virtual std::unique_ptr<Replay> NewReplay(const Program&) const { return nullptr; }

  // `resolved` outlives the builder, which writes into it what layouts "any" become.
  virtual std::unique_ptr<Builder> NewBuilder(Resolved* resolved) const = 0;

  // Of constants that are stored in a form of their own.  Throws InvalidInput or Unsupported unless
  // the form is one that the constant's bytes can be in.
  virtual void CheckForm(const ConstantData& constant) const = 0;
  // Brings such a constant back into the plain order.
  virtual void Unpack(const ConstantData& constant, char* plain) const = 0;
};

// Makes a library known by its name, while the process starts.  It lives as long as the process.
void RegisterLibrary(const Library& library);
// Throws InvalidInput, with the names there are, if there is none.
const Library& FindLibrary(const std::string& name);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_LIBRARY_H_
