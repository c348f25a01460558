// Saving and loading region modules; see container.h.
#include "container.h"

#include <cstring>

#include "error.h"

namespace mxplan {
namespace {

constexpr std::string_view kMagic = "MXMD";
constexpr uint32_t kVersion = 1;
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

class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}

  std::string_view Take(uint64_t size) {
    if (size > data_.size() - offset_) {
      ThrowInvalidInput("the module ends at byte ", data_.size(), ", ", size,
                        " more were expected at byte ", offset_);
    }
    std::string_view piece = data_.substr(offset_, size);
    offset_ += size;
    return piece;
  }

  template <typename T>
  T Number() {
    T number;
    std::memcpy(&number, Take(sizeof(T)).data(), sizeof(T));
    return number;
  }

  std::string String() { return std::string(Take(Number<uint64_t>())); }
  void Align() { Take(Padding(offset_)); }
  bool AtEnd() const { return offset_ == data_.size(); }

 private:
  std::string_view data_;
  size_t offset_ = 0;
};

ConstantData ReadConstant(Reader* reader, const std::shared_ptr<const void>& owner) {
  ConstantData constant;
  constant.dtype = reader->String();
  auto rank = reader->Number<uint32_t>();
  if (rank > kMaxRank) ThrowInvalidInput("a constant of rank ", rank);
  for (uint32_t i = 0; i < rank; ++i) constant.shape.push_back(reader->Number<int64_t>());
  auto bytes = reader->Number<uint64_t>();
  reader->Align();
  std::string_view data = reader->Take(bytes);
  constant.data = data.data();
  constant.bytes = static_cast<int64_t>(data.size());
  constant.owner = owner;
  return constant;
}

}  // namespace

std::string Save(const std::string& symbol, std::string_view program,
                 const std::vector<ConstantData>& constants) {
  size_t total = 256 + symbol.size() + program.size();
  for (const ConstantData& constant : constants) total += static_cast<size_t>(constant.bytes) + 256;
  std::string out;
  out.reserve(total);
  out += kMagic;
  Put<uint32_t>(&out, kVersion);
  PutString(&out, symbol);
  PutString(&out, program);
  Put<uint32_t>(&out, static_cast<uint32_t>(constants.size()));
  for (const ConstantData& constant : constants) {
    PutString(&out, constant.dtype);
    Put<uint32_t>(&out, static_cast<uint32_t>(constant.shape.size()));
    for (int64_t dim : constant.shape) Put<int64_t>(&out, dim);
    Put<uint64_t>(&out, static_cast<uint64_t>(constant.bytes));
    out.append(Padding(out.size()), '\0');
    out.append(constant.data, static_cast<size_t>(constant.bytes));
  }
  return out;
}

Container Load(std::string_view data, const std::shared_ptr<const void>& owner) {
  Reader reader(data);
  if (reader.Take(kMagic.size()) != kMagic) {
    ThrowInvalidInput("not a region module: the first four bytes are not MXMD");
  }
  auto version = reader.Number<uint32_t>();
  if (version != kVersion) {
    ThrowInvalidInput("region module version ", version, ", this build reads ", kVersion);
  }
  Container container;
  container.symbol = reader.String();
  container.program = reader.String();
  auto count = reader.Number<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) container.constants.push_back(ReadConstant(&reader, owner));
  if (!reader.AtEnd()) ThrowInvalidInput("bytes after the end of the region module");
  return container;
}

}  // namespace mxplan
