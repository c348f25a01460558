// Reads numbers and text from bytes that may be anything: never past their end, never more than
// they hold.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_BASE_READER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_BASE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace mxplan {

// Every call throws InvalidInput where the bytes end too early; `what` is how messages name the
// data.
class ByteReader {
 public:
  ByteReader(std::string_view data, const char* what) : data_(data), what_(what) {}

  std::string_view Take(uint64_t size);

  template <typename T>
  T Number() {
    T number;
    std::memcpy(&number, Take(sizeof(T)).data(), sizeof(T));
    return number;
  }

  // A count of items of at least `smallest` bytes each, so that garbage cannot ask for memory.
  size_t Count(size_t smallest);
  // Text of `size` bytes; it must be UTF-8.
  std::string Text(uint64_t size);
  // A real number that is one.
  double Real();
  // The data's first bytes must be `magic` and then `version`.
  void Header(std::string_view magic, uint32_t version);
  // Skips to the next multiple of `alignment`.
  void Align(size_t alignment);
  // Nothing may be left.
  void End() const;

  size_t offset() const { return offset_; }

 private:
  std::string_view data_;
  const char* what_;
  size_t offset_ = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_BASE_READER_H_
