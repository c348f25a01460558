// A cache of values by key, shared by all threads: each value is made once, held while it is in
// use, and kept beyond that within bounds, least recently used first.
//
// Values in use are found whatever the bounds: they limit what the cache alone keeps alive.  A
// capacity of 0 entries or 0 bytes switches the cache off: values are made and not remembered.
#ifndef TVM_MXPLAN_BYOC_RUNTIME_BASE_KEYED_CACHE_H_
#define TVM_MXPLAN_BYOC_RUNTIME_BASE_KEYED_CACHE_H_

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mxplan {

struct CacheCapacity {
  int64_t entries = 0;
  int64_t bytes = 0;
};

struct CacheStatistics {
  int64_t hits = 0;       // found, or made by another thread meanwhile
  int64_t misses = 0;     // made
  int64_t evictions = 0;  // no longer kept
  int64_t entries = 0;    // kept now
  int64_t bytes = 0;      // likewise
  CacheCapacity capacity;
};

// `Hash` hashes a Key, which is compared in full; `bytes()` of a Value is what it takes.
template <typename Key, typename Value, typename Hash>
class KeyedCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit KeyedCache(CacheCapacity capacity) { statistics_.capacity = capacity; }
  KeyedCache(const KeyedCache&) = delete;
  KeyedCache& operator=(const KeyedCache&) = delete;

  // The value of `key`; `make` makes it, once for all threads that ask at a time.  What `make`
  // throws reaches its caller and is not remembered; threads that waited for it try themselves.
  template <typename Make>
  Pointer GetOrMake(const Key& key, const Make& make) {
    std::vector<Pointer> dropped;  // destroyed after the lock is released
    std::unique_lock<std::mutex> lock(mutex_);
    if (!IsOn()) {
      ++statistics_.misses;
      lock.unlock();
      return make();
    }
    auto found = slots_.find(key);
    while (found != slots_.end() && found->second.making) {
      made_.wait(lock);
      found = slots_.find(key);
    }
    if (found != slots_.end()) {
      if (Pointer value = found->second.value.lock()) {
        ++statistics_.hits;
        Keep(&*found, value, &dropped);
        return value;
      }
    }
    ++statistics_.misses;
    slots_[key].making = true;
    lock.unlock();
    Pointer value;
    try {
      value = make();
    } catch (...) {
      lock.lock();
      slots_.erase(key);
      made_.notify_all();
      throw;
    }
    lock.lock();
    auto& slot = *slots_.find(key);
    slot.second.making = false;
    slot.second.value = value;
    Keep(&slot, value, &dropped);
    Sweep();
    made_.notify_all();
    lock.unlock();  // before `dropped` goes
    return value;
  }

  void SetCapacity(CacheCapacity capacity) {
    std::vector<Pointer> dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    statistics_.capacity = capacity;
    Evict(&dropped);
  }

  CacheStatistics statistics() const {
    std::lock_guard<std::mutex> lock(mutex_);
    CacheStatistics statistics = statistics_;
    statistics.entries = static_cast<int64_t>(kept_.size());
    return statistics;
  }

 private:
  struct Slot;
  using Slots = std::unordered_map<Key, Slot, Hash>;
  struct Kept {
    Pointer value;
    typename Slots::value_type* slot;  // the map's nodes stay where they are
  };
  struct Slot {
    std::weak_ptr<const Value> value;
    bool making = false;
    bool kept = false;
    typename std::list<Kept>::iterator place;  // if it is kept
  };

  bool IsOn() const { return statistics_.capacity.entries > 0 && statistics_.capacity.bytes > 0; }

  // Makes `value` the most recently used one.
  void Keep(typename Slots::value_type* slot, const Pointer& value, std::vector<Pointer>* dropped) {
    if (slot->second.kept) {
      kept_.splice(kept_.begin(), kept_, slot->second.place);
      return;
    }
    kept_.push_front({value, slot});
    slot->second.kept = true;
    slot->second.place = kept_.begin();
    statistics_.bytes += value->bytes();
    Evict(dropped);
  }

  void Evict(std::vector<Pointer>* dropped) {
    const CacheCapacity& most = statistics_.capacity;
    while (!kept_.empty() &&
           (static_cast<int64_t>(kept_.size()) > most.entries || statistics_.bytes > most.bytes)) {
      Kept& last = kept_.back();
      statistics_.bytes -= last.value->bytes();
      ++statistics_.evictions;
      last.slot->second.kept = false;
      dropped->push_back(std::move(last.value));
      kept_.pop_back();
    }
  }

  // Forgets slots whose values are gone, now and then.
  void Sweep() {
    if (slots_.size() < next_sweep_) return;
    for (auto slot = slots_.begin(); slot != slots_.end();) {
      bool gone = !slot->second.making && !slot->second.kept && slot->second.value.expired();
      slot = gone ? slots_.erase(slot) : std::next(slot);
    }
    next_sweep_ = 2 * slots_.size() + 64;
  }

  mutable std::mutex mutex_;
  std::condition_variable made_;
  Slots slots_;
  std::list<Kept> kept_;  // the most recently used one first
  size_t next_sweep_ = 64;
  CacheStatistics statistics_;
};

}  // namespace mxplan

#endif  // TVM_MXPLAN_BYOC_RUNTIME_BASE_KEYED_CACHE_H_
