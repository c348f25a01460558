// Steps of recurrent layers for one sample with weights in bfloat16, for AVX-512 with instructions
// for it.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "onednn/recurrence/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/vectors/lanes_impl.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan::recurrence {
namespace {

constexpr int64_t kPair = 2;

MXPLAN_INLINE int64_t PairsOf(const Step& step) { return (step.units + kPair - 1) / kPair; }

MXPLAN_INLINE Ints LoadPairs(const void* from) {
  Ints pairs;
  std::memcpy(&pairs, from, sizeof(pairs));
  return pairs;
}

MXPLAN_INLINE Vec Dot(Vec sum, Ints a, Ints b) {
  return reinterpret_cast<Vec>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b)));
}

// The hidden state as sums of two numbers in bfloat16: pairs of the first ones, then pairs of what
// these leave. So only weights are rounded.
MXPLAN_INLINE void Prepare(const Step& step) {
  if (step.before == nullptr) return;
  auto* first = static_cast<Short*>(step.scratch);
  Short* rest = first + kPair * PairsOf(step);
  for (int64_t i = 0; i < kPair * PairsOf(step); i += kLanes) {
    const int64_t count = std::min(kLanes, step.units - i);
    const Vec state = count > 0 ? LoadSome(step.before + i, std::min(count, kLanes)) : Vec{};
    const Shorts high = Rounded(state);
    const int64_t room = std::min(kLanes, kPair * PairsOf(step) - i);
    StoreShort(first + i, room, state);
    StoreShort(rest + i, room, state - Widened(InLowHalves(high)));
  }
}

template <int kGates>
MXPLAN_INLINE void Recur(const Step& step, int64_t first, Vec* sums) {
  const int64_t pairs = PairsOf(step);
  const auto* weights = static_cast<const Short*>(step.recurrence) + first * kPair * pairs * kGates;
  const auto* states = static_cast<const int32_t*>(step.scratch);
  constexpr int64_t kTurns = kGates == 1 ? 4 : 1;  // sums that do not wait for each other
  Vec high[kTurns][kGates] = {}, low[kTurns][kGates] = {};
  const auto add = [&](int64_t i, int64_t turn) __attribute__((always_inline)) {
    const Ints upper = Ints{} + states[i], lower = Ints{} + states[pairs + i];
#pragma GCC unroll 4
    for (int64_t g = 0; g < kGates; ++g) {
      const Ints filter = LoadPairs(weights + (g * pairs + i) * kPair * kLanes);
      high[turn][g] = Dot(high[turn][g], upper, filter);
      low[turn][g] = Dot(low[turn][g], lower, filter);
    }
  };
  int64_t i = 0;
  for (; i + kTurns <= pairs; i += kTurns) {
#pragma GCC unroll 4
    for (int64_t turn = 0; turn < kTurns; ++turn) add(i + turn, turn);
  }
  for (; i < pairs; ++i) add(i, 0);
  for (int64_t g = 0; g < kGates; ++g) {
    sums[g] = high[0][g] + low[0][g];
    for (int64_t turn = 1; turn < kTurns; ++turn) sums[g] += high[turn][g] + low[turn][g];
  }
}

}  // namespace
}  // namespace mxplan::recurrence

// Behind what it works with.
#include "onednn/recurrence/kernels_impl.h"

namespace mxplan::recurrence {

Kernels Avx512Bf16Kernels() { return {kLanes, RunStep}; }

}  // namespace mxplan::recurrence
