// The kernels of onednn/recurrent_training/kernels.h over vectors of MXPLAN_LANES; included once
// for each instruction set, by a file that names it.  Everything is in an unnamed namespace, so
// that the linker never takes one set's code for another's.
#include "onednn/post_ops/apply_impl.h"
#include "onednn/recurrent_training/kernels.h"

namespace mxplan::recurrent_training {
namespace {

// A block of lanes of one sample's units.
struct Block {
  int64_t sample = 0, first = 0, count = 0, units = 0;

  template <typename T>
  MXPLAN_INLINE Vec At(const Rows<T>& rows, int64_t row = 0) const {
    if (!rows.data) return Vec{};
    const float* from = rows.of(sample) + row * units + first;
    return count == kLanes ? Load(from) : LoadSome(from, count);
  }
  MXPLAN_INLINE void Put(const Written& rows, int64_t row, Vec x) const {
    float* to = rows.of(sample) + row * units + first;
    if (count == kLanes) {
      Store(to, x);
    } else {
      StoreSome(to, x, count);
    }
  }
};

// The slope of a function, by its result.
MXPLAN_INLINE Vec OfLogistic(Vec y) { return y * (1.0F - y); }
MXPLAN_INLINE Vec OfTanh(Vec y) { return 1.0F - y * y; }

MXPLAN_INLINE void LstmForward(const ForwardStep& s, const Block& b) {
  auto sum = [&](int64_t gate) {
    const int64_t place = s.layer.places[gate];
    return b.At(s.products, place) + b.At(s.recurrent, place);
  };
  Vec in = Logistic(sum(0)), out = Logistic(sum(1)), kept = Logistic(sum(2)), fresh = Tanh(sum(3));
  Vec state = kept * b.At(s.cell_before) + in * fresh;
  b.Put(s.gates, 0, in);
  b.Put(s.gates, 1, out);
  b.Put(s.gates, 2, kept);
  b.Put(s.gates, 3, fresh);
  b.Put(s.cells, 0, state);
  b.Put(s.dst, 0, out * Tanh(state));
}

MXPLAN_INLINE void LstmBackward(const BackwardStep& s, const Block& b) {
  Vec in = b.At(s.gates, 0), out = b.At(s.gates, 1), kept = b.At(s.gates, 2);
  Vec fresh = b.At(s.gates, 3), bent = Tanh(b.At(s.cells));
  Vec grad = b.At(s.gradient) + (s.first ? Vec{} : b.At(s.state));
  Vec cell = b.At(s.cell_state) + grad * out * OfTanh(bent);
  b.Put(s.dst, s.layer.places[0], cell * fresh * OfLogistic(in));
  b.Put(s.dst, s.layer.places[1], grad * bent * OfLogistic(out));
  b.Put(s.dst, s.layer.places[2], cell * b.At(s.cell_before) * OfLogistic(kept));
  b.Put(s.dst, s.layer.places[3], cell * in * OfTanh(fresh));
  b.Put(s.cell_state, 0, cell * kept);
}

// The update gate, and with a reset in front of the product what that takes.
MXPLAN_INLINE void GruGates(const ForwardStep& s, const Block& b) {
  for (int64_t gate = 0; gate < 2; ++gate) {
    const int64_t place = s.layer.places[gate];
    b.Put(s.gates, gate, Logistic(b.At(s.products, place) + b.At(s.recurrent, place)));
  }
}

MXPLAN_INLINE void GruCandidate(const ForwardStep& s, const Block& b, Vec recurrent) {
  Vec update = b.At(s.gates, 0);
  Vec fresh = Tanh(b.At(s.products, s.layer.places[2]) + recurrent);
  b.Put(s.gates, 2, fresh);
  b.Put(s.dst, 0, update * b.At(s.before) + (1.0F - update) * fresh);
}

MXPLAN_INLINE void ForwardBlock(const ForwardStep& s, Half half, const Block& b) {
  switch (s.layer.cell) {
    case Cell::kLstm:
      return LstmForward(s, b);
    case Cell::kGru:
      if (half == Half::kSecond) return GruCandidate(s, b, b.At(s.recurrent));
      GruGates(s, b);
      return b.Put(s.gates, 3, b.At(s.gates, 1) * b.At(s.before));
    case Cell::kGruLinear: {
      GruGates(s, b);
      Block whole = b;  // one bias for all samples
      whole.sample = 0;
      Vec product = b.At(s.recurrent, s.layer.places[2]) + whole.At(s.bias);
      b.Put(s.gates, 3, product);
      return GruCandidate(s, b, b.At(s.gates, 1) * product);
    }
  }
}

MXPLAN_INLINE void GruBackward(const BackwardStep& s, const Block& b) {
  Vec update = b.At(s.gates, 0), reset = b.At(s.gates, 1), fresh = b.At(s.gates, 2);
  Vec grad = b.At(s.gradient) + (s.first ? Vec{} : b.At(s.state));
  Vec fresh_grad = grad * (1.0F - update) * OfTanh(fresh);
  Vec update_grad = grad * (b.At(s.before) - fresh) * OfLogistic(update);
  b.Put(s.dst, s.layer.places[0], update_grad);
  b.Put(s.dst, s.layer.places[2], fresh_grad);
  b.Put(s.state, 0, grad * update);
  if (s.layer.cell == Cell::kGru) return;
  Vec reset_grad = fresh_grad * b.At(s.gates, 3) * OfLogistic(reset);
  b.Put(s.dst, s.layer.places[1], reset_grad);
  b.Put(s.recurrent, s.layer.places[0], update_grad);
  b.Put(s.recurrent, s.layer.places[1], reset_grad);
  b.Put(s.recurrent, s.layer.places[2], fresh_grad * reset);
  b.Put(s.reset, 0, fresh_grad * reset);
}

// Behind the product of the candidate's gradient with its weights.
MXPLAN_INLINE void GruResetBackward(const BackwardStep& s, const Block& b) {
  Vec reset = b.At(s.gates, 1), product = b.At(s.reset_product);
  b.Put(s.dst, s.layer.places[1], product * b.At(s.before) * OfLogistic(reset));
  b.Put(s.state, 0, b.At(s.state) + product * reset);
}

MXPLAN_INLINE void BackwardBlock(const BackwardStep& s, Half half, const Block& b) {
  if (s.layer.cell == Cell::kLstm) return LstmBackward(s, b);
  if (half == Half::kFirst) return GruBackward(s, b);
  GruResetBackward(s, b);
}

template <typename Step, typename Run>
MXPLAN_INLINE void Blocks(const Step& step, int64_t begin, int64_t end, const Run& run) {
  const int64_t units = step.layer.units, blocks = (units + kLanes - 1) / kLanes;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t first = at % blocks * kLanes, left = units - first;
    run(Block{at / blocks, first, left < kLanes ? left : kLanes, units});
  }
}

inline void RunForward(const ForwardStep& step, Half half, int64_t begin, int64_t end) {
  Blocks(step, begin, end, [&](const Block& block) { ForwardBlock(step, half, block); });
}

inline void RunBackward(const BackwardStep& step, Half half, int64_t begin, int64_t end) {
  Blocks(step, begin, end, [&](const Block& block) { BackwardBlock(step, half, block); });
}

}  // namespace
}  // namespace mxplan::recurrent_training
