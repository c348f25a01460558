// Scales and zero points as attributes of primitives, and as their arguments: what StepBuilder does
// about the roles src_scale, src_zero_point, weights_scale, dst_scale and dst_zero_point.
//
// oneDNN takes the numbers when a primitive runs, so a primitive's key has the masks only.
#include <string>

#include "base/error.h"
#include "onednn/builder/step_builder.h"

namespace mxplan {
namespace {

using dnnl::memory;

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

void StepBuilder::AddRequantization(const memory::desc& src, const memory::desc& dst,
                                    int64_t axis) {
  if (IsEmpty(src)) return;
  tensor_mask_ = 1 << axis;
  auto make = [&](const memory::desc& from, const memory::desc& to) {
    PrimitiveKey key(typeid(dnnl::reorder));
    key.Put(from);
    key.Put(to);
    dnnl::primitive_attr attr = Attr(&key);
    return GetPrimitive<dnnl::reorder>(key, choice_, [&] {
      return dnnl::reorder::primitive_desc(CpuEngine(), from, CpuEngine(), to, attr);
    });
  };
  // oneDNN has one implementation.  Where it is refused, numbers change their order apart.
  const Choice whole = choice_;
  choice_ = {};
  PrimitivePointer made = make(src, dst);
  if (MayRun(whole, made->desc.impl_info_str(), &executable_.refused)) {
    AddPrimitive(made, {{DNNL_ARG_FROM, Id("src")}, {DNNL_ARG_TO, Id("dst")}});
  } else {
    const std::string src_tag = TagOf(src), dst_tag = TagOf(dst);
    if (src_tag == dst_tag || src_tag == "opaque" || dst_tag == "opaque") ThrowRefused();
    // Between the two are the smaller ones of the numbers.
    if (memory::data_type_size(src.get_data_type()) < memory::data_type_size(dst.get_data_type())) {
      MemoryArgument middle =
          Kept(DNNL_ARG_TO, MakeDesc(src.get_dims(), src.get_data_type(), dst_tag));
      AddReorder({DNNL_ARG_FROM, Argument::Source::kValue, Id("src"), src}, middle);
      middle.id = DNNL_ARG_FROM;
      of_the_step_[DNNL_ARG_FROM] = middle;
      AddPrimitive(make(middle.desc, dst), {{DNNL_ARG_FROM, kOfTheStep}, {DNNL_ARG_TO, Id("dst")}});
    } else {
      memory::desc desc = MakeDesc(src.get_dims(), dst.get_data_type(), src_tag);
      AddPrimitive(make(src, desc), {{DNNL_ARG_FROM, Id("src")}, {DNNL_ARG_TO, kOfTheStep}});
      MemoryArgument middle = of_the_step_.at(DNNL_ARG_TO);
      middle.id = DNNL_ARG_FROM;
      AddReorder(middle, {DNNL_ARG_TO, Argument::Source::kValue, Id("dst"), dst});
    }
    executable_.implementation += "+" + std::string(made->desc.impl_info_str());
  }
  choice_ = whole;
}

}  // namespace mxplan
