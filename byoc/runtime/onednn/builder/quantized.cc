// Scales and zero points as attributes of primitives, and as their arguments: what StepBuilder does
// about the roles src_scale, src_zero_point, weights_scale, dst_scale and dst_zero_point.
//
// oneDNN takes the numbers when a primitive runs, so a primitive's key has the masks only.
#include "base/error.h"
#include "onednn/builder/step_builder.h"

namespace mxplan {
namespace {

struct Role {
  const char* name;
  int argument;
  bool is_scale;
};

constexpr Role kRoles[] = {{"src_scale", DNNL_ARG_SRC, true},
                           {"weights_scale", DNNL_ARG_WEIGHTS, true},
                           {"dst_scale", DNNL_ARG_DST, true},
                           {"src_zero_point", DNNL_ARG_SRC, false},
                           {"dst_zero_point", DNNL_ARG_DST, false}};

}  // namespace

void StepBuilder::PutQuantization(dnnl::primitive_attr* attr, PrimitiveKey* key) const {
  for (const Role& role : kRoles) {
    if (!Has(role.name)) continue;
    const bool vector = Get(role.name).dims != Dims{1};
    const int along = role.argument == DNNL_ARG_WEIGHTS ? weights_mask_ : tensor_mask_;
    const int mask = vector ? along : 0;
    if (role.is_scale) {
      attr->set_scales_mask(role.argument, mask);
    } else if (vector) {
      ThrowUnsupported(role.name, ": one for each channel, oneDNN takes one for all");
    } else {
      attr->set_zero_points_mask(role.argument, mask);
    }
    key->Put(std::string(role.name));
    key->Put(mask);
  }
}

void StepBuilder::BindQuantization(std::vector<MemoryArgument>* arguments) const {
  for (const Role& role : kRoles) {
    if (!Has(role.name)) continue;
    const int kind = role.is_scale ? DNNL_ARG_ATTR_SCALES : DNNL_ARG_ATTR_ZERO_POINTS;
    const int value = Id(role.name);
    arguments->push_back(
        {kind | role.argument, Argument::Source::kValue, value, Desc(value), 0, {}});
  }
}

void StepBuilder::AddRequantization(const dnnl::memory::desc& src, const dnnl::memory::desc& dst,
                                    int64_t axis) {
  if (IsEmpty(src)) return;
  tensor_mask_ = 1 << axis;
  PrimitiveKey key(typeid(dnnl::reorder));
  key.Put(src);
  key.Put(dst);
  dnnl::primitive_attr attr = Attr(&key);
  PrimitivePointer made = GetPrimitive<dnnl::reorder>(key, choice_, [&] {
    return dnnl::reorder::primitive_desc(CpuEngine(), src, CpuEngine(), dst, attr);
  });
  AddPrimitive(made, {{DNNL_ARG_FROM, Id("src")}, {DNNL_ARG_TO, Id("dst")}});
}

}  // namespace mxplan
