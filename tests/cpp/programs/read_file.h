// The bytes of a file.
#ifndef MXPLAN_TESTS_CPP_READ_FILE_H_
#define MXPLAN_TESTS_CPP_READ_FILE_H_

#include <fstream>
#include <iterator>
#include <string>

inline std::string ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

#endif  // MXPLAN_TESTS_CPP_READ_FILE_H_
