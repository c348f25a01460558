// The checks of a call's tensors; see signature.h.
#include "region/signature.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "memory/buffer.h"

namespace mxplan {
namespace {

std::string ToString(const int64_t* shape, size_t rank) {
  std::string text = "(";
  for (size_t i = 0; i < rank; ++i) text += Concat(i ? ", " : "", shape[i]);
  return text + ")";
}

const Value& ValueOf(const Program& program, size_t i) {
  size_t inputs = program.inputs.size();
  return program.values[i < inputs ? program.inputs[i] : program.outputs[i - inputs]];
}

// "region r: input 2 (x)"
std::string Where(const Program& program, size_t i) {
  bool input = i < program.inputs.size();
  size_t number = input ? i : i - program.inputs.size();
  return Concat("region ", program.name, ": ", input ? "input " : "output ", number, " (",
                ValueOf(program, i).name, ")");
}

bool IsCompact(const TensorRef& tensor) {
  if (tensor.strides == nullptr) return true;
  if (std::find(tensor.shape, tensor.shape + tensor.rank, 0) != tensor.shape + tensor.rank) {
    return true;  // nothing to step over
  }
  int64_t stride = 1;
  for (int i = tensor.rank; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

// Rank of the tensor that holds a value in its stored order: blocks add axes.
int PhysicalRank(const std::string& tag) {
  int rank = 0;
  for (char c : tag) rank += std::isalpha(static_cast<unsigned char>(c)) ? 1 : 0;
  return rank;
}

bool Equal(const Dims& shape, const TensorRef& tensor) {
  return static_cast<int>(shape.size()) == tensor.rank &&
         std::equal(shape.begin(), shape.end(), tensor.shape);
}

}  // namespace

void CheckTensors(const Program& program, const MemorySpace& memory,
                  const std::vector<TensorRef>& tensors) {
  size_t expected = program.inputs.size() + program.outputs.size();
  if (tensors.size() != expected && tensors.size() != expected + 1) {
    throw Error(ErrorKind::kInvalidType,
                Concat("region ", program.name, " takes ", program.inputs.size(), " inputs and ",
                       program.outputs.size(), " outputs, not ", tensors.size(), " tensors"));
  }
  for (size_t i = 0; i < expected; ++i) {
    const Value& value = ValueOf(program, i);
    const TensorRef& tensor = tensors[i];
    if (value.dtype != tensor.dtype) {
      throw Error(ErrorKind::kInvalidType,
                  Concat(Where(program, i), ": expected ", value.dtype, ", got ", tensor.dtype));
    }
    if (tensor.space != memory.kind()) {
      ThrowInvalidInput(Where(program, i), " is not on ", memory.title());
    }
    // One question for all tensors of a device.
    if (i == 0 || tensor.device != tensors[i - 1].device) {
      memory.CheckDevice(tensor.device, Where(program, i));
    }
    int rank = PhysicalRank(value.layout);
    if (tensor.rank != rank) {
      ThrowInvalidInput(Where(program, i), ": expected rank ", rank, ", got ", tensor.rank,
                        " with shape ", ToString(tensor.shape, static_cast<size_t>(tensor.rank)));
    }
    if (!IsCompact(tensor))
      ThrowInvalidInput(Where(program, i), " has strides that are not compact");
  }
}

void ReadSymbols(const Program& program, const std::vector<TensorRef>& tensors,
                 const std::vector<int64_t>& numbers, std::vector<int64_t>* symbols) {
  symbols->clear();
  for (const SymbolBinding& binding : program.symbols) {
    if (binding.input < 0) {
      if (static_cast<size_t>(binding.axis) >= numbers.size()) {
        ThrowInvalidInput("region ", program.name, ": symbol ", binding.name, " is number ",
                          binding.axis, " of those beside the tensors, and there are ",
                          numbers.size());
      }
      symbols->push_back(numbers[static_cast<size_t>(binding.axis)]);
      continue;
    }
    const TensorRef& tensor = tensors[static_cast<size_t>(binding.input)];
    const Value& value = ValueOf(program, static_cast<size_t>(binding.input));
    size_t axis = value.layout.find(static_cast<char>('a' + binding.axis));
    if (axis == std::string::npos || axis >= value.shape.size()) {
      ThrowUnsupported(Where(program, static_cast<size_t>(binding.input)), ": symbol ",
                       binding.name, " is on a blocked axis");
    }
    symbols->push_back(tensor.shape[axis]);
  }
}

char* LentArena(const Program& program, const MemorySpace& memory, int64_t bytes,
                const std::vector<TensorRef>& tensors) {
  size_t before = program.inputs.size() + program.outputs.size();
  if (tensors.size() == before) return nullptr;
  const TensorRef& arena = tensors[before];
  std::string where = Concat("region ", program.name, ": the arena behind the outputs");
  if (std::string_view(arena.dtype) != "uint8" || arena.rank != 1) {
    throw Error(ErrorKind::kInvalidType, Concat(where, ": expected uint8 of rank 1, got ",
                                                arena.dtype, " of rank ", arena.rank));
  }
  if (arena.space != memory.kind()) ThrowInvalidInput(where, " is not on ", memory.title());
  memory.CheckDevice(arena.device, where);
  if (!IsCompact(arena)) ThrowInvalidInput(where, " has strides that are not compact");
  if (arena.shape[0] < bytes) {
    ThrowInvalidInput(where, ": expected at least ", bytes, " bytes, got ", arena.shape[0]);
  }
  if (reinterpret_cast<uintptr_t>(arena.data) % kAlignment != 0) {
    ThrowInvalidInput(where, " does not begin at a multiple of ", kAlignment);
  }
  return static_cast<char*>(arena.data);
}

std::vector<Dims> PhysicalShapesOf(const Resolved& resolved) {
  const Program& program = *resolved.program;
  std::vector<Dims> shapes;
  for (const std::vector<int>* ids : {&program.inputs, &program.outputs}) {
    for (int id : *ids) {
      const ResolvedValue& value = resolved.values[id];
      const std::string& tag = program.values[id].layout;
      bool plain = tag == PlainTag(value.dims.size());
      shapes.push_back(plain ? value.dims : PhysicalShape(value.layout, tag));
    }
  }
  return shapes;
}

void CheckShapes(const Program& program, const std::vector<Dims>& shapes,
                 const std::vector<TensorRef>& tensors) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (Equal(shapes[i], tensors[i])) continue;
    const std::string& tag = ValueOf(program, i).layout;
    bool plain = tag == PlainTag(shapes[i].size());
    ThrowInvalidInput(Where(program, i), ": expected shape ",
                      ToString(shapes[i].data(), shapes[i].size()),
                      plain ? "" : Concat(" (layout ", tag, ")"), ", got ",
                      ToString(tensors[i].shape, static_cast<size_t>(tensors[i].rank)));
  }
}

}  // namespace mxplan
