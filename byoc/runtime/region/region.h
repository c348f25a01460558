// A loaded region: the program, its constants, and a bounded cache of specializations.  Safe to
// call from many threads.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_REGION_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_REGION_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library/library.h"
#include "program/program.h"
#include "region/libraries.h"
#include "region/signature.h"
#include "region/specialization.h"
#include "weights/weights.h"

namespace mxplan {

class Region {
 public:
  // Throws InvalidInput if the constants are not those of the program, or a step names a library
  // that is not there.  Steps that name none are those of `library`, which packs constants.
  Region(Program program, std::vector<ConstantData> constants, const Library& library,
         Weights::Sharing sharing = Weights::Sharing::kProcess);

  const Program& program() const { return program_; }
  const std::vector<ConstantData>& constants() const { return weights_.constants(); }

  // The constants in the plain order; made anew where they are stored in another form.
  std::vector<ConstantData> PlainConstants() const;
  // The constants for export, packed as the one specialization of a static program wants them, and
  // other forms of them behind; as they are for a symbolic one.
  std::vector<ConstantData> PackedConstants();
  // Builds the one specialization of a static program; nothing for a symbolic one.
  void Prepare();
  // Keeps at least so many specializations from now on.
  void Keep(size_t count);
  // Inputs, then outputs, then an arena if the caller lends one; `numbers` bind symbols that are no
  // extent of an input.
  void Run(const std::vector<TensorRef>& tensors, const std::vector<int64_t>& numbers = {});
  // Counters and implementations as JSON.
  std::string Stats() const;

 private:
  struct Slot {
    std::shared_ptr<Specialization> specialization;
    int64_t last_use = 0;
  };
  std::shared_ptr<Specialization> Find(const std::vector<int64_t>& symbols);
  bool HasRoom() const;  // for one more, in the place of no other
  // The same for the threads that there are now; null where it computes something else, or nothing,
  // or would take the place of another.
  std::shared_ptr<Specialization> Like(const Specialization& all);
  // Runs on all threads, or on fewer where those have to wait; see thread_choice.h.
  void RunShared(Specialization* all, const std::vector<void*>& io, char* lent);
  int64_t PackedBytes() const;  // of all specializations; with mutex_ held
  std::shared_ptr<Specialization> Get(const std::vector<int64_t>& symbols);

  Program program_;
  Libraries libraries_;
  Weights weights_;
  std::mutex build_mutex_;  // one build at a time; running calls do not wait for it
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  size_t most_;  // slots
  int64_t clock_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_REGION_H_
