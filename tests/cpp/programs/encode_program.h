// Program -> bytes, as tvm_mxplan/core/program/codec.py writes them: for programs that are changed
// in here.
#ifndef TVM_MXPLAN_TESTS_CPP_ENCODE_PROGRAM_H_
#define TVM_MXPLAN_TESTS_CPP_ENCODE_PROGRAM_H_

#include <string>
#include <variant>

#include "program/program.h"

class ProgramWriter {
 public:
  std::string Write(const mxplan::Program& program) {
    out_ = "MXPR";
    Put<uint32_t>(7);
    Text(program.name);
    Put<int64_t>(program.arena_bytes);
    Put<uint32_t>(static_cast<uint32_t>(program.symbols.size()));
    for (const mxplan::SymbolBinding& symbol : program.symbols) {
      Text(symbol.name);
      Put<int64_t>(symbol.input);
      Put<int64_t>(symbol.axis);
    }
    Put<uint32_t>(static_cast<uint32_t>(program.values.size()));
    for (const mxplan::Value& value : program.values) PutValue(value);
    Put<uint32_t>(static_cast<uint32_t>(program.steps.size()));
    for (const mxplan::Step& step : program.steps) PutStep(step);
    return out_;
  }

 private:
  template <typename T>
  void Put(T number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }

  void Text(const std::string& text) {
    Put<uint32_t>(static_cast<uint32_t>(text.size()));
    out_ += text;
  }

  // Postfix to prefix: the operand on top of the stack is the right one.
  void Dim(const mxplan::DimExpr& expr) {
    std::vector<std::string> stack;
    std::string kept;
    kept.swap(out_);
    for (const mxplan::DimNode& node : expr) {
      out_.clear();
      Put<uint8_t>(static_cast<uint8_t>(node.code));
      if (node.code == mxplan::DimNode::Code::kConstant) {
        Put<int64_t>(node.number);
      } else if (node.code == mxplan::DimNode::Code::kSymbol) {
        Put<uint32_t>(static_cast<uint32_t>(node.number));
      } else {
        std::string right = stack.back();
        stack.pop_back();
        out_ += stack.back() + right;
        stack.pop_back();
      }
      stack.push_back(out_);
    }
    out_ = kept + stack.back();
  }

  void PutValue(const mxplan::Value& value) {
    Text(value.name);
    Text(value.dtype);
    Put<uint8_t>(static_cast<uint8_t>(value.kind));
    Text(value.layout);
    Put<int64_t>(value.index);
    Put<int64_t>(value.state);
    Put<int64_t>(value.alias_of);
    Dim(value.alias_offset);
    Put<int64_t>(value.offset);
    Put<int64_t>(value.nbytes);
    Put<uint32_t>(static_cast<uint32_t>(value.shape.size()));
    for (const mxplan::DimExpr& dim : value.shape) Dim(dim);
  }

  struct AttributePutter {
    ProgramWriter* writer;
    void operator()(int64_t v) const { writer->Put<uint8_t>(0), writer->Put(v); }
    void operator()(double v) const { writer->Put<uint8_t>(1), writer->Put(v); }
    void operator()(const std::string& v) const { writer->Put<uint8_t>(2), writer->Text(v); }
    void operator()(bool v) const { writer->Put<uint8_t>(4), writer->Put<uint8_t>(v); }
    void operator()(const std::vector<int64_t>& v) const {
      writer->Put<uint8_t>(3);
      writer->Put<uint32_t>(static_cast<uint32_t>(v.size()));
      for (int64_t number : v) writer->Put(number);
    }
  };

  void PutStep(const mxplan::Step& step) {
    Text(step.kind);
    Text(step.name);
    Text(step.library);
    Text(step.implementation);
    Put<int64_t>(step.scratchpad_offset);
    Put<int64_t>(step.scratchpad_bytes);
    Put<uint32_t>(static_cast<uint32_t>(step.refused.size()));
    for (const std::string& refused : step.refused) Text(refused);
    Text(step.prepared);
    Put<uint32_t>(static_cast<uint32_t>(step.attributes.size()));
    for (const auto& [name, attribute] : step.attributes) {
      Text(name);
      std::visit(AttributePutter{this}, attribute);
    }
    Put<uint32_t>(static_cast<uint32_t>(step.operands.size()));
    for (const mxplan::Operand& operand : step.operands) {
      Text(operand.role);
      Put<int64_t>(operand.value);
    }
    Put<uint32_t>(static_cast<uint32_t>(step.post_ops.size()));
    for (const mxplan::PostOp& op : step.post_ops) PutPostOp(op);
  }

  void PutPostOp(const mxplan::PostOp& op) {
    Put<uint8_t>(static_cast<uint8_t>(op.kind));
    switch (op.kind) {
      case mxplan::PostOp::Kind::kEltwise:
        Text(op.algorithm);
        Put<double>(op.alpha);
        Put<double>(op.beta);
        break;
      case mxplan::PostOp::Kind::kBinary:
        Text(op.algorithm);
        Put<int64_t>(op.value);
        break;
      case mxplan::PostOp::Kind::kSum:
        Put<double>(op.alpha);
        break;
      case mxplan::PostOp::Kind::kDepthwise:
        Put<int64_t>(op.kernel);
        Put<int64_t>(op.stride);
        Put<int64_t>(op.padding);
        break;
    }
  }

  std::string out_;
};

#endif  // TVM_MXPLAN_TESTS_CPP_ENCODE_PROGRAM_H_
