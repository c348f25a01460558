// The kernel of onednn/recurrence/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it.  Everything is in an unnamed namespace, so that the
// linker never takes one set's code for another's.
#include "onednn/post_ops/apply_impl.h"
#include "onednn/recurrence/kernels.h"

namespace mxplan::recurrence {
namespace {

// The first `count` of kLanes numbers; zeros where there are none.
MXPLAN_INLINE Vec LoadUnits(const float* from, int64_t count) {
  if (from == nullptr) return Vec{};
  return count == kLanes ? Load(from) : LoadSome(from, count);
}

MXPLAN_INLINE void StoreUnits(float* to, Vec x, int64_t count) {
  if (count == kLanes) {
    Store(to, x);
  } else {
    StoreSome(to, x, count);
  }
}

// sums[g] = before . recurrence[:, g] for a block of units.  Enough sums run beside each other that
// none waits for its last addition.
template <int kGates>
MXPLAN_INLINE void Recur(const float* weights, const float* before, int64_t units, Vec* sums) {
  constexpr int64_t kRows = kGates == 1 ? 8 : 2;
  Vec parts[kRows][kGates] = {};
  int64_t i = 0;
  for (; i + kRows <= units; i += kRows) {
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      Vec number = Broadcast(before[i + r]);
#pragma GCC unroll 4
      for (int64_t g = 0; g < kGates; ++g) {
        parts[r][g] += number * Load(weights + ((i + r) * kGates + g) * kLanes);
      }
    }
  }
  for (; i < units; ++i) {
    Vec number = Broadcast(before[i]);
    for (int64_t g = 0; g < kGates; ++g) {
      parts[0][g] += number * Load(weights + (i * kGates + g) * kLanes);
    }
  }
  for (int64_t count = kRows / 2; count > 0; count /= 2) {
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t g = 0; g < kGates; ++g) parts[r][g] += parts[r + count][g];
    }
  }
  for (int64_t g = 0; g < kGates; ++g) sums[g] = parts[0][g];
}

template <int kGates>
MXPLAN_INLINE void Block(const Step& step, int64_t block) {
  const int64_t first = block * kLanes, units = step.units;
  const int64_t count = units - first < kLanes ? units - first : kLanes;
  Vec sums[kGates] = {};
  if (step.before) {
    Recur<kGates>(step.recurrence + first * units * kGates, step.before, units, sums);
  }
  auto bias = [&](int64_t at) { return LoadUnits(step.bias + at * units + first, count); };
  // The input's part of a gate, bias included.
  auto given = [&](int64_t at) {
    return LoadUnits(step.products + at * units + first, count) + bias(at);
  };
  Vec result;
  if constexpr (kGates == 4) {  // in, forget, candidate, out
    Vec kept = Logistic(given(1) + sums[1]) * LoadUnits(step.cell_state + first, count);
    Vec state = kept + Logistic(given(0) + sums[0]) * Tanh(given(2) + sums[2]);
    StoreUnits(step.cell_state + first, state, count);
    result = Logistic(given(3) + sums[3]) * Tanh(state);
  } else if constexpr (kGates == 3) {  // update, reset, candidate
    Vec reset = Logistic(given(1) + sums[1]);
    Vec fresh = Tanh(given(2) + reset * (sums[2] + bias(3)));
    Vec update = Logistic(given(0) + sums[0]);
    Vec before = LoadUnits(step.before ? step.before + first : nullptr, count);
    result = update * before + (1.0F - update) * fresh;
  } else {
    Vec sum = given(0) + sums[0];
    result = step.cell == Cell::kTanh ? Tanh(sum) : (sum < 0 ? Vec{} : sum);
  }
  StoreUnits(step.dst + first, result, count);
}

template <int kGates>
inline void Blocks(const Step& step, int64_t begin, int64_t end, bool backwards) {
  if (backwards) {
    for (int64_t block = end; block-- > begin;) Block<kGates>(step, block);
  } else {
    for (int64_t block = begin; block < end; ++block) Block<kGates>(step, block);
  }
}

inline void RunStep(const Step& step, int64_t begin, int64_t end, bool backwards) {
  switch (step.cell) {
    case Cell::kLstm:
      return Blocks<4>(step, begin, end, backwards);
    case Cell::kGruLinear:
      return Blocks<3>(step, begin, end, backwards);
    case Cell::kTanh:
    case Cell::kRelu:
      return Blocks<1>(step, begin, end, backwards);
  }
}

}  // namespace
}  // namespace mxplan::recurrence
