#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets route and layout that are made, not found.

Inputs of route follow the format in sides.h, own_types.c, index_lists.c and sends.c; those of layout
are MessagePack, as src/state/layout_encode.c describes it. Files that a fuzzer found are left alone.

    seeds.py [CORPUS_FOLDER]
"""
import struct
import sys
from pathlib import Path

# --- MessagePack, shortest forms ---


def pack(v):
    if isinstance(v, bool) or v is None:
        raise TypeError(v)
    if isinstance(v, int):
        for low, high, head, form in (
                (0, 0x7f, None, ">B"), (-32, -1, None, ">b"), (0, 0xff, 0xcc, ">B"),
                (0, 0xffff, 0xcd, ">H"), (0, 0xffffffff, 0xce, ">I"), (0, 2**64 - 1, 0xcf, ">Q"),
                (-2**7, -1, 0xd0, ">b"), (-2**15, -1, 0xd1, ">h"), (-2**31, -1, 0xd2, ">i"),
                (-2**63, -1, 0xd3, ">q")):
            if low <= v <= high:
                return (bytes([head]) if head else b"") + struct.pack(form, v)
        raise ValueError(v)
    if isinstance(v, str):
        b = v.encode()
        return (bytes([0xa0 | len(b)]) if len(b) < 32 else bytes([0xd9, len(b)])) + b
    if isinstance(v, bytes):
        return bytes([0xc4, len(v)]) + v
    n = len(v)
    if isinstance(v, dict):
        head = bytes([0x80 | n]) if n < 16 else struct.pack(">BH", 0xde, n)
        return head + b"".join(pack(k) + pack(x) for k, x in v.items())
    head = bytes([0x90 | n]) if n < 16 else struct.pack(">BH", 0xdc, n)
    return head + b"".join(pack(x) for x in v)


def region(number, length=1 << 20, incarnation=0xb2, rights=3):
    return pack({"pdx": "region", "v": 1, "inc": bytes([incarnation] * 16), "id": number, "gen": 1,
                 "key": bytes([number] * 16), "len": length, "rights": rights, "kind": 1})


def tensor(off, length, item_len, layer=-1, shard_dim=0, outer=1, groups=(), stride=0, flags=0,
           part=0, at=0, more=()):
    return [at, off, length, item_len, layer, shard_dim, outer, list(groups), stride, flags, part,
            *more]


def layout(kv=(), aux=(), state=(), **keys):
    """state: (type, tensors) or (type, tensors, slots)"""
    root = {"pdx": "layout", "v": 1, "rank": 0, "tp": 1, "pp": 1, "pp_rank": 0, "kv_kind": 0,
            "page": 1, "dtype": "", "heads": 0, "total_heads": 0, "start_layer": 0,
            "regions": [region(0), region(1)], "kv": list(kv), "aux": list(aux),
            "state": [dict(zip(("type", "tensors", "slots"), s)) for s in state]}
    root.update(keys)
    return pack(root)


def layout_seed(first, second=b"", trust=0, without_draft=0, current=0, truncate=0):
    flags = trust << 7 | without_draft << 6 | current << 5 | truncate << 4
    return bytes([len(first) & 255, len(first) >> 8 & 255, len(first) >> 16 | flags]) + first + second


def layout_seeds():
    ring = [("dsa_tail", [tensor(0, 4 * 50, 50, 0, outer=5), tensor(200, 4 * 50, 50, 1, outer=5)])]
    ring7 = [("dsa_tail", [tensor(0, 4 * 70, 70, 0, outer=7), tensor(280, 4 * 70, 70, 1, outer=7)])]
    turns = [tensor(0, 7 * 96 + 32, 32, 0, 8, stride=96), tensor(32, 7 * 96 + 64, 64, 0, 8, stride=96)]
    mixed = [tensor(0, 640, 64, 0, part=1), tensor(640, 640, 64, 0, part=2),
             tensor(1280, 320, 32, 1, part=3), tensor(1600, 160, 16, 1, part=3)]
    draft = [tensor(0, 640, 64), tensor(640, 640, 64),
             tensor(1280, 320, 32, flags=2), tensor(1600, 320, 32, flags=2)]
    mha = {"kv_kind": 1, "page": 4, "total_heads": 4}
    yield "turns", layout_seed(layout(state=[("mamba", turns)]))
    yield "turns_share_bytes", layout_seed(layout(state=[("mamba", [
        turns[0], tensor(16, 7 * 96 + 64, 64, 0, 8, stride=96)])]))
    yield "turns_reach_into_next", layout_seed(layout(state=[("mamba", [
        turns[0], tensor(48, 7 * 96 + 64, 64, 0, 8, stride=96)])]))
    yield "turns_other_stride", layout_seed(layout(state=[("mamba", [
        turns[0], tensor(32, 7 * 192 + 64, 64, 0, 8, stride=192)])]))
    yield "stride_huge", layout_seed(layout(aux=[tensor(0, 16, 16, stride=2**64 - 1)]))
    yield "stride_below_item", layout_seed(layout(aux=[tensor(0, 32, 16, stride=8)]))
    yield "ring", layout_seed(layout(state=ring), layout(state=ring7))
    yield "ring_split", layout_seed(layout(state=[("dsa_tail", [tensor(0, 200, 50, 0, 5, 5)])]))
    yield "mixed", layout_seed(layout(mixed, kv_kind=3, page=4, total_heads=4))
    yield "mixed_tp", layout_seed(layout(mixed, kv_kind=3, page=4, total_heads=4, tp=2),
                                  layout([tensor(0, 1280, 128, 0, part=1),
                                          tensor(1280, 1280, 128, 0, part=2), *mixed[2:]],
                                         kv_kind=3, page=4, total_heads=4,
                                         regions=[region(0), region(1)]))
    yield "mixed_part_untold", layout_seed(layout([mixed[0], tensor(640, 640, 64, 0)], kv_kind=3, page=4))
    for name, layers in (("layers_descend", (7, 5, 3)), ("layers_repeat", (2, 2, 3)),
                         ("layers_repeat_behind_a_descent", (5, 6, 3, 4, 5))):
        yield name, layout_seed(layout(
            [tensor(640 * i, 640, 64, n) for i, n in enumerate(layers + layers)], **mha))
    yield "draft", layout_seed(layout(draft, **mha))
    yield "draft_one_side", layout_seed(layout(draft, **mha), layout(draft[:2], **mha), without_draft=1)
    yield "draft_not_last", layout_seed(layout(draft[2:] + draft[:2], **mha))
    yield "draft_own_heads", layout_seed(
        layout(draft[:2] + [tensor(1280, 320, 32, flags=2, shard_dim=2, outer=4, groups=[4], stride=32),
                            tensor(1600, 320, 32, flags=2, shard_dim=2, outer=4, groups=[4])],
               tp=2, **mha),
        layout([tensor(0, 1280, 128), tensor(1280, 1280, 128),
                tensor(2560, 640, 64, flags=2, shard_dim=4, outer=4, groups=[4]),
                tensor(3200, 640, 64, flags=2, shard_dim=4, outer=4, groups=[4])], **mha))
    yield "slots", layout_seed(layout(state=[("mamba", turns, 3)]))
    yield "slots_differ", layout_seed(layout(state=[("mamba", turns, 3)]), layout(state=[("mamba", turns)]))
    yield "slots_largest", layout_seed(layout(state=[("mamba", turns, 2**31 - 1)]))
    yield "slots_too_large", layout_seed(layout(state=[("mamba", turns, 2**31)]))
    yield "slots_zero", layout_seed(layout(state=[("mamba", turns, 0)]))
    yield "replicated", layout_seed(layout(state=[("swa", [tensor(0, 640, 64, flags=1)])], tp=2),
                                    layout(state=[("swa", [tensor(0, 640, 64, flags=1)])]))
    yield "replicated_and_split", layout_seed(layout(state=[("swa", [tensor(0, 640, 64, 0, 8, flags=1)])]))
    yield "untold", layout_seed(layout(state=[("swa", [tensor(0, 640, 64)])], tp=2),
                                layout(state=[("swa", [tensor(0, 640, 64)])]))
    yield "old_name", layout_seed(layout(state=[("nsa", [tensor(0, 640, 64)])]),
                                  layout(state=[("dsa", [tensor(0, 640, 64)])]))
    yield "old_name_unknown", layout_seed(layout(state=[("nsa", [tensor(0, 640, 64)])]),
                                          layout(state=[("dsa", [tensor(0, 640, 64)])]), current=1)
    yield "part_of_state", layout_seed(layout(state=[("swa", [tensor(0, 640, 64, part=1)])]))
    yield "part_unknown", layout_seed(layout([tensor(0, 640, 64, part=4)], kv_kind=2))
    yield "flags_unknown", layout_seed(layout([tensor(0, 640, 64, flags=2**32 - 1)], kv_kind=2))
    yield "longer_tensor", layout_seed(layout([tensor(0, 640, 64, more=(7, "later", [1]))], kv_kind=2))
    yield "stage_without_layers", layout_seed(
        layout(state=[("mamba", [])], kv_kind=2, pp=2, total_heads=4),
        layout([tensor(0, 640, 64)], state=[("mamba", turns)], kv_kind=2, total_heads=4))


# --- the language of route ---

SIZES = (1, 2, 4, 8, 3, 6, 16, 12)
NAMES = ("mamba", "swa", "dsa", "swa_ring", "c128_state", "minimax_index_k", "qsa_pending",
         "qsa_compressed", "dsa_tail", "block_scale", "block_scale_swa", "nsa", "own_a", "own_b",
         "own_c", "unknown")
NONE, MHA, MLA, MIXED = range(4)
TRUNCATE, TRUST, NO_DRAFT, CURRENT = 1, 2, 4, 8
RAW, ANY_PEER, NO_OPTS, SHORT_OPTS, SWAPPED, LOG, NO_SIZE, MANY_TYPES = (1 << i for i in range(8))
TOUCH, GAPS, TURNS, APART = range(4)


def number(v):
    for kind, form in ((1, "<B"), (2, "<H"), (3, "<Q")):
        if v < 256 ** struct.calcsize(form):
            return (bytes([kind]) + struct.pack(form, v)) if v else b"\0"
    raise ValueError(v)


def count(v):
    """0 to 223, or a power of two"""
    return v if v < 0xe0 else 0xe0 + v.bit_length() - 1


def place(how=TOUCH, items=10, pad=0, other=0, fewer=0):
    return bytes([how | pad << 2 | other << 5 | fewer << 6, count(items)])


def layer(head=3, long_v=0, latent=0, indexer=0, own=0, groups=0):
    return head | long_v << 3 | latent << 4 | indexer << 5 | own << 6 | groups << 7


def kv(kind, layers=(), draft=(), page=4, heads=8, told=3, dtype=1, numbers=0, draft_how=0,
       local=place(), remote=place()):
    return {"kind": kind | told << 2 | dtype << 4, "page": page - 1, "heads": heads,
            "layers": list(layers), "draft": list(draft), "numbers": numbers,
            "draft_how": draft_how, "places": local + remote}


def axis(rows=1, units=8, unit_len=4, groups=0, blocks=0):
    return bytes([rows - 1, units, unit_len - 1, groups | blocks << 2])


def whole(rows=1, unit_len=16, replicated=1, more=0):
    return bytes([rows - 1, 0, unit_len - 1, (2 if replicated else 3) | more << 3])


def component(name, shapes, slots=0, told=1, local=place(), remote=place()):
    return (bytes([NAMES.index(name), slots, len(shapes) | told << 6]) + b"".join(shapes) + local +
            remote)


def own(name, least=1, most=0, flags=0, slicer=None, wrong=0):
    """slicer: (answer, slice, ...); a slice is how, or six numbers"""
    row = bytes([NAMES.index(name), least, most, flags, (slicer is not None) | wrong << 1])
    if slicer is None:
        return row
    row += bytes([slicer[0]])
    for s in slicer[1:]:
        row += bytes([s]) if isinstance(s, int) else b"\3" + b"".join(map(number, s))
    return row


def bend(field, value=0, remote=0, tensor=None, how=0, which=0):
    what = remote << 7 | (0x40 | tensor if tensor is not None else 0)
    return bytes([what, field, how | which << 2]) + number(value)


OFF, LEN, ITEM_LEN, STRIDE, SHARD_DIM, OUTER, LAYER, FLAGS, PART, GROUP, NGROUPS, REGION = range(12)
RANK, TP, PP, PP_RANK, PAGE, HEADS, START, TOTAL, KIND, NKV, NAUX, NCOMPONENTS, NTENSORS, SLOTS, \
    TYPE, DTYPE, REGION_LEN, RIGHTS, SIZE, KV = range(20)


def run(start, n):
    return bytes([0, start, n])


def values(*v):
    return bytes([1, len(v), *v])


def steps(start, n, step):
    return bytes([2, count(start), count(n), step])


def span(row, first, n):
    return bytes([6, row, first, n])


def six(*v):
    return bytes([7, *v])


def like(start, turn=0):
    return bytes([9, start, turn])


NONE_LIST, EMPTY, LIE = b"\3", b"\5", b"\x08\0"
NULL_WITH_N = b"\4" + number(3)
NEGATIVE, LOWEST, HIGHEST = 0xf0, 0xf1, 0xf2  # single values


def send(kind, *lists, opts=0, layers=None, more=None, ranges=None):
    """kind: 0 kv, 2 state, 5 aux. ranges: how, cut, ..."""
    b = bytes([kind | (8 if layers else 0) | (16 if ranges else 0), opts])
    if layers:
        b += bytes(layers)
    if kind == 2:
        b += bytes([more or 0])
    return b + b"".join(lists) + bytes(ranges or ())


def send_kv(src, dst, **how):
    return send(0, src, dst, **how)


def send_state(*lists, **how):
    return send(2, *lists, **how)


def send_aux(src, dst, **how):
    return send(5, values(src), values(dst), **how)


END, BELOW = 0xfc, 0xfd
THREE_RANGES = (3, 0, 0, 1)
DRAFT_ALONE = (6, 0, 0)


def route(*sends, cache=None, tp=(1, 1), rank=0, partner=0, pp=(1, 1), stage=0, aux=(),
          aux_places=None, components=(), swapped=0, mode=0, flags=0, types=(), bends=(), raw=b""):
    c = cache or kv(NONE, told=0, dtype=0)
    remote_pp = 0 if pp[1] == 1 else 1
    b = bytes([mode, flags, len(types)]) + b"".join(types)
    b += bytes([SIZES.index(tp[0]) | SIZES.index(tp[1]) << 4, rank, partner,
                pp[0] - 1 | remote_pp << 4, stage])
    b += bytes([c["kind"], c["page"], c["heads"], len(c["layers"]), c["numbers"],
                len(c["draft"]) | c["draft_how"], len(aux), len(components) | swapped << 7])
    b += bytes(c["layers"]) + bytes(c["draft"]) + c["places"]
    b += bytes(n - 1 for n in aux) + (aux_places or place() + place()) + b"".join(components)
    b += bytes([len(bends)]) + b"".join(bends)
    if mode & RAW:
        b += struct.pack("<H", len(raw)) + raw
    return b + b"".join(sends)


PAGES = (run(2, 5), like(1, 2))


def route_seeds_kv():
    mha = kv(MHA, [layer(), layer(1), layer()])
    sends = (send_kv(*PAGES), send_kv(*PAGES, layers=(0, 1)), send_kv(*PAGES, ranges=THREE_RANGES))
    yield "mha_equal", route(*sends, cache=mha, tp=(2, 2), rank=1)
    yield "mha_tp_down", route(*sends, cache=mha, tp=(4, 2), rank=1)
    yield "mha_tp_up", route(*sends, cache=mha, tp=(2, 8), rank=1, partner=3)
    yield "mha_three", route(*sends, cache=kv(MHA, [layer()], heads=6), tp=(6, 3), rank=5)
    yield "mha_copies", route(*sends, cache=kv(MHA, [layer(), layer()], heads=2), tp=(8, 4), rank=2)
    yield "mha_copies_tp_up", route(*sends, cache=kv(MHA, [layer(), layer()], heads=4), tp=(2, 8), rank=1,
                                    partner=2)
    yield "mha_copy_elsewhere", route(*sends, cache=kv(MHA, [layer()], heads=2), tp=(8, 4), rank=1)
    yield "mha_long_values", route(*sends, cache=kv(MHA, [layer(long_v=1), layer()]), tp=(4, 1), rank=3)
    yield "mha_turns", route(*sends, cache=kv(MHA, [layer(), layer()], local=place(TURNS),
                                              remote=place(GAPS, pad=3)), tp=(4, 2), rank=3)
    yield "mha_apart", route(*sends, cache=kv(MHA, [layer(), layer()], local=place(APART),
                                              remote=place(TOUCH, other=1)))
    yield "mha_trusted", route(*sends, cache=mha, tp=(4, 2), rank=1, partner=1, flags=TRUST)
    yield "mha_trusted_fewer_layers", route(
        *sends, cache=kv(MLA, [layer(), layer()], numbers=1), flags=TRUST, bends=[bend(NKV, 1)])
    yield "layers_without_sender", route(
        *sends, cache=kv(MLA, [layer(), layer()], numbers=1), bends=[bend(NKV, 1)])
    yield "mha_told_layers", route(*sends, cache=kv(MHA, [layer(), layer(), layer()], numbers=0x31))
    yield "mha_stage", route(*sends, cache=kv(MHA, [layer()] * 4, numbers=1), pp=(2, 1), stage=1)
    yield "mha_equal_stages", route(*sends, cache=kv(MHA, [layer()] * 4), pp=(2, 2), stage=1)
    yield "mha_stage_without", route(*sends, send_kv(EMPTY, EMPTY), cache=kv(MHA, [layer()]),
                                     pp=(2, 1), stage=1)
    yield "mha_stage_without_on_both", route(
        *sends, send_kv(values(1), values(NEGATIVE)), send_kv(values(HIGHEST), values(HIGHEST)),
        cache=kv(MHA, [layer()]), pp=(2, 2), stage=1)
    yield "mha_own_heads", route(*sends, cache=kv(MHA, [layer(own=1), layer()]), tp=(4, 2), rank=2)
    yield "mha_own_groups", route(*sends, cache=kv(MHA, [layer(own=1, groups=1)], heads=1), tp=(8, 2),
                                  rank=4)
    yield "mla", route(*sends, cache=kv(MLA, [layer(), layer(indexer=1)]), tp=(4, 2), rank=2)
    yield "mla_elsewhere", route(*sends, send_kv(values(200), values(1)),
                                 cache=kv(MLA, [layer(), layer()]), tp=(4, 2), rank=1)
    yield "mixed", route(*sends, cache=kv(MIXED, [layer(), layer(latent=1, indexer=1), layer()]))
    yield "mixed_tp", route(*sends, cache=kv(MIXED, [layer(latent=1), layer(long_v=1), layer(latent=1)]),
                            tp=(8, 2), rank=4)
    yield "mixed_tp_elsewhere", route(*sends, cache=kv(MIXED, [layer(latent=1), layer()]), tp=(8, 2),
                                      rank=5)
    draft = kv(MHA, [layer(), layer()], [layer(1), layer(1)], numbers=1)
    yield "draft", route(*sends, send_kv(*PAGES, layers=(END, END)), send_kv(*PAGES, ranges=DRAFT_ALONE),
                         cache=draft, tp=(2, 2))
    yield "draft_tp", route(*sends, cache=kv(MHA, [layer()], [layer(1, groups=1)], draft_how=0x40),
                            tp=(4, 2), rank=1)
    yield "draft_one_side", route(*sends, cache=kv(MHA, [layer()], [layer()], draft_how=0x20),
                                  flags=NO_DRAFT)
    yield "draft_one_side_refused", route(*sends, cache=kv(MHA, [layer()], [layer()], draft_how=0x20))
    yield "draft_other_side_refused", route(*sends, cache=kv(MHA, [layer()], [layer()], draft_how=0x10))
    yield "draft_mixed", route(*sends, cache=kv(MIXED, [layer(latent=1)], [layer()]), tp=(2, 1))
    yield "draft_of_last_stage", route(*sends, cache=kv(MHA, [layer(), layer()], [layer()], numbers=1),
                                       pp=(2, 1), stage=0)
    yield "kv_lists_hostile", route(
        send_kv(values(1, 2), values(3, 3)), send_kv(values(1, NEGATIVE), values(3, 4)),
        send_kv(values(1), values(HIGHEST)), send_kv(values(1, 2), values(3)),
        send_kv(NULL_WITH_N, run(0, 3)), send_kv(NONE_LIST, NONE_LIST), send_kv(LIE, run(0, 3)),
        send_kv(steps(9, 8, 0x81), run(0, 8)), send_kv(*PAGES, opts=0x48), send_kv(*PAGES, opts=1),
        send_kv(*PAGES, layers=(3, 3)), cache=mha)
    yield "kv_many_pages", route(send_kv(steps(1, 512, 1), steps(2, 512, 3), ranges=THREE_RANGES),
                                 cache=kv(MHA, [layer()] * 2, local=place(items=2048),
                                          remote=place(items=1 << 31)))


def route_seeds_state():
    slot = (values(4), values(1))
    conv, ssm = axis(3, 4, 2, groups=1, blocks=1), axis(1, 8, 16)
    sends = (send_state(*slot), send_state(*slot, layers=(0, 1)), send_state(*slot, ranges=THREE_RANGES))
    yield "mamba", route(*sends, components=[component("mamba", [conv, ssm, conv, ssm])], tp=(2, 2))
    yield "mamba_tp_down", route(*sends, components=[component("mamba", [conv, ssm, conv, ssm])],
                                 tp=(4, 2), rank=3)
    yield "mamba_tp_up", route(*sends, components=[component("mamba", [conv, ssm])], tp=(1, 4), partner=2)
    yield "mamba_copies", route(*sends, components=[component("mamba", [axis(2, 2, 5, groups=1, blocks=1)])],
                                tp=(8, 2), rank=4)
    yield "mamba_turns", route(*sends, components=[component("mamba", [conv, ssm], local=place(TURNS),
                                                             remote=place(TURNS, items=20))],
                               tp=(2, 4), rank=1)
    yield "mamba_split_and_common", route(*sends, components=[component("mamba", [ssm, whole(), ssm])],
                                          tp=(4, 2), rank=1)
    yield "mamba_untold_layers", route(*sends, components=[component("mamba", [ssm], told=0)])
    yield "mamba_slots", route(send_state(values(1, 2, 3), values(4, 5, 6)),
                               send_state(values(1, 2, 3, 4), run(4, 4)),
                               components=[component("mamba", [ssm], slots=3)])
    yield "mamba_slots_too_many", route(components=[component("mamba", [ssm], slots=255)])
    yield "mamba_stage", route(*sends, components=[component("mamba", [ssm] * 4)], pp=(2, 1), stage=1)
    pages = (run(1, 4), like(3, 1))
    swa = component("swa", [axis(4, 8, 2)])
    two = (send_state(*pages, *slot), send_state(*pages, NONE_LIST, NONE_LIST), send_state(
        *pages, *slot, ranges=THREE_RANGES), send_state(*pages, *slot, opts=0x18))
    yield "swa_and_mamba", route(*two, cache=kv(MHA, [layer()]), tp=(4, 2), rank=2,
                                 components=[swa, component("mamba", [ssm])])
    yield "swa_copies_by_kv_heads", route(send_state(*pages), cache=kv(MHA, [layer()], heads=2),
                                          tp=(8, 1), rank=4, components=[component("swa", [axis(4, 2, 3)])])
    yield "swa_cut", route(send_state(run(1, 5), run(3, 2)), send_state(LIE, run(3, 2)),
                           send_state(run(0, 2), run(3, 5)), components=[swa], mode=LOG, flags=TRUNCATE)
    yield "swa_not_cut", route(send_state(run(1, 5), run(3, 2)), components=[swa])
    yield "dsa_of_mla", route(send_state(*pages), cache=kv(MLA, [layer()]), tp=(4, 2), rank=2,
                              components=[component("dsa", [whole(replicated=0)])])
    yield "dsa_of_mla_elsewhere", route(send_state(*pages), cache=kv(MLA, [layer()]), tp=(4, 2), rank=3,
                                        components=[component("dsa", [whole(replicated=0)])])
    yield "old_name", route(send_state(*pages), components=[component("nsa", [whole()])],
                            bends=[bend(TYPE, NAMES.index("dsa"), remote=1)])
    yield "old_name_unknown", route(send_state(*pages), components=[component("nsa", [whole()])],
                                    flags=CURRENT)
    yield "unknown_type", route(send_state(*pages, *pages), send_kv(*PAGES), cache=kv(MHA, [layer()]),
                                components=[swa, component("unknown", [whole()])])
    yield "positional_types", route(
        send_state(*pages, *pages, EMPTY, EMPTY, *pages, run(0, 2), run(5, 3)),
        send_state(*pages, EMPTY, EMPTY, NONE_LIST, NONE_LIST, *pages, *pages), flags=TRUNCATE,
        components=[component("swa_ring", [whole()]), component("c128_state", [whole()]),
                    component("qsa_pending", [whole()]), component("block_scale", [axis(2, 8, 1)]),
                    component("block_scale_swa", [axis(1, 8, 1)])])
    yield "qsa_tp", route(send_state(*pages, *pages), tp=(2, 1), components=[
        component("qsa_compressed", [whole(replicated=0)]), component("qsa_pending", [whole(replicated=0)])])
    yield "minimax_untold", route(tp=(2, 1), components=[component("minimax_index_k", [whole(replicated=0)])])
    yield "swapped_components", route(components=[swa, component("mamba", [ssm])], swapped=1)
    yield "state_lists_hostile", route(
        send_state(values(1, 2), values(3, 3), *slot), send_state(values(NEGATIVE), values(3), *slot),
        send_state(*pages, values(4), values(HIGHEST)), send_state(*pages, values(4), values(3, 2)),
        send_state(*pages, NONE_LIST, values(1)), send_state(NULL_WITH_N, run(0, 3), *slot),
        send_state(*pages, *slot, *pages, more=1), send_state(*pages, more=2), send_state(*pages, *slot, more=4),
        send_state(*pages, *slot, opts=1), send_state(EMPTY, EMPTY, *slot),
        send_state(*pages, *slot, opts=6), send_state(*pages, *slot, more=8), components=[swa, component("mamba", [ssm])])


def route_seeds_rings():
    tail = component("dsa_tail", [whole(5, 10), whole(5, 10)])
    larger = component("dsa_tail", [whole(5, 10, more=2)])
    sends = (send_state(span(1, 3, 4), span(2, 1, 4)), send_state(span(1, 3, 4), span(2, 4, 4), layers=(0, 1)),
             send_state(span(9, 0, 5), span(0, 0, 5), ranges=THREE_RANGES))
    yield "ring", route(*sends, components=[tail], cache=kv(MLA, [layer()]))
    yield "ring_of_other_size", route(*sends, send_state(six(1, 3, 2, 0, 2, 5), six(2, 1, 3, 0, 1, 7)),
                                      components=[larger])
    yield "ring_elsewhere", route(*sends, components=[tail], cache=kv(MLA, [layer()]), tp=(2, 1), rank=1)
    yield "ring_hostile", route(
        send_state(six(1, 0, 6, 0, 0, 5), six(1, 0, 6, 0, 0, 5)),
        send_state(six(1, 0, 3, 0, 3, 5), six(1, 0, 3, 0, 3, 5)),
        send_state(six(1, 0, 2, 3, 2, 5), six(1, 0, 2, 1, 2, 5)),
        send_state(six(NEGATIVE, 0, 2, 3, 2, 5), six(1, 0, 2, 2, 2, 5)),
        send_state(six(1, NEGATIVE, 2, 3, 2, 5), six(1, 0, 2, 2, 2, 5)),
        send_state(six(1, 5, 0, 0, 0, 5), six(1, 0, 0, 0, 0, 5)),
        send_state(six(1, 0, HIGHEST, 0, HIGHEST, 5), six(1, 0, 2, 2, 2, 5)),
        send_state(run(1, 5), run(1, 5)), send_state(EMPTY, EMPTY), components=[tail])
    yield "ring_with_many_rows", route(
        send_state(span(0xf4, 1, 2), span(1, 0, 2)), send_state(span(1, 1, 2), span(0xf5, 0, 2)),
        components=[component("dsa_tail", [whole(32, 1)], local=place(items=1 << 31),
                              remote=place(items=1 << 31))])
    yield "rings_with_many_entries", route(
        send_state(*[span(1, 0, 255)] * 10), bends=[bend(OUTER, 4096, tensor=4), bend(OUTER, 4096, 1, 4),
                                                    bend(ITEM_LEN, 4096, tensor=4),
                                                    bend(ITEM_LEN, 4096, 1, 4),
                                                    bend(LEN, 8192, tensor=4), bend(LEN, 8192, 1, 4)],
        components=[component("dsa_tail", [whole(256, 2)])] * 4 + [
            component("dsa_tail", [whole(256, 2)], local=place(items=20), remote=place(items=20))])
    without = (send_state(span(1, 0, 2), span(1, 0, 2)), send_state(six(1, 0, 2, 0, 0, 5), six(1, 0, 2, 0, 0, 5)),
               send_state(six(1, 0, 2, 0, 0, 5), six(1, 0, 6, 0, 0, 5)), send_state(EMPTY, EMPTY))
    yield "ring_of_a_stage_without", route(*without, pp=(2, 1), stage=1, cache=kv(MLA, [layer()]),
                                           components=[component("dsa_tail", [whole(5, 10)])])
    huge = (1 << 32) + 5
    yield "ring_of_a_stage_without_huge", route(
        *without, pp=(2, 1), stage=1, components=[component("dsa_tail", [whole(5, 10)])],
        bends=[bend(OUTER, huge, 1, 0), bend(ITEM_LEN, huge, 1, 0), bend(LEN, 4 * huge, 1, 0),
               bend(REGION_LEN, 1 << 40, 1)])


def route_seeds_own():
    pages = (run(1, 4), like(3, 1))
    shapes = [whole(4, 8, replicated=0)] * 2
    sends = (send_state(*pages), send_state(*pages, ranges=THREE_RANGES))
    yield "own_type", route(*sends, types=[own("own_a", 1, 8, 1 | 2)], components=[component("own_a", shapes)],
                            tp=(2, 1), flags=TRUNCATE)
    yield "own_type_for_swa", route(*sends, types=[own("swa", 0, 0, 8)], cache=kv(MHA, [layer()]),
                                    components=[component("swa", [axis(4, 8, 2)])], tp=(2, 4), rank=1)
    yield "own_ring", route(send_state(span(1, 3, 3), span(2, 0, 3)), types=[own("own_b", 0, 0, 32 | 2)],
                            components=[component("own_b", shapes)])
    yield "own_slicer_whole", route(*sends, types=[own("own_a", slicer=(1, 0))],
                                    components=[component("own_a", shapes)], tp=(2, 1))
    yield "own_slicer_parts", route(*sends, types=[own("own_a", slicer=(4, 1, 1, 1, 1))], tp=(4, 2),
                                    rank=1, components=[component("own_a", shapes, local=place(TURNS))])
    yield "own_slicer_rows", route(*sends, types=[own("own_a", slicer=(1, 2))],
                                   components=[component("own_a", shapes)])
    yield "own_slicer_elsewhere", route(*sends, types=[own("own_a", slicer=(0,))],
                                        components=[component("own_a", shapes)])
    yield "own_slicer_refuses", route(types=[own("own_a", slicer=(0xfc,))],
                                      components=[component("own_a", shapes)])
    yield "own_slicer_too_many", route(types=[own("own_a", slicer=(0xfe, 0, 0, 0, 0))],
                                       components=[component("own_a", shapes)])
    yield "own_slicer_leaves_the_item", route(
        *sends, types=[own("own_a", slicer=(1, (0, 8, 32, 1, 0, 0)))],
        components=[component("own_a", shapes, local=place(GAPS, pad=7), remote=place(TURNS))])
    yield "own_slicer_overflow", route(
        *sends, types=[own("own_a", slicer=(1, (1, 1, 1, 2**63, 2, 2)))],
        components=[component("own_a", shapes)])
    yield "own_slicer_twice", route(*sends, types=[own("own_a", slicer=(2, 0, 0))],
                                    components=[component("own_a", shapes)])
    yield "own_slicer_rows_overlap", route(
        *sends, types=[own("own_a", slicer=(1, (0, 0, 4, 2, 3, 4)))],
        components=[component("own_a", shapes)])
    yield "own_rows_wrong", route(types=[own("own_a", 5, 2)], components=[component("own_a", shapes)])
    yield "own_rows_of_another_size", route(types=[own("own_a", wrong=1)],
                                            components=[component("own_a", shapes)])
    yield "own_types_in_short_options", route(mode=SHORT_OPTS, types=[own("own_a")],
                                              components=[component("own_a", shapes)])


def route_seeds_other():
    mha = kv(MHA, [layer(), layer()])
    auxes = (send_aux(1, 2), send_aux(9, 9), send_aux(9, 10), send_aux(NEGATIVE, 0), send_aux(0, LOWEST))
    yield "aux", route(*auxes, send_kv(*PAGES), aux=(16, 64, 1), cache=mha)
    yield "aux_of_last_stage", route(*auxes, aux=(16,), cache=mha, pp=(2, 1), stage=1)
    yield "aux_of_equal_stages", route(*auxes, aux=(16,), cache=mha, pp=(2, 2), stage=0)
    yield "aux_elsewhere", route(*auxes, aux=(16, 8), cache=mha, pp=(2, 1), stage=0)
    yield "aux_missing", route(*auxes, cache=mha)
    yield "options_null", route(send_kv(*PAGES), cache=mha, mode=NO_OPTS)
    yield "options_of_no_size", route(cache=mha, mode=NO_SIZE)
    yield "types_too_many", route(cache=mha, mode=MANY_TYPES)
    yield "components_null", route(cache=mha, components=[component("mamba", [axis()])],
                                   bends=[bend(KV, 4)])
    yield "flags_unknown", route(cache=mha, flags=0x80)
    yield "layouts_swapped", route(send_kv(*PAGES), cache=mha, mode=SWAPPED)
    yield "mismatches", route(cache=mha, tp=(2, 4), partner=2, pp=(2, 1), stage=1, aux=(16,),
                              components=[component("swa", [whole(replicated=0)])],
                              bends=[bend(PAGE, 2, 1), bend(DTYPE, 3, 1), bend(TYPE, 15, 1)])
    yield "layers_of_one_side", route(cache=mha, bends=[bend(LAYER, i % 2, 1, i) for i in range(4)])
    yield "pages_differ", route(cache=mha, bends=[bend(PAGE, 2, 1)])
    yield "tensors_share_bytes", route(cache=mha, bends=[bend(OFF, 1, tensor=1, how=2)])
    yield "tensor_leaves_region", route(cache=mha, bends=[bend(REGION_LEN, 64)])
    yield "counts_huge", route(cache=mha, bends=[bend(NKV, 1 << 40), bend(NAUX, 1 << 40),
                                                 bend(NCOMPONENTS, 1 << 40), bend(NGROUPS, 65, 0, 0)])
    yield "region_not_writable", route(cache=mha, bends=[bend(RIGHTS, 1, 1)])
    remote = layout([tensor(0, 640, 64), tensor(640, 640, 64), tensor(1280, 640, 64), tensor(1920, 640, 64)],
                    [tensor(4096, 160, 16)],
                    [("swa", [tensor(8192, 640, 64, 0, 8, 4)]), ("mamba", [tensor(12288, 320, 32, 0, 8)])],
                    kv_kind=1, page=4, dtype="bfloat16", heads=4, total_heads=4)
    local = {"cache": kv(MHA, [layer(3), layer(3)], heads=4), "aux": (16,), "mode": RAW | ANY_PEER,
             "components": [component("swa", [axis(4, 8, 2)]), component("mamba", [axis(1, 8, 4)])],
             "raw": remote}
    sends = (send_kv(*PAGES), send_aux(1, 2), send_state(run(1, 4), like(3, 1), values(4), values(1)))
    yield "raw_remote", route(*sends, **local)
    yield "raw_remote_of_another_peer", route(*sends, **dict(local, mode=RAW, raw=remote.replace(
        bytes([0xb2] * 16), bytes([0xb3] * 16))))
    yield "raw_remote_cut", route(*sends, **dict(local, raw=remote[:-9]))


def route_seeds_refused():
    """Nearly right: what the checks of layouts and pairs are for."""
    mha, mla = kv(MHA, [layer()] * 4), kv(MLA, [layer()] * 2)
    told = kv(MHA, [layer()] * 2, numbers=1)
    swa, ssm = component("swa", [axis(4, 8, 2)] * 2), component("mamba", [axis(1, 8, 4)] * 2)
    tail = component("dsa_tail", [whole(5, 10)] * 2)
    copies = component("swa", [axis(4, 8, 2, groups=1)])

    def bent(*bends, **how):
        return route(bends=bends, **{"cache": mha, **how})

    yield "bent_ranks", bent(bend(TP, 0), bend(PP, 0), bend(PAGE, 0), bend(KIND, 9))
    yield "bent_lengths", bent(bend(LEN, 1, tensor=0, how=1), bend(STRIDE, 1, tensor=1),
                               bend(ITEM_LEN, 0, tensor=2), bend(LEN, 1 << 40, tensor=3, how=3))
    yield "bent_items", bent(bend(ITEM_LEN, 1, tensor=0), bend(LEN, 1 << 40, tensor=0),
                             bend(REGION_LEN, 1 << 50))
    yield "bent_words", bent(bend(FLAGS, 8, tensor=0), bend(PART, 1, tensor=1), bend(LAYER, 1, tensor=1),
                             bend(SHARD_DIM, 3, tensor=0), bend(FLAGS, 1, tensor=1), components=[swa],
                             cache=None)
    yield "bent_groups", bent(bend(GROUP, 9, tensor=0), bend(NGROUPS, 2, tensor=1), components=[copies, swa],
                              cache=None, tp=(2, 2))
    yield "bent_aux", bent(bend(OUTER, 2, tensor=0), bend(PART, 3, tensor=0), aux=(16,), cache=None)
    yield "bent_pointers", bent(bend(KV, 1), bend(TYPE, 18), bend(DTYPE, 20), components=[swa])
    yield "bent_regions", bent(bend(REGION, 2, tensor=0), bend(NGROUPS, 65, tensor=1))
    yield "bent_size", bent(bend(SIZE, 1))
    yield "bent_no_tensors", bent(bend(NKV, 0), bend(NTENSORS, 0), components=[swa])
    yield "kv_kind_none_with_tensors", bent(bend(KIND, 0))
    yield "kv_odd_number", bent(bend(NKV, 7))
    yield "kv_heads_contradict", bent(bend(HEADS, 3))
    yield "kv_heads_do_not_split", bent(bend(TOTAL, 3), tp=(2, 2))
    yield "kv_start_layer_too_large", bent(bend(START, 2**31 - 2))
    yield "kv_part_of_another_kind", bent(bend(PART, 3, tensor=0), bend(OUTER, 3, tensor=1))
    yield "kv_some_parts_told", bent(bend(PART, 1, tensor=0))
    yield "kv_some_layers_told", bent(bend(LAYER, 1, tensor=0))
    yield "kv_values_in_another_order", bent(bend(LAYER, 5, tensor=3), cache=told)
    yield "kv_page_not_whole", bent(bend(ITEM_LEN, 16, tensor=0), bend(LEN, 160, tensor=0))
    yield "kv_draft_not_last", bent(bend(FLAGS, 2, tensor=0))
    yield "kv_latent_with_heads", bent(bend(SHARD_DIM, 2, tensor=0), cache=mla)
    yield "kinds_differ", bent(bend(KIND, 2, 1))
    yield "heads_differ", bent(bend(TOTAL, 16, 1), bend(HEADS, 0, 1))
    yield "heads_of_a_rank_differ", bent(bend(HEADS, 4, 1), cache=kv(MHA, [layer()], told=2))
    yield "heads_not_told", bent(cache=kv(MHA, [layer()], told=0), tp=(2, 1))
    yield "page_bytes_differ", bent(*[bend(f, v, 1, t) for t in range(2) for f, v in (
        (ITEM_LEN, 8), (LEN, 80))], cache=mla)
    yield "layers_missing", bent(bend(NKV, 1, 1), cache=mla)
    yield "layers_of_other_numbers", bent(bend(START, 9, 1))
    yield "layers_untold_of_a_stage", bent(cache=mla, pp=(2, 1), stage=0, components=[
        component("mamba", [axis(1, 8, 4)] * 4, told=0)])
    yield "stage_begins_at_layer_0", bent(bend(START, 0), cache=mla, pp=(2, 1), stage=1)
    yield "stages_differ", bent(cache=mla, pp=(2, 2), stage=0x11)
    yield "sizes_do_not_divide", bent(cache=mla, tp=(3, 2))
    yield "tensors_of_one_side_more", bent(bend(NTENSORS, 1, 1), components=[swa], cache=None)
    yield "tensors_untold_of_one_side_more", bent(
        bend(NTENSORS, 1, 1), components=[component("swa", [axis(4, 8, 2)] * 2, told=0)], cache=None)
    yield "slots_differ", bent(bend(SLOTS, 2, 1), components=[ssm])
    yield "slots_of_a_type_without", bent(bend(SLOTS, 2), bend(SLOTS, 2, 1), components=[swa])
    yield "aux_differs", bent(*[bend(f, v, 1, 0) for f, v in ((ITEM_LEN, 8), (LEN, 80))], aux=(16,),
                              cache=None)
    yield "aux_of_one_side_more", bent(bend(NAUX, 1, 1), aux=(16, 8), cache=None)
    yield "state_told_on_one_side", bent(bend(SHARD_DIM, 0, 1, 0), components=[ssm], tp=(2, 1), cache=None)
    yield "state_of_another_axis", bent(bend(OUTER, 2, 1, 0), components=[ssm], tp=(2, 1), cache=None)
    yield "state_of_another_width", bent(bend(SHARD_DIM, 4, 1, 0), components=[ssm], tp=(2, 1), cache=None)
    yield "state_widths_differ_at_equal_tp", bent(bend(SHARD_DIM, 4, 1, 0), components=[ssm], cache=None)
    yield "state_lengths_differ", bent(bend(ITEM_LEN, 16, 1, 0), bend(LEN, 160, 1, 0), components=[ssm],
                                       cache=None)
    yield "state_replicated_on_one_side", bent(bend(FLAGS, 0, 1, 0), cache=None,
                                               components=[component("swa", [whole()])])
    yield "rings_of_other_entries", bent(bend(OUTER, 10, 1, 0), bend(OUTER, 10, 1, 1), components=[tail],
                                         cache=None)
    yield "rings_of_two_sizes", bent(bend(OUTER, 10, 1, 1), components=[tail], cache=None)
    yield "many_mismatches", bent(*[bend(ITEM_LEN, 32, 1, i) for i in range(7)], components=[ssm],
                                  cache=kv(MHA, [layer()] * 4, told=0))
    yield "own_slots_without_most", route(types=[own("own_a", flags=16)], components=[component("own_a", [whole()])])
    yield "own_ring_with_slicer", route(types=[own("own_a", flags=32, slicer=(0,))],
                                        components=[component("own_a", [whole()])])
    yield "own_types_null", route(types=[own("own_a")], flags=0x40, components=[component("own_a", [whole()])])
    yield "positional_lists_differ", route(
        send_state(run(1, 2), run(1, 3)), send_state(run(1, 2), EMPTY), send_kv(*PAGES),
        components=[component("swa_ring", [whole()])])
    yield "state_without_components", route(send_state(), send_state(run(1, 1), run(1, 1), more=1), cache=mha)


def main():
    corpus = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "corpus"
    route_seeds = (route_seeds_kv, route_seeds_state, route_seeds_rings, route_seeds_own,
                   route_seeds_other, route_seeds_refused)
    for target, seeds in [("layout", layout_seeds())] + [("route", f()) for f in route_seeds]:
        for name, data in seeds:
            (corpus / target).mkdir(parents=True, exist_ok=True)
            (corpus / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
