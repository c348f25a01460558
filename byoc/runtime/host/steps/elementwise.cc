// Steps that compute each element of dst from elements at the same place: eltwise, binary, compare,
// select, cast.  Operands are broadcast, and may be of any layout that all have in common.
#include "base/error.h"
#include "host/operands.h"
#include "host/steps/builders.h"
#include "host/steps/named.h"

namespace mxplan::host {
namespace {

struct Function {
  Unary op;
  double element_ns;
  bool keeps_zero;
};

constexpr Named<Function> kFunctions[] = {
    {"abs", {Unary::kAbs, 0.15, true}},       {"ceil", {Unary::kCeil, 0.15, true}},
    {"cos", {Unary::kCos, 0.5, false}},       {"erf", {Unary::kErf, 0.5, true}},
    {"exp", {Unary::kExp, 0.4, false}},       {"floor", {Unary::kFloor, 0.15, true}},
    {"log", {Unary::kLog, 0.4, false}},       {"negative", {Unary::kNegative, 0.15, false}},
    {"relu", {Unary::kRelu, 0.15, true}},     {"round", {Unary::kRound, 0.15, true}},
    {"rsqrt", {Unary::kRsqrt, 0.4, false}},   {"sign", {Unary::kSign, 0.15, true}},
    {"sin", {Unary::kSin, 0.5, true}},        {"sqrt", {Unary::kSqrt, 0.4, true}},
    {"square", {Unary::kSquare, 0.15, true}}, {"trunc", {Unary::kTrunc, 0.15, true}},
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

template <size_t kOperands>
double ElementNs(const ElementSizes<kOperands>& sizes) {
  double bytes = 0;
  for (int64_t size : sizes) bytes += static_cast<double>(size);
  return kMovedNs * bytes;
}

}  // namespace

void BuildEltwise(StepBuilder* b) {
  const Function function = ValueOf(kFunctions, b->step(), "algorithm");
  const double alpha = RealOf(b->step(), "alpha");
  if (alpha != 0) ThrowUnsupported("a parameter of ", alpha);
  if (b->ComputedType("src") != Type::kF32) ThrowUnsupported("src: expected float32");
  const auto nest = ElementwiseNest<2>(*b, {"dst", "src"}, function.keeps_zero);
  const ElementSizes<2> sizes{sizeof(float), sizeof(float)};
  b->Add({"dst", "src"}, [nest, sizes, function](char* const* at) {
    ForOperands(nest, sizes, function.element_ns, at, [&](const auto& on, const Extent& extent) {
      const Written dst = WrittenAt(on[0]);
      Strided src = on[1];
      if (src.stride != 1) {  // by way of dst
        KernelsHere().copy(sizeof(float), src, dst, extent);
        src = on[0];
      }
      KernelsHere().unary(function.op, src, dst, extent);
    });
  });
}

void BuildBinary(StepBuilder* b) {
  const Binary op = ValueOf(kBinaries, b->step(), "algorithm");
  const Type type = b->ComputedType("dst");
  const bool integer = type == Type::kI32 || type == Type::kI64;
  const bool logical = type == Type::kBool && (op == Binary::kMin || op == Binary::kMax);
  if (type != Type::kF32 && !integer && !logical) {
    ThrowUnsupported("dst: element type ", b->Dtype("dst"));
  }
  const auto nest = ElementwiseNest<3>(*b, {"dst", "src", "src1"}, op != Binary::kDiv);
  const int64_t bytes = b->ElementBytes("dst");
  const ElementSizes<3> sizes{bytes, bytes, bytes};
  b->Add({"dst", "src", "src1"}, [nest, sizes, op, type](char* const* at) {
    ForOperands(nest, sizes, ElementNs(sizes), at, [&](const auto& on, const Extent& extent) {
      KernelsHere().binary(op, type, on[1], on[2], WrittenAt(on[0]), extent);
    });
  });
}

void BuildCompare(StepBuilder* b) {
  const Comparison op = ValueOf(kComparisons, b->step(), "algorithm");
  const Type type = b->ComputedType("src");
  const bool keeps_zero =
      op == Comparison::kNotEqual || op == Comparison::kLess || op == Comparison::kGreater;
  const auto nest = ElementwiseNest<3>(*b, {"dst", "src", "src1"}, keeps_zero);
  const int64_t bytes = b->ElementBytes("src");
  const ElementSizes<3> sizes{1, bytes, bytes};
  b->Add({"dst", "src", "src1"}, [nest, sizes, op, type](char* const* at) {
    ForOperands(nest, sizes, ElementNs(sizes), at, [&](const auto& on, const Extent& extent) {
      KernelsHere().compare(op, type, on[1], on[2], WrittenAt(on[0]), extent);
    });
  });
}

void BuildSelect(StepBuilder* b) {
  const auto nest = ElementwiseNest<4>(*b, {"dst", "condition", "src", "src1"}, true);
  const int64_t bytes = b->ElementBytes("dst");
  const ElementSizes<4> sizes{bytes, 1, bytes, bytes};
  b->Add({"dst", "condition", "src", "src1"}, [nest, sizes](char* const* at) {
    ForOperands(nest, sizes, ElementNs(sizes), at, [&](const auto& on, const Extent& extent) {
      KernelsHere().select(sizes[0], on[1], on[2], on[3], WrittenAt(on[0]), extent);
    });
  });
}

void BuildCast(StepBuilder* b) {
  const Type from = b->ComputedType("src"), to = b->ComputedType("dst");
  const auto nest = ElementwiseNest<2>(*b, {"dst", "src"}, true);
  const ElementSizes<2> sizes{b->ElementBytes("dst"), b->ElementBytes("src")};
  b->Add({"dst", "src"}, [nest, sizes, from, to](char* const* at) {
    ForOperands(nest, sizes, ElementNs(sizes), at, [&](const auto& on, const Extent& extent) {
      KernelsHere().cast(from, to, on[1], WrittenAt(on[0]), extent);
    });
  });
}

}  // namespace mxplan::host
