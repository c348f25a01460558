// Types of numbers that kernels of our own read and write.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_NUMBERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_NUMBERS_H_

#include <cstdint>

namespace mxplan {

enum class Number : uint8_t { kFloat, kShort, kUnsigned, kSigned };  // kShort is bfloat16

// The real ones, by which tables of kernels are indexed.
enum Real : uint8_t { kRealFloat, kRealShort, kReals };

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_ONEDNN_NUMBERS_H_
