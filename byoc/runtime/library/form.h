// A constant as a library wants it: in another layout, transformed, or just as it is.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_FORM_H_
#define TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_FORM_H_

#include <cstdint>
#include <string>

#include "weights/constant.h"
#include "weights/packing_memory.h"

namespace mxplan {

// A way to make other bytes of the plain bytes of a constant, or of a view of it.  Immutable.
class Form {
 public:
  Form() = default;
  virtual ~Form() = default;
  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;

  virtual int64_t source_bytes() const = 0;  // of the plain bytes
  virtual int64_t bytes() const = 0;
  // True if both make the same bytes of the same bytes, in full.
  virtual bool Equals(const Form& other) const = 0;
  // A text that two forms share only if they are equal, also between processes and versions of this
  // runtime; empty where there is none.
  virtual std::string Name() const = 0;

  // Whether the plain bytes are the form.
  virtual bool IsPlain() const = 0;
  // Whether the bytes of a constant that is stored in a form of its own are this form.
  virtual bool IsStored(const ConstantData& constant) const = 0;
  // The form as a constant may be stored in, from which its plain bytes can be had back; one
  // without `packed` if there is none.
  virtual StoredForm AsStored() const = 0;

  // `mapped`: `plain` is pages of a file, which are given back once read.
  virtual void Pack(const char* plain, bool mapped, char* packed,
                    PackingScratch* scratch) const = 0;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_LIBRARY_FORM_H_
