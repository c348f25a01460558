// A stand-in for the CUDA runtime and cuDNN: notes every call, keeps "device" memory on the host,
// and fails where it is told to.
//
// It knows the functions that regions call and no others, so a region that calls another one cannot
// load it.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Strided {
  size_t bytes = 0;  // of an element
  std::vector<int> extents, strides;
};

struct Captured {
  std::string call;
  double lasts;  // microseconds
};

struct State {
  std::mutex mutex;
  std::vector<std::string> calls;
  std::set<void*> memory, descriptors, handles, tensors, pinned, events;
  std::map<void*, std::vector<void*>> addresses;  // of variant packs
  std::map<void*, std::vector<int64_t>> ids;
  std::set<void*> finalized, building;  // plans and packs; handles that build a plan
  std::map<void*, void*> built_with;    // handles, by plan
  int shared = 0;                       // plans that were built with a handle in use
  std::map<void*, Strided> strided;     // of tensor descriptors
  int fail_at = -1, fail_with = 0;      // counts calls that can fail
  int last_error = 0;                   // what the next check of somebody's kernel would find
  std::string fail_on;                  // how the next call that is to fail begins
  std::map<void*, std::string> texts;   // of plans
  std::map<std::string, double> lasts;  // microseconds of a run, by the text of a plan
  double clock = 0;                     // microseconds that runs have taken
  std::map<void*, double> recorded;     // by events
  std::set<void*> streams, graphs;
  std::map<void*, std::vector<Captured>> captured;   // calls by streams that are captured
  std::map<void*, std::vector<Captured>> of_graphs;  // the same of graphs
  std::map<void*, void*> bound;                      // streams by handles
  int made = 0;
  std::map<std::string, int> numbers = {
      {"devices", 1}, {"sm", 90}, {"multiprocessors", 132}, {"driver", 13000}, {"cudnn", 91900}};
};

State& S() {
  static auto* state = new State();
  return *state;
}

// Notes the call; the status that it is to give.
int Note(const std::string& call) {
  State& s = S();
  s.calls.push_back(call);
  if (s.fail_at >= 0 && s.fail_at-- == 0) return s.last_error = s.fail_with;
  if (s.fail_on.empty() || call.rfind(s.fail_on, 0) != 0) return 0;
  s.fail_on.clear();
  return s.last_error = s.fail_with;
}

// Notes work for a stream: it is done now, or kept where the stream is captured.
bool Captures(void* handle, const std::string& call, double lasts = 0) {
  State& s = S();
  auto captured = s.captured.find(s.bound[handle]);
  if (captured == s.captured.end()) return false;
  captured->second.push_back({call, lasts});
  return true;
}

void* NewObject(std::set<void*>* kept) {
  void* object = std::malloc(1);
  kept->insert(object);
  return object;
}

int Drop(std::set<void*>* kept, void* object) {
  if (kept->erase(object) == 0) return 3000;  // nobody's, or given back twice
  std::free(object);
  return 0;
}

}  // namespace

#define STAND_IN extern "C" __attribute__((visibility("default")))
#define LOCKED std::lock_guard<std::mutex> lock(S().mutex)
#define COUNTED(name, count)        \
  STAND_IN int name() {             \
    LOCKED;                         \
    return static_cast<int>(count); \
  }

// --- for tests

STAND_IN void RecordingFail(int at, int with) {
  LOCKED;
  S().fail_at = at;
  S().fail_with = with;
}
STAND_IN void RecordingFailOn(const char* call, int with) {
  LOCKED;
  S().fail_on = call;
  S().fail_with = with;
}
// Whether a call is still to fail.
COUNTED(RecordingFailing, S().fail_at >= 0 || !S().fail_on.empty() ? 1 : 0)
STAND_IN void RecordingSet(const char* what, int number) {
  LOCKED;
  S().numbers[what] = number;
}
// Calls since the last time, one a line.
STAND_IN const char* RecordingTake() {
  LOCKED;
  static auto* text = new std::string();
  text->clear();
  for (const std::string& call : S().calls) *text += call + "\n";
  S().calls.clear();
  return text->c_str();
}
// An error of a call that nobody took.
COUNTED(RecordingLastError, S().last_error)
// Things that were not given back, handles aside.
COUNTED(RecordingLive, S().memory.size() + S().descriptors.size() + S().tensors.size())
// Microseconds that a run of the plan with this text takes.
STAND_IN void RecordingLasts(const char* text, double microseconds) {
  LOCKED;
  S().lasts[text] = microseconds;
}
// Streams, graphs and events that were not given back.
COUNTED(RecordingGraphs, S().streams.size() + S().graphs.size() + S().events.size())
// Pinned buffers and events that were not given back.
COUNTED(RecordingPinned, S().pinned.size() + S().events.size())
// Plans that were built with a handle that another thread was using.
COUNTED(RecordingShared, S().shared)
COUNTED(RecordingHandles, S().handles.size())

// --- the CUDA runtime

STAND_IN int cudaGetDeviceCount(int* count) {
  LOCKED;
  *count = S().numbers["devices"];
  if (*count != 0) return 0;
  return S().last_error = 100;
}
STAND_IN int cudaGetDevice(int* device) {
  LOCKED;
  *device = S().numbers["device"];
  return 0;
}
STAND_IN int cudaDeviceGetAttribute(int* value, int what, int) {
  LOCKED;
  int sm = S().numbers["sm"];
  *value = what == 75 ? sm / 10 : what == 76 ? sm % 10 : S().numbers["multiprocessors"];
  return 0;
}
STAND_IN int cudaDriverGetVersion(int* version) {
  LOCKED;
  *version = S().numbers["driver"];
  return 0;
}
STAND_IN int cudaMalloc(void** data, size_t bytes) {
  LOCKED;
  int status = Note("cudaMalloc " + std::to_string(bytes));
  if (status != 0) return status;
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  S().memory.insert(*data);
  return 0;
}
STAND_IN int cudaFree(void* data) {
  LOCKED;
  S().calls.push_back("cudaFree");
  return Drop(&S().memory, data);
}
STAND_IN int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  LOCKED;
  int status = Note("cudaMemcpy " + std::to_string(bytes) + " kind " + std::to_string(kind));
  if (status == 0) std::memcpy(to, from, bytes);
  return status;
}
STAND_IN int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  LOCKED;
  int status = Note("cudaMemcpyAsync " + std::to_string(bytes) + " kind " + std::to_string(kind) +
                    " stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)));
  if (status == 0) std::memcpy(to, from, bytes);
  return status;
}
STAND_IN int cudaMemsetAsync(void* to, int byte, size_t bytes, void* stream) {
  LOCKED;
  int status = Note("cudaMemsetAsync " + std::to_string(bytes) + " stream " +
                    std::to_string(reinterpret_cast<uintptr_t>(stream)));
  if (status == 0) std::memset(to, byte, bytes);
  return status;
}
STAND_IN int cudaStreamSynchronize(void* stream) {
  LOCKED;
  return Note("cudaStreamSynchronize " + std::to_string(reinterpret_cast<uintptr_t>(stream)));
}
STAND_IN int cudaHostAlloc(void** data, size_t bytes, unsigned) {
  LOCKED;
  int status = Note("cudaHostAlloc " + std::to_string(bytes));
  if (status != 0) return status;
  *data = std::malloc(bytes);
  S().pinned.insert(*data);
  return 0;
}
STAND_IN int cudaFreeHost(void* data) {
  LOCKED;
  S().calls.push_back("cudaFreeHost");
  return Drop(&S().pinned, data);
}
STAND_IN int cudaEventCreateWithFlags(void** made, unsigned flags) {
  LOCKED;
  int status = Note("event " + std::to_string(flags));
  if (status == 0) *made = NewObject(&S().events);
  return status;
}
STAND_IN int cudaEventDestroy(void* event) {
  LOCKED;
  S().calls.push_back("drop event");
  return Drop(&S().events, event);
}
STAND_IN int cudaEventRecord(void* event, void* stream) {
  LOCKED;
  int status = Note("record stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)));
  S().recorded[event] = S().clock;
  return S().events.count(event) == 0 ? 400 : status;
}
// Copies have ended at once, or never, as the number "copying" says.
STAND_IN int cudaEventQuery(void* event) {
  LOCKED;
  int status = Note("query");
  if (S().events.count(event) == 0) return 400;
  if (status == 0 && S().numbers["copying"] != 0) status = S().last_error = 600;
  return status;
}
STAND_IN int cudaEventSynchronize(void* event) {
  LOCKED;
  int status = Note("await");
  return S().events.count(event) == 0 ? 400 : status;
}
STAND_IN int cudaEventElapsedTime(float* milliseconds, void* from, void* to) {
  LOCKED;
  int status = Note("elapsed");
  if (S().events.count(from) == 0 || S().events.count(to) == 0) return 400;
  *milliseconds = static_cast<float>((S().recorded[to] - S().recorded[from]) / 1e3);
  return status;
}
STAND_IN int cudaStreamCreateWithFlags(void** made, unsigned flags) {
  LOCKED;
  int status = Note("stream " + std::to_string(flags));
  if (status == 0) *made = NewObject(&S().streams);
  return status;
}
STAND_IN int cudaStreamDestroy(void* stream) {
  LOCKED;
  S().calls.push_back("drop stream");
  return Drop(&S().streams, stream);
}
STAND_IN int cudaStreamBeginCapture(void* stream, int mode) {
  LOCKED;
  int status = Note("capture " + std::to_string(mode));
  if (S().streams.count(stream) == 0) return 900;  // the default stream cannot be captured
  if (status == 0) S().captured[stream].clear();
  return status;
}
STAND_IN int cudaStreamEndCapture(void* stream, void** made) {
  LOCKED;
  int status = Note("captured");
  *made = nullptr;
  if (S().captured.count(stream) == 0) return 905;
  std::vector<Captured> calls = S().captured[stream];
  S().captured.erase(stream);
  if (status != 0) return status;
  *made = NewObject(&S().graphs);
  S().of_graphs[*made] = calls;
  return 0;
}
STAND_IN int cudaGraphInstantiateWithFlags(void** made, void* graph, unsigned long long) {
  LOCKED;
  int status = Note("instantiate");
  if (status != 0) return status;
  *made = NewObject(&S().graphs);
  S().of_graphs[*made] = S().of_graphs[graph];
  return 0;
}
// Notes what was captured, which would run now.
STAND_IN int cudaGraphLaunch(void* graph, void* stream) {
  LOCKED;
  int status = Note("launch stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)));
  if (S().graphs.count(graph) == 0) return 400;
  if (status != 0) return status;
  for (const Captured& one : S().of_graphs[graph]) {
    S().calls.push_back("graph " + one.call);
    S().clock += one.lasts;
  }
  return 0;
}
STAND_IN int cudaGraphDestroy(void* graph) {
  LOCKED;
  S().calls.push_back("drop graph");
  return Drop(&S().graphs, graph);
}
STAND_IN int cudaGraphExecDestroy(void* graph) {
  LOCKED;
  S().calls.push_back("drop graph");
  return Drop(&S().graphs, graph);
}
STAND_IN int cudaGetLastError() {
  LOCKED;
  return std::exchange(S().last_error, 0);
}
STAND_IN const char* cudaGetErrorString(int status) {
  return status == 100 ? "no CUDA-capable device is detected" : "a CUDA error of the stand-in";
}

// --- cuDNN

STAND_IN size_t cudnnGetVersion() {
  LOCKED;
  return static_cast<size_t>(S().numbers["cudnn"]);
}
STAND_IN const char* cudnnGetErrorString(int) { return "CUDNN_STATUS_OF_THE_STAND_IN"; }
STAND_IN int cudnnCreate(void** handle) {
  LOCKED;
  int status = Note("cudnnCreate");
  if (status == 0) *handle = NewObject(&S().handles);
  return status;
}
STAND_IN int cudnnDestroy(void* handle) {
  LOCKED;
  S().calls.push_back("cudnnDestroy");
  return Drop(&S().handles, handle);
}
STAND_IN int cudnnSetStream(void* handle, void* stream) {
  LOCKED;
  S().bound[handle] = stream;
  return Note("cudnnSetStream " + std::to_string(reinterpret_cast<uintptr_t>(stream)));
}
STAND_IN int cudnnBackendCreateDescriptor(int kind, void** made) {
  LOCKED;
  int status = Note("create " + std::to_string(kind));
  if (status == 0) *made = NewObject(&S().descriptors);
  return status;
}
STAND_IN int cudnnBackendDestroyDescriptor(void* descriptor) {
  LOCKED;
  S().calls.push_back("destroy");
  S().finalized.erase(descriptor);
  S().built_with.erase(descriptor);
  return Drop(&S().descriptors, descriptor);
}
STAND_IN int cudnnBackendSetAttribute(void* descriptor, int name, int type, int64_t count,
                                      const void* values) {
  LOCKED;
  int status = Note("set " + std::to_string(name) + " type " + std::to_string(type) + " count " +
                    std::to_string(count));
  if (S().finalized.count(descriptor) != 0) return 2000;  // it cannot be changed any more
  if (status == 0 && name == 400) S().built_with[descriptor] = *static_cast<void* const*>(values);
  if (status == 0 && name == 405) {
    S().texts[descriptor].assign(static_cast<const char*>(values), static_cast<size_t>(count));
  }
  if (status == 0 && name == 1001) {
    auto* addresses = static_cast<void* const*>(values);
    S().addresses[descriptor].assign(addresses, addresses + count);
  }
  if (status == 0 && name == 1000) {
    auto* ids = static_cast<const int64_t*>(values);
    S().ids[descriptor].assign(ids, ids + count);
  }
  return status;
}
STAND_IN int cudnnBackendFinalize(void* descriptor) {
  // A plan's takes a while, as it does in cuDNN: who comes in between with the same handle is seen.
  void* handle = nullptr;
  {
    LOCKED;
    auto found = S().built_with.find(descriptor);
    if (found != S().built_with.end()) handle = found->second;
    if (handle != nullptr && !S().building.insert(handle).second) ++S().shared;
  }
  if (handle != nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  LOCKED;
  S().building.erase(handle);
  int status = Note("finalize");
  if (status == 0) S().finalized.insert(descriptor);
  return status;
}
// Notes the numbers that it is handed, those with ids from 500 on.
// Adds one to the first byte of the first tensor: who runs, and where, can be seen.
STAND_IN int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  LOCKED;
  int status = Note("execute");
  if (status != 0) return status;
  State& s = S();
  if (s.handles.count(handle) == 0 || s.finalized.count(plan) == 0 || s.finalized.count(pack) == 0)
    return 2000;
  for (size_t i = 0; i < s.ids[pack].size(); ++i) {
    uint32_t number = 0;
    if (s.ids[pack][i] < 500) continue;
    std::memcpy(&number, s.addresses[pack].at(i), sizeof(number));
    s.calls.push_back("number " + std::to_string(number));
  }
  auto found = s.lasts.find(s.texts[plan]);
  const double lasts = found == s.lasts.end() ? 1 : found->second;
  if (Captures(handle, "execute", lasts)) return 0;
  s.clock += lasts;
  ++*static_cast<unsigned char*>(s.addresses[pack].at(0));
  return 0;
}
STAND_IN int cudnnCreateTensorDescriptor(void** made) {
  LOCKED;
  int status = Note("tensor");
  if (status == 0) *made = NewObject(&S().tensors);
  return status;
}
STAND_IN int cudnnDestroyTensorDescriptor(void* descriptor) {
  LOCKED;
  S().calls.push_back("drop tensor");
  return Drop(&S().tensors, descriptor);
}
STAND_IN int cudnnSetTensorNdDescriptor(void* descriptor, int type, int rank, const int* extents,
                                        const int* strides) {
  LOCKED;
  std::string text = "tensor of type " + std::to_string(type);
  for (int i = 0; i < rank; ++i) {
    text += " " + std::to_string(extents[i]) + "/" + std::to_string(strides[i]);
  }
  const size_t bytes = type == 0 ? 4 : 2;
  S().strided[descriptor] = {bytes, {extents, extents + rank}, {strides, strides + rank}};
  return Note(text);
}
STAND_IN int cudnnSoftmaxForward(void*, int algorithm, int mode, const void*, void*, const void*,
                                 const void*, void*, void*) {
  LOCKED;
  return Note("softmax " + std::to_string(algorithm) + " " + std::to_string(mode));
}
STAND_IN int cudnnCreatePoolingDescriptor(void** made) {
  LOCKED;
  int status = Note("windows");
  if (status == 0) *made = NewObject(&S().tensors);
  return status;
}
STAND_IN int cudnnDestroyPoolingDescriptor(void* descriptor) {
  LOCKED;
  S().calls.push_back("drop windows");
  return Drop(&S().tensors, descriptor);
}
STAND_IN int cudnnSetPoolingNdDescriptor(void*, int mode, int nan, int axes, const int* kernel,
                                         const int* padding, const int* strides) {
  LOCKED;
  auto text = [](int number) { return std::to_string(number); };
  std::string said = "windows " + text(mode) + " " + text(nan);
  for (int i = 0; i < axes; ++i)
    said += " " + text(kernel[i]) + "+" + text(padding[i]) + "/" + text(strides[i]);
  return Note(said);
}
STAND_IN int cudnnPoolingForward(void* handle, void*, const void*, void* src, const void*,
                                 const void*, void* dst, void*) {
  LOCKED;
  int status = Note("pool");
  if (S().tensors.count(src) == 0 || S().tensors.count(dst) == 0) return 2000;
  if (status == 0) Captures(handle, "pool");
  return status;
}
// Moves the elements, one by one.
STAND_IN int cudnnTransformTensor(void* handle, const void*, void* src, const void* from,
                                  const void*, void* dst, void* to) {
  LOCKED;
  int status = Note("transform");
  if (status != 0) return status;
  if (Captures(handle, "transform")) return 0;
  const Strided &a = S().strided.at(src), &b = S().strided.at(dst);
  if (a.extents != b.extents || a.bytes != b.bytes) return 2000;
  std::vector<int> at(a.extents.size(), 0);
  for (size_t axis = 0; axis < at.size();) {
    int64_t read = 0, written = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      read += int64_t{at[i]} * a.strides[i];
      written += int64_t{at[i]} * b.strides[i];
    }
    std::memcpy(static_cast<char*>(to) + written * static_cast<int64_t>(b.bytes),
                static_cast<const char*>(from) + read * static_cast<int64_t>(a.bytes), a.bytes);
    for (axis = 0; axis < at.size() && ++at[axis] == a.extents[axis]; ++axis) at[axis] = 0;
  }
  return 0;
}
