"""Networks of images, one or two of a family, for which no rule or kernel was made. Imports no torch."""

from __future__ import annotations

from .networks import Network

_SIZE = 224
_OTHER_SIZES = {
    "crossvit_9_240": 240,
    "fastvit_t8": 256,
    "mobilevit_xs": 256,
    "botnet26t_256": 256,
    "lambda_resnet26t": 256,
    "halonet26t": 256,
    "swinv2_tiny_window8_256": 256,
    "cs3darknet_m": 256,
}
_NAMES = """
coat_lite_tiny coatnet_0_rw_224 convit_tiny crossvit_9_240 davit_tiny deit3_small_patch16_224 efficientformer_l1
efficientformerv2_s0 efficientvit_b0 efficientvit_m0 eva02_tiny_patch14_224 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny
gmlp_s16_224 hiera_tiny_224 inception_next_atto levit_conv_128s mambaout_femto mobilenetv4_hybrid_medium mobilevit_xs
mvitv2_tiny nest_tiny nextvit_small pit_xs_224 poolformerv2_s12 pvt_v2_b1 resmlp_12_224 sequencer2d_s shvit_s1
swin_s3_tiny_224 swinv2_cr_tiny_224 swinv2_tiny_window8_256 tiny_vit_5m_224 twins_pcpvt_small visformer_tiny
vit_small_r26_s32_224 vitamin_small_224 volo_d1_224 xcit_nano_12_p16_224
botnet26t_256 cs3darknet_m cspresnet50 densenet121 dla34 dpn48b eca_resnet33ts ecaresnet26t efficientnet_b0
ese_vovnet19b_dw fbnetc_100 gcresnet33ts gernet_s ghostnetv3_100 halonet26t haloregnetz_b hardcorenas_a hgnet_tiny
hrnet_w18_small lambda_resnet26t lcnet_100 mixnet_s mobilenet_edgetpu_v2_xs mobileone_s1 nf_regnet_b1 rdnet_tiny
regnetz_b16 repghostnet_100 repvgg_a1 res2net50_26w_4s resnest14d resnetv2_50 rexnet_100 selecsls42b semnasnet_075
seresnext26t_32x4d skresnet18 spnasnet_100 starnet_s1 tinynet_a tresnet_m
""".split()


def families(batch: int) -> tuple[Network, ...]:
    """The networks at one batch: those with attention or tokens, then those of convolutions."""
    sizes = {name: _OTHER_SIZES.get(name, _SIZE) for name in _NAMES}
    return tuple(Network(name, "timm", {"x": (batch, 3, size, size)}) for name, size in sizes.items())
