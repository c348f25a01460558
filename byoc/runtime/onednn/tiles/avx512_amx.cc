// Dense products in bfloat16 for AMX.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "onednn/tiles/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,amx-tile,amx-bf16")
#define MXPLAN_LANES 16
#define MXPLAN_MASKS
#define MXPLAN_BF16_INSTRUCTIONS
#include "onednn/vectors/lanes_impl.h"
// Behind what they work with.
#include "onednn/amx/groups_impl.h"
#include "onednn/post_ops/short_functions_impl.h"
#include "onednn/vectors/numbers_impl.h"

namespace mxplan::tiles {
namespace {

// Weights of more bytes are read once for several groups: they do not stay in a core's own cache.
constexpr int64_t kKeptBytes = 3 << 19;
constexpr int64_t kMostGroups = 4;
constexpr int64_t kVectorsOfPair = 2;

struct OfShorts {
  static void Low() { _tile_dpbf16ps(0, 4, 6); }
  static void LowNext() { _tile_dpbf16ps(1, 4, 7); }
  static void High() { _tile_dpbf16ps(2, 5, 6); }
  static void HighNext() { _tile_dpbf16ps(3, 5, 7); }
};

int64_t GroupsTogether(const Product& product) {
  const int64_t blocks = (product.channels + kBlock - 1) / kBlock;
  return blocks * product.weights_block > kKeptBytes ? kMostGroups : 1;
}

// One or two blocks of channels, whole ones or not.
template <int kVectors, bool kWhole>
struct Panel {
  const Product& product;
  const Output& output;
  int64_t channel, count;
  Vec bias[kVectors];

  using Sums = Vec[kVectors];

  MXPLAN_INLINE Panel(const Product& all, const Output& result, int64_t first, int64_t channels)
      : product(all), output(result), channel(first), count(channels) {
    for (int64_t v = 0; v < kVectors; ++v) {
      bias[v] = output.bias ? OfChannels(output.bias + first, v) : Vec{};
    }
  }

  MXPLAN_INLINE int64_t Left(int64_t v) const {
    return std::clamp<int64_t>(count - v * kLanes, 0, kLanes);
  }
  template <typename Type>
  MXPLAN_INLINE Vec OfChannels(const Type* from, int64_t v) const {
    return Some<kWhole>{Left(v)}.From(from + v * kLanes);
  }
  template <typename Type>
  MXPLAN_INLINE void Put(Type* to, int64_t v, Vec x) const {
    Some<kWhole>{Left(v)}.To(to + v * kLanes, x);
  }

  template <typename Dst>
  MXPLAN_INLINE void PutAll(Dst* to, const Vec* x) const {
    if constexpr (kVectors == 2 && kWhole && sizeof(Dst) == sizeof(Short)) {
      const __m512bh both =
          _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(x[1]), reinterpret_cast<__m512>(x[0]));
      _mm512_storeu_si512(to, reinterpret_cast<__m512i>(both));
    } else {
      for (int64_t v = 0; v < kVectors; ++v) Put(to, v, x[v]);
    }
  }

  // f(x, v, at) of all sums, `at` counting numbers of dst; bias is added in front of the first
  // function, and what the last one gives is written.  What a loop reads is in variables of its
  // own, which what it writes cannot be.
  template <typename Dst, typename Function>
  MXPLAN_INLINE void ForAll(const amx::Group& group, bool first, bool last, Sums* sums,
                            const Function& f) const {
    Vec added[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) added[v] = first ? bias[v] : Vec{};
    const int64_t pixel = product.channels, from = channel;
    auto* const dst = static_cast<Dst*>(product.dst);
    const int64_t* to = group.pixels;
    for (const Sums* const end = sums + group.count; sums != end; ++sums, ++to) {
      if (*to == amx::kNone) continue;
      const int64_t at = *to * pixel + from;
      Vec x[kVectors];
#pragma GCC unroll 2
      for (int64_t v = 0; v < kVectors; ++v) {
        x[v] = f((*sums)[v] + added[v], v, at);
        if (!last) (*sums)[v] = x[v];
      }
      if (last) PutAll(dst + at, x);
    }
  }

  // One question for all sums tells the post-op.
  template <typename Dst>
  MXPLAN_INLINE void Apply(const amx::Group& group, int number, Sums* sums) const {
    const PostOp op = output.post_ops[number];
    const bool first = number == 0, last = number == output.post_op_count - 1;
    WithCode(op.code, [&](auto code) __attribute__((always_inline)) {
      const auto apply = [&](Vec x, Vec other) __attribute__((always_inline)) {
        return ApplyFor<code(), Dst>(op, x, other);
      };
      if constexpr (!post_ops::HasOperand(code())) {
        ForAll<Dst>(group, first, last, sums,
                    [&](Vec x, int64_t, int64_t)
                        __attribute__((always_inline)) { return apply(x, Vec{}); });
      } else if (op.per_channel) {
        Vec other[kVectors];
        for (int64_t v = 0; v < kVectors; ++v) other[v] = OfChannels(op.data + channel, v);
        ForAll<Dst>(group, first, last, sums,
                    [&](Vec x, int64_t v, int64_t)
                        __attribute__((always_inline)) { return apply(x, other[v]); });
      } else {
        const void* from = code() == PostOp::Code::kSum ? product.dst : op.data;
        ForAll<Dst>(group, first, last, sums,
                    [&](Vec x, int64_t v, int64_t at) __attribute__((always_inline)) {
                      return apply(x, OfChannels(static_cast<const Dst*>(from) + at, v));
                    });
      }
    });
  }

  template <typename Dst>
  __attribute__((noinline)) void Finish(const amx::Group& group, Sums* sums) const {
    if (!product.cut.is_all) {
      for (int i = 0; i < output.post_op_count; ++i) Apply<Dst>(group, i, sums);
      return;
    }
    // NaN stays.
    const Vec least = Broadcast(product.cut.least), most = Broadcast(product.cut.most);
    ForAll<Dst>(group, true, true, sums,
                [=](Vec x, int64_t, int64_t) __attribute__((always_inline)) {
                  const Vec raised = least > x ? least : x;
                  return most < raised ? most : raised;
                });
  }

  MXPLAN_INLINE void Run(amx::Tiles* tiles, const amx::Group* groups, int64_t count_of) const {
    const uint8_t* weights = product.weights + channel / kBlock * product.weights_block;
    Vec sums[amx::kMostRows][kVectors];
    for (const amx::Group* group = groups; group != groups + count_of; ++group) {
      amx::Multiply<OfShorts, kVectors>(tiles, group->rows, group->steps, weights,
                                        product.weights_block, nullptr, sums);
      if (product.number == kRealShort) {
        Finish<Short>(*group, sums);
      } else {
        Finish<float>(*group, sums);
      }
    }
  }
};

void RunPart(const Product& product, const Output& output, const PixelShare& share) {
  amx::Tiles tiles;
  amx::Group groups[kMostGroups];
  amx::Groups all(product.geometry, product.src, share.begin, share.end, product.scratch);
  const int64_t together = GroupsTogether(product);
  constexpr int64_t kPair = kVectorsOfPair * kLanes;
  while (const int64_t taken = all.Take(together, groups)) {
    for (int64_t first = share.channel; first < share.end_channel; first += kPair) {
      const int64_t count = std::min(kPair, share.end_channel - first);
      if (count == kPair) {
        Panel<2, true>(product, output, first, count).Run(&tiles, groups, taken);
      } else if (count > kLanes) {
        Panel<2, false>(product, output, first, count).Run(&tiles, groups, taken);
      } else {
        Panel<1, false>(product, output, first, count).Run(&tiles, groups, taken);
      }
    }
  }
}

int64_t Scratch(const Product& product) {
  return GroupsTogether(product) * amx::Groups::CopiesOf(product.geometry);
}

}  // namespace

Kernel AmxKernel() { return {"avx512_amx", Scratch, RunPart}; }

}  // namespace mxplan::tiles
