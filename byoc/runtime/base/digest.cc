// Eight lanes that fold 128-bit products; see digest.h.
#include "base/digest.h"

#include <cstring>
#include <random>

namespace mxplan {
namespace {

uint64_t Fold(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The next number of a well-mixed sequence (splitmix64).
uint64_t Next(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

Digester::Digester(uint64_t seed) {
  for (uint64_t& secret : secrets_) secret = Next(&seed);
  for (uint64_t& lane : lanes_) lane = Next(&seed);
}

void Digester::Add(const void* data, size_t bytes) {
  constexpr size_t kBlock = kLanes * sizeof(uint64_t);
  const auto* next = static_cast<const char*>(data);
  added_ += bytes;
  uint64_t words[kLanes];
  auto mix = [&] {
    for (size_t i = 0; i < kLanes; ++i) lanes_[i] = Fold(lanes_[i] ^ words[i], secrets_[i]);
  };
  for (; bytes >= kBlock; bytes -= kBlock, next += kBlock) {
    std::memcpy(words, next, kBlock);
    mix();
  }
  if (bytes == 0) return;
  std::memset(words, 0, kBlock);
  std::memcpy(words, next, bytes);
  mix();
}

Digest Digester::Take() const {
  Digest digest = {added_ ^ secrets_[0], added_ ^ secrets_[1]};
  for (size_t i = 0; i < kLanes; ++i) {
    digest[0] = Fold(digest[0] ^ lanes_[i], secrets_[(i + 1) % kLanes] | 1);
    digest[1] = Fold(digest[1] ^ lanes_[kLanes - 1 - i], secrets_[(i + 3) % kLanes] | 1);
  }
  return digest;
}

uint64_t ProcessSeed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return seed;
}

}  // namespace mxplan
