// The libraries of a program's steps; see libraries.h.
#include "region/libraries.h"

#include <algorithm>

#include "base/error.h"

namespace mxplan {

Libraries::Libraries(const Program& program, const Library& own) : libraries_({&own}) {
  for (const Step& step : program.steps) {
    const Library& library = step.library.empty() ? own : FindLibrary(step.library);
    auto known = std::find(libraries_.begin(), libraries_.end(), &library);
    numbers_.push_back(static_cast<size_t>(known - libraries_.begin()));
    if (known == libraries_.end()) libraries_.push_back(&library);
  }
}

PhysicalLayout Libraries::LayoutOf(const Dims& dims, const std::string& dtype,
                                   const std::string& tag) const {
  if (dims.empty()) {  // one element, which stands alike for all of them
    PhysicalLayout layout;
    layout.bytes = layout.element_bytes = ElementBytes(dtype);
    return layout;
  }
  try {
    return own().LayoutOf(dims, dtype, tag);
  } catch (const Error&) {
    for (size_t i = 1; i < libraries_.size(); ++i) {
      try {
        return libraries_[i]->LayoutOf(dims, dtype, tag);
      } catch (const Error&) {
        continue;  // the next one may have it
      }
    }
    throw;
  }
}

std::vector<ProcessState> Libraries::States() const {
  std::vector<ProcessState> states;
  for (const Library* library : libraries_) states.push_back(library->State());
  return states;
}

bool Libraries::AreNow(const std::vector<ProcessState>& states) const {
  return std::equal(
      states.begin(), states.end(), libraries_.begin(), libraries_.end(),
      [](const ProcessState& state, const Library* library) { return state == library->State(); });
}

void Libraries::SetThreads(int count) const {
  for (const Library* library : libraries_) library->SetThreads(count);
}

Builders::Builders(const Libraries& libraries, Resolved* resolved)
    : libraries_(libraries), program_(*resolved->program) {
  for (size_t i = 0; i < libraries.size(); ++i) {
    builders_.push_back(libraries[i].NewBuilder(resolved));
  }
}

Executable Builders::Build(size_t step, bool lists_alternatives) {
  return builders_[libraries_.NumberOf(step)]->Build(program_.steps[step], lists_alternatives);
}

}  // namespace mxplan
