// Entries that are written over others, or combined with them.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_COMBINE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_COMBINE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "host/parallel.h"
#include "program/step_attributes.h"

namespace mxplan::host {

constexpr double kByteNs = 0.05;  // of one that is copied

inline void CopyWhole(const char* src, char* dst, int64_t bytes) {
  if (src == dst) return;
  ParallelFor(bytes, kByteNs, [&](int64_t begin, int64_t end) {
    std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
  });
}

enum class Reduction : uint8_t { kUpdate, kAdd, kMin, kMax };

inline Reduction ReductionOf(const Step& step) {
  const std::string& name = TextOf(step, "algorithm");
  if (name == "update") return Reduction::kUpdate;
  if (name == "add") return Reduction::kAdd;
  return name == "min" ? Reduction::kMin : Reduction::kMax;
}

template <typename T>
void Combine(Reduction reduction, const char* from, char* to, int64_t bytes) {
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
  // What is no number stays, and replaces what is one.
  switch (reduction) {
    case Reduction::kAdd:
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (sizeof(T) == 8) {
          y[i] = static_cast<T>(static_cast<uint64_t>(y[i]) + static_cast<uint64_t>(x[i]));
        } else if constexpr (std::is_same_v<T, int32_t>) {
          y[i] = static_cast<T>(static_cast<uint32_t>(y[i]) + static_cast<uint32_t>(x[i]));
        } else {
          y[i] += x[i];
        }
      }
      return;
    case Reduction::kMin:
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] < y[i] || x[i] != x[i] ? x[i] : y[i];
      return;
    case Reduction::kMax:
      for (int64_t i = 0; i < count; ++i) y[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i];
      return;
    case Reduction::kUpdate:
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

using Combination = void (*)(Reduction reduction, const char* from, char* to, int64_t bytes);

inline Combination CombinationOf(Reduction reduction, const std::string& dtype) {
  if (reduction == Reduction::kUpdate) return Combine<char>;
  if (dtype == "float32") return Combine<float>;
  if (dtype == "int32") return Combine<int32_t>;
  if (dtype == "int64") return Combine<int64_t>;
  ThrowUnsupported("updates of ", dtype, " that are combined: expected float32, int32 or int64");
}

}  // namespace mxplan::host

#endif  // TVM_MXPLAN_BYOC_RUNTIME_HOST_STEPS_COMBINE_H_
