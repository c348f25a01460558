// The kernel of onednn/recurrence/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set and type of weights, by a file that names these, behind its operations:
//
//   Prepare(step)               once in front of a step's blocks, on each thread
//   Recur<gates>(step, first, sums)
//                               sums[g] = before . recurrence[:, g] for the block of units at first
//
// Everything is in an unnamed namespace, so that the linker never takes one set's code for
// another's.
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

template <int kGates>
MXPLAN_INLINE void Block(const Step& step, int64_t block) {
  const int64_t first = block * kLanes, units = step.units;
  const int64_t count = units - first < kLanes ? units - first : kLanes;
  Vec sums[kGates] = {};
  if (step.before) Recur<kGates>(step, first, sums);
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
  Prepare(step);
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
