// Numbers of a call, and the work of threads; see stages.h.
#include "onednn/integers/stages.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "memory/buffer.h"
#include "onednn/post_ops/post_ops.h"

namespace mxplan::integers {
namespace {

constexpr int64_t kWidenedBytes = 96 << 10, kFewestWidened = 48;

constexpr int64_t kWord = sizeof(int16_t);

// A window's last word reaches behind the band.
int64_t BandBytes(const Bands& bands) { return AlignUp(bands.bytes() + kFour); }

enum ArgumentIndex : size_t { kSrc, kDst, kWeights, kRest };

using Memories = std::vector<dnnl_exec_arg_t>;

// Stages that take the numbers of a call from its arguments.
class IntegerStage : public MemoryStage {
 public:
  IntegerStage(Numbers numbers, int threads, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), numbers_(std::move(numbers)), threads_(threads) {}

  void Execute(dnnl_stream_t, const Memories& memories) const final {
    Source src = numbers_.src;
    Result result = numbers_.result;
    src.data = Data<uint8_t>(memories[kSrc]);
    result.dst = Data<uint8_t>(memories[kDst]);
    size_t at = kRest;
    for (Role role : numbers_.roles) Put(role, memories[at++], &src, &result);
    const post_ops::FilledIn operators(numbers_.post_ops, [&] { return Data(memories[at++]); });
    result.output.post_ops = operators.data();
    result.output.post_op_count = operators.count();
    if (EndsInRelu(result)) --result.output.post_op_count;
    Run(memories, src, result);
  }

 protected:
  virtual void Run(const Memories& memories, const Source& src, const Result& result) const = 0;

  // `work` of each thread, by its number and how many there are.
  template <typename Work>
  void Share(const Work& work) const {
    if (threads_ == 1) return work(0, 1);
#pragma omp parallel num_threads(threads_)
    work(omp_get_thread_num(), omp_get_num_threads());
  }

 private:
  static void Put(Role role, const dnnl_exec_arg_t& argument, Source* src, Result* result) {
    const auto* numbers = Data(argument);
    const auto* integers = Data<int32_t>(argument);
    switch (role) {
      case kSrcScale:
        result->src_scale = *numbers;
        break;
      case kSrcZero:
        src->zero = *integers;
        break;
      case kWeightsScale:
        result->scales = numbers;
        break;
      case kDstScale:
        result->dst_scale = *numbers;
        break;
      case kDstZero:
        result->dst_zero = *integers;
        break;
      default:
        result->output.bias = numbers;
    }
  }

  // Nothing below 0 is left to the post-op where bytes begin there.
  static bool EndsInRelu(const Result& result) {
    const int count = result.output.post_op_count;
    return count > 0 && result.output.post_ops[count - 1].code == PostOp::Code::kRelu &&
           result.number == Number::kUnsigned && result.dst_zero == 0;
  }

  Numbers numbers_;
  int threads_;
};

class PixelsStage final : public IntegerStage {
 public:
  PixelsStage(const Dense& product, const Pixels& pixels, int64_t scratch,
              const DenseKernel& kernel, Numbers numbers, int threads,
              const std::vector<MemoryArgument>& arguments)
      : IntegerStage(std::move(numbers), threads, arguments),
        product_(product),
        pixels_(pixels),
        scratch_(scratch),
        kernel_(kernel) {}

 protected:
  void Run(const Memories& memories, const Source& src, const Result& result) const override {
    Share([&](int64_t thread, int64_t threads) {
      Dense product = product_;
      product.src = src;
      product.result = result;
      product.weights = Data<int8_t>(memories[kWeights]);
      const PixelShare share(pixels_.count, product.channels, kPanel, thread, threads);
      const int64_t channels = share.end_channel - share.channel;
      if (scratch_ > 0) product.scratch = Data<uint8_t>(memories.back()) + thread * scratch_;
      if (kernel_.widen) {
        Widened(product, share.begin, share.end, share.channel, channels, product.scratch);
      } else {
        kernel_.run(product, share.begin, share.end, share.channel, channels);
      }
    });
  }

 private:
  // As many pixels as are widened at one time are a line of the kernel's.
  void Widened(const Dense& product, int64_t begin, int64_t end, int64_t channel, int64_t channels,
               uint8_t* scratch) const {
    Dense words = product;
    words.src.data = scratch;
    words.src.is_signed = false;
    words.src.zero = 0;
    words.src_pixel = product.depth;
    words.line = pixels_.Together(product);
    words.lines = 1;
    for (int64_t from = begin, to = 0; from < end; from = to) {
      words.first_line = from / words.line;
      to = std::min((words.first_line + 1) * words.line, end);
      for (int64_t pixel = from; pixel < to; ++pixel) {
        WidenPixel(product, pixel, scratch + pixel % words.line * product.depth);
      }
      kernel_.run(words, from, to, channel, channels);
    }
  }

  void WidenPixel(const Dense& product, int64_t pixel, uint8_t* to) const {
    const int64_t line = pixel / product.line, at = pixel % product.line;
    const uint8_t* from = product.src.data + product.LineAt(line) + at * product.src_pixel;
    kernel_.widen(product.src, from, pixels_.numbers, reinterpret_cast<int16_t*>(to));
  }

  Dense product_;
  Pixels pixels_;
  int64_t scratch_;  // bytes of a thread
  DenseKernel kernel_;
};

class WindowsStage final : public IntegerStage {
 public:
  WindowsStage(const Dense& product, const Bands& bands, int64_t scratch, const DenseKernel& kernel,
               Numbers numbers, int threads, const std::vector<MemoryArgument>& arguments)
      : IntegerStage(std::move(numbers), threads, arguments),
        product_(product),
        bands_(bands),
        scratch_(scratch),
        kernel_(kernel) {}

 protected:
  void Run(const Memories& memories, const Source& src, const Result& result) const override {
    Share([&](int64_t thread, int64_t threads) {
      uint8_t* scratch = Data<uint8_t>(memories.back()) + thread * scratch_;
      Dense product = product_;
      product.src = src;
      product.src.data = scratch;
      auto* words = reinterpret_cast<int16_t*>(scratch + BandBytes(bands_));
      if (kernel_.widen) product.src = {reinterpret_cast<uint8_t*>(words), false, 0};
      product.scratch = scratch + BandBytes(bands_);
      product.result = result;
      product.weights = Data<int8_t>(memories[kWeights]);
      ForBands(bands_, thread, threads, [&](int64_t line, int64_t lines) {
        product.first_line = line;
        product.lines = lines;
        CopyBand(bands_, src.data, line, lines, static_cast<uint8_t>(src.zero), scratch);
        if (kernel_.widen) {
          const int64_t rows = (lines - 1) * bands_.stride + bands_.window;
          kernel_.widen(src, scratch, rows * bands_.padded_row, words);
        }
        kernel_.run(product, line * product.line, (line + lines) * product.line, 0,
                    product.channels);
      });
    });
  }

 private:
  Dense product_;
  Bands bands_;
  int64_t scratch_;  // bytes of a thread
  DenseKernel kernel_;
};

class DepthwiseStage final : public IntegerStage {
 public:
  DepthwiseStage(const Depthwise& product, int64_t images, int64_t scratch,
                 const DepthwiseKernel& kernel, Numbers numbers, int threads,
                 const std::vector<MemoryArgument>& arguments)
      : IntegerStage(std::move(numbers), threads, arguments),
        product_(product),
        images_(images),
        scratch_(scratch),
        kernel_(kernel) {}

 protected:
  void Run(const Memories& memories, const Source& src, const Result& result) const override {
    Depthwise product = product_;
    product.src = src;
    product.result = result;
    product.weights = Data<int8_t>(memories[kWeights]);
    Share([&](int64_t thread, int64_t threads) {
      uint8_t* scratch = Data<uint8_t>(memories.back()) + thread * scratch_;
      // Rows are counted through all images.
      const int64_t height = product.dst_height, rows = images_ * height;
      int64_t row = rows * thread / threads;
      const int64_t end = rows * (thread + 1) / threads;
      while (row < end) {
        const int64_t image = row / height, last = std::min(end, (image + 1) * height);
        kernel_.run(product, image, row - image * height, last - image * height, scratch);
        row = last;
      }
    });
  }

 private:
  Depthwise product_;
  int64_t images_;
  int64_t scratch_;  // bytes of a thread
  DepthwiseKernel kernel_;
};

}  // namespace

int64_t Pixels::Together(const Dense& product) const {
  return std::min(std::max(kWidenedBytes / product.depth, kFewestWidened), count);
}

std::unique_ptr<const MemoryStage> MakePixels(const Dense& product, const Pixels& pixels,
                                              int64_t scratch, const DenseKernel& kernel,
                                              Numbers numbers, int threads,
                                              const std::vector<MemoryArgument>& arguments) {
  return std::make_unique<const PixelsStage>(product, pixels, scratch, kernel, std::move(numbers),
                                             threads, arguments);
}

int64_t BandScratch(const Bands& bands, const Dense& product, const DenseKernel& kernel) {
  const int64_t bytes = BandBytes(bands);
  if (kernel.copies) return bytes + AlignUp(kernel.copies(product));
  return kernel.widen ? bytes + AlignUp(kWord * bands.bytes() + kFour) : bytes;
}

std::unique_ptr<const MemoryStage> MakeWindows(const Dense& product, const Bands& bands,
                                               int64_t scratch, const DenseKernel& kernel,
                                               Numbers numbers, int threads,
                                               const std::vector<MemoryArgument>& arguments) {
  return std::make_unique<const WindowsStage>(product, bands, scratch, kernel, std::move(numbers),
                                              threads, arguments);
}

std::unique_ptr<const MemoryStage> MakeDepthwise(const Depthwise& product, int64_t images,
                                                 int64_t scratch, const DepthwiseKernel& kernel,
                                                 Numbers numbers, int threads,
                                                 const std::vector<MemoryArgument>& arguments) {
  return std::make_unique<const DepthwiseStage>(product, images, scratch, kernel,
                                                std::move(numbers), threads, arguments);
}

}  // namespace mxplan::integers
