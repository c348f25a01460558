// Runs chunks of tiles; see stage.h.
#include "onednn/winograd/stage.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "onednn/engine.h"
#include "onednn/post_ops/post_ops.h"
#include "onednn/vectors/flush_subnormals.h"

namespace mxplan::winograd {
namespace {

enum ArgumentIndex : size_t { kSrc, kDst, kFirstOperand };
enum BufferIndex : size_t { kPatches, kProducts, kMatMulScratchpad, kBufferArguments };

Images GroupOf(Images first, int64_t group) {
  first.first_channel = group * first.channels;
  return first;
}

class WinogradStage final : public MemoryStage {
 public:
  WinogradStage(Plan plan, const std::vector<MemoryArgument>& arguments)
      : MemoryStage(arguments), plan_(std::move(plan)) {}

  void Execute(dnnl_stream_t stream, const std::vector<dnnl_exec_arg_t>& memories) const override {
    Call call(plan_, memories);
    std::atomic<int> status{dnnl_success};
    const int64_t chunks = plan_.groups * plan_.chunks.count;
    if (plan_.chunks.shared) {
      for (int64_t i = 0; i < chunks; ++i) {
        Chunk chunk = ChunkAt(i);
#pragma omp parallel num_threads(plan_.threads)
        TransformInput(call, chunk, Share(chunk.tiles, omp_get_thread_num(), omp_get_num_threads()),
                       0);
        Multiply(call, chunk, stream, 0, &status);
#pragma omp parallel num_threads(plan_.threads)
        TransformOutput(call, chunk,
                        Share(chunk.tiles, omp_get_thread_num(), omp_get_num_threads()), 0);
      }
    } else {
#pragma omp parallel num_threads(plan_.threads)
      {
        auto buffer = static_cast<size_t>(omp_get_thread_num());
        Range mine = Share({0, chunks}, omp_get_thread_num(), omp_get_num_threads());
        for (int64_t i = mine.begin; i < mine.end; ++i) {
          Chunk chunk = ChunkAt(i);
          TransformInput(call, chunk, chunk.tiles, buffer);
          Multiply(call, chunk, ThreadStream().get(), buffer, &status);
          TransformOutput(call, chunk, chunk.tiles, buffer);
        }
      }
    }
    dnnl::error::wrap_c_api(static_cast<dnnl_status_t>(status.load()),
                            "could not execute a primitive");
  }

 private:
  struct Range {
    int64_t begin, end;
  };
  struct Chunk {
    int64_t group;
    Range tiles;
  };

  // Addresses of one call.
  struct Call {
    const std::vector<dnnl_exec_arg_t>& memories;
    size_t first_buffer;
    std::array<PostOp, post_ops::kMaxPostOps> operators;
    Output output;

    Call(const Plan& plan, const std::vector<dnnl_exec_arg_t>& memories)
        : memories(memories), first_buffer(plan.first_buffer) {
      size_t operand = kFirstOperand;
      if (plan.bias) output.bias = Data(operand++);
      for (size_t i = 0; i < plan.post_ops.size(); ++i) {
        operators[i] = plan.post_ops[i];
        if (operators[i].data) operators[i].data = Data(operand++);
      }
      output.post_ops = operators.data();
      output.post_op_count = static_cast<int>(plan.post_ops.size());
    }

    float* Data(size_t index) const { return MemoryStage::Data(memories[index]); }
    size_t Index(size_t buffer, BufferIndex which) const {
      return first_buffer + buffer * kBufferArguments + which;
    }
  };

  static Range Share(Range range, int thread, int threads) {
    int64_t size = range.end - range.begin;
    return {range.begin + size * thread / threads, range.begin + size * (thread + 1) / threads};
  }

  // Group after group, so that a thread stays with the same filters.
  Chunk ChunkAt(int64_t i) const {
    int64_t begin = i % plan_.chunks.count * plan_.chunks.tiles;
    return {i / plan_.chunks.count, {begin, std::min(begin + plan_.chunks.tiles, plan_.tiles)}};
  }

  // The part of a buffer's matrices that starts with tile `first` of a chunk.
  Patches PatchesAt(float* data, int64_t columns, int64_t first) const {
    return {data + first * columns, plan_.chunks.tiles * columns, columns};
  }

  void TransformInput(const Call& call, const Chunk& chunk, Range tiles, size_t buffer) const {
    FlushSubnormals flush;
    plan_.kernels.input(GroupOf(plan_.src, chunk.group), call.Data(kSrc), plan_.grid, tiles.begin,
                        tiles.end,
                        PatchesAt(call.Data(call.Index(buffer, kPatches)), plan_.src_columns,
                                  tiles.begin - chunk.tiles.begin));
  }

  void Multiply(const Call& call, const Chunk& chunk, dnnl_stream_t stream, size_t buffer,
                std::atomic<int>* status) const {
    dnnl_memory_t weights =
        call.memories[plan_.first_weights + static_cast<size_t>(chunk.group)].memory;
    auto memory = [&](BufferIndex which) {
      return call.memories[call.Index(buffer, which)].memory;
    };
    std::array<dnnl_exec_arg_t, 4> arguments = {{{DNNL_ARG_SRC, memory(kPatches)},
                                                 {DNNL_ARG_WEIGHTS, weights},
                                                 {DNNL_ARG_DST, memory(kProducts)},
                                                 {DNNL_ARG_SCRATCHPAD, memory(kMatMulScratchpad)}}};
    dnnl_status_t result = dnnl_primitive_execute(
        plan_.matmul.get(), stream, static_cast<int>(arguments.size()), arguments.data());
    if (result != dnnl_success) *status = result;
  }

  void TransformOutput(const Call& call, const Chunk& chunk, Range tiles, size_t buffer) const {
    FlushSubnormals flush;
    plan_.kernels.output(GroupOf(plan_.dst, chunk.group), call.Data(kDst), plan_.grid, tiles.begin,
                         tiles.end,
                         PatchesAt(call.Data(call.Index(buffer, kProducts)), plan_.dst_columns,
                                   tiles.begin - chunk.tiles.begin),
                         call.output);
  }

  Plan plan_;
};

}  // namespace

std::unique_ptr<const MemoryStage> MakeStage(Plan plan,
                                             const std::vector<MemoryArgument>& arguments) {
  return std::make_unique<const WinogradStage>(std::move(plan), arguments);
}

}  // namespace mxplan::winograd
