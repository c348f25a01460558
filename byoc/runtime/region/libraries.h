// The libraries that run a program's steps: the one whose module it is, and those that steps name.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_REGION_LIBRARIES_H_
#define TVM_MXPLAN_BYOC_RUNTIME_REGION_LIBRARIES_H_

#include <memory>
#include <vector>

#include "library/library.h"
#include "program/program.h"

namespace mxplan {

class Libraries final : public LayoutSource {
 public:
  // Throws InvalidInput for a name that no library has.
  Libraries(const Program& program, const Library& own);

  const Library& own() const { return *libraries_[0]; }
  size_t size() const { return libraries_.size(); }
  // By its number, which is 0 for the region's own.
  const Library& operator[](size_t number) const { return *libraries_[number]; }
  // The number of the library that runs a step.
  size_t NumberOf(size_t step) const { return numbers_[step]; }

  // As the first library says that has the type and the layout; where none has, why the region's
  // own has not.
  PhysicalLayout LayoutOf(const Dims& dims, const std::string& dtype,
                          const std::string& tag) const override;

  std::vector<ProcessState> States() const;
  // Whether these are the states now; allocates nothing.
  bool AreNow(const std::vector<ProcessState>& states) const;
  // Of all, for the calling thread.
  void SetThreads(int count) const;

 private:
  std::vector<const Library*> libraries_;
  std::vector<size_t> numbers_;
};

// A builder of each library, for one resolved program.
class Builders {
 public:
  // `libraries` and `resolved` outlive the object.
  Builders(const Libraries& libraries, Resolved* resolved);

  // See Builder::Build; `step` counts along the program.
  Executable Build(size_t step, bool lists_alternatives);

 private:
  const Libraries& libraries_;
  const Program& program_;
  std::vector<std::unique_ptr<Builder>> builders_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_REGION_LIBRARIES_H_
