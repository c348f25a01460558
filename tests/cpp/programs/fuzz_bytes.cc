// Feeds damaged region programs and module containers to their decoders.
//
//     fuzz_bytes SECONDS|ROUNDSx SEED FILE...
//
// Each FILE holds a sound region program or container; every round damages one of them at random
// and decodes, resolves and describes what is left.  Built with sanitizers, any read outside the
// data ends the run; what the decoders throw is what they are for.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz_budget.h"
#include "library/library.h"
#include "program/resolved.h"
#include "read_file.h"
#include "region/describe.h"
#include "region/libraries.h"
#include "weights/container.h"
#include "weights/linked_weights.h"

namespace {

std::string Damage(std::string data, std::mt19937* random) {
  auto below = [random](size_t limit) { return (*random)() % limit; };
  if (below(8) == 0) data.resize(below(data.size()));
  for (size_t i = below(4) + 1; i-- > 0 && !data.empty();) {
    size_t place = below(data.size());
    switch (below(4)) {
      case 0:
        data[place] = static_cast<char>(below(256));
        break;
      case 1:
        data[place] = static_cast<char>(data[place] ^ (1 << below(8)));
        break;
      case 2:
        data.erase(place, below(9));
        break;
      default:
        data.insert(place, below(9), static_cast<char>(below(3) * 127));
    }
  }
  return data;
}

bool IsContainer(const std::string& data) { return data.compare(0, 4, "MXMD") == 0; }

// The same container with its constants elsewhere.
std::string WithLinkedWeights(const std::string& data) {
  mxplan::Container container = mxplan::Load(data, nullptr, mxplan::FindLibrary("onednn"));
  return mxplan::Save(container.symbol, container.program, container.constants, "weights");
}

// Returns whether the program was still sound.
bool Try(const std::string& data) {
  try {
    std::string bytes = data;
    if (IsContainer(data)) {
      mxplan::Container container = mxplan::Load(data, nullptr, mxplan::FindLibrary("onednn"));
      if (!container.weights.empty()) mxplan::PlanWeights(container.constants);
      bytes = container.program;
    }
    mxplan::Program program = mxplan::Decode(bytes);
    mxplan::ToText(program);
    std::vector<int64_t> symbols(program.symbols.size(), 3);
    mxplan::Describe(program, mxplan::FindLibrary("onednn"), symbols);
    const mxplan::Libraries libraries(program, mxplan::FindLibrary("onednn"));
    mxplan::CheckPlaceable(mxplan::Resolve(program, symbols, libraries));
    return true;
  } catch (const mxplan::Error&) {
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: fuzz_bytes SECONDS|ROUNDSx SEED FILE...\n");
    return 2;
  }
  const Budget budget(argv[1]);
  std::mt19937 random(static_cast<unsigned>(std::atol(argv[2])));
  std::vector<std::string> seeds;
  for (int i = 3; i < argc; ++i) {
    seeds.push_back(ReadFile(argv[i]));
    if (IsContainer(seeds.back())) seeds.push_back(WithLinkedWeights(seeds.back()));
  }
  long sound = 0;
  long rounds = 0;
  for (; budget.Allows(rounds); ++rounds) {
    std::string data = Damage(seeds[random() % seeds.size()], &random);
    if (std::getenv("FUZZ_TRACE")) std::ofstream("last.bin", std::ios::binary) << data;
    sound += Try(data) ? 1 : 0;
  }
  for (const std::string& seed : seeds) {
    if (!Try(seed)) {
      std::fprintf(stderr, "an undamaged file was rejected\n");
      return 1;
    }
  }
  std::printf("%ld inputs: %ld refused, %ld still sound\n", rounds, rounds - sound, sound);
  return 0;
}
