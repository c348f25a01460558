// Checks the tensors a caller hands over against a region's inputs and outputs, and reads the
// symbols.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_SIGNATURE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "memory/space.h"
#include "program/resolved.h"

namespace mxplan {

// A caller's tensor, without its FFI.
struct TensorRef {
  void* data = nullptr;  // first element
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  // in elements; null: compact
  int rank = 0;
  const char* dtype = "";
  MemorySpace::Kind space = MemorySpace::Kind::kHost;
  int device = 0;  // its number, of those of this kind
};

// Throws unless there are as many tensors as inputs and outputs, each of the right type and rank,
// in `memory` and compact.  Inputs come first, then outputs; a lent arena may follow.
void CheckTensors(const Program& program, const MemorySpace& memory,
                  const std::vector<TensorRef>& tensors);

// The number behind every symbol.  `numbers` are those that the call hands over beside its tensors.
void ReadSymbols(const Program& program, const std::vector<TensorRef>& tensors,
                 const std::vector<int64_t>& numbers, std::vector<int64_t>* symbols);

// The address of the arena that the caller lends behind inputs and outputs; null if there is none.
// Throws unless it holds `bytes` bytes of `memory` and begins at a multiple of 64.
char* LentArena(const Program& program, const MemorySpace& memory, int64_t bytes,
                const std::vector<TensorRef>& tensors);

// The shapes that the tensors must have, inputs first: those of the values' stored order, which a
// plain layout shares with the logical shape.
std::vector<Dims> PhysicalShapesOf(const Resolved& resolved);

// Throws unless the tensors of inputs and outputs have these shapes.
void CheckShapes(const Program& program, const std::vector<Dims>& shapes,
                 const std::vector<TensorRef>& tensors);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_SIGNATURE_H_
