// Execution plans: made ahead of time, kept with their step, built by cuDNN when they first run.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_PLAN_H_
#define TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cudnn/device.h"

namespace mxplan {

// A number of any type of cuDNN's.
struct PlanScalar {
  int64_t uid = 0;
  alignas(16) char bytes[16] = {};
};

// A plan of one engine, as cuDNN wrote it, and what it is bound to.
struct EnginePlan {
  int64_t workspace = 0;  // bytes
  std::string engine;
  std::vector<int64_t> uids;  // of tensors
  std::vector<PlanScalar> scalars;
  std::string text;
};

// The record that a step carries, as byoc/cudnn/plans/record.py writes it:
//
//     "MXEP" version:u32 digest:u64*2, then what the digest is of:
//     cudnn:i64 sm:i64 multiprocessors:i64 driver:i64 replays:u32
//     plans: count:u32 (workspace:i64 engine uids: count:u32 i64*
//                       scalars: count:u32 (uid:i64 bytes)* text)*
//     strings and bytes are u32 length + bytes
//
// The first plan runs; those behind it wait for one that fails.  A tensor's uid is one more than
// the place of its value among the step's operands, behind which those of post-ops stand.  Scalars
// are numbers that an execution is handed from the host's memory.
struct PlanRecord {
  std::string digest;  // in hexadecimal digits
  DeviceFacts made_for;
  bool replays = false;           // the region's steps may be kept as one graph (replay.h)
  std::vector<EnginePlan> plans;  // one at least
};

// Throws InvalidInput on anything that was not written so, a flipped byte included: cuDNN itself
// would not notice it.
PlanRecord ReadPlan(std::string_view bytes);

// The digest of a record, of the bytes behind it.
std::string DigestOfPlan(std::string_view bytes);

// A plan that cuDNN has built, on the device of the thread that makes it.
class LoadedPlan {
 public:
  LoadedPlan(const EnginePlan& plan, CudnnHandle handle);
  ~LoadedPlan();
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  CudnnDescriptor descriptor() const { return plan_; }

 private:
  CudnnDescriptor plan_ = nullptr;
};

// The addresses of one execution.  Made anew where one of them changed, since cuDNN's cannot be.
class VariantPack {
 public:
  VariantPack() = default;
  ~VariantPack();
  VariantPack(const VariantPack&) = delete;
  VariantPack& operator=(const VariantPack&) = delete;

  void Make(const std::vector<int64_t>& uids, const std::vector<void*>& addresses, void* workspace);
  CudnnDescriptor descriptor() const { return pack_; }

 private:
  void Drop();
  CudnnDescriptor pack_ = nullptr;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_CUDNN_PLANS_PLAN_H_
