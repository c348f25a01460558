// Attributes by name and type; see step_attributes.h.
#include "program/step_attributes.h"

#include "base/error.h"

namespace mxplan {
namespace {

const Attribute& Find(const Step& step, const char* name) {
  auto found = step.attributes.find(name);
  if (found == step.attributes.end()) ThrowInvalidInput("no attribute ", name);
  return found->second;
}

template <typename T>
const T& Get(const Step& step, const char* name, const char* what) {
  const auto* value = std::get_if<T>(&Find(step, name));
  if (!value) ThrowInvalidInput("attribute ", name, " is ", what);
  return *value;
}

}  // namespace

int64_t IntegerOf(const Step& step, const char* name) {
  return Get<int64_t>(step, name, "no integer");
}

double RealOf(const Step& step, const char* name) {
  // Python writes 1.0 and 1 alike where a float is meant.
  if (const auto* integer = std::get_if<int64_t>(&Find(step, name))) {
    return static_cast<double>(*integer);
  }
  return Get<double>(step, name, "no number");
}

bool FlagOf(const Step& step, const char* name) {
  return Get<bool>(step, name, "neither true nor false");
}

const std::string& TextOf(const Step& step, const char* name) {
  return Get<std::string>(step, name, "no text");
}

const std::vector<int64_t>& IntegersOf(const Step& step, const char* name) {
  return Get<std::vector<int64_t>>(step, name, "no list of integers");
}

const std::vector<int64_t>& IntegersOf(const Step& step, const char* name, size_t count,
                                       int64_t low) {
  const std::vector<int64_t>& numbers = IntegersOf(step, name);
  if (numbers.size() != count) {
    ThrowInvalidInput("attribute ", name, " has ", numbers.size(), " entries, expected ", count);
  }
  for (int64_t number : numbers) {
    if (number < low || number > INT32_MAX) {
      ThrowInvalidInput("attribute ", name, " has the entry ", number, ", expected ", low, " to ",
                        INT32_MAX);
    }
  }
  return numbers;
}

}  // namespace mxplan
