// Division that rounds down, as dimension expressions and windows mean it.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_BASE_INTEGERS_H_
#define TVM_MXPLAN_BYOC_RUNTIME_BASE_INTEGERS_H_

#include <cstdint>

namespace mxplan {

inline int64_t FloorDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

inline int64_t FloorMod(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_BASE_INTEGERS_H_
