// Sums of 8-bit products become results, in registers; included once for each instruction set,
// behind lanes_impl.h, by a file that defines these for vectors of MXPLAN_LANES:
//
//   kNumbers, kMostVectors, kPixelsBy[]   of src in a lane, of a panel, and by how many these are
//   Ints LoadFactors(from)                weights of kLanes channels
//   kGroupsAtOnce                         multiplied without a jump between them
//   Ints Dot(Ints sum, Ints a, Ints b)    sum + the kNumbers products of each lane, of numbers of
//                                         src, which are unsigned where they are bytes, and weights
//   Ints FourOf(from), SomeOf(from, count)   bytes in each word, zeros behind `count` of them
//   Vec Whole(Vec x)                      rounded, a half to the even integer
//   Ints Nearest(Vec x)                   the same as integers, the least one where there is none
//   Vec LoadFirst(from, count)            `count` numbers, kLanes at most, zeros behind them
//   void StoreFirst(to, count, x)
//   Ints WidenBytes<signed>(from, count)  as words
//   void StoreBytes<pixels, vectors, signed>(to, pixel, words, count)
//                                         saturated, the first `count` of each pixel's vectors
#include <cstring>

#include "onednn/integers/kernels.h"
#include "onednn/post_ops/apply_impl.h"
#include "onednn/vectors/shorts_impl.h"

namespace mxplan::integers {
namespace {

MXPLAN_INLINE Ints AllOf(int32_t word) { return Ints{} + word; }

// How many of a pixel's `count` numbers the vector `v` has.
MXPLAN_INLINE int64_t CountOf(int64_t count, int64_t v) {
  return std::min<int64_t>(std::max<int64_t>(count - v * kLanes, 0), kLanes);
}

constexpr bool IsReal(Number number) {
  return number == Number::kFloat || number == Number::kShort;
}

constexpr float kProduct = 255 * 128;  // the largest of two bytes
constexpr float kWord = 1U << 30;      // half of the least that is none

// Post-ops of a residual: a model's quantizer (round, clip, linear) or none, and then integers that
// stand as those of dst do.
struct Residual {
  const PostOp* quantizer = nullptr;  // null where there is none
  const void* data = nullptr;         // null where post-ops are others
  bool is_signed = false;
  float factor = 1;

  MXPLAN_INLINE explicit Residual(const Result& result) {
    const PostOp* op = result.output.post_ops;
    const int count = result.output.post_op_count;
    if (count != 1 && !(count == 4 && IsQuantizer(op))) return;
    const PostOp& last = op[count - 1];
    const bool sum = last.code == PostOp::Code::kSum;
    const Number number = sum ? result.number : last.number;
    if (IsReal(result.number) || IsReal(number)) return;
    if (!sum && (last.code != PostOp::Code::kAdd || last.per_channel)) return;
    quantizer = count > 1 ? op : nullptr;
    data = sum ? result.dst : last.data;
    is_signed = number == Number::kSigned;
    factor = sum ? last.alpha : 1.0F;
  }

  // As of the other side of a sum.
  static MXPLAN_INLINE bool IsQuantizer(const PostOp* op) {
    return op[0].code == PostOp::Code::kRound && op[1].code == PostOp::Code::kClip &&
           op[2].code == PostOp::Code::kLinear;
  }
};

// Channels of a panel, and their numbers: dst = post_ops(sum * scale + shift) * last_scale +
// last_shift, where without post-ops the first two do what the last ones would.
template <int kVectors>
struct Panel {
  int64_t channel, count;
  bool real, has_post_ops, is_signed;
  bool bounded = true;  // the integers before they are cut off fit into a word
  Vec scale[kVectors], shift[kVectors];
  Vec last_scale = Broadcast(1.0F), last_shift{};
  Vec most{};

  // `products`: those that a sum adds up, at most.
  MXPLAN_INLINE Panel(const Result& result, int64_t first_channel, int64_t channels,
                      int64_t products)
      : channel(first_channel),
        count(channels),
        real(IsReal(result.number)),
        has_post_ops(result.output.post_op_count > 0),
        is_signed(result.number == Number::kSigned) {
    if (!real) {
      last_scale = Broadcast(1.0F / result.dst_scale);
      last_shift = Broadcast(static_cast<float>(result.dst_zero));
      most = Broadcast(result.number == Number::kUnsigned ? 255.0F : 127.0F);
    }
    Ints fits = AllOf(-1);
    for (int v = 0; v < kVectors; ++v) {
      const int64_t first = channel + v * kLanes, some = CountOf(count, v);
      scale[v] = result.scale_per_channel ? LoadFirst(result.scales + first, some)
                                          : Broadcast(*result.scales);
      scale[v] *= result.src_scale;
      shift[v] = result.output.bias ? LoadFirst(result.output.bias + first, some) : Vec{};
      if (has_post_ops || real) continue;
      scale[v] *= last_scale;
      shift[v] = shift[v] * last_scale + last_shift;
      const Vec sum = kProduct * static_cast<float>(products) * scale[v];
      fits &= Max(sum, -sum) + Max(shift[v], -shift[v]) < kWord;
    }
    for (int64_t i = 0; i < kLanes; ++i) bounded = bounded && fits[i] != 0;
  }

  // Sums become unsigned integers by one scale and one shift.
  MXPLAN_INLINE bool IsPlain() const { return !real && !has_post_ops && !is_signed && bounded; }
};

// Some pixels of a panel: their vectors are one behind the other.  kWhole: all channels of the
// vectors are there.
template <int kPixels, int kVectors, bool kWhole = false>
struct Tile {
  static constexpr int kCount = kPixels * kVectors;
  const Result& result;
  const Panel<kVectors>& panel;
  int64_t at;  // of the first number in dst

  MXPLAN_INLINE int64_t Place(int i) const {
    return at + i / kVectors * result.pixel + i % kVectors * kLanes;
  }
  MXPLAN_INLINE int64_t Count(int i) const {
    return kWhole ? kLanes : CountOf(panel.count, i % kVectors);
  }

  // Numbers that stand as those of dst do.
  MXPLAN_INLINE void LoadLike(const void* data, Number number, Vec* numbers) const {
    if (number == Number::kFloat) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        numbers[i] = LoadFirst(static_cast<const float*>(data) + Place(i), Count(i));
      }
    } else if (number == Number::kShort) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) {
        numbers[i] = Widened(LoadShort(static_cast<const Short*>(data) + Place(i), Count(i)));
      }
    } else if (number == Number::kSigned) {
      LoadIntegers<true>(data, numbers);
    } else {
      LoadIntegers<false>(data, numbers);
    }
  }

  template <bool kSigned>
  MXPLAN_INLINE void LoadIntegers(const void* data, Vec* numbers) const {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const auto* from = static_cast<const uint8_t*>(data) + Place(i);
      numbers[i] = __builtin_convertvector(WidenBytes<kSigned>(from, Count(i)), Vec);
    }
  }

  inline __attribute__((noinline)) void ApplyOther(const PostOp& op, Vec* x) const {
    Vec other[kCount] = {};
    if (op.data && !op.per_channel) LoadLike(op.data, op.number, other);
    for (int i = 0; i < kCount; ++i) {
      const int64_t channel = panel.channel + i % kVectors * kLanes;
      if (op.per_channel) other[i] = LoadFirst(op.data + channel, Count(i));
      x[i] = Apply(op, x[i], other[i]);
    }
  }

  static MXPLAN_INLINE void Requantize(const PostOp* op, Vec* x) {
    const Vec least = Broadcast(op[1].alpha), most = Broadcast(op[1].beta);
    const Vec scale = Broadcast(op[2].alpha), shift = Broadcast(op[2].beta);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      x[i] = Min(Max(Whole(x[i]), least), most) * scale + shift;
    }
  }

  MXPLAN_INLINE void ApplyPostOps(Vec* x) const {
    const PostOp* end = result.output.post_ops + result.output.post_op_count;
    for (const PostOp* op = result.output.post_ops; op != end; ++op) {
      if (end - op > 2 && Residual::IsQuantizer(op)) {
        Requantize(op, x);
        op += 2;
        continue;
      }
      switch (op->code) {
        case PostOp::Code::kRound:
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] = Whole(x[i]);
          break;
        case PostOp::Code::kClip: {
          const Vec least = Broadcast(op->alpha), most = Broadcast(op->beta);
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] = Min(Max(x[i], least), most);
          break;
        }
        case PostOp::Code::kLinear: {
          const Vec scale = Broadcast(op->alpha), shift = Broadcast(op->beta);
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] = x[i] * scale + shift;
          break;
        }
        case PostOp::Code::kRelu:
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] = Max(x[i], Vec{});
          break;
        case PostOp::Code::kAdd: {
          Vec other[kCount];
          if (op->per_channel) {
#pragma GCC unroll 8
            for (int i = 0; i < kCount; ++i) {
              other[i] = LoadFirst(op->data + panel.channel + i % kVectors * kLanes, Count(i));
            }
          } else {
            LoadLike(op->data, op->number, other);
          }
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] += other[i];
          break;
        }
        case PostOp::Code::kSum: {
          Vec there[kCount];
          LoadLike(result.dst, result.number, there);
          const Vec scale = Broadcast(op->alpha);
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] += scale * there[i];
          break;
        }
        default: {
          Vec apart[kCount];  // so that x need not be in memory for the cases above
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) apart[i] = x[i];
          ApplyOther(*op, apart);
#pragma GCC unroll 8
          for (int i = 0; i < kCount; ++i) x[i] = apart[i];
        }
      }
    }
  }

  MXPLAN_INLINE void StoreReal(const Vec* x) const {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      if (result.number == Number::kFloat) {
        StoreFirst(static_cast<float*>(result.dst) + Place(i), Count(i), x[i]);
      } else {
        StoreShort(static_cast<Short*>(result.dst) + Place(i), Count(i), x[i]);
      }
    }
  }

  template <bool kSigned>
  MXPLAN_INLINE void StoreIntegers(const Vec* x) const {
    Ints words[kCount];
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) words[i] = Nearest(Min(x[i], panel.most));
    Store<kSigned>(words);
  }

  template <bool kSigned>
  MXPLAN_INLINE void Store(const Ints* words) const {
    auto* to = static_cast<uint8_t*>(result.dst) + at;
    StoreBytes<kPixels, kVectors, kSigned>(to, result.pixel, words,
                                           kWhole ? kVectors * kLanes : panel.count);
  }

  MXPLAN_INLINE void Scale(const Ints* sums, Vec* x) const {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      const int v = i % kVectors;
      x[i] = __builtin_convertvector(sums[i], Vec) * panel.scale[v] + panel.shift[v];
    }
  }

  // For panels that are plain.
  MXPLAN_INLINE void WritePlain(const Ints* sums) const {
    Vec x[kCount];
    Scale(sums, x);
    Ints words[kCount];
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) words[i] = Nearest(x[i]);
    Store<false>(words);
  }

  // With the post-ops of a residual.
  template <bool kSigned, bool kQuantized>
  MXPLAN_INLINE void WriteResidual(const Residual& residual, const Ints* sums) const {
    Vec x[kCount], other[kCount];
    Scale(sums, x);
    if constexpr (kQuantized) Requantize(residual.quantizer, x);
    LoadIntegers<kSigned>(residual.data, other);
    const Vec factor = Broadcast(residual.factor);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      x[i] = (x[i] + factor * other[i]) * panel.last_scale + panel.last_shift;
    }
    panel.is_signed ? StoreIntegers<true>(x) : StoreIntegers<false>(x);
  }

  MXPLAN_INLINE void Write(const Ints* sums) const {
    Vec x[kCount];
    Scale(sums, x);
    if (panel.has_post_ops) ApplyPostOps(x);
    if (panel.real) return StoreReal(x);
    if (panel.has_post_ops) {
#pragma GCC unroll 8
      for (int i = 0; i < kCount; ++i) x[i] = x[i] * panel.last_scale + panel.last_shift;
    }
    if (result.number == Number::kSigned) {
      StoreIntegers<true>(x);
    } else {
      StoreIntegers<false>(x);
    }
  }
};

// Pixels that are finished together: as many vectors as fill one of bytes.
template <int kPixels, int kVectors>
constexpr int kFinished = std::min(kPixels, std::max(4 / kVectors, 1));

}  // namespace
}  // namespace mxplan::integers
