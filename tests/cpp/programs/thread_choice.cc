// ThreadChoice for Python.
#include "region/thread_choice.h"

extern "C" {

void* make(int most) { return new mxplan::ThreadChoice(most); }
void drop(void* choice) { delete static_cast<mxplan::ThreadChoice*>(choice); }
int next(void* choice) { return static_cast<mxplan::ThreadChoice*>(choice)->Next(); }
bool is_due(void* choice) { return static_cast<mxplan::ThreadChoice*>(choice)->IsDue(); }
void stay(void* choice) { static_cast<mxplan::ThreadChoice*>(choice)->Stay(); }
void note(void* choice, int threads, int64_t now, int64_t wall, int64_t own) {
  static_cast<mxplan::ThreadChoice*>(choice)->Note(threads, now, wall, own);
}

}  // extern "C"
