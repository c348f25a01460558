// Functions of numbers, for AVX2.
#include <algorithm>
#include <utility>

#include "onednn/functions/kernels.h"

#pragma GCC target("avx2,fma")
#define MXPLAN_LANES 8
#include "onednn/post_ops/apply_impl.h"

namespace mxplan::functions {
namespace {

// The code is a constant in each copy, so that nothing is decided number by number.
template <PostOp::Code kCode>
void Run(PostOp function, float* numbers, int64_t count) {
  function.code = kCode;
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) {
    Store(numbers + at, Apply(function, Load(numbers + at), Vec{}));
  }
  if (at == count) return;
  float rest[kLanes] = {};
  std::copy(numbers + at, numbers + count, rest);
  Store(rest, Apply(function, Load(rest), Vec{}));
  std::copy(rest, rest + (count - at), numbers + at);
}

}  // namespace

void Avx2(const PostOp& function, float* numbers, int64_t count) {
  if (function.code == PostOp::Code::kTanh)
    return Run<PostOp::Code::kTanh>(function, numbers, count);
  Run<PostOp::Code::kGeluTanh>(function, numbers, count);
}

}  // namespace mxplan::functions
