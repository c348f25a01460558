// The kernel of onednn/recurrence/kernels.h over vectors of MXPLAN_LANES; included once for each
// instruction set, by a file that names it.  Everything is in an unnamed namespace, so that the
// linker never takes one set's code for another's.
#include "onednn/post_ops/apply_impl.h"
#include "onednn/recurrence/kernels.h"
#include "onednn/vectors/counts_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::recurrence {
namespace {

constexpr int64_t kMostTogether = 8;             // samples
constexpr int64_t kSums = kLanes > 8 ? 24 : 12;  // of the registers that there are

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

// Weights of rows, which follow each other in the units of the last step, for all lanes.
template <typename Weight, int kGates>
struct Rows;

template <int kGates>
struct Rows<float, kGates> {
  using Row = Vec;
  const float* weights;
  int64_t count;
  MXPLAN_INLINE Rows(const Step& step, int64_t first)
      : weights(static_cast<const float*>(step.recurrence) + first * step.units * kGates),
        count(step.units) {}
  MXPLAN_INLINE Row Read(int64_t i, int64_t gate) const {
    return Load(weights + (i * kGates + gate) * kLanes);
  }
  static MXPLAN_INLINE const float* StateOf(const Step& step, int64_t sample) {
    return step.before + sample * step.next_before;
  }
  static MXPLAN_INLINE Vec NumberOf(const float* state, int64_t i) { return Broadcast(state[i]); }
  static MXPLAN_INLINE Vec Add(Vec sum, Vec number, Row row) { return sum + number * row; }
};

// Two units in each word, as in the rounded state.
template <int kGates>
struct Rows<Short, kGates> {
  using Row = Ints;
  const Short* weights;
  int64_t count;
  MXPLAN_INLINE Rows(const Step& step, int64_t first)
      : weights(static_cast<const Short*>(step.recurrence)), count((step.units + 1) / 2) {
    weights += first * kGates * count * 2;
  }
  MXPLAN_INLINE Row Read(int64_t i, int64_t gate) const {
    return LoadWords(weights + (gate * count + i) * 2 * kLanes);
  }
  static MXPLAN_INLINE const Short* StateOf(const Step& step, int64_t sample) {
    return step.rounded_before + sample * step.next_rounded;
  }
  static MXPLAN_INLINE Ints NumberOf(const Short* state, int64_t i) {
    int32_t word = 0;
    std::memcpy(&word, state + 2 * i, sizeof(word));
    return Ints{} + word;
  }
  static MXPLAN_INLINE Vec Add(Vec sum, Ints number, Row row) { return AddPairs(sum, number, row); }
};

// sums[s][g] = before . recurrence[:, g] of the samples from `sample` on, for the block of units at
// `first`.
template <typename Weight, int kGates, int kSamples>
MXPLAN_INLINE void Recur(const Step& step, int64_t first, int64_t sample, Vec (*sums)[kGates]) {
  using Reading = Rows<Weight, kGates>;
  constexpr int64_t kAtOnce = 8;  // sums that do not wait for each other's last addition
  constexpr int64_t kEnough = kAtOnce / (kGates * kSamples);
  constexpr int64_t kParts = kEnough > 1 ? kEnough : 1;
  const Reading weights(step, first);
  decltype(Reading::StateOf(step, 0)) states[kSamples];
  for (int64_t s = 0; s < kSamples; ++s) states[s] = Reading::StateOf(step, sample + s);
  Vec parts[kParts][kSamples][kGates] = {};
  const auto add = [&](int64_t i, int64_t part) __attribute__((always_inline)) {
    typename Reading::Row row[kGates];
#pragma GCC unroll 4
    for (int64_t g = 0; g < kGates; ++g) row[g] = weights.Read(i, g);
#pragma GCC unroll 8
    for (int64_t s = 0; s < kSamples; ++s) {
      const auto number = Reading::NumberOf(states[s], i);
#pragma GCC unroll 4
      for (int64_t g = 0; g < kGates; ++g) {
        parts[part][s][g] = Reading::Add(parts[part][s][g], number, row[g]);
      }
    }
  };
  int64_t i = 0;
  for (; i + kParts <= weights.count; i += kParts) {
#pragma GCC unroll 8
    for (int64_t part = 0; part < kParts; ++part) add(i + part, part);
  }
  for (; i < weights.count; ++i) add(i, 0);
#pragma GCC unroll 8
  for (int64_t s = 0; s < kSamples; ++s) {
#pragma GCC unroll 4
    for (int64_t g = 0; g < kGates; ++g) {
#pragma GCC unroll 4
      for (int64_t count = kParts / 2; count > 0; count /= 2) {
        for (int64_t part = 0; part < count; ++part) parts[part][s][g] += parts[part + count][s][g];
      }
      sums[s][g] = parts[0][s][g];
    }
  }
}

// Gates of a block's units in one sample.
template <int kGates>
MXPLAN_INLINE void Finish(const Step& step, int64_t first, int64_t sample, const Vec* sums) {
  const int64_t units = step.units;
  const int64_t count = units - first < kLanes ? units - first : kLanes;
  const float* products = step.products + sample * step.next_products + first;
  auto bias = [&](int64_t at) { return LoadUnits(step.bias + at * units + first, count); };
  // The input's part of a gate, bias included.
  auto given = [&](int64_t at) { return LoadUnits(products + at * units, count) + bias(at); };
  Vec result;
  if constexpr (kGates == 4) {  // in, forget, candidate, out
    float* cell = step.cell_state + sample * step.next_cell_state + first;
    Vec kept = Logistic(given(1) + sums[1]) * LoadUnits(cell, count);
    Vec state = kept + Logistic(given(0) + sums[0]) * Tanh(given(2) + sums[2]);
    StoreUnits(cell, state, count);
    result = Logistic(given(3) + sums[3]) * Tanh(state);
  } else if constexpr (kGates == 3) {  // update, reset, candidate
    Vec reset = Logistic(given(1) + sums[1]);
    Vec fresh = Tanh(given(2) + reset * (sums[2] + bias(3)));
    Vec update = Logistic(given(0) + sums[0]);
    const float* before = step.before ? step.before + sample * step.next_before + first : nullptr;
    result = update * LoadUnits(before, count) + (1.0F - update) * fresh;
  } else {
    Vec sum = given(0) + sums[0];
    result = step.cell == Cell::kTanh ? Tanh(sum) : (sum < 0 ? Vec{} : sum);
  }
  StoreUnits(step.dst + sample * step.next_dst + first, result, count);
  if (step.rounded_dst != nullptr) {
    StoreShort(step.rounded_dst + sample * step.next_rounded + first, count, result);
  }
}

template <typename Weight, int kGates, int kSamples>
inline __attribute__((noinline)) void Together(const Step& step, int64_t first, int64_t sample) {
  Vec sums[kSamples][kGates] = {};
  if (step.before) Recur<Weight, kGates, kSamples>(step, first, sample, sums);
  for (int64_t s = 0; s < kSamples; ++s) Finish<kGates>(step, first, sample + s, sums[s]);
}

// As many samples together as have sums that fill the registers.
template <typename Weight, int kGates>
MXPLAN_INLINE void Block(const Step& step, int64_t block) {
  constexpr int64_t kMost = kSums / kGates < kMostTogether ? kSums / kGates : kMostTogether;
  InParts<kMost>(step.samples, [&](auto samples, int64_t first) {
    Together<Weight, kGates, samples>(step, block * kLanes, first);
  });
}

template <typename Weight, int kGates>
inline void Blocks(const Step& step, int64_t begin, int64_t end, bool backwards) {
  if (backwards) {
    for (int64_t block = end; block-- > begin;) Block<Weight, kGates>(step, block);
  } else {
    for (int64_t block = begin; block < end; ++block) Block<Weight, kGates>(step, block);
  }
}

[[maybe_unused]] void Round(const float* from, int64_t count, Short* to) {
  for (int64_t at = 0; at < count; at += kLanes) {
    const int64_t some = count - at < kLanes ? count - at : kLanes;
    StoreShort(to + at, some, LoadUnits(from + at, some));
  }
}

template <typename Weight>
inline void RunStep(const Step& step, int64_t begin, int64_t end, bool backwards) {
  switch (step.cell) {
    case Cell::kLstm:
      return Blocks<Weight, 4>(step, begin, end, backwards);
    case Cell::kGruLinear:
      return Blocks<Weight, 3>(step, begin, end, backwards);
    case Cell::kTanh:
    case Cell::kRelu:
      return Blocks<Weight, 1>(step, begin, end, backwards);
  }
}

}  // namespace
}  // namespace mxplan::recurrence
