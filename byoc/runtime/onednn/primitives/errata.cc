// The table of errata; see errata.h.
#include "onednn/primitives/errata.h"

namespace mxplan {
namespace {

Erratum BytePairs(const char* name, const char* implementation, bool no_vnni = false) {
  return {.name = name,
          .implementation = implementation,
          .condition = {.kind = "", .byte_products = Presence::kSome, .no_vnni = no_vnni},
          .first = {3, 2, 0},
          .last = {3, 999, 999},
          .wrong = "sums of two products of bytes saturate in 16 bits",
          .found_by = "scripts/sweep_kernels"};
}

}  // namespace

const std::vector<Erratum>& Errata() {
  static const std::vector<Erratum> errata = {
      // If filters and rows of a block outgrow the second-level cache, it takes the window row
      // by row, and runs the epilogue on sums that are not complete: rows of one phase of the
      // stride are `row_stride` apart, and it looks for the last one at distance 1.  Bounds by
      // sizes of caches are not for this table.  oneDNN 3.4 takes `row_stride` rows at a time.
      {.name = "deconvolution-epilogue",
       .implementation = "brg_conv:*+brgconv_strided:*",
       .condition = {.kind = "deconvolution",
                     .epilogue = Presence::kSome,
                     .kernel_rows = {.least = 2},
                     .row_stride = {.least = 2}},
       .first = {3, 2, 0},
       .last = {3, 3, 99},
       .wrong =
           "bias and post-ops run on part of the sum where the filters outgrow the second-level "
           "cache; results are off by 30 %",
       .found_by = "networks that generate images; scripts/sweep_kernels",
       .remedy = Remedy::kEpilogueApart},
      // A convolution's data gradient does the work, and oneDNN does what follows it element by
      // element, by what it calls reference code elsewhere: right, but far slower than primitives
      // of their own.  A sum, which cannot stand apart, has no such implementation then, so that
      // results are not put in place of what is added.  Products of bytes, whose scales cannot
      // stand apart either, keep theirs.
      {.name = "deconvolution-wrapped-epilogue",
       .implementation = "conv:any+*",
       .condition = {.kind = "deconvolution",
                     .epilogue = Presence::kSome,
                     .byte_products = Presence::kNone},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "post-ops take up to 28 times as long as the step without them; results are right",
       .found_by = "steps of training (GoogLeNet's data gradients in blocked layouts)",
       .remedy = Remedy::kEpilogueApart},
      // Sources of zeros are quick, and so are four channels: lanes behind the channels seem to
      // hold subnormal numbers, which take a hundred cycles each.
      {.name = "few-outputs-lanes",
       .implementation = "brgconv:avx2",
       .condition = {.kind = "convolution", .dst_channels = {.least = 1, .most = 3}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "up to three channels of a result take up to 165 times as long as four; results "
                "are right",
       .found_by = "scripts/bench onnx (networks that end in one to three channels)"},
      {.name = "depthwise-sum-tail",
       .implementation = "jit_dw:sse41",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kSum,
                     .order = Order::kChannelsLast,
                     .not_multiple = 4,
                     .src_channels = {.least = 1, .most = 1}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "ends the process where channels do not fill vectors",
       .found_by = "scripts/sweep_kernels"},
      // Divisors are loaded for the channels that there are, so that the padding becomes 0 / 0: the
      // next step that reads it spreads NaN.
      {.name = "depthwise-division-padding",
       .implementation = "jit_dw:avx2",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kBinary,
                     .post_op_algorithm = "div",
                     .order = Order::kBlocked,
                     .not_multiple = 8,
                     .src_channels = {.least = 1, .most = 1}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "the padding of the result is not zero behind a division",
       .found_by = "scripts/sweep_kernels"},
      {.name = "resampling-binary",
       .implementation = "simple:*",
       .condition = {.kind = "resampling",
                     .post_op = PostOp::Kind::kBinary,
                     .order = Order::kNotPlain},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "binary post-ops read other channels than their own",
       .found_by = "scripts/sweep_kernels"},
      {.name = "log-softmax-sse41",
       .implementation = "jit:sse41",
       .condition = {.kind = "softmax", .algorithm = "log_softmax"},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "results near 0 are off by 5e-6, 1e-4 of their size",
       .found_by = "scripts/sweep_kernels"},
      // The second operand is loaded for whole blocks, so that the padding becomes 0 / 0.
      {.name = "bfloat16-division-padding",
       .implementation = "jit_bf16:*",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kBinary,
                     .post_op_algorithm = "div",
                     .dst_order = Order::kBlocked,
                     .dst_not_multiple = 16},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "the padding of the result is not zero behind a division",
       .found_by = "scripts/sweep_kernels"},
      // Images are copied into a buffer whose last pair of channels is half filled; what stands in
      // the other half is multiplied by 0, which makes NaN of a NaN that was there.  Seen from 513
      // channels on, by windows of 6x6 and 7x7 and not by 5x5.
      {.name = "bfloat16-odd-channels",
       .implementation = "*brgconv*:avx512_core_bf16",
       .condition = {.kind = "",
                     .order = Order::kChannelsLast,
                     .not_multiple = 2,
                     .src_channels = {.least = 257},
                     .kernel_rows = {.least = 3}},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "results are NaN where memory happens to hold NaN",
       .found_by = "scripts/sweep_kernels"},
      // Pixels between windows get what makes up for a shifted source, though nothing was summed
      // there.
      {.name = "deconvolution-gaps",
       .implementation = "jit_deconvolution:*",
       .condition = {.kind = "deconvolution",
                     .gap = {.least = 2},
                     .byte_products = Presence::kSome},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "pixels that no window reaches are not the bias alone",
       .found_by = "scripts/sweep_kernels"},
      {.name = "deconvolution-gaps-vectors",
       .implementation = "jit_uni_int8:*",
       .condition = {.kind = "deconvolution",
                     .gap = {.least = 1},
                     .byte_products = Presence::kSome},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "pixels that no window reaches are not the bias alone",
       .found_by = "scripts/sweep_kernels"},
      // Operands are loaded for whole vectors of channels.
      {.name = "depthwise-bytes-binary",
       .implementation = "jit_uni_int8:*",
       .condition = {.kind = "convolution",
                     .post_op = PostOp::Kind::kBinary,
                     .not_multiple = 8,
                     .src_channels = {.least = 1, .most = 1},
                     .byte_products = Presence::kSome},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "binary post-ops are wrong on the last channels where these do not fill vectors",
       .found_by = "scripts/sweep_kernels"},
      {.name = "gemm-zero-point",
       .implementation = "*gemm_s8*",
       .condition = {.kind = "convolution", .byte_products = Presence::kSome, .zero_point = true},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "zero points of src are left out, as seen of images of one pixel",
       .found_by = "scripts/sweep_kernels"},
      // Instruction sets without VNNI add products of bytes in pairs, in 16 bits: 255 * 127 * 2 is
      // beyond them.  No version of oneDNN promises otherwise, it asks for weights of 7 bits.
      BytePairs("byte-pairs-avx512", "*:avx512_core"),
      BytePairs("byte-pairs-avx2", "*:avx2"),
      BytePairs("byte-pairs-sse41", "*:sse41"),
      // Named after no instruction set, these use the best there is.
      BytePairs("byte-pairs-gemm", "gemm:*", true),
      BytePairs("byte-pairs-gemm-inside", "*gemm_s8*", true),
      // It returns before it comes to zero points if it reads rows of src and writes elements of
      // dst one by one.  Mended in oneDNN 3.3.
      {.name = "conversion-zero-point",
       .implementation = "jit:uni",
       .condition = {.kind = "quantization", .zero_point = true, .reads_by_rows = true},
       .first = {3, 2, 0},
       .last = {3, 2, 99},
       .wrong = "zero points are left out between layouts of different orders",
       .found_by = "scripts/sweep_kernels",
       .remedy = Remedy::kOrderApart},
  };
  return errata;
}

}  // namespace mxplan
