// The dry run; see describe.h.
#include "region/describe.h"

#include "base/error.h"
#include "base/json.h"
#include "program/step_descriptor.h"
#include "region/libraries.h"

namespace mxplan {
namespace {

std::string WhyMissing(const Step& step, const Library& library, const Executable& executable) {
  for (const RefusedImplementation& refused : executable.refused) {
    if (refused.implementation == executable.missing) {
      return Concat(step.kind, " ", step.name, ": ", executable.missing, " is refused for it, ",
                    refused.reason);
    }
  }
  return Concat(step.kind, " ", step.name, ": ", library.title(), " has no ", executable.missing,
                " for it here, its first choice is ", executable.implementation);
}

void WriteRefused(const std::vector<RefusedImplementation>& refused, JsonWriter* json) {
  json->Key("refused").BeginArray();
  for (const RefusedImplementation& one : refused) {
    json->BeginArray().String(one.implementation).String(one.reason).EndArray();
  }
  json->EndArray();
}

}  // namespace

std::string Describe(const Program& program, const Library& library,
                     const std::vector<int64_t>& symbols) {
  if (symbols.size() != program.symbols.size()) {
    ThrowInvalidInput("region ", program.name, " has ", program.symbols.size(), " symbols, not ",
                      symbols.size());
  }
  const Libraries libraries(program, library);
  Resolved resolved = Resolve(program, symbols, libraries);
  Builders builders(libraries, &resolved);
  JsonWriter json;
  json.BeginObject().Key("steps").BeginArray();
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    Executable executable;
    std::string failure;
    try {
      executable = builders.Build(i, true);
      if (!executable.missing.empty()) {
        failure = WhyMissing(step, libraries[libraries.NumberOf(i)], executable);
      }
    } catch (const Error& error) {
      failure = error.what();
    }
    json.BeginObject();
    json.Key("implementation").String(executable.implementation);
    json.Key("scratchpad_bytes").Integer(executable.scratchpad_bytes);
    json.Key("weights_bytes").Integer(executable.weights_bytes);
    json.Key("relative_error").Real(executable.relative_error);
    json.Key("alternatives").BeginArray();
    for (const std::string& name : executable.alternatives) json.String(name);
    json.EndArray();
    WriteRefused(executable.refused, &json);
    json.Key("descriptor").String(DescribeStep(step, resolved).text);
    json.Key("error").String(failure);
    json.EndObject();
  }
  json.EndArray().Key("values").BeginArray();
  for (const ResolvedValue& value : resolved.values) {
    json.BeginObject();
    json.Key("layout").String(value.tag);
    json.Key("nbytes").Integer(value.Bytes());
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace mxplan
