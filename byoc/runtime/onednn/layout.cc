// Tags and memory descriptors; see layout.h.
#include "onednn/layout.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"

namespace mxplan {
namespace {

using dnnl::memory;

// Every layout that oneDNN names, by that name: "abcd", "aBcd16b", "OIhw.." never (aliases come
// later in the enumeration and share the number of their letters).
const std::map<std::string, memory::format_tag>& NamedTags() {
  static const std::map<std::string, memory::format_tag> tags = [] {
    std::map<std::string, memory::format_tag> result;
    for (int tag = dnnl_a; tag < dnnl_format_tag_last; ++tag) {
      const char* name = dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag));
      result.emplace(name, static_cast<memory::format_tag>(tag));
    }
    return result;
  }();
  return tags;
}

// True if `tag` is a permutation of the first `rank` letters.
bool IsPermutation(const std::string& tag, size_t rank) {
  std::string sorted = tag;
  std::sort(sorted.begin(), sorted.end());
  return sorted == PlainTag(rank);
}

// Number of axes a tag names, 0 for one that names none.
size_t RankOf(const std::string& tag) {
  size_t rank = 0;
  for (char c : tag) {
    if (c >= '0' && c <= '9') break;
    ++rank;
  }
  return rank;
}

void CheckDims(const Dims& dims) {
  constexpr int64_t kMaxBytes = int64_t{1} << 46;
  int64_t elements = 8;  // the widest type
  for (int64_t dim : dims) {
    if (dim < 0) ThrowInvalidInput("a dimension is ", dim);
    if (dim > INT32_MAX) ThrowUnsupported("a dimension is ", dim, ", more than 32 bits");
    // Blocks of up to 64 may pad every axis.
    if (elements > kMaxBytes / (dim + 64)) ThrowUnsupported("a tensor is too large");
    elements *= std::max<int64_t>(dim, 1);
  }
}

std::string ChannelsLastTag(size_t rank) {
  std::string tag = PlainTag(rank);
  if (rank > 2) std::rotate(tag.begin() + 1, tag.begin() + 2, tag.end());
  return tag;
}

// Number of blocks along each axis.
Dims OuterDims(const memory::desc& desc) {
  Dims outer = desc.get_padded_dims();
  Dims blocks = desc.get_inner_blks();
  Dims axes = desc.get_inner_idxs();
  for (size_t i = 0; i < blocks.size(); ++i) outer[axes[i]] /= blocks[i];
  return outer;
}

// The axes by falling stride, as plain letters.
std::string StrideOrder(const memory::desc& desc) {
  Dims strides = desc.get_strides();
  Dims outer = OuterDims(desc);
  std::string order = PlainTag(strides.size());
  std::stable_sort(order.begin(), order.end(), [&](char a, char b) {
    int i = a - 'a', j = b - 'a';
    return strides[i] != strides[j] ? strides[i] > strides[j] : outer[i] > outer[j];
  });
  return order;
}

// `order` with the descriptor's inner blocks: "abcd" -> "aBcd16b".
std::string WithBlocks(std::string order, const memory::desc& desc) {
  Dims blocks = desc.get_inner_blks();
  Dims axes = desc.get_inner_idxs();
  std::string suffix;
  for (size_t i = 0; i < blocks.size(); ++i) {
    char letter = static_cast<char>('a' + axes[i]);
    std::replace(order.begin(), order.end(), letter, static_cast<char>('A' + axes[i]));
    suffix += Concat(blocks[i], letter);
  }
  return order + suffix;
}

// The descriptor of `tag`, or an empty one.
memory::desc TryDesc(const memory::desc& desc, const std::string& tag) {
  try {
    return MakeDesc(desc.get_dims(), desc.get_data_type(), tag);
  } catch (const Error&) {
    return memory::desc();
  } catch (const dnnl::error&) {
    return memory::desc();
  }
}

// A tag whose axes are called by their places in it: "BAcd16a16b" is "ABcd16b16a" with the order
// 1, 0, 2, 3.
struct ByPlace {
  std::string tag;  // empty for what is no tag of that rank
  std::vector<int> order;
};

ByPlace CalledByPlace(const std::string& tag, size_t rank) {
  ByPlace called{tag, std::vector<int>(rank)};
  std::vector<int> place(rank, -1);
  for (size_t i = 0; i < rank; ++i) {
    called.order[i] = std::tolower(static_cast<unsigned char>(tag[i])) - 'a';
    if (called.order[i] < 0 || called.order[i] >= static_cast<int>(rank)) return {};
    if (place[called.order[i]] >= 0) return {};
    place[called.order[i]] = static_cast<int>(i);
  }
  for (char& c : called.tag) {
    if (c >= '0' && c <= '9') continue;
    const char first = c >= 'a' ? 'a' : 'A';
    if (c - first >= static_cast<int>(rank)) return {};
    c = static_cast<char>(first + place[c - first]);
  }
  return called;
}

// The named tag that is called `by_place`, empty if there is none.
std::string NameCalled(const std::string& by_place) {
  static const std::map<std::string, std::string> names = [] {
    std::map<std::string, std::string> result;
    for (const auto& [name, unused] : NamedTags()) {
      ByPlace called = CalledByPlace(name, RankOf(name));
      if (!called.tag.empty()) result.emplace(called.tag, name);
    }
    return result;
  }();
  auto found = names.find(by_place);
  return found == names.end() ? "" : found->second;
}

// The descriptor of a blocked layout that has a name once its axes are called otherwise, as weights
// with inputs and outputs exchanged do ("BAcd16a16b"), and views of an image ("abCd16c", which is
// "abDc16d" of the image with rows and columns exchanged).  The zero descriptor for all others.
memory::desc DescOfRenamed(const Dims& dims, memory::data_type type, const std::string& tag) {
  const size_t rank = dims.size();
  const ByPlace called = CalledByPlace(tag, rank);
  const std::string name = NameCalled(called.tag);
  if (name.empty()) return {};
  const std::vector<int> named = CalledByPlace(name, rank).order;
  Dims stored(rank);
  std::vector<int> permutation(rank);
  for (size_t i = 0; i < rank; ++i) {
    stored[named[i]] = dims[called.order[i]];
    permutation[named[i]] = called.order[i];
  }
  return memory::desc(stored, type, NamedTags().at(name)).permute_axes(permutation);
}

// Bytes that stand behind the elements: oneDNN keeps sums of integer weights there.
int64_t BytesBehind(const memory::desc& desc) {
  Dims outer = OuterDims(desc);
  Dims strides = desc.get_strides();
  int64_t reach = 1;
  for (int64_t block : desc.get_inner_blks()) reach *= block;
  for (size_t i = 0; i < outer.size(); ++i) reach = std::max(reach, outer[i] * strides[i]);
  int64_t item = static_cast<int64_t>(memory::data_type_size(desc.get_data_type()));
  return std::max<int64_t>(static_cast<int64_t>(desc.get_size()) - reach * item, 0);
}

}  // namespace

memory::data_type ParseDtype(const std::string& dtype) {
  if (dtype == "float32") return memory::data_type::f32;
  if (dtype == "bfloat16") return memory::data_type::bf16;
  if (dtype == "float16") return memory::data_type::f16;
  if (dtype == "int32") return memory::data_type::s32;
  if (dtype == "int8") return memory::data_type::s8;
  if (dtype == "uint8") return memory::data_type::u8;
  ThrowUnsupported("type ", dtype, " is not known to oneDNN");
}

memory::desc MakeDesc(const Dims& dims, memory::data_type type, const std::string& tag) {
  CheckDims(dims);
  if (dims.empty()) ThrowUnsupported("oneDNN has no tensors of rank 0");
  if (tag == "any") return memory::desc(dims, type, memory::format_tag::any);
  if (RankOf(tag) != dims.size()) {
    ThrowInvalidInput("layout ", tag, " does not fit a tensor of rank ", dims.size());
  }
  if (IsPermutation(tag, dims.size())) {
    Dims strides(dims.size());
    int64_t stride = 1;
    for (size_t i = tag.size(); i-- > 0;) {
      size_t axis = tag[i] - 'a';
      strides[axis] = stride;
      stride *= std::max<int64_t>(dims[axis], 1);
    }
    return memory::desc(dims, type, strides);
  }
  auto named = NamedTags().find(tag);
  if (named != NamedTags().end()) return memory::desc(dims, type, named->second);
  memory::desc renamed = DescOfRenamed(dims, type, tag);
  if (renamed.is_zero()) ThrowUnsupported("layout ", tag, " is not known to oneDNN");
  return renamed;
}

std::string TagOf(const memory::desc& desc) {
  if (desc.get_format_kind() == memory::format_kind::any) return "any";
  if (desc.get_format_kind() != memory::format_kind::blocked) return "opaque";
  size_t rank = desc.get_dims().size();
  for (const std::string& order : {PlainTag(rank), ChannelsLastTag(rank), StrideOrder(desc)}) {
    std::string tag = WithBlocks(order, desc);
    memory::desc candidate = TryDesc(desc, tag);
    if (candidate && SamePlacement(candidate, desc)) return tag;
  }
  return "opaque";
}

bool SamePlacement(const memory::desc& a, const memory::desc& b) {
  if (a == b) return true;
  return a.get_data_type() == b.get_data_type() && SamePlaces(a, b) &&
         BytesBehind(a) == BytesBehind(b);
}

bool SamePlaces(const memory::desc& a, const memory::desc& b) {
  auto blocked = memory::format_kind::blocked;
  if (a.get_format_kind() != blocked || b.get_format_kind() != blocked) return false;
  if (a.get_dims() != b.get_dims()) return false;
  if (a.get_padded_dims() != b.get_padded_dims()) return false;
  if (a.get_inner_blks() != b.get_inner_blks()) return false;
  if (a.get_inner_idxs() != b.get_inner_idxs()) return false;
  // An axis that has one block only never steps.
  Dims outer = OuterDims(a);
  Dims left = a.get_strides();
  Dims right = b.get_strides();
  for (size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] > 1 && left[i] != right[i]) return false;
  }
  return true;
}

void AgreeOnNames(memory::desc* src, memory::desc* dst) {
  size_t rank = src->get_dims().size();
  if (dst->get_dims().size() != rank) return;
  // If both names fit both, spatial axes are single points or channels are: the kernels for
  // channels last are the ones made for points.
  for (const std::string& tag : {ChannelsLastTag(rank), PlainTag(rank)}) {
    bool fits = true;
    for (const memory::desc* desc : {src, dst}) {
      fits = fits && (desc->get_format_kind() == memory::format_kind::any ||
                      SamePlacement(*desc, MakeDesc(desc->get_dims(), desc->get_data_type(), tag)));
    }
    if (!fits) continue;
    for (memory::desc* desc : {src, dst}) {
      if (desc->get_format_kind() != memory::format_kind::any) {
        *desc = MakeDesc(desc->get_dims(), desc->get_data_type(), tag);
      }
    }
    return;
  }
}

bool IsEmpty(const memory::desc& desc) {
  Dims dims = desc.get_dims();
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

bool IsDense(const memory::desc& desc) {
  int64_t elements = 1;
  for (int64_t dim : desc.get_padded_dims()) elements *= dim;
  return desc.get_size() ==
         static_cast<size_t>(elements) * memory::data_type_size(desc.get_data_type());
}

PhysicalLayout ToPhysical(const memory::desc& desc) {
  PhysicalLayout layout;
  layout.element_bytes = static_cast<int64_t>(memory::data_type_size(desc.get_data_type()));
  if (desc.get_format_kind() == memory::format_kind::any) return layout;
  layout.bytes = static_cast<int64_t>(desc.get_size());
  if (desc.get_format_kind() != memory::format_kind::blocked) return layout;
  layout.padded = desc.get_padded_dims();
  layout.strides = desc.get_strides();
  layout.blocks = desc.get_inner_blks();
  layout.block_axes = desc.get_inner_idxs();
  return layout;
}

bool IsChannelsLast(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked || desc.get_inner_nblks() != 0 ||
      desc.get_submemory_offset() != 0) {
    return false;
  }
  const Dims dims = desc.get_dims(), strides = desc.get_strides();
  int64_t expected = 1;
  const auto is_next = [&](size_t axis) {
    const bool fits = dims[axis] == 1 || strides[axis] == expected;
    expected *= dims[axis];
    return fits;
  };
  if (!is_next(1)) return false;
  for (size_t axis = dims.size() - 1; axis > 1; --axis) {
    if (!is_next(axis)) return false;
  }
  return is_next(0);
}

std::optional<Number> NumberOf(const memory::desc& desc) {
  switch (desc.get_data_type()) {
    case memory::data_type::f32:
      return Number::kFloat;
    case memory::data_type::bf16:
      return Number::kShort;
    case memory::data_type::u8:
      return Number::kUnsigned;
    case memory::data_type::s8:
      return Number::kSigned;
    default:
      return std::nullopt;
  }
}

bool IsReal(const memory::desc& desc) {
  const std::optional<Number> number = NumberOf(desc);
  return number == Number::kFloat || number == Number::kShort;
}

Real RealOf(const memory::desc& desc, const char* role) {
  const std::optional<Number> number = NumberOf(desc);
  if (number == Number::kFloat) return kRealFloat;
  if (number == Number::kShort) return kRealShort;
  ThrowUnsupported(role, ": expected float32 or bfloat16");
}

int64_t PlaceStride(const Dims& dims, const Dims& strides, int64_t alone) {
  int64_t stride = 0, expected = 0;
  for (size_t axis = dims.size(); axis-- > 2;) {
    if (dims[axis] == 1) continue;
    if (stride == 0) {
      stride = strides[axis];
    } else if (strides[axis] != expected) {
      return 0;
    }
    expected = strides[axis] * dims[axis];
  }
  return stride == 0 ? alone : stride;
}

}  // namespace mxplan
