// A region module as bytes: symbol, region program and constants in one block, or the constants'
// name where they are data of a library instead (linked_weights.h).
//
//     "MXMD" version:u32 symbol program weights count:u32 constant*
//     constant   dtype rank:u32 i64* bytes:i64 serves form, then if weights is empty
//                zeros up to a multiple of 64 data
//     form       packed, and unless that is empty: plain rank:u32 i64* stored_bytes:i64
//     strings (symbol, program, weights, dtype, serves, packed, plain) are u64 length + bytes
#ifndef TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_CONTAINER_H_
#define TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_CONTAINER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "library/library.h"
#include "weights/constant.h"

namespace mxplan {

struct Container {
  std::string symbol;
  std::string program;
  std::string weights;  // the data's symbol; empty: in the container
  std::vector<ConstantData> constants;
};

std::string Save(const std::string& symbol, std::string_view program,
                 const std::vector<ConstantData>& constants, const std::string& weights = "");

// Constants in the container point into `data`, which `owner` keeps alive; others have no data yet.
// Throws InvalidInput on anything that Save did not write.
// `library` knows the forms that constants are stored in.
Container Load(std::string_view data, const std::shared_ptr<const void>& owner,
               const Library& library);

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_WEIGHTS_CONTAINER_H_
