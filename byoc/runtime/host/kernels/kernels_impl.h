// The loops of host/kernels/kernels.h; included once for each instruction set, by a file that names
// it.  The compiler makes vectors of them, which is why every choice stands outside of a loop.
//
// Everything here has internal linkage, and headers come before the instruction set is named: no
// inline function of one set may end up in code of another.
#pragma GCC optimize("O3", "no-trapping-math", "no-math-errno", "fp-contract=fast")

namespace mxplan::host {
namespace {

#define MXPLAN_INLINE inline __attribute__((always_inline))

template <typename To, typename From>
MXPLAN_INLINE To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

// --- functions ----------------------------------------------------------------------------------

// 2^k for a k from -126 to 127.
MXPLAN_INLINE float PowerOfTwo(int32_t k) { return Bits<float>((k + 127) << 23); }

// exp(x) = 2^n exp(r), r within half a logarithm of two of 0.  Arguments beyond those that float32
// holds the result of become the nearest that overflow, or vanish.
MXPLAN_INLINE float Exp(float x) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23: sums with it are rounded to integers
  constexpr float kLog2High = 0.693359375F, kLog2Low = -2.12194440e-4F;
  float t = x > 89.0F ? 89.0F : x;
  t = t < -104.0F ? -104.0F : t;
  const float shifted = t * 1.442695041F + kShift;
  const int32_t n = Bits<int32_t>(shifted) - Bits<int32_t>(kShift);
  const float whole = shifted - kShift;
  const float r = (t - whole * kLog2High) - whole * kLog2Low;
  float p = 1.393370087e-03F;
  p = p * r + 8.363181007e-03F;
  p = p * r + 4.166646446e-02F;
  p = p * r + 1.666657697e-01F;
  p = p * r + 5.000000014e-01F;
  p = (p * r) * r + r + 1.0F;
  const int32_t half = (x == x ? n : 0) >> 1;  // in two factors: 2^n alone may leave float32
  return p * PowerOfTwo(half) * PowerOfTwo((x == x ? n : 0) - half);
}

// erf by a polynomial in x^2 up to 1, and 1 - exp of one in x beyond.
MXPLAN_INLINE float Erf(float x) {
  const float size = x < 0 ? -x : x;
  const float square = size * size;
  float near = -9.673590184e-06F;
  near = near * square + 1.126825367e-04F;
  near = near * square - 8.484396520e-04F;
  near = near * square + 5.221053410e-03F;
  near = near * square - 2.686543831e-02F;
  near = near * square + 1.128378262e-01F;
  near = near * square - 3.761263848e-01F;
  near = near * square + 1.128379167e+00F;
  const float t = size > 4.0F ? 4.0F : size;  // erf(4) is 1 in float32
  float far = 1.614061601e-06F;
  far = far * t - 4.559062240e-05F;
  far = far * t + 5.927695375e-04F;
  far = far * t - 4.740222340e-03F;
  far = far * t + 2.636471736e-02F;
  far = far * t - 1.099782451e-01F;
  far = far * t - 6.319370937e-01F;
  far = far * t - 1.130166676e+00F;
  far = far * t + 3.032129692e-04F;
  const float beyond = 1.0F - Exp(far);
  const float result = x < 0 ? -beyond : beyond;
  return size > 1.0F ? result : near * x;  // a NaN compares with nothing, and goes on in near * x
}

MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kAbs>, float x) {
  return Bits<float>(Bits<uint32_t>(x) & 0x7fffffffU);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kCeil>, float x) {
  return __builtin_ceilf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kErf>, float x) { return Erf(x); }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kExp>, float x) { return Exp(x); }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kFloor>, float x) {
  return __builtin_floorf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kNegative>, float x) { return -x; }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kRelu>, float x) {
  return x < 0 ? 0.0F : x;  // NaN stays
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kRound>, float x) {
  return __builtin_rintf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kRsqrt>, float x) {
  return 1.0F / __builtin_sqrtf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kSign>, float x) {
  const float sign = x > 0 ? 1.0F : -1.0F;
  return x == 0 || x != x ? x + 0.0F : sign;
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kSqrt>, float x) {
  return __builtin_sqrtf(x);
}
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kSquare>, float x) { return x * x; }
MXPLAN_INLINE float Apply(std::integral_constant<Unary, Unary::kTrunc>, float x) {
  return __builtin_truncf(x);
}

template <Unary op>
void UnaryLoop(const float* src, float* dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    dst[i] = Apply(std::integral_constant<Unary, op>(), src[i]);
  }
}

void UnaryKernel(Unary op, const float* src, float* dst, int64_t count) {
#define MXPLAN_CASE(name) \
  case Unary::name:       \
    return UnaryLoop<Unary::name>(src, dst, count);
  switch (op) {
    MXPLAN_CASE(kAbs)
    MXPLAN_CASE(kCeil)
    MXPLAN_CASE(kErf)
    MXPLAN_CASE(kExp)
    MXPLAN_CASE(kFloor)
    MXPLAN_CASE(kNegative)
    MXPLAN_CASE(kRelu)
    MXPLAN_CASE(kRound)
    MXPLAN_CASE(kRsqrt)
    MXPLAN_CASE(kSign)
    MXPLAN_CASE(kSqrt)
    MXPLAN_CASE(kSquare)
    MXPLAN_CASE(kTrunc)
  }
#undef MXPLAN_CASE
}

// --- loops over two operands --------------------------------------------------------------------

// `at(i, j)` for i of the first operand and j of the second.  The usual strides have loops of their
// own, which the compiler makes vectors of.
template <typename At>
MXPLAN_INLINE void TwoStrides(int64_t a, int64_t b, int64_t count, const At& at) {
  if (a == 1 && b == 1) {
    for (int64_t i = 0; i < count; ++i) at(i, i, i);
  } else if (a == 1 && b == 0) {
    for (int64_t i = 0; i < count; ++i) at(i, i, 0);
  } else if (a == 0 && b == 1) {
    for (int64_t i = 0; i < count; ++i) at(i, 0, i);
  } else {
    for (int64_t i = 0; i < count; ++i) at(i, i * a, i * b);
  }
}

// Integers wrap around, as in two's complement.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::common_type<T>>::type;

template <Binary op, typename T>
MXPLAN_INLINE T Combine(T x, T y) {
  using W = Wrapping<T>;
  if constexpr (op == Binary::kAdd) return static_cast<T>(static_cast<W>(x) + static_cast<W>(y));
  if constexpr (op == Binary::kSub) return static_cast<T>(static_cast<W>(x) - static_cast<W>(y));
  if constexpr (op == Binary::kMul) return static_cast<T>(static_cast<W>(x) * static_cast<W>(y));
  if constexpr (op == Binary::kDiv && std::is_floating_point_v<T>) return x / y;
  // One that is no number makes the result none.
  if constexpr (op == Binary::kMin) return x < y || x != x ? x : y;
  if constexpr (op == Binary::kMax) return x > y || x != x ? x : y;
  return x;
}

template <Binary op, typename T>
void BinaryLoop(Strided a, Strided b, void* dst, int64_t count) {
  const T *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  T* z = static_cast<T*>(dst);
  TwoStrides(a.stride, b.stride, count,
             [x, y, z](int64_t i, int64_t j, int64_t k) { z[i] = Combine<op, T>(x[j], y[k]); });
}

template <typename T>
void BinaryOf(Binary op, Strided a, Strided b, void* dst, int64_t count) {
  switch (op) {
    case Binary::kAdd:
      return BinaryLoop<Binary::kAdd, T>(a, b, dst, count);
    case Binary::kSub:
      return BinaryLoop<Binary::kSub, T>(a, b, dst, count);
    case Binary::kMul:
      return BinaryLoop<Binary::kMul, T>(a, b, dst, count);
    case Binary::kDiv:
      return BinaryLoop<Binary::kDiv, T>(a, b, dst, count);
    case Binary::kMin:
      return BinaryLoop<Binary::kMin, T>(a, b, dst, count);
    case Binary::kMax:
      return BinaryLoop<Binary::kMax, T>(a, b, dst, count);
  }
}

void BinaryKernel(Binary op, Type type, Strided a, Strided b, void* dst, int64_t count) {
  if (type == Type::kF32) return BinaryOf<float>(op, a, b, dst, count);
  if (type == Type::kI32) return BinaryOf<int32_t>(op, a, b, dst, count);
  if (type == Type::kI64) return BinaryOf<int64_t>(op, a, b, dst, count);
}

template <Comparison op, typename T>
MXPLAN_INLINE bool Holds(T x, T y) {
  if constexpr (op == Comparison::kEqual) return x == y;
  if constexpr (op == Comparison::kNotEqual) return x != y;
  if constexpr (op == Comparison::kLess) return x < y;
  if constexpr (op == Comparison::kLessEqual) return x <= y;
  if constexpr (op == Comparison::kGreater) return x > y;
  return x >= y;
}

template <Comparison op, typename T>
void CompareLoop(Strided a, Strided b, uint8_t* __restrict dst, int64_t count) {
  const T *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  TwoStrides(a.stride, b.stride, count, [x, y, dst](int64_t i, int64_t j, int64_t k) {
    dst[i] = Holds<op, T>(x[j], y[k]) ? 1 : 0;
  });
}

template <typename T>
void CompareOf(Comparison op, Strided a, Strided b, uint8_t* dst, int64_t count) {
  switch (op) {
    case Comparison::kEqual:
      return CompareLoop<Comparison::kEqual, T>(a, b, dst, count);
    case Comparison::kNotEqual:
      return CompareLoop<Comparison::kNotEqual, T>(a, b, dst, count);
    case Comparison::kLess:
      return CompareLoop<Comparison::kLess, T>(a, b, dst, count);
    case Comparison::kLessEqual:
      return CompareLoop<Comparison::kLessEqual, T>(a, b, dst, count);
    case Comparison::kGreater:
      return CompareLoop<Comparison::kGreater, T>(a, b, dst, count);
    case Comparison::kGreaterEqual:
      return CompareLoop<Comparison::kGreaterEqual, T>(a, b, dst, count);
  }
}

// Calls `of(T())` for the C++ type of `type`.
template <typename Of>
MXPLAN_INLINE void WithType(Type type, const Of& of) {
  switch (type) {
    case Type::kF32:
      return of(float());
    case Type::kF64:
      return of(double());
    case Type::kI8:
      return of(int8_t());
    case Type::kU8:
    case Type::kBool:
      return of(uint8_t());
    case Type::kI32:
      return of(int32_t());
    case Type::kI64:
      return of(int64_t());
  }
}

void CompareKernel(Comparison op, Type type, Strided a, Strided b, uint8_t* dst, int64_t count) {
  WithType(type, [&](auto zero) { CompareOf<decltype(zero)>(op, a, b, dst, count); });
}

// --- selection, copies, casts -------------------------------------------------------------------

template <typename T>
void SelectLoop(Strided condition, Strided a, Strided b, void* dst, int64_t count) {
  const auto* c = static_cast<const uint8_t*>(condition.data);
  const T *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  T* z = static_cast<T*>(dst);
  if (condition.stride == 0) {
    const Strided taken = *c != 0 ? a : b;
    const T* from = static_cast<const T*>(taken.data);
    for (int64_t i = 0; i < count; ++i) z[i] = from[i * taken.stride];
  } else if (condition.stride == 1) {
    TwoStrides(a.stride, b.stride, count, [c, x, y, z](int64_t i, int64_t j, int64_t k) {
      const T yes = x[j], no = y[k];
      z[i] = c[i] != 0 ? yes : no;
    });
  } else {
    for (int64_t i = 0; i < count; ++i) {
      z[i] = c[i * condition.stride] != 0 ? x[i * a.stride] : y[i * b.stride];
    }
  }
}

void SelectKernel(int64_t element_bytes, Strided condition, Strided a, Strided b, void* dst,
                  int64_t count) {
  if (element_bytes == 1) return SelectLoop<uint8_t>(condition, a, b, dst, count);
  if (element_bytes == 2) return SelectLoop<uint16_t>(condition, a, b, dst, count);
  if (element_bytes == 4) return SelectLoop<uint32_t>(condition, a, b, dst, count);
  if (element_bytes == 8) return SelectLoop<uint64_t>(condition, a, b, dst, count);
}

template <typename T>
void CopyLoop(Strided src, void* dst, int64_t count) {
  const T* from = static_cast<const T*>(src.data);
  T* to = static_cast<T*>(dst);
  if (src.stride == 1) {
    __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (src.stride == 0) {
    const T one = *from;
    for (int64_t i = 0; i < count; ++i) to[i] = one;
  } else if (src.stride == 2) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
  } else if (src.stride == -1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * src.stride];
  }
}

void CopyKernel(int64_t element_bytes, Strided src, void* dst, int64_t count) {
  if (element_bytes == 1) return CopyLoop<uint8_t>(src, dst, count);
  if (element_bytes == 2) return CopyLoop<uint16_t>(src, dst, count);
  if (element_bytes == 4) return CopyLoop<uint32_t>(src, dst, count);
  if (element_bytes == 8) return CopyLoop<uint64_t>(src, dst, count);
}

// A real number as the integer that it is cut to; the smallest one where there is none.
template <typename I, typename F>
MXPLAN_INLINE I Cut(F x) {
  constexpr F kEnd = static_cast<F>(uint64_t{1} << (8 * sizeof(I) - 1));
  const bool inside = x >= -kEnd && x < kEnd;
  return inside ? static_cast<I>(inside ? x : F(0)) : std::numeric_limits<I>::min();
}

template <typename To, typename From>
MXPLAN_INLINE To Cast(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) == 8) {
      return static_cast<To>(Cut<int64_t>(x));
    } else {
      return static_cast<To>(Cut<int32_t>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void CastLoop(Strided src, void* dst, int64_t count) {
  const From* from = static_cast<const From*>(src.data);
  To* to = static_cast<To*>(dst);
  if (src.stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = Cast<To>(from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = Cast<To>(from[i * src.stride]);
  }
}

template <typename From>
void TruthLoop(Strided src, void* dst, int64_t count) {
  const From* from = static_cast<const From*>(src.data);
  auto* to = static_cast<uint8_t*>(dst);
  if (src.stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] != 0 ? 1 : 0;
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * src.stride] != 0 ? 1 : 0;
  }
}

void CastKernel(Type from, Type to, Strided src, void* dst, int64_t count) {
  WithType(from, [&](auto source) {
    using From = decltype(source);
    if (to == Type::kBool) return TruthLoop<From>(src, dst, count);
    WithType(to, [&](auto target) { CastLoop<From, decltype(target)>(src, dst, count); });
  });
}

// --- interpolation ------------------------------------------------------------------------------

void WeightedSumKernel(const float* const* rows, const float* weights, int64_t terms, float* dst,
                       int64_t count) {
  const float* a = rows[0];
  const float w = weights[0];
  if (terms == 2) {
    const float* b = rows[1];
    const float v = weights[1];
    for (int64_t i = 0; i < count; ++i) dst[i] = a[i] * w + b[i] * v;
    return;
  }
  for (int64_t i = 0; i < count; ++i) dst[i] = a[i] * w;
  for (int64_t k = 1; k < terms; ++k) {
    const float* b = rows[k];
    const float v = weights[k];
    for (int64_t i = 0; i < count; ++i) dst[i] += b[i] * v;
  }
}

// Of single elements, with the number of terms known.
template <int kTerms>
void InterpolatePoints(const float* __restrict src, const int32_t* __restrict index,
                       const float* __restrict weights, float* __restrict dst, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = src[index[i]] * weights[i];
    for (int k = 1; k < kTerms; ++k) sum += src[index[k * count + i]] * weights[k * count + i];
    dst[i] = sum;
  }
}

// The nearest points, without arithmetic.
void PickPoints(const float* __restrict src, const int32_t* __restrict index, int64_t inner,
                float* __restrict dst, int64_t count) {
  if (inner == 1) {
    for (int64_t i = 0; i < count; ++i) dst[i] = src[index[i]];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float* from = src + index[i] * inner;
    for (int64_t k = 0; k < inner; ++k) dst[i * inner + k] = from[k];
  }
}

void InterpolateKernel(const float* src, const int32_t* index, const float* weights, int64_t terms,
                       int64_t inner, float* dst, int64_t count) {
  if (terms == 1) return PickPoints(src, index, inner, dst, count);
  if (inner == 1 && terms == 2) return InterpolatePoints<2>(src, index, weights, dst, count);
  if (inner == 1 && terms == 4) return InterpolatePoints<4>(src, index, weights, dst, count);
  const float* rows[4];
  float shares[4];
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < terms; ++k) {
      rows[k] = src + index[k * count + i] * inner;
      shares[k] = weights[k * count + i];
    }
    WeightedSumKernel(rows, shares, terms, dst + i * inner, inner);
  }
}

template <typename T>
void TakeLoop(const void* src, const int64_t* __restrict index, void* dst, int64_t count) {
  const T* from = static_cast<const T*>(src);
  T* __restrict to = static_cast<T*>(dst);
  for (int64_t i = 0; i < count; ++i) to[i] = from[index[i]];
}

void TakeKernel(int64_t element_bytes, const void* src, const int64_t* index, void* dst,
                int64_t count) {
  if (element_bytes == 1) return TakeLoop<uint8_t>(src, index, dst, count);
  if (element_bytes == 2) return TakeLoop<uint16_t>(src, index, dst, count);
  if (element_bytes == 4) return TakeLoop<uint32_t>(src, index, dst, count);
  if (element_bytes == 8) return TakeLoop<uint64_t>(src, index, dst, count);
}

Kernels Get() {
  return {MXPLAN_ISA, UnaryKernel, BinaryKernel, CompareKernel,     SelectKernel,
          CopyKernel, CastKernel,  TakeKernel,   WeightedSumKernel, InterpolateKernel};
}

}  // namespace
}  // namespace mxplan::host
