// Pixels times their gates, and what follows; included once for each instruction set.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_PIXELS_IMPL_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_PIXELS_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "onednn/post_ops/apply_impl.h"
#include "onednn/squeeze_excite/kernels.h"
#include "onednn/squeeze_excite/runs_impl.h"

namespace mxplan::squeeze_excite {
namespace {

// The post-ops behind the gates: none, a tensor that is added, that and a ReLU, or others.
enum class Follows : uint8_t { kNothing, kAdded, kAddedAndRelu, kAny };

inline bool Adds(const post_ops::PostOp& post_op) {
  using Code = post_ops::PostOp::Code;
  return post_op.code == Code::kAdd || (post_op.code == Code::kSum && post_op.alpha == 1);
}

inline Follows FollowsOf(const Ending& ending) {
  if (ending.count == 0) return Follows::kNothing;
  if (ending.count > 2 || !Adds(ending.post_ops[0])) return Follows::kAny;
  if (ending.count == 1) return Follows::kAdded;
  const bool relu = ending.post_ops[1].code == post_ops::PostOp::Code::kRelu;
  return relu ? Follows::kAddedAndRelu : Follows::kAny;
}

template <typename Type>
MXPLAN_INLINE const Type* OtherOf(const Ending& ending, int64_t op, const Type* dst) {
  const bool sum = ending.post_ops[op].code == post_ops::PostOp::Code::kSum;
  return sum ? dst : As<Type>(ending.others[op]);
}

// The post-ops at `place` of an image, on the numbers x behind their gates.
template <Follows kFollows, int64_t kVectors, typename Type, typename Part>
MXPLAN_INLINE void End(const Ending& ending, int64_t place, const Type* dst, const Part& some,
                       Vec* x) {
  if constexpr (kFollows == Follows::kAny) {
    for (int64_t op = 0; op < ending.count; ++op) {
      const Type* other = OtherOf(ending, op, dst);
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vec second = other ? some.From(other + place + v * kLanes) : Vec{};
        x[v] = mxplan::Apply(ending.post_ops[op], x[v], second);
      }
    }
  } else if constexpr (kFollows != Follows::kNothing) {
    const Type* other = OtherOf(ending, 0, dst);
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      x[v] += some.From(other + place + v * kLanes);
      if constexpr (kFollows == Follows::kAddedAndRelu) x[v] = x[v] < 0 ? Vec{} : x[v];
    }
  }
}

template <Follows kFollows, typename Type>
MXPLAN_INLINE void ScaleSideBySide(const Image& image, const Type* src, int64_t begin, int64_t end,
                                   const float* gates, const Ending& ending, Type* dst) {
  ForRuns(image, begin, end, [&](int64_t first, int64_t channel, int64_t run) {
    for (int64_t pixel = 0; pixel < image.pixels; ++pixel) {
      ForVectors(run, [&](int64_t at, auto vectors, auto some) {
        constexpr int64_t kVectors = decltype(vectors)::value;
        const int64_t of = channel + at, place = first + at + pixel * image.pixel_stride;
        Vec x[kVectors];
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v) {
          x[v] = some.From(src + place + v * kLanes) * some.From(gates + of + v * kLanes);
        }
        End<kFollows, kVectors>(ending, place, dst, some, x);
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v) some.To(dst + place + v * kLanes, x[v]);
        if constexpr (kFollows == Follows::kAny) {  // channels that fill a block up stay 0 whatever
                                                    // is made of them
          const int64_t there = std::max<int64_t>(image.channels - of, 0);
          for (int64_t lane = there; lane < kVectors * some.count; ++lane) dst[place + lane] = 0;
        }
      });
    }
  });
}

template <Follows kFollows, typename Type>
MXPLAN_INLINE void ScaleAlone(const Image& image, const Type* src, int64_t begin, int64_t end,
                              const float* gates, const Ending& ending, Type* dst) {
  for (int64_t channel = begin; channel < end; ++channel) {
    const int64_t first = channel * image.group_stride;
    const Vec factor = Broadcast(gates[channel]);
    ForVectors(image.pixels, [&](int64_t at, auto vectors, auto some) {
      constexpr int64_t kVectors = decltype(vectors)::value;
      const int64_t place = first + at;
      Vec x[kVectors];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        x[v] = some.From(src + place + v * kLanes) * factor;
      }
      End<kFollows, kVectors>(ending, place, dst, some, x);
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) some.To(dst + place + v * kLanes, x[v]);
    });
  }
}

template <typename Type>
void Scale(const Image& image, const void* src, int64_t begin, int64_t end, const float* gates,
           const Ending& ending, void* dst) {
  auto scaled = [&](auto follows) {
    constexpr Follows kFollows = decltype(follows)::value;
    auto* work = image.together == 1 ? ScaleAlone<kFollows, Type> : ScaleSideBySide<kFollows, Type>;
    work(image, As<Type>(src), begin, end, gates, ending, static_cast<Type*>(dst));
  };
  switch (FollowsOf(ending)) {
    case Follows::kNothing:
      return scaled(std::integral_constant<Follows, Follows::kNothing>());
    case Follows::kAdded:
      return scaled(std::integral_constant<Follows, Follows::kAdded>());
    case Follows::kAddedAndRelu:
      return scaled(std::integral_constant<Follows, Follows::kAddedAndRelu>());
    case Follows::kAny:
      return scaled(std::integral_constant<Follows, Follows::kAny>());
  }
}

}  // namespace
}  // namespace mxplan::squeeze_excite

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_SQUEEZE_EXCITE_PIXELS_IMPL_H_
