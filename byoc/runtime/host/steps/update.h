// Updates of a tensor's entries, which take their place or are combined with them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_UPDATE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_UPDATE_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"
#include "host/kernels/combine_impl.h"
#include "host/parallel.h"
#include "host/steps/builders.h"

namespace mxplan::host {

constexpr double kByteNs = 0.05;  // of one that is copied

inline void CopyWhole(const char* src, char* dst, int64_t bytes) {
  if (src == dst) return;
  ParallelFor(bytes, kByteNs, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
  });
}

template <Binary op, typename T>
void CombineEntry(const char* from, char* to, int64_t bytes) {
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < count; ++i) y[i] = Combine<op, T>(y[i], x[i]);
}

inline void ReplaceEntry(const char* from, char* to, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

using Update = void (*)(const char* from, char* to, int64_t bytes);

template <Binary op>
Update CombinationOf(const StepBuilder& b) {
  switch (b.ComputedType("src")) {
    case Type::kF32:
      return CombineEntry<op, float>;
    case Type::kI32:
      return CombineEntry<op, int32_t>;
    case Type::kI64:
      return CombineEntry<op, int64_t>;
    default:
      ThrowUnsupported("updates of ", b.Dtype("src"),
                       " that are combined: expected float32, int32 or int64");
  }
}

// By the step's attribute `algorithm`.
inline Update UpdateOf(const StepBuilder& b) {
  const std::string& name = TextOf(b.step(), "algorithm");
  if (name == "update") return ReplaceEntry;
  if (name == "add") return CombinationOf<Binary::kAdd>(b);
  return name == "min" ? CombinationOf<Binary::kMin>(b) : CombinationOf<Binary::kMax>(b);
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_UPDATE_H_
