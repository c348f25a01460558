// Threads on the same regions, and on regions of their own with the same weights.
//
//     stress_regions THREADS CALLS FILE
//
// FILE holds a container whose region has one symbolic dimension, the batch of its one input and
// its one output.  Every thread takes batches in an order of its own and compares each answer, bit
// for bit, with the one a single thread gave.  Small caches make entries come and go meanwhile.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "library/library.h"
#include "onednn/primitives/primitive_cache.h"
#include "read_file.h"
#include "region/region.h"
#include "weights/container.h"
#include "weights/weights.h"

namespace {

constexpr int64_t kBatches = 4;

struct Case {
  std::vector<int64_t> in_shape, out_shape;
  std::vector<float> in, out;
};

std::vector<int64_t> Shape(const mxplan::Program& program, int value, int64_t batch) {
  std::vector<int64_t> shape;
  for (const mxplan::DimExpr& dim : program.values[static_cast<size_t>(value)].shape) {
    shape.push_back(mxplan::Evaluate(dim, {batch}));
  }
  return shape;
}

size_t Elements(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (int64_t dim : shape) count *= static_cast<size_t>(dim);
  return count;
}

mxplan::TensorRef Ref(std::vector<int64_t>* shape, std::vector<float>* data) {
  mxplan::TensorRef ref;
  ref.data = reinterpret_cast<char*>(data->data());
  ref.shape = shape->data();
  ref.rank = static_cast<int>(shape->size());
  ref.dtype = "float32";
  return ref;
}

void Call(mxplan::Region* region, Case* c) {
  region->Run({Ref(&c->in_shape, &c->in), Ref(&c->out_shape, &c->out)});
}

std::unique_ptr<mxplan::Region> NewRegion(const std::shared_ptr<const std::string>& data) {
  mxplan::Container container = mxplan::Load(*data, data, mxplan::FindLibrary("onednn"));
  return std::make_unique<mxplan::Region>(mxplan::Decode(container.program),
                                          std::move(container.constants),
                                          mxplan::FindLibrary("onednn"));
}

std::vector<Case> MakeCases(mxplan::Region* region) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<Case> cases;
  for (int64_t batch = 1; batch <= kBatches; ++batch) {
    Case c;
    c.in_shape = Shape(region->program(), region->program().inputs[0], batch);
    c.out_shape = Shape(region->program(), region->program().outputs[0], batch);
    c.in.resize(Elements(c.in_shape));
    c.out.resize(Elements(c.out_shape));
    for (float& number : c.in) number = normal(random);
    Call(region, &c);
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: stress_regions THREADS CALLS FILE\n");
    return 2;
  }
  int threads = std::atoi(argv[1]);
  long calls = std::atol(argv[2]);
  auto data = std::make_shared<const std::string>(ReadFile(argv[3]));
  std::vector<Case> expected = MakeCases(NewRegion(data).get());
  mxplan::SetPrimitiveCapacity({2, INT64_MAX});
  mxplan::SetPackedWeightsCapacity({1, INT64_MAX});

  std::unique_ptr<mxplan::Region> shared = NewRegion(data);
  std::atomic<long> wrong{0};
  std::atomic<long> done{0};
  auto work = [&](int number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::unique_ptr<mxplan::Region> own = NewRegion(data);
    for (long i = 0; i < calls / threads; ++i) {
      Case c = expected[random() % expected.size()];
      std::vector<float> answer = c.out;
      std::fill(c.out.begin(), c.out.end(), -1.0f);
      if (random() % 64 == 0) own = NewRegion(data);
      Call(random() % 2 ? own.get() : shared.get(), &c);
      wrong += std::memcmp(answer.data(), c.out.data(), answer.size() * sizeof(float)) != 0;
      ++done;
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(work, i);
  for (std::thread& thread : pool) thread.join();
  mxplan::CacheStatistics weights = mxplan::PackedWeightsStatistics();
  std::printf("%ld calls, %ld wrong, %ld packings, %ld shared\n", done.load(), wrong.load(),
              static_cast<long>(weights.misses), static_cast<long>(weights.hits));
  return wrong.load() == 0 ? 0 : 1;
}
