// Reading, building and binding of plans; see plan.h.
#include "cudnn/plans/plan.h"

#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/reader.h"

namespace mxplan {
namespace {

constexpr uint32_t kVersion = 4;
constexpr uint64_t kSeed = 0x6d78706c616e7321u;

void Set(CudnnDescriptor descriptor, int name, int type, int64_t count, const void* values) {
  CheckCudnn(Cuda().cudnnBackendSetAttribute(descriptor, name, type, count, values),
             "cudnnBackendSetAttribute");
}

EnginePlan ReadEngine(ByteReader* reader) {
  EnginePlan plan;
  plan.workspace = reader->Number<int64_t>();
  plan.engine = reader->Text(reader->Number<uint32_t>());
  for (size_t i = 0, n = reader->Count(8); i < n; ++i) {
    plan.uids.push_back(reader->Number<int64_t>());
  }
  for (size_t i = 0, n = reader->Count(12); i < n; ++i) {
    PlanScalar scalar;
    scalar.uid = reader->Number<int64_t>();
    std::string_view bytes = reader->Take(reader->Number<uint32_t>());
    if (bytes.size() > sizeof(scalar.bytes)) {
      ThrowInvalidInput("execution plan: a number of ", bytes.size(), " bytes");
    }
    std::memcpy(scalar.bytes, bytes.data(), bytes.size());
    plan.scalars.push_back(scalar);
  }
  plan.text = reader->Text(reader->Number<uint32_t>());
  if (plan.workspace < 0) ThrowInvalidInput("execution plan: workspace of ", plan.workspace);
  return plan;
}

}  // namespace

std::string DigestOfPlan(std::string_view bytes) {
  Digester digester(kSeed);
  digester.Add(bytes.data(), bytes.size());
  Digest digest = digester.Take();
  return {reinterpret_cast<const char*>(digest.data()), sizeof(digest)};
}

PlanRecord ReadPlan(std::string_view bytes) {
  ByteReader reader(bytes, "execution plan");
  reader.Header("MXEP", kVersion);
  std::string_view digest = reader.Take(sizeof(Digest));
  if (digest != DigestOfPlan(bytes.substr(reader.offset()))) {
    ThrowInvalidInput("execution plan: damaged, its digest is another; compile the model again");
  }
  PlanRecord record;
  for (unsigned char byte : digest) {
    record.digest += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  }
  record.made_for.cudnn = reader.Number<int64_t>();
  record.made_for.sm = reader.Number<int64_t>();
  record.made_for.multiprocessors = reader.Number<int64_t>();
  record.made_for.driver = reader.Number<int64_t>();
  const auto replays = reader.Number<uint32_t>();
  if (replays > 1) ThrowInvalidInput("execution plan: replays ", replays, ", expected 0 or 1");
  record.replays = replays == 1;
  // The least that a plan takes: its workspace and four lengths.
  for (size_t i = 0, n = reader.Count(24); i < n; ++i) record.plans.push_back(ReadEngine(&reader));
  reader.End();
  if (record.plans.empty()) ThrowInvalidInput("execution plan: a record without a plan");
  return record;
}

LoadedPlan::LoadedPlan(const EnginePlan& plan, CudnnHandle handle) {
  const CudaApi& cuda = Cuda();
  CheckCudnn(cuda.cudnnBackendCreateDescriptor(kCudnnPlan, &plan_), "cudnnBackendCreateDescriptor");
  try {
    Set(plan_, kCudnnPlanHandle, kCudnnTypeHandle, 1, &handle);
    Set(plan_, kCudnnPlanText, kCudnnTypeChar, static_cast<int64_t>(plan.text.size()),
        plan.text.data());
    CheckCudnn(cuda.cudnnBackendFinalize(plan_), "cudnnBackendFinalize");
  } catch (...) {
    cuda.cudnnBackendDestroyDescriptor(plan_);
    throw;
  }
}

LoadedPlan::~LoadedPlan() { Cuda().cudnnBackendDestroyDescriptor(plan_); }

VariantPack::~VariantPack() { Drop(); }

void VariantPack::Drop() {
  if (pack_ != nullptr) Cuda().cudnnBackendDestroyDescriptor(pack_);
  pack_ = nullptr;
}

void VariantPack::Make(const std::vector<int64_t>& uids, const std::vector<void*>& addresses,
                       void* workspace) {
  Drop();
  const CudaApi& cuda = Cuda();
  CudnnDescriptor made = nullptr;
  CheckCudnn(cuda.cudnnBackendCreateDescriptor(kCudnnVariantPack, &made),
             "cudnnBackendCreateDescriptor");
  auto count = static_cast<int64_t>(uids.size());
  try {
    Set(made, kCudnnPackIds, kCudnnTypeInt64, count, uids.data());
    Set(made, kCudnnPackPointers, kCudnnTypePointer, count, addresses.data());
    Set(made, kCudnnPackWorkspace, kCudnnTypePointer, 1, &workspace);
    CheckCudnn(cuda.cudnnBackendFinalize(made), "cudnnBackendFinalize");
  } catch (...) {
    cuda.cudnnBackendDestroyDescriptor(made);
    throw;
  }
  pack_ = made;
}

}  // namespace mxplan
