// Saving and loading region modules; see container.h.
#include "weights/container.h"

#include "base/error.h"
#include "base/reader.h"
#include "memory/buffer.h"

namespace mxplan {
namespace {

constexpr std::string_view kMagic = "MXMD";
constexpr uint32_t kVersion = 4;
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

void PutDims(std::string* out, const std::vector<int64_t>& dims) {
  Put<uint32_t>(out, static_cast<uint32_t>(dims.size()));
  for (int64_t dim : dims) Put<int64_t>(out, dim);
}

std::vector<int64_t> ReadDims(ByteReader* in) {
  auto rank = in->Number<uint32_t>();
  if (rank > kMaxRank) ThrowInvalidInput("a constant of rank ", rank);
  std::vector<int64_t> dims;
  for (uint32_t i = 0; i < rank; ++i) dims.push_back(in->Number<int64_t>());
  return dims;
}

int64_t ReadBytes(ByteReader* in) {
  auto bytes = in->Number<int64_t>();
  if (bytes < 0) ThrowInvalidInput("a constant of ", bytes, " bytes");
  return bytes;
}

void PutForm(std::string* out, const ConstantData& constant) {
  PutString(out, constant.form.packed);
  if (constant.IsPlain()) return;
  PutString(out, constant.form.plain);
  PutDims(out, constant.form.dims);
  Put<int64_t>(out, constant.stored_bytes);
}

void ReadForm(ByteReader* in, const Library& library, ConstantData* constant) {
  constant->stored_bytes = constant->bytes;
  constant->form.packed = ReadString(in);
  if (constant->IsPlain()) return;
  constant->form.plain = ReadString(in);
  constant->form.dims = ReadDims(in);
  constant->stored_bytes = ReadBytes(in);
  library.CheckForm(*constant);
}

ConstantData ReadConstant(ByteReader* in, bool inside, const std::shared_ptr<const void>& owner,
                          const Library& library) {
  ConstantData constant;
  constant.dtype = ReadString(in);
  constant.shape = ReadDims(in);
  constant.bytes = ReadBytes(in);
  constant.serves = ReadString(in);
  ReadForm(in, library, &constant);
  if (!inside) return constant;
  in->Align(kAlignment);
  constant.data = in->Take(static_cast<uint64_t>(constant.stored_bytes)).data();
  constant.owner = owner;
  return constant;
}

}  // namespace

std::string Save(const std::string& symbol, std::string_view program,
                 const std::vector<ConstantData>& constants, const std::string& weights) {
  size_t total = 256 + symbol.size() + program.size();
  for (const ConstantData& constant : constants) {
    total += 256 + constant.serves.size() +
             (weights.empty() ? static_cast<size_t>(constant.stored_bytes) : 0);
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
    PutDims(&out, constant.shape);
    Put<int64_t>(&out, constant.bytes);
    PutString(&out, constant.serves);
    PutForm(&out, constant);
    if (!weights.empty()) continue;
    out.append(Padding(out.size()), '\0');
    out.append(constant.data, static_cast<size_t>(constant.stored_bytes));
  }
  return out;
}

Container Load(std::string_view data, const std::shared_ptr<const void>& owner,
               const Library& library) {
  ByteReader in(data, "region module");
  in.Header(kMagic, kVersion);
  Container container;
  container.symbol = ReadString(&in);
  container.program = ReadString(&in);
  container.weights = ReadString(&in);
  for (size_t i = 0, n = in.Count(20); i < n; ++i) {
    container.constants.push_back(ReadConstant(&in, container.weights.empty(), owner, library));
  }
  in.End();
  return container;
}

}  // namespace mxplan
