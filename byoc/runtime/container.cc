// Saving and loading region modules; see container.h.
#include "container.h"

#include "buffer.h"
#include "error.h"
#include "reader.h"

namespace mxplan {
namespace {

constexpr std::string_view kMagic = "MXMD";
constexpr uint32_t kVersion = 2;
constexpr uint32_t kMaxRank = 12;

size_t Padding(size_t offset) { return (kAlignment - offset % kAlignment) % kAlignment; }

template <typename T>
void Put(std::string* out, T number) {
  out->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void PutString(std::string* out, std::string_view text) {
  Put<uint64_t>(out, text.size());
  out->append(text);
}

std::string ReadString(ByteReader* in) { return std::string(in->Take(in->Number<uint64_t>())); }

ConstantData ReadConstant(ByteReader* in, bool inside, const std::shared_ptr<const void>& owner) {
  ConstantData constant;
  constant.dtype = ReadString(in);
  auto rank = in->Number<uint32_t>();
  if (rank > kMaxRank) ThrowInvalidInput("a constant of rank ", rank);
  for (uint32_t i = 0; i < rank; ++i) constant.shape.push_back(in->Number<int64_t>());
  constant.bytes = in->Number<int64_t>();
  if (constant.bytes < 0) ThrowInvalidInput("a constant of ", constant.bytes, " bytes");
  if (!inside) return constant;
  in->Align(kAlignment);
  constant.data = in->Take(static_cast<uint64_t>(constant.bytes)).data();
  constant.owner = owner;
  return constant;
}

}  // namespace

std::string Save(const std::string& symbol, std::string_view program,
                 const std::vector<ConstantData>& constants, const std::string& weights) {
  size_t total = 256 + symbol.size() + program.size();
  for (const ConstantData& constant : constants) {
    total += 256 + (weights.empty() ? static_cast<size_t>(constant.bytes) : 0);
  }
  std::string out;
  out.reserve(total);
  out += kMagic;
  Put<uint32_t>(&out, kVersion);
  PutString(&out, symbol);
  PutString(&out, program);
  PutString(&out, weights);
  Put<uint32_t>(&out, static_cast<uint32_t>(constants.size()));
  for (const ConstantData& constant : constants) {
    PutString(&out, constant.dtype);
    Put<uint32_t>(&out, static_cast<uint32_t>(constant.shape.size()));
    for (int64_t dim : constant.shape) Put<int64_t>(&out, dim);
    Put<int64_t>(&out, constant.bytes);
    if (!weights.empty()) continue;
    out.append(Padding(out.size()), '\0');
    out.append(constant.data, static_cast<size_t>(constant.bytes));
  }
  return out;
}

Container Load(std::string_view data, const std::shared_ptr<const void>& owner) {
  ByteReader in(data, "region module");
  in.Header(kMagic, kVersion);
  Container container;
  container.symbol = ReadString(&in);
  container.program = ReadString(&in);
  container.weights = ReadString(&in);
  for (size_t i = 0, n = in.Count(20); i < n; ++i) {
    container.constants.push_back(ReadConstant(&in, container.weights.empty(), owner));
  }
  in.End();
  return container;
}

}  // namespace mxplan
