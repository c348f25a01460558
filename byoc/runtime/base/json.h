// Writes JSON, one call for each token; the caller keeps the nesting right.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_BASE_JSON_H_
#define TVM_MXPLAN_BYOC_RUNTIME_BASE_JSON_H_

#include <cstdint>
#include <cstdio>
#include <string>

namespace mxplan {

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }

  JsonWriter& Key(const std::string& name) {
    String(name);
    text_ += ':';
    comma_ = false;
    return *this;
  }

  JsonWriter& Integer(int64_t number) {
    Separate();
    text_ += std::to_string(number);
    return *this;
  }

  // `number` is finite.
  JsonWriter& Real(double number) {
    Separate();
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.9g", number);
    text_ += digits;
    return *this;
  }

  JsonWriter& String(const std::string& value) {
    Separate();
    text_ += '"';
    for (char c : value) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\u%04x", c);
        text_ += escaped;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
    return *this;
  }

  std::string Take() { return std::move(text_); }

 private:
  void Separate() {
    if (comma_) text_ += ',';
    comma_ = true;
  }
  JsonWriter& Open(char bracket) {
    Separate();
    text_ += bracket;
    comma_ = false;
    return *this;
  }
  JsonWriter& Close(char bracket) {
    text_ += bracket;
    comma_ = true;
    return *this;
  }

  std::string text_;
  bool comma_ = false;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_BASE_JSON_H_
