// Steps that compute each element of dst from elements at the same place: eltwise, binary, compare,
// select, cast.  Operands are broadcast, and may be of any layout that all have in common.
#include <string_view>

#include "base/error.h"
#include "host/steps/builders.h"

namespace mxplan::host {
namespace {

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

template <typename T, size_t kCount>
T Find(const Named<T> (&table)[kCount], const std::string& name) {
  for (const Named<T>& one : table) {
    if (one.name == name) return one.value;
  }
  ThrowUnsupported("algorithm ", name, ", which the host library has not");
}

struct Function {
  Unary op;
  double element_ns;
  bool keeps_zero;
};

constexpr Named<Function> kFunctions[] = {
    {"abs", {Unary::kAbs, 0.15, true}},     {"ceil", {Unary::kCeil, 0.15, true}},
    {"erf", {Unary::kErf, 0.5, true}},      {"exp", {Unary::kExp, 0.4, false}},
    {"floor", {Unary::kFloor, 0.15, true}}, {"negative", {Unary::kNegative, 0.15, false}},
    {"relu", {Unary::kRelu, 0.15, true}},   {"round", {Unary::kRound, 0.15, true}},
    {"rsqrt", {Unary::kRsqrt, 0.4, false}}, {"sign", {Unary::kSign, 0.15, true}},
    {"sqrt", {Unary::kSqrt, 0.4, true}},    {"square", {Unary::kSquare, 0.15, true}},
    {"trunc", {Unary::kTrunc, 0.15, true}},
};

constexpr Named<Binary> kBinaries[] = {{"add", Binary::kAdd}, {"sub", Binary::kSub},
                                       {"mul", Binary::kMul}, {"div", Binary::kDiv},
                                       {"min", Binary::kMin}, {"max", Binary::kMax}};

constexpr Named<Comparison> kComparisons[] = {
    {"equal", Comparison::kEqual},     {"not_equal", Comparison::kNotEqual},
    {"less", Comparison::kLess},       {"less_equal", Comparison::kLessEqual},
    {"greater", Comparison::kGreater}, {"greater_equal", Comparison::kGreaterEqual}};

// About what an element takes that is read and written once, in ns for each byte.
constexpr double kMovedNs = 0.04;

Strided At(const char* data, int64_t offset, int64_t element_bytes, int64_t stride) {
  return {data + offset * element_bytes, stride};
}

}  // namespace

void BuildEltwise(StepBuilder* b) {
  const Function function = Find(kFunctions, TextOf(b->step(), "algorithm"));
  const double alpha = RealOf(b->step(), "alpha");
  if (alpha != 0) ThrowUnsupported("a parameter of ", alpha);
  if (b->ComputedType("src") != Type::kF32) ThrowUnsupported("src: expected float32");
  const auto nest = ElementwiseNest<2>(*b, {"dst", "src"}, function.keeps_zero);
  b->Add({"dst", "src"}, [nest, function](char* const* at) {
    const auto* src = reinterpret_cast<const float*>(at[1]);
    auto* dst = reinterpret_cast<float*>(at[0]);
    const int64_t stride = nest.back().strides[1];
    ForAllPieces(nest, function.element_ns, [&](const auto& offsets, int64_t count) {
      float* to = dst + offsets[0];
      const float* from = src + offsets[1];
      if (stride != 1) {  // by way of dst
        KernelsHere().copy(sizeof(float), {from, stride}, to, count);
        from = to;
      }
      KernelsHere().unary(function.op, from, to, count);
    });
  });
}

void BuildBinary(StepBuilder* b) {
  const Binary op = Find(kBinaries, TextOf(b->step(), "algorithm"));
  const Type type = b->ComputedType("dst");
  const bool integer = type == Type::kI32 || type == Type::kI64;
  if (type != Type::kF32 && !integer) ThrowUnsupported("dst: element type ", b->Dtype("dst"));
  if (integer && op == Binary::kDiv) ThrowUnsupported("a quotient of integers");
  const auto nest = ElementwiseNest<3>(*b, {"dst", "src", "src1"}, op != Binary::kDiv);
  const int64_t bytes = b->ElementBytes("dst");
  b->Add({"dst", "src", "src1"}, [nest, op, type, bytes](char* const* at) {
    const auto& strides = nest.back().strides;
    ForAllPieces(nest, 3 * kMovedNs * bytes, [&](const auto& offsets, int64_t count) {
      KernelsHere().binary(op, type, At(at[1], offsets[1], bytes, strides[1]),
                           At(at[2], offsets[2], bytes, strides[2]), at[0] + offsets[0] * bytes,
                           count);
    });
  });
}

void BuildCompare(StepBuilder* b) {
  const Comparison op = Find(kComparisons, TextOf(b->step(), "algorithm"));
  const Type type = b->ComputedType("src");
  const bool keeps_zero =
      op == Comparison::kNotEqual || op == Comparison::kLess || op == Comparison::kGreater;
  const auto nest = ElementwiseNest<3>(*b, {"dst", "src", "src1"}, keeps_zero);
  const int64_t bytes = b->ElementBytes("src");
  b->Add({"dst", "src", "src1"}, [nest, op, type, bytes](char* const* at) {
    const auto& strides = nest.back().strides;
    auto* dst = reinterpret_cast<uint8_t*>(at[0]);
    ForAllPieces(nest, kMovedNs * (2 * bytes + 1), [&](const auto& offsets, int64_t count) {
      KernelsHere().compare(op, type, At(at[1], offsets[1], bytes, strides[1]),
                            At(at[2], offsets[2], bytes, strides[2]), dst + offsets[0], count);
    });
  });
}

void BuildSelect(StepBuilder* b) {
  const auto nest = ElementwiseNest<4>(*b, {"dst", "condition", "src", "src1"}, true);
  const int64_t bytes = b->ElementBytes("dst");
  b->Add({"dst", "condition", "src", "src1"}, [nest, bytes](char* const* at) {
    const auto& strides = nest.back().strides;
    ForAllPieces(nest, kMovedNs * (3 * bytes + 1), [&](const auto& offsets, int64_t count) {
      KernelsHere().select(
          bytes, At(at[1], offsets[1], 1, strides[1]), At(at[2], offsets[2], bytes, strides[2]),
          At(at[3], offsets[3], bytes, strides[3]), at[0] + offsets[0] * bytes, count);
    });
  });
}

void BuildCast(StepBuilder* b) {
  const Type from = b->ComputedType("src"), to = b->ComputedType("dst");
  const auto nest = ElementwiseNest<2>(*b, {"dst", "src"}, true);
  const int64_t read = b->ElementBytes("src"), written = b->ElementBytes("dst");
  b->Add({"dst", "src"}, [=](char* const* at) {
    const int64_t stride = nest.back().strides[1];
    ForAllPieces(nest, kMovedNs * static_cast<double>(read + written),
                 [&](const auto& offsets, int64_t count) {
                   KernelsHere().cast(from, to, At(at[1], offsets[1], read, stride),
                                      at[0] + offsets[0] * written, count);
                 });
  });
}

}  // namespace mxplan::host
