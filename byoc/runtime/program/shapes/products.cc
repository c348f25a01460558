// Shapes of matrix products, and of the layers that are made of them.
//
// No extent is above 2^31 - 1 and neither is an attribute, so sums and products of two stay within
// 64 bits.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "program/shapes/expectations.h"
#include "program/shapes/step_shapes.h"
#include "program/step_attributes.h"

namespace mxplan {
namespace {

struct Gates {
  const char* cell;
  int64_t gates, biases;
};

constexpr Gates kCells[] = {
    {"lstm", 4, 4}, {"gru", 3, 3}, {"gru_linear", 3, 4}, {"tanh", 1, 1}, {"relu", 1, 1}};

Gates GatesOf(const StepView& s) {
  const std::string& cell = TextOf(s.step(), "cell");
  for (const Gates& gates : kCells) {
    if (cell == gates.cell) return gates;
  }
  ThrowInvalidInput("attribute cell: expected lstm, gru, gru_linear, tanh or relu, got ", cell);
}

int64_t DirectionsOf(const StepView& s) {
  const std::string& direction = TextOf(s.step(), "direction");
  if (direction == "forward" || direction == "reverse") return 1;
  if (direction == "both") return 2;
  ThrowInvalidInput("attribute direction: expected forward, reverse or both, got ", direction);
}

}  // namespace

void CheckMatMul(const StepView& s) {
  const Dims &src = s.Shape("src"), &weights = s.Shape("weights"), &dst = s.Shape("dst");
  const size_t rank = dst.size();
  ExpectRank(s, "dst", 2, 12);
  ExpectRank(s, "src", rank, rank);
  ExpectRank(s, "weights", rank, rank);
  const int64_t depth = src[rank - 1];
  Dims rows = dst, columns = dst;
  rows[rank - 1] = depth;
  columns[rank - 2] = depth;
  if (weights[rank - 2] != depth || src[rank - 2] != dst[rank - 2] ||
      weights[rank - 1] != dst[rank - 1]) {
    ThrowInvalidInput("weights: expected a product of [M, K] and [K, N] to [M, N], got shapes ",
                      ToString(src), ", ", ToString(weights), " and ", ToString(dst));
  }
  ExpectBroadcast("src", src, rows);
  ExpectBroadcast("weights", weights, columns);
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (src[i] != dst[i] && weights[i] != dst[i]) {
      ThrowInvalidInput("dst: expected ", std::max(src[i], weights[i]), " on axis ", i,
                        ", got shape ", ToString(dst));
    }
  }
  if (s.Has("bias")) ExpectBroadcast("bias", s.Shape("bias"), dst);
}

void CheckInnerProduct(const StepView& s) {
  ExpectRank(s, "src", 2, 12);
  const Dims &src = s.Shape("src"), &weights = s.Shape("weights");
  ExpectRank(s, "weights", src.size(), src.size());
  Dims filters = src;
  filters[0] = weights[0];
  ExpectShape(s, "weights", filters);
  ExpectShape(s, "dst", {src[0], weights[0]});
  if (s.Has("bias")) ExpectShape(s, "bias", {weights[0]});
}

void CheckSqueezeExcite(const StepView& s) {
  ExpectRank(s, "src", 3, 5);
  ExpectRank(s, "weights", 2, 2);
  const int64_t channels = s.Shape("src")[1], outputs = s.Shape("weights")[0];
  const bool two = s.Has("gate_weights");
  ExpectShape(s, "weights", {two ? outputs : channels, channels});
  if (s.Has("bias")) ExpectShape(s, "bias", {outputs});
  if (two) ExpectShape(s, "gate_weights", {channels, outputs});
  if (s.Has("gate_bias")) ExpectShape(s, "gate_bias", {channels});
  if (s.Has("gate_bias") && !two) ThrowInvalidInput("gate_bias: expected gate_weights beside it");
  CheckSameShape(s);
}

void CheckFewBitsProduct(const StepView& s) {
  constexpr int64_t kLeastBlock = 16, kWordBits = 32;
  const int64_t bits = IntegerOf(s.step(), "bits"), block = IntegerOf(s.step(), "block");
  if (bits != 2 && bits != 4 && bits != 8) {
    ThrowInvalidInput("attribute bits: expected 2, 4 or 8, got ", bits);
  }
  if (block < kLeastBlock || block % kLeastBlock != 0) {
    ThrowInvalidInput("attribute block: expected a multiple of ", kLeastBlock, ", got ", block);
  }
  ExpectRank(s, "src", 2, 12);
  ExpectRank(s, "numbers", 3, 3);
  Dims rows = s.Shape("src");
  const int64_t depth = rows.back(), columns = s.Shape("numbers")[1], of_word = kWordBits / bits;
  ExpectShape(s, "numbers", {1, columns, (depth + of_word - 1) / of_word});
  const Dims scales = {1, columns, (depth + block - 1) / block};
  ExpectShape(s, "scales", scales);
  if (s.Has("zero_points")) ExpectShape(s, "zero_points", scales);
  rows.back() = columns;
  ExpectShape(s, "dst", rows);
}

void CheckGroupedProduct(const StepView& s) {
  ExpectRank(s, "src", 2, 2);
  ExpectRank(s, "weights", 3, 3);
  const Dims &src = s.Shape("src"), &weights = s.Shape("weights");
  ExpectShape(s, "weights", {weights[0], src[1], weights[2]});
  ExpectShape(s, "ends", {weights[0]});
  ExpectShape(s, "dst", {src[0], weights[2]});
}

void CheckRecurrent(const StepView& s) {
  const Gates gates = GatesOf(s);
  const int64_t directions = DirectionsOf(s);
  ExpectRank(s, "src", 3, 3);
  ExpectRank(s, "recurrence", 5, 5);
  const Dims& src = s.Shape("src");
  const int64_t units = s.Shape("recurrence")[2];
  if (units < 1 || src[2] < 1) {
    ThrowInvalidInput("expected units and features, got recurrence of shape ",
                      ToString(s.Shape("recurrence")), " and src of shape ", ToString(src));
  }
  ExpectShape(s, "weights", {1, directions, src[2], gates.gates, units});
  ExpectShape(s, "recurrence", {1, directions, units, gates.gates, units});
  ExpectShape(s, "dst", {src[0], src[1], directions * units});
  if (s.Has("bias")) ExpectShape(s, "bias", {1, directions, gates.biases, units});
  const bool lstm = gates.gates == 4;
  for (const char* role : {"peepholes", "cell", "last_cell"}) {
    if (s.Has(role) && !lstm) ThrowInvalidInput(role, ": expected in an LSTM only");
  }
  if (s.Has("peepholes")) ExpectShape(s, "peepholes", {1, directions, 3, units});
  for (const char* role : {"hidden", "cell", "last_hidden", "last_cell"}) {
    if (s.Has(role)) ExpectShape(s, role, {1, directions, src[1], units});
  }
  if (lstm && (s.Has("hidden") != s.Has("cell") || s.Has("last_hidden") != s.Has("last_cell"))) {
    ThrowInvalidInput("hidden and cell, last_hidden and last_cell: expected both or none");
  }
}

namespace {

// Rules that both ways of a layer in training share.
struct Trained {
  int64_t steps, samples, directions, units, gates;
  bool lstm;

  explicit Trained(const StepView& s, const char* outputs) {
    const std::string& cell = TextOf(s.step(), "cell");
    if (cell != "lstm" && cell != "gru" && cell != "gru_linear") {
      ThrowInvalidInput("attribute cell: expected lstm, gru or gru_linear, got ", cell);
    }
    lstm = cell == "lstm";
    gates = GatesOf(s).gates;
    directions = DirectionsOf(s);
    const std::vector<int64_t>& places =
        IntegersOf(s.step(), "places", static_cast<size_t>(gates), 0);
    std::vector<int64_t> sorted = places;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < gates; ++i) {
      if (sorted[static_cast<size_t>(i)] != i || (!lstm && places[2] != 2)) {
        ThrowInvalidInput("attribute places: expected each of ", gates,
                          " places once, the candidate of a GRU in the last");
      }
    }
    ExpectRank(s, outputs, 3, 3);
    ExpectRank(s, "recurrence", 3, 3);
    steps = s.Shape(outputs)[0];
    samples = s.Shape(outputs)[1];
    units = s.Shape("recurrence")[2];
    if (units < 1) {
      ThrowInvalidInput("recurrence: expected units, got shape ", ToString(s.Shape("recurrence")));
    }
    ExpectShape(s, "recurrence", {directions, gates * units, units});
    ExpectShape(s, outputs, Every(1));
    for (const char* role : {"hidden", "cell", "last_cell", "last_cell_gradient", "hidden_gradient",
                             "cell_gradient"}) {
      if (s.Has(role)) ExpectShape(s, role, {directions, samples, units});
    }
    for (const char* role :
         {"cell", "cells", "kept_cells", "last_cell", "last_cell_gradient", "cell_gradient"}) {
      if (s.Has(role) && !lstm) ThrowInvalidInput(role, ": expected in an LSTM only");
    }
    const bool linear = cell == "gru_linear";
    for (const char* role : {"bias", "reset_gradient"}) {
      if (s.Has(role) && !linear) {
        ThrowInvalidInput(role, ": expected where the reset is behind the product only");
      }
    }
  }
  // All steps, with so many rows of units for each sample and direction.
  Dims Every(int64_t rows) const { return {steps, samples, directions * rows * units}; }
};

constexpr int64_t kKept = 4;  // rows of units that forward keeps for backward

}  // namespace

void CheckRecurrentTraining(const StepView& s) {
  const Trained t(s, "dst");
  ExpectShape(s, "src", t.Every(t.gates));
  ExpectShape(s, "kept_gates", t.Every(kKept));
  if (s.Has("bias")) ExpectShape(s, "bias", {t.directions, t.units});
  if (t.lstm != s.Has("kept_cells") || t.lstm != s.Has("last_cell")) {
    ThrowInvalidInput("kept_cells and last_cell: expected both in an LSTM, none elsewhere");
  }
  if (t.lstm) ExpectShape(s, "kept_cells", t.Every(1));
}

void CheckRecurrentBackward(const StepView& s) {
  const Trained t(s, "outputs");
  ExpectShape(s, "src", t.Every(kKept));
  ExpectShape(s, "gradient", t.Every(1));
  ExpectShape(s, "dst", t.Every(t.gates));
  if (t.lstm != s.Has("cells") || t.lstm != s.Has("cell_gradient")) {
    ThrowInvalidInput("cells and cell_gradient: expected both in an LSTM, none elsewhere");
  }
  if (t.lstm) ExpectShape(s, "cells", t.Every(1));
  if ((TextOf(s.step(), "cell") == "gru_linear") != s.Has("reset_gradient")) {
    ThrowInvalidInput("reset_gradient: expected where the reset is behind the product");
  }
  if (s.Has("reset_gradient")) ExpectShape(s, "reset_gradient", t.Every(1));
}

void CheckAttention(const StepView& s) {
  const std::string& causal = TextOf(s.step(), "causal");
  if (causal != "no" && causal != "first" && causal != "last") {
    ThrowInvalidInput("attribute causal: expected no, first or last, got ", causal);
  }
  RealOf(s.step(), "scale");
  FlagOf(s.step(), "nan_is_zero");
  for (const char* role : {"src", "key", "value", "dst"}) ExpectRank(s, role, 4, 4);
  const Dims &src = s.Shape("src"), &key = s.Shape("key"), &value = s.Shape("value");
  if (key[1] < 1 || src[1] % key[1] != 0) {
    ThrowInvalidInput("key: expected heads that divide the ", src[1], " of src, got shape ",
                      ToString(key));
  }
  ExpectShape(s, "key", {src[0], key[1], key[2], src[3]});
  ExpectShape(s, "value", {src[0], key[1], key[2], value[3]});
  ExpectShape(s, "dst", {src[0], src[2], src[1], value[3]});
  int64_t keys = key[2];
  const bool past = s.Has("past_key");
  for (const char* role : {"past_key", "past_value", "joined_key", "joined_value"}) {
    if (s.Has(role) != past) {
      ThrowInvalidInput(role, ": expected past keys and values and joined ones together, or none");
    }
    if (past) ExpectRank(s, role, 4, 4);
  }
  if (past) {
    const int64_t before = s.Shape("past_key")[2];
    if (s.Has("filled")) {
      ExpectShape(s, "filled", {1});
      if (before < keys) {
        ThrowInvalidInput("past_key: expected caches of ", keys, " rows or more, got shape ",
                          ToString(s.Shape("past_key")));
      }
      keys = before;
    } else {
      keys += before;
    }
    ExpectShape(s, "past_key", {src[0], key[1], before, src[3]});
    ExpectShape(s, "past_value", {src[0], key[1], before, value[3]});
    ExpectShape(s, "joined_key", {src[0], key[1], keys, src[3]});
    ExpectShape(s, "joined_value", {src[0], key[1], keys, value[3]});
  }
  if (s.Has("filled") && !past) {
    ThrowInvalidInput("filled: expected with past keys and values, and only there");
  }
  if (s.Has("mask")) {
    const Dims& mask = s.Shape("mask");
    // Of caches the keys that count; how many is known when the step runs.
    if (s.Has("filled") && !mask.empty()) keys = std::min(keys, mask.back());
    ExpectBroadcast("mask", mask, {src[0], src[1], src[2], keys});
  }
}

}  // namespace mxplan
