"""Bad inputs, one a row, and what must be said of each; see test_bad_inputs.py."""

import json
import os
import pickle
import struct
import zipfile
from fractions import Fraction

import numpy as np
import torch
from damaged import (
    VALUES,
    WEIGHTS,
    archive,
    header,
    members,
    npy,
    patched,
    signed,
    tensors,
)

import geobounds

REFUSED = "refused"  # by verify, which returns its reason
W = [0.5, 0.25, 0.125, 0.125]
V = [[1.0], [2.0], [3.0], [4.0]]
BITS = np.zeros(2, dtype=np.uint16), np.zeros((2, 1), dtype=np.uint16)
LOOP: dict = {}
LOOP["a"] = LOOP
HEAD = geobounds.HeadData(W, V)
GOOD = json.dumps(geobounds.certify(HEAD, 2).to_dict()).encode()
SET = json.dumps(geobounds.certify_all([HEAD], n=2).to_dict()).encode()


def head(gb):
    return gb.HeadData(W, V)


def deep(depth):
    """A mapping nested to some depth, made without recursion."""
    found = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def half_bad(gb):
    return gb.HeadData([[1.0, 0.5], [np.nan, 1.0]], [[1.0], [1.0]], visible="all")


def huge(gb):
    return gb.HeadData([0.5, 0.25, 0.25], [[1e300]] * 3)


def ones(gb, n_key):
    return gb.HeadData(np.ones(n_key), np.ones((n_key, 1)))


def hidden_sink(gb):
    return gb.HeadData([0.0, 0.5], [[1.0], [2.0]], visible=[False, True])


def cells(gb, *ranges):
    """A regime for N = 1 whose numbers say that every value is zero."""
    return gb.CellRegime(1, tuple(gb.Cell(*ends, 0, 0) for ends in ranges))


def pairwise(gb, scope="all", n=None, **numbers):
    """A pairwise regime of which nothing is known but these numbers."""
    names = "norms_selected norms_unselected cosine_selected cosine_across sink_norm"
    fields = dict.fromkeys([*names.split(), "sink_selected", "sink_across"])
    return gb.PairwiseRegime(scope, n, **fields | numbers)


def norms(gb, span):
    """All that is known are the norms."""
    both = {"norms_selected": span, "norms_unselected": span, "sink_norm": (1, 1)}
    return pairwise(gb, **both)


def certificate_of_nan(gb):
    facts = {"definitions": {}, "head": {}, "versions": {}}
    return gb.Certificate([], provenance={"a": np.nan}, **facts)


def edited(data, **changes):
    """Signed JSON of the data with fields replaced, or taken out by None."""
    kept = {k: x for k, x in (data | changes).items() if x is not None}
    return json.dumps(signed(kept)).encode()


def changed(**changes):
    """The good certificate with other fields, signed again."""
    return edited(json.loads(GOOD), **changes)


def claimed(**changes):
    """The good certificate with another claim, signed again."""
    claim = json.loads(GOOD)["claims"][0]
    return changed(claims=[claim | changes])


def headed(**changes):
    """The good certificate with other fields of the head, signed again."""
    facts = json.loads(GOOD)["head"] | changes
    return changed(head={k: x for k, x in facts.items() if x is not None})


def whole(**changes):
    """The good set with other fields, signed again."""
    return edited(json.loads(SET), **changes)


def flipped(content, place):
    """The content with one byte flipped."""
    found = bytearray(content)
    found[place] ^= 0x55
    return bytes(found)


def pickled():
    """A NumPy file whose numbers are a pickle that would run code."""

    class Code:
        def __reduce__(self):
            return os.mkdir, ("pickled",)

    return npy(pickle.dumps(Code()), "|O", (1,))


def bomb_array(size=1 << 28):
    """A NumPy file of 256 MiB of zeros, all there."""
    return npy(bytes(size), "<f8", (1, size // 8))


def bomb():
    """An archive of about 260 kB that unfolds to 256 MiB of weights."""
    return archive(members(weights=bomb_array()), zipfile.ZIP_DEFLATED)


# Texts that many messages hold. In a message … stands for any text, FILE for the file.
KINDS = "must be float16, bfloat16, float32 or float64, got dtype"
NO_VALUES = (
    "values must be given, got values=None. This head holds weights only; build it "
    "with its value vectors."
)
LAYERS = (
    "Models return one array per layer: index down to one layer and one head, such as"
)
MALFORMED = "Certificate: a field is missing or malformed"
CHANGED = (
    "Certificate: sha256 must fit the content, got another digest or unknown "
    "fields. The file was changed."
)

# fmt: off
# Name; what is done; the error; its message.
CALLS = [
    # Arrays of a head
    ("weights: none", lambda gb: gb.HeadData(None), TypeError,
     f"HeadData: weights {KINDS} object."),
    ("weights: a word", lambda gb: gb.HeadData("abc"), TypeError,
     f"HeadData: weights {KINDS} <U3."),
    ("weights: words", lambda gb: gb.HeadData(["a", "b"]), TypeError,
     f"HeadData: weights {KINDS} <U1."),
    ("weights: a mapping", lambda gb: gb.HeadData({0: 0.5}), TypeError,
     f"HeadData: weights {KINDS} object."),
    ("weights: a set", lambda gb: gb.HeadData({0.5, 0.25}), TypeError,
     f"HeadData: weights {KINDS} object."),
    ("weights: complex", lambda gb: gb.HeadData([0.5, 0.5j]), TypeError,
     f"HeadData: weights {KINDS} complex128."),
    ("weights: objects", lambda gb: gb.HeadData(np.array([0.5, 0.5], dtype=object)),
     TypeError,
     f"HeadData: weights {KINDS} object."),
    ("weights: fractions", lambda gb: gb.HeadData([Fraction(1, 2), Fraction(1, 2)]),
     TypeError,
     f"HeadData: weights {KINDS} object."),
    ("weights: dates",
     lambda gb: gb.HeadData(np.array(["2020-01-01"], dtype="datetime64[D]")),
     TypeError,
     f"HeadData: weights {KINDS} datetime64[D]."),
    ("weights: records", lambda gb: gb.HeadData(np.zeros(2, dtype=[("a", "f8")])),
     TypeError,
     f"HeadData: weights {KINDS} [('a', '<f8')]."),
    ("weights: long doubles", lambda gb: gb.HeadData(np.ones(2, dtype=np.longdouble)),
     TypeError,
     f"HeadData: weights {KINDS} float128."),
    ("weights: masked", lambda gb: gb.HeadData(np.ma.array([0.5, 0.5], mask=[0, 1])),
     TypeError,
     ("HeadData: weights must be a plain array, got a masked array. Fill it, and "
      "pass the mask as visible.")),
    ("weights: bytes", lambda gb: gb.HeadData(b"abc"), TypeError,
     f"HeadData: weights {KINDS} |S3."),
    ("weights: a number", lambda gb: gb.HeadData(0.5), "HeadDataError",
     ("HeadData: weights must have shape (n_query, n_key) or (n_key,), got shape "
      "().")),
    ("weights: empty", lambda gb: gb.HeadData([]), "HeadDataError",
     "HeadData: weights must hold at least one query and one key, got shape (0,)."),
    ("weights: no query", lambda gb: gb.HeadData(np.zeros((0, 3)), visible="all"),
     "HeadDataError",
     ("HeadData: weights must hold at least one query and one key, got shape (0, "
      "3).")),
    ("weights: no key", lambda gb: gb.HeadData(np.zeros((2, 0)), visible="all"),
     "HeadDataError",
     ("HeadData: weights must hold at least one query and one key, got shape (2, "
      "0).")),
    ("weights: ragged", lambda gb: gb.HeadData([[0.5, 0.5], [1.0]], visible="all"),
     "HeadDataError",
     "HeadData: weights must be one rectangular array, got a ragged list."),
    ("weights: ragged below", lambda gb: gb.HeadData([[[0.5], [0.5, 1.0]]]),
     "HeadDataError",
     "HeadData: weights must be one rectangular array, got a ragged list."),
    ("weights: all heads", lambda gb: gb.HeadData(np.ones((2, 3, 3))), "HeadDataError",
     ("HeadData: weights must have shape (n_query, n_key) or (n_key,), got shape "
      "(2, 3, 3). Axis 0 (length 2) looks like a head axis: pass weights[h], or "
      "use split_heads.")),
    ("weights: a batch", lambda gb: gb.HeadData(np.ones((1, 2, 3, 3))), "HeadDataError",
     ("HeadData: weights must have shape (n_query, n_key) or (n_key,), got shape "
      "(1, 2, 3, 3). Axis 0 (length 1) looks like a batch axis and axis 1 (length "
      "2) like a head axis: pass weights[b, h], or use split_heads(weights[b], "
      "values[b]).")),
    ("weights: five axes", lambda gb: gb.HeadData(np.ones((1, 1, 1, 1, 1))),
     "HeadDataError",
     ("HeadData: weights must have shape (n_query, n_key) or (n_key,), got shape "
      "(1, 1, 1, 1, 1).")),
    ("weights: a tuple of layers",
     lambda gb: gb.HeadData((np.ones((1, 2, 3, 3)),) * 2), TypeError,
     ("HeadData: weights must be one array, got a tuple of arrays of shape (1, 2, "
      f"3, 3). {LAYERS} weights[layer][batch, head].")),
    ("weights: a tuple of tuples", lambda gb: gb.HeadData(((np.ones((1, 2, 3, 3)),),)),
     TypeError,
     ("HeadData: weights must be one array, got a tuple of tuples (2 levels) of "
      "arrays of shape (1, 2, 3, 3). Models return one array per layer inside one "
      "tuple per generated token: index down to one layer and one head, such as "
      "weights[step][layer][batch, head].")),
    ("weights: a list of rows", lambda gb: gb.HeadData([np.ones(2), np.ones(2)]),
     TypeError,
     ("HeadData: weights must be one array, got a tuple of arrays of shape (2,). "
      f"{LAYERS} weights[layer][batch, head].")),
    ("weights: a huge integer", lambda gb: gb.HeadData([10**30, 1]), TypeError,
     f"HeadData: weights {KINDS} object."),
    ("weights: an integer above 2^53", lambda gb: gb.HeadData([2**53 + 1, 1]),
     "HeadDataError",
     ("HeadData: weights must be exact as float64, got the integer "
      "9007199254740993 > 2**53.")),
    ("weights: NaN", lambda gb: gb.HeadData([0.5, np.nan]), "HeadDataError",
     "HeadData: weights must be finite, got nan at query 0, key 1."),
    ("weights: infinite", lambda gb: gb.HeadData([np.inf, 0.5]), "HeadDataError",
     "HeadData: weights must be finite, got inf at query 0, key 0."),
    ("weights: negative infinite", lambda gb: gb.HeadData([-np.inf, 0.5]),
     "HeadDataError",
     "HeadData: weights must be finite, got -inf at query 0, key 0."),
    ("weights: negative", lambda gb: gb.HeadData([0.5, -0.25]), "HeadDataError",
     "HeadData: weights must be non-negative, got -0.25 at query 0, key 1."),
    ("weights: least negative", lambda gb: gb.HeadData([0.5, -5e-324]), "HeadDataError",
     "HeadData: weights must be non-negative, got -5e-324 at query 0, key 1."),
    ("weights: all zero", lambda gb: gb.HeadData([0.0, 0.0]), "HeadDataError",
     ("HeadData: weights must have mass on a visible key, got none at query 0 (2 "
      "visible keys: a fully masked or padded row).")),
    ("weights: additive mask", lambda gb: gb.HeadData([0.0, -1e9]), "HeadDataError",
     ("HeadData: weights must be non-negative, got -1000000000.0 at query 0, key "
      "1.")),
    ("weights: on a hidden key",
     lambda gb: gb.HeadData([0.5, 0.5], visible=[True, False]), "HeadDataError",
     "HeadData: weights must be 0 on hidden keys, got 0.5 at query 0, key 1."),
    ("weights: NaN on a hidden key",
     lambda gb: gb.HeadData([0.5, np.nan], visible=[True, False]), "HeadDataError",
     "HeadData: weights must be 0 on hidden keys, got nan at query 0, key 1."),
    ("weights: every row bad",
     lambda gb: gb.HeadData([[np.nan, 1.0], [0.0, 0.0]], visible="all"),
     "HeadDataError",
     ("HeadData: weights must be finite, got nan at query 0, key 0 (and 1 more "
      "rows).")),
    ("weights: float8", lambda gb: gb.HeadData(torch.ones(2).to(torch.float8_e5m2)),
     TypeError,
     f"HeadData: weights {KINDS} torch.float8_e5m2."),
    ("weights: bits without their name",
     lambda gb: gb.HeadData(BITS[0], BITS[1], dtype="float16"), TypeError,
     ('HeadData: dtype must be "bfloat16" with uint16 arrays, or None, got '
      "dtype='float16' with weights of uint16.")),
    ("weights: floats as bits", lambda gb: gb.HeadData([0.5, 0.5], dtype="bfloat16"),
     TypeError,
     ('HeadData: dtype must be "bfloat16" with uint16 arrays, or None, got '
      "dtype='bfloat16' with weights of float64.")),
    ("weights: ragged bits", lambda gb: gb.HeadData([[1], [1, 2]], dtype="bfloat16"),
     "HeadDataError",
     "HeadData: weights must be one rectangular array, got a ragged list."),
    ("weights: bits of NaN",
     lambda gb: gb.HeadData(np.array([0x7FC0, 1], dtype=np.uint16), dtype="bfloat16"),
     "HeadDataError",
     "HeadData: weights must be finite, got nan at query 0, key 0."),
    ("values: a word", lambda gb: gb.HeadData([0.5, 0.5], "ab"), TypeError,
     f"HeadData: values {KINDS} <U2."),
    ("values: complex", lambda gb: gb.HeadData([0.5, 0.5], [[1j], [1]]), TypeError,
     f"HeadData: values {KINDS} complex128."),
    ("values: a vector", lambda gb: gb.HeadData([0.5, 0.5], [1.0, 2.0]),
     "HeadDataError",
     "HeadData: values must have shape (2, d_head) for 2 keys, got shape (2,)."),
    ("values: one key too few", lambda gb: gb.HeadData([0.5, 0.5], [[1.0]]),
     "HeadDataError",
     "HeadData: values must have shape (2, d_head) for 2 keys, got shape (1, 1)."),
    ("values: one key too many", lambda gb: gb.HeadData([0.5, 0.5], np.ones((3, 1))),
     "HeadDataError",
     "HeadData: values must have shape (2, d_head) for 2 keys, got shape (3, 1)."),
    ("values: transposed", lambda gb: gb.HeadData([0.5, 0.5], np.ones((1, 2))),
     "HeadDataError",
     "HeadData: values must have shape (2, d_head) for 2 keys, got shape (1, 2)."),
    ("values: of all heads", lambda gb: gb.HeadData([0.5, 0.5], np.ones((1, 2, 3))),
     "HeadDataError",
     ("HeadData: values must have shape (2, d_head) for 2 keys, got shape (1, 2, "
      "3).")),
    ("values: no width", lambda gb: gb.HeadData([0.5, 0.5], np.ones((2, 0))),
     "HeadDataError",
     "HeadData: values must have shape (2, d_head) for 2 keys, got shape (2, 0)."),
    ("values: NaN", lambda gb: gb.HeadData([0.5, 0.5], [[1.0], [np.nan]]),
     "HeadDataError",
     "HeadData: values must be finite, got NaN or infinity at key 1."),
    ("values: infinite", lambda gb: gb.HeadData([0.5, 0.5], [[-np.inf], [1.0]]),
     "HeadDataError",
     "HeadData: values must be finite, got NaN or infinity at key 0."),
    ("values: ragged", lambda gb: gb.HeadData([0.5, 0.5], [[1.0], [1.0, 2.0]]),
     "HeadDataError",
     "HeadData: values must be one rectangular array, got a ragged list."),
    ("values: an integer above 2^53",
     lambda gb: gb.HeadData([0.5, 0.5], [[2**60 + 1], [1]]), "HeadDataError",
     ("HeadData: values must be exact as float64, got the integer "
      "1152921504606846977 > 2**53.")),
    ("values: a tuple of layers",
     lambda gb: gb.HeadData([0.5, 0.5], (np.ones((2, 1)),) * 2), TypeError,
     ("HeadData: values must be one array, got a tuple of arrays of shape (2, 1). "
      f"{LAYERS} values[layer][batch, head].")),
    ("values: masked",
     lambda gb: gb.HeadData([0.5, 0.5], np.ma.masked_equal([[1.0], [2.0]], 2.0)),
     TypeError,
     ("HeadData: values must be a plain array, got a masked array. Fill it, and "
      "pass the mask as visible.")),
    ("visible: missing", lambda gb: gb.HeadData(np.ones((2, 2))), "HeadDataError",
     ('HeadData: visible must be given for 2 queries, got None. Pass "causal", '
      '"all" or a bool array: hidden keys are no candidates.')),
    ("visible: another word", lambda gb: gb.HeadData(W, visible="none"),
     "HeadDataError",
     "HeadData: visible must be \"causal\", \"all\" or a bool array, got 'none'."),
    ("visible: integers", lambda gb: gb.HeadData(W, visible=[1, 1, 1, 0]), TypeError,
     ("HeadData: visible must be a bool array, got dtype int64. An additive mask "
      "becomes one by comparing: mask == 0.")),
    ("visible: additive", lambda gb: gb.HeadData(W, visible=[0.0, 0.0, 0.0, -np.inf]),
     TypeError,
     ("HeadData: visible must be a bool array, got dtype float64. An additive "
      "mask becomes one by comparing: mask == 0.")),
    ("visible: too short", lambda gb: gb.HeadData(W, visible=[True]), "HeadDataError",
     "HeadData: visible must have the shape of weights (4,), got shape (1,)."),
    ("visible: too many axes",
     lambda gb: gb.HeadData(W, visible=np.ones((1, 1, 4), dtype=bool)),
     "HeadDataError",
     "HeadData: visible must have the shape of weights (4,), got shape (1, 1, 4)."),
    ("visible: ragged", lambda gb: gb.HeadData(W, visible=[[True], [True, False]]),
     "HeadDataError",
     "HeadData: visible must be one rectangular array, got a ragged list."),
    ("visible: empty", lambda gb: gb.HeadData(W, visible=[]), TypeError,
     ("HeadData: visible must be a bool array, got dtype float64. An additive "
      "mask becomes one by comparing: mask == 0.")),
    ("visible: nothing seen",
     lambda gb: gb.HeadData([0.0, 0.0], visible=[False, False]), "HeadDataError",
     ("HeadData: weights must have mass on a visible key, got none at query 0 (0 "
      "visible keys: a fully masked or padded row).")),
    ("visible: masked",
     lambda gb: gb.HeadData(W, visible=np.ma.array([True] * 4, mask=[0, 0, 0, 1])),
     TypeError,
     ("HeadData: visible must be a plain array, got a masked array. Fill it, and "
      "pass the mask as visible.")),
    ("positions: decimals", lambda gb: gb.HeadData(W, query_positions=[1.0]), TypeError,
     "HeadData: query_positions must be integers, got dtype float64."),
    ("positions: words", lambda gb: gb.HeadData(W, query_positions=["3"]), TypeError,
     "HeadData: query_positions must be integers, got dtype <U1."),
    ("positions: truth values", lambda gb: gb.HeadData(W, query_positions=[True]),
     TypeError,
     "HeadData: query_positions must be integers, got dtype bool."),
    ("positions: too many", lambda gb: gb.HeadData(W, query_positions=[2, 3]),
     "HeadDataError",
     "HeadData: query_positions must have shape (1,), got shape (2,)."),
    ("positions: a number", lambda gb: gb.HeadData(W, query_positions=3),
     "HeadDataError",
     "HeadData: query_positions must have shape (1,), got shape ()."),
    ("positions: negative", lambda gb: gb.HeadData(W, query_positions=[-1]),
     "HeadDataError",
     "HeadData: query_positions must be non-negative and below 2**62, got -1."),
    ("positions: beyond int64", lambda gb: gb.HeadData(W, query_positions=[2**63]),
     "HeadDataError",
     ("HeadData: query_positions must be non-negative and below 2**62, got "
      "9223372036854775808.")),
    ("positions: huge", lambda gb: gb.HeadData(W, query_positions=[10**30]), TypeError,
     "HeadData: query_positions must be integers, got dtype object."),
    ("positions: ragged", lambda gb: gb.HeadData(W, query_positions=[[1], [1, 2]]),
     "HeadDataError",
     "HeadData: query_positions must be one rectangular array, got a ragged list."),
    ("sink: too large", lambda gb: gb.HeadData(W, sink=4), "HeadDataError",
     "HeadData: sink must lie between 0 and 3 (4 keys), got sink=4."),
    ("sink: negative", lambda gb: gb.HeadData(W, sink=-1), "HeadDataError",
     "HeadData: sink must lie between 0 and 3 (4 keys), got sink=-1."),
    ("sink: huge", lambda gb: gb.HeadData(W, sink=10**30), "HeadDataError",
     ("HeadData: sink must lie between 0 and 3 (4 keys), got "
      "sink=1000000000000000000000000000000.")),
    ("sink: a truth value", lambda gb: gb.HeadData(W, sink=True), TypeError,
     "HeadData: sink must be a key index or None, got sink=True."),
    ("sink: a decimal", lambda gb: gb.HeadData(W, sink=0.0), TypeError,
     "HeadData: sink must be a key index or None, got sink=0.0."),
    ("sink: a word", lambda gb: gb.HeadData(W, sink="0"), TypeError,
     "HeadData: sink must be a key index or None, got sink='0'."),
    ("sink: a list", lambda gb: gb.HeadData(W, sink=[0]), TypeError,
     "HeadData: sink must be a key index or None, got sink=[0]."),
    ("meta: a set in it", lambda gb: gb.HeadData(W, meta={"a": {1}}), "HeadDataError",
     ("HeadData: meta must be JSON data, got {'a': {1}} (Object of type set is "
      "not JSON serializable).")),
    ("meta: NaN in it", lambda gb: gb.HeadData(W, meta={"a": np.nan}), "HeadDataError",
     ("HeadData: meta must be JSON data, got {'a': nan} (Out of range float "
      "values are not JSON compliant).")),
    ("meta: an array in it", lambda gb: gb.HeadData(W, meta={"a": np.ones(2)}),
     "HeadDataError",
     ("HeadData: meta must be JSON data, got {'a': array([1., 1.])} (Object of "
      "type ndarray is not JSON serializable).")),
    ("meta: a number", lambda gb: gb.HeadData(W, meta=3), "HeadDataError",
     "HeadData: meta must be JSON data, got 3 ('int' object is not iterable)."),
    ("meta: nested without end", lambda gb: gb.HeadData(W, meta=deep(100_000)),
     "HeadDataError",
     "HeadData: meta must be JSON data, got lists or mappings nested too deep."),
    ("meta: in itself", lambda gb: gb.HeadData(W, meta=LOOP), "HeadDataError",
     ("HeadData: meta must be JSON data, got {'a': {...}} (Circular reference "
      "detected).")),
    # Layers
    ("split: weights of one head",
     lambda gb: gb.split_heads(np.ones(3), np.ones((1, 3, 1))), "HeadDataError",
     ("split_heads: weights must have shape (n_heads, n_query, n_key) or "
      "(n_heads, n_key), got shape (3,).")),
    ("split: weights of a batch",
     lambda gb: gb.split_heads(np.ones((1, 2, 3, 3)), np.ones((1, 3, 1))),
     "HeadDataError",
     ("split_heads: weights must have shape (n_heads, n_query, n_key) or "
      "(n_heads, n_key), got shape (1, 2, 3, 3). Axis 0 (length 1) looks like a "
      "batch axis: pass weights[b] for one batch element b.")),
    ("split: values of one head",
     lambda gb: gb.split_heads(np.ones((2, 3)), np.ones((3, 1))), "HeadDataError",
     ("split_heads: values must have shape (n_kv_heads, n_key, d_head), got shape "
      "(3, 1).")),
    ("split: values of a batch",
     lambda gb: gb.split_heads(np.ones((2, 3)), np.ones((1, 1, 3, 1))),
     "HeadDataError",
     ("split_heads: values must have shape (n_kv_heads, n_key, d_head), got shape "
      "(1, 1, 3, 1). Axis 0 (length 1) looks like a batch axis: pass values[b] "
      "for one batch element b.")),
    ("split: KV heads do not divide",
     lambda gb: gb.split_heads(np.ones((3, 3)), np.ones((2, 3, 1))), "HeadDataError",
     ("split_heads: the number of KV heads must divide the number of heads, got 3 "
      "heads and 2 KV heads.")),
    ("split: no KV heads",
     lambda gb: gb.split_heads(np.ones((3, 3)), np.ones((0, 3, 1))), "HeadDataError",
     ("split_heads: the number of KV heads must divide the number of heads, got 3 "
      "heads and 0 KV heads.")),
    ("split: no values", lambda gb: gb.split_heads(np.ones((2, 3)), None), TypeError,
     f"split_heads: values {KINDS} object."),
    ("split: a tuple of layers",
     lambda gb: gb.split_heads((np.ones((2, 3)),) * 2, np.ones((1, 3, 1))), TypeError,
     ("split_heads: weights must be one array, got a tuple of arrays of shape (2, "
      f"3). {LAYERS} weights[layer][batch, head].")),
    ("split: values of other keys",
     lambda gb: gb.split_heads(np.ones((2, 3)), np.ones((1, 4, 1))), "HeadDataError",
     "HeadData: values must have shape (3, d_head) for 3 keys, got shape (4, 1)."),
    ("split: a mask is missing",
     lambda gb: gb.split_heads(np.ones((2, 3, 3)), np.ones((1, 3, 1))),
     "HeadDataError",
     ('HeadData: visible must be given for 3 queries, got None. Pass "causal", '
      '"all" or a bool array: hidden keys are no candidates.')),
    ("split: ragged",
     lambda gb: gb.split_heads([[1.0], [1.0, 2.0]], np.ones((1, 2, 1))),
     "HeadDataError",
     "split_heads: weights must be one rectangular array, got a ragged list."),
    # Arguments
    ("measure: no head", lambda gb: gb.measure(W, 1), TypeError,
     "measure: head must be a HeadData, got list."),
    ("measure: a path", lambda gb: gb.measure("good.npz", 1), TypeError,
     "measure: head must be a HeadData, got str."),
    ("measure: weights only", lambda gb: gb.measure(gb.HeadData(W), 1), "HeadDataError",
     f"measure: {NO_VALUES}"),
    ("measure: n of 0", lambda gb: gb.measure(head(gb), 0), "ArgumentError",
     ("measure: n must lie between 1 and 3 (4 candidates), got n=0. Select at "
      "least one token.")),
    ("measure: negative n", lambda gb: gb.measure(head(gb), -1), "ArgumentError",
     ("measure: n must lie between 1 and 3 (4 candidates), got n=-1. Select at "
      "least one token.")),
    ("measure: n of all", lambda gb: gb.measure(head(gb), 4), "ArgumentError",
     ("measure: n must lie between 1 and 3 (4 candidates), got n=4. No token "
      "would be left unselected.")),
    ("measure: huge n", lambda gb: gb.measure(head(gb), 10**30), "ArgumentError",
     ("measure: n must lie between 1 and 3 (4 candidates), got "
      "n=1000000000000000000000000000000. No token would be left unselected.")),
    ("measure: n a decimal", lambda gb: gb.measure(head(gb), 1.0), TypeError,
     "measure: n must be an int, got n=1.0."),
    ("measure: n a truth value", lambda gb: gb.measure(head(gb), True), TypeError,
     "measure: n must be an int, got n=True."),
    ("measure: n a word", lambda gb: gb.measure(head(gb), "1"), TypeError,
     "measure: n must be an int, got n='1'."),
    ("measure: n several", lambda gb: gb.measure(head(gb), [1, 2]), TypeError,
     "measure: n must be an int, got n=[1, 2]."),
    ("measure: n none", lambda gb: gb.measure(head(gb), None), TypeError,
     "measure: n must be an int, got n=None."),
    ("measure: one candidate", lambda gb: gb.measure(gb.HeadData([1.0], [[1.0]]), 1),
     "ArgumentError",
     "measure: at least 2 candidates are needed to select from, got 1 at query 0."),
    ("measure: query too large", lambda gb: gb.measure(head(gb), 1, query=1),
     "ArgumentError",
     "measure: query must lie between -1 and 0, got query=1."),
    ("measure: query too small", lambda gb: gb.measure(head(gb), 1, query=-2),
     "ArgumentError",
     "measure: query must lie between -1 and 0, got query=-2."),
    ("measure: query a word", lambda gb: gb.measure(head(gb), 1, query="last"),
     TypeError,
     "measure: query must be an int, got query='last'."),
    ("measure: query a truth value", lambda gb: gb.measure(head(gb), 1, query=False),
     TypeError,
     "measure: query must be an int, got query=False."),
    ("measure: a row with a problem", lambda gb: gb.measure(half_bad(gb), 1),
     "HeadDataError",
     "measure: weights must be finite, got nan at query 1, key 0."),
    ("measure: another ranking", lambda gb: gb.measure(head(gb), 1, ranking="weights"),
     "ArgumentError",
     ('measure: ranking must be "weight", "contribution" or an array of scores, '
      "got ranking='weights'.")),
    ("measure: no ranking", lambda gb: gb.measure(head(gb), 1, ranking=None), TypeError,
     f"measure: ranking {KINDS} object."),
    ("measure: too few scores", lambda gb: gb.measure(head(gb), 1, ranking=[1, 2, 3]),
     "ArgumentError",
     "measure: ranking must be scores of shape (4,), one a key, got shape (3,)."),
    ("measure: scores of two rows",
     lambda gb: gb.measure(head(gb), 1, ranking=np.ones((2, 4))), "ArgumentError",
     "measure: ranking must be scores of shape (4,), one a key, got shape (2, 4)."),
    ("measure: a score of NaN",
     lambda gb: gb.measure(head(gb), 1, ranking=[1, 2, np.nan, 0]), "ArgumentError",
     "measure: ranking must be finite, got nan at key 2."),
    ("measure: an infinite score",
     lambda gb: gb.measure(head(gb), 1, ranking=[1, 2, np.inf, 0]), "ArgumentError",
     "measure: ranking must be finite, got inf at key 2."),
    ("measure: complex scores",
     lambda gb: gb.measure(head(gb), 1, ranking=[1j, 2, 3, 4]), TypeError,
     f"measure: ranking {KINDS} complex128."),
    ("measure: scores above 2^53",
     lambda gb: gb.measure(head(gb), 1, ranking=[2**53 + 1, 1, 2, 3]), "HeadDataError",
     ("measure: ranking must be exact as float64, got the integer "
      "9007199254740993 > 2**53.")),
    ("measure: ragged scores",
     lambda gb: gb.measure(head(gb), 1, ranking=[[1], [1, 2]]), "HeadDataError",
     "measure: ranking must be one rectangular array, got a ragged list."),
    ("measure: another policy", lambda gb: gb.measure(head(gb), 1, sink_policy="none"),
     "ArgumentError",
     ("measure: sink_policy must be one of keep, drop, compete, got "
      "sink_policy='none'.")),
    ("measure: a list of policies",
     lambda gb: gb.measure(head(gb), 1, sink_policy=["keep"]), "ArgumentError",
     ("measure: sink_policy must be one of keep, drop, compete, got "
      "sink_policy=['keep'].")),
    ("measure: another distance", lambda gb: gb.measure(head(gb), 1, distance="l1"),
     "ArgumentError",
     "measure: distance must be \"euclidean\" or \"cosine\", got distance='l1'."),
    ("rank: no head", lambda gb: gb.rank(None), TypeError,
     "rank: head must be a HeadData, got NoneType."),
    ("rank: contribution without values",
     lambda gb: gb.rank(gb.HeadData(W), ranking="contribution"), "HeadDataError",
     f"rank: {NO_VALUES}"),
    ("rank: too many selected", lambda gb: gb.rank(head(gb)).select(9), "ArgumentError",
     ("select: n must lie between 1 and 3 (4 candidates), got n=9. No token would "
      "be left unselected.")),
    ("certify: no head", lambda gb: gb.certify(None), TypeError,
     "certify: head must be a HeadData, got NoneType."),
    ("certify: weights only", lambda gb: gb.certify(gb.HeadData(W)), "HeadDataError",
     f"certify: {NO_VALUES}"),
    ("certify: too few candidates",
     lambda gb: gb.certify(gb.HeadData([0.5, 0.5], [[1.0], [2.0]])), "ArgumentError",
     ("certify: at least 3 candidates are needed for the default n, got 2. Pass "
      "n=1 for 2 candidates.")),
    ("certify: no n", lambda gb: gb.certify(head(gb), []), "ArgumentError",
     "certify: n must hold different numbers, at least one, got n=[]."),
    ("certify: n twice", lambda gb: gb.certify(head(gb), [1, 1]), "ArgumentError",
     "certify: n must hold different numbers, at least one, got n=[1, 1]."),
    ("certify: n a word", lambda gb: gb.certify(head(gb), "12"), TypeError,
     "certify: n must be an int, got n='1'."),
    ("certify: n a list of lists", lambda gb: gb.certify(head(gb), [[1]]), TypeError,
     "certify: n must be an int, got n=[1]."),
    ("certify: n with a decimal", lambda gb: gb.certify(head(gb), [1, 2.0]), TypeError,
     "certify: n must be an int, got n=2.0."),
    ("certify: n out of range", lambda gb: gb.certify(head(gb), [1, 4]),
     "ArgumentError",
     ("certify: n must lie between 1 and 3 (4 candidates), got n=4. No token "
      "would be left unselected.")),
    ("certify: another regime", lambda gb: gb.certify(head(gb), 1, regime="cell"),
     "ArgumentError",
     ("certify: regime must be one of cells, pairwise, pairwise-roles, "
      "pairwise-roles-norms, inversions or a fitted regime, got regime='cell'.")),
    ("certify: a regime of its own",
     lambda gb: gb.certify(head(gb), 1, regime=gb.InversionRegime(1, 0)), TypeError,
     ("certify: regime must be a name, a CellRegime or a PairwiseRegime, got "
      "InversionRegime.")),
    ("certify: no regime", lambda gb: gb.certify(head(gb), 1, regime=None), TypeError,
     ("certify: regime must be a name, a CellRegime or a PairwiseRegime, got "
      "NoneType.")),
    ("certify: n of another regime",
     lambda gb: gb.certify(head(gb), 2, regime=gb.CellRegime.fit(head(gb), 1)),
     "ArgumentError",
     "certify: n must be the regime's own n=1, got n=[2]."),
    ("certify: a regime that does not hold",
     lambda gb: gb.certify(head(gb), regime=cells(gb, (0, 1), (1, 4))),
     "AssumptionError",
     ("CellRegime: norm of cell [0, 1) must be at least that of its tokens, got 0 "
      "against 1 at key 0.")),
    ("certify: too few cells", lambda gb: gb.certify(head(gb), 1, resolution=1),
     "ArgumentError",
     ("CellRegime: resolution must be at least 2 (selected, unselected and the "
      "sink are cells of their own), got resolution=1.")),
    ("certify: cells a decimal", lambda gb: gb.certify(head(gb), 1, resolution=9.0),
     TypeError,
     "CellRegime: resolution must be an int, got resolution=9.0."),
    ("certify: an overflow left open",
     lambda gb: gb.certify(huge(gb), 1, settle_doubt=False), "ArgumentError",
     ("CellRegime: numbers must be finite in float64 where doubt is not settled, "
      "got an overflow. Use settle_doubt=True.")),
    ("certify_all: no heads", lambda gb: gb.certify_all([]), "ArgumentError",
     "CertificateSet: certificates must not be empty."),
    ("certify_all: a number", lambda gb: gb.certify_all(3), TypeError,
     "certify_all: heads must be several, got int."),
    ("certify_all: a mapping of heads", lambda gb: gb.certify_all({(0, 0): head(gb)}),
     TypeError,
     "certify: head must be a HeadData, got tuple."),
    ("certify_all: one without values",
     lambda gb: gb.certify_all([head(gb), gb.HeadData(W)]), "HeadDataError",
     f"certify: {NO_VALUES}"),
    ("classify: no head", lambda gb: gb.classify(W), TypeError,
     "classify: head must be a HeadData, got list."),
    ("classify: weights only", lambda gb: gb.classify(gb.HeadData(W)), "HeadDataError",
     f"classify: {NO_VALUES}"),
    ("classify: a negative position", lambda gb: gb.classify(head(gb), first_query=-1),
     "ArgumentError",
     ("classify: first_query must be non-negative, got first_query=-1. It is a "
      "position among the keys.")),
    ("classify: a decimal position", lambda gb: gb.classify(head(gb), first_query=0.5),
     TypeError,
     "classify: first_query must be an int, got first_query=0.5."),
    ("find_sink: no head", lambda gb: gb.find_sink(W), TypeError,
     "find_sink: head must be a HeadData, got list."),
    ("find_sink: a query alone",
     lambda gb: gb.find_sink(gb.HeadData(np.eye(2), visible=np.eye(2, dtype=bool))),
     "HeadDataError",
     ("find_sink: head must have a usable query that sees another position's key, "
      "got none. Every query sees only itself.")),
    ("sink_geometry: no head", lambda gb: gb.sink_geometry(W), TypeError,
     "sink_geometry: head must be a HeadData, got list."),
    ("sink_geometry: weights only", lambda gb: gb.sink_geometry(gb.HeadData(W)),
     "HeadDataError",
     f"sink_geometry: {NO_VALUES}"),
    ("sink_geometry: no sink",
     lambda gb: gb.sink_geometry(gb.HeadData(W, V, sink=None)), "HeadDataError",
     ("sink_geometry: sink must be a key index, got sink=None and a head without "
      "a sink. Pass one, such as find_sink(head).")),
    ("sink_geometry: sink too large", lambda gb: gb.sink_geometry(head(gb), sink=4),
     "ArgumentError",
     "sink_geometry: sink must lie between 0 and 3 (4 keys), got sink=4."),
    ("sink_geometry: sink a word", lambda gb: gb.sink_geometry(head(gb), sink="0"),
     TypeError,
     "sink_geometry: sink must be an int, got sink='0'."),
    ("sink_geometry: a hidden sink", lambda gb: gb.sink_geometry(hidden_sink(gb)),
     "HeadDataError",
     ("sink_geometry: sink must be visible to some query, got sink=0, hidden from "
      "all 1.")),
    ("bounds: n of 0", lambda gb: gb.inversion_bounds(0, 1, 0), "ArgumentError",
     "inversion_bounds: n must be at least 1, got n=0."),
    ("bounds: nothing unselected", lambda gb: gb.inversion_bounds(1, 0, 0),
     "ArgumentError",
     "inversion_bounds: n_unselected must be at least 1, got n_unselected=0."),
    ("bounds: negative inversions", lambda gb: gb.inversion_bounds(1, 1, -1),
     "ArgumentError",
     "inversion_bounds: inversions must be at least 0, got inversions=-1."),
    ("bounds: too many inversions", lambda gb: gb.inversion_bounds(2, 3, 7),
     "ArgumentError",
     "inversion_bounds: inversions must be at most 6, got 7."),
    ("bounds: huge inversions", lambda gb: gb.inversion_bounds(2, 3, 10**30),
     "ArgumentError",
     ("inversion_bounds: inversions must be at most 6, got "
      "1000000000000000000000000000000.")),
    ("bounds: a decimal", lambda gb: gb.inversion_bounds(2, 3, 1.0), TypeError,
     "inversion_bounds: inversions must be an int, got inversions=1.0."),
    ("bounds: a truth value", lambda gb: gb.inversion_bounds(True, 3, 1), TypeError,
     "inversion_bounds: n must be an int, got n=True."),
    ("bounds: NaN", lambda gb: gb.inversion_bounds(2, 3, np.nan), TypeError,
     "inversion_bounds: inversions must be an int, got inversions=nan."),
    ("random_scores: no keys", lambda gb: gb.random_scores(0, 0), "ArgumentError",
     "random_scores: n_key must be at least 1, got n_key=0."),
    ("random_scores: negative keys", lambda gb: gb.random_scores(-3, 0),
     "ArgumentError",
     "random_scores: n_key must be at least 1, got n_key=-3."),
    ("random_scores: keys a decimal", lambda gb: gb.random_scores(3.0, 0), TypeError,
     "random_scores: n_key must be an int, got n_key=3.0."),
    ("random_scores: a negative seed", lambda gb: gb.random_scores(3, -1),
     "ArgumentError",
     ("random_scores: seed must be a non-negative int or a sequence of them, got "
      "seed=-1.")),
    ("random_scores: a seed in words", lambda gb: gb.random_scores(3, "seed"),
     "ArgumentError",
     ("random_scores: seed must be a non-negative int or a sequence of them, got "
      "seed='seed'.")),
    # Regimes
    ("cells: n of all", lambda gb: gb.CellRegime.fit(head(gb), 4), "ArgumentError",
     ("CellRegime: n must lie between 1 and 3 (4 candidates), got n=4. No token "
      "would be left unselected.")),
    ("cells: no head", lambda gb: gb.CellRegime.fit(None, 1), TypeError,
     "CellRegime: head must be a HeadData, got NoneType."),
    ("cells: another split", lambda gb: gb.CellRegime.fit(head(gb), 1, split="best"),
     "ArgumentError",
     "CellRegime: split must be \"fast\", \"optimal\" or cuts, got split='best'."),
    ("cells: cuts a number", lambda gb: gb.CellRegime.fit(head(gb), 1, split=3),
     TypeError,
     "CellRegime: split must hold integer cuts, got 3."),
    ("cells: cuts of decimals", lambda gb: gb.CellRegime.fit(head(gb), 1, split=[1.5]),
     TypeError,
     "CellRegime: split must hold integer cuts, got [1.5]."),
    ("cells: cuts out of range", lambda gb: gb.CellRegime.fit(head(gb), 1, split=[9]),
     "ArgumentError",
     "CellRegime: split must hold cuts from 1 to 3, got [9]."),
    ("cells: a negative cut", lambda gb: gb.CellRegime.fit(head(gb), 1, split=[-1]),
     "ArgumentError",
     "CellRegime: split must hold cuts from 1 to 3, got [-1]."),
    ("cells: too many selected for the best",
     lambda gb: gb.CellRegime.fit(ones(gb, 11), 9, split="optimal"), "ArgumentError",
     'CellRegime: n must be at most 8 for split="optimal", got n=9.'),
    ("cells: none", lambda gb: cells(gb).check(head(gb)), "AssumptionError",
     ("CellRegime: cells must cover the 4 candidates in order and keep the "
      "boundaries (0, 1, 4), got boundaries (0,).")),
    ("cells: they overlap", lambda gb: cells(gb, (0, 1), (0, 4)).check(head(gb)),
     "AssumptionError",
     ("CellRegime: cells must cover the 4 candidates in order and keep the "
      "boundaries (0, 1, 4), got boundaries (0, 1, 4).")),
    ("cells: both roles in one", lambda gb: cells(gb, (0, 4)).check(head(gb)),
     "AssumptionError",
     ("CellRegime: cells must cover the 4 candidates in order and keep the "
      "boundaries (0, 1, 4), got boundaries (0, 4).")),
    ("cells: n a decimal", lambda gb: gb.CellRegime(1.0, ()).check(head(gb)), TypeError,
     "CellRegime: n must be an int, got n=1.0."),
    ("cell: a norm of NaN", lambda gb: gb.Cell(0, 1, np.nan, 0), "ArgumentError",
     "Cell: norm must be a finite number, got nan."),
    ("cell: an infinite product", lambda gb: gb.Cell(0, 1, 0, -np.inf), "ArgumentError",
     "Cell: dot must be a finite number, got -inf."),
    ("cell: a norm in words", lambda gb: gb.Cell(0, 1, "one", 0), "ArgumentError",
     "Cell: norm must be a finite number, got 'one'."),
    ("cell: no norm", lambda gb: gb.Cell(0, 1, None, 0), "ArgumentError",
     "Cell: norm must be a finite number, got None."),
    ("pairwise: no head", lambda gb: gb.PairwiseRegime.fit(W), TypeError,
     "PairwiseRegime: head must be a HeadData, got list."),
    ("pairwise: exact norms without n",
     lambda gb: gb.PairwiseRegime.fit(head(gb), exact_norms=True), "ArgumentError",
     "PairwiseRegime: exact_norms must come with n, got n=None."),
    ("pairwise: n of 0", lambda gb: gb.PairwiseRegime.fit(head(gb), n=0),
     "ArgumentError",
     ("PairwiseRegime: n must lie between 1 and 3 (4 candidates), got n=0. Select "
      "at least one token.")),
    ("pairwise: n a word", lambda gb: gb.PairwiseRegime.fit(head(gb), n="2"), TypeError,
     "PairwiseRegime: n must be an int, got n='2'."),
    ("pairwise: weights only", lambda gb: gb.PairwiseRegime.fit(gb.HeadData(W), n=1),
     "HeadDataError",
     f"PairwiseRegime: {NO_VALUES}"),
    ("pairwise: another scope", lambda gb: pairwise(gb, scope="role"), "ArgumentError",
     ("PairwiseRegime: scope must be one of all, roles, roles-norms, got "
      "scope='role'.")),
    ("pairwise: n for all pairs", lambda gb: pairwise(gb, n=1), "ArgumentError",
     ("PairwiseRegime: n must be given for roles and only for them, got "
      "scope='all' with n=1.")),
    ("pairwise: no n for roles", lambda gb: pairwise(gb, scope="roles"),
     "ArgumentError",
     ("PairwiseRegime: n must be given for roles and only for them, got "
      "scope='roles' with n=None.")),
    ("pairwise: one norm", lambda gb: pairwise(gb, norms_selected=(1,)),
     "ArgumentError",
     "PairwiseRegime: norms_selected must be (least, greatest), got (1,)."),
    ("pairwise: a norm alone", lambda gb: pairwise(gb, norms_selected=1),
     "ArgumentError",
     "PairwiseRegime: norms_selected must be (least, greatest), got 1."),
    ("pairwise: a negative norm",
     lambda gb: pairwise(gb, norms_selected=(-1, 1), norms_unselected=(-1, 1)),
     "ArgumentError",
     "PairwiseRegime: norms must satisfy 0 <= least <= greatest, got -1 and 1."),
    ("pairwise: norms upside down", lambda gb: pairwise(gb, sink_norm=(2, 1)),
     "ArgumentError",
     "PairwiseRegime: norms must satisfy 0 <= least <= greatest, got 2 and 1."),
    ("pairwise: norms that differ by role",
     lambda gb: pairwise(gb, norms_selected=(1, 2)), "ArgumentError",
     "PairwiseRegime: norms of both roles must be equal for all pairs."),
    ("pairwise: a norm of NaN", lambda gb: pairwise(gb, sink_norm=(np.nan, 1)),
     "ArgumentError",
     "PairwiseRegime: sink_norm must be a finite number, got nan."),
    ("pairwise: a cosine of NaN", lambda gb: pairwise(gb, cosine_selected=np.nan),
     "ArgumentError",
     "PairwiseRegime: cosine_selected must be a finite number, got nan."),
    ("pairwise: an infinite cosine", lambda gb: pairwise(gb, sink_across=np.inf),
     "ArgumentError",
     "PairwiseRegime: sink_across must be a finite number, got inf."),
    ("pairwise: a cosine in words", lambda gb: pairwise(gb, cosine_across="right"),
     "ArgumentError",
     "PairwiseRegime: cosine_across must be a finite number, got 'right'."),
    ("pairwise: cosines upside down",
     lambda gb: pairwise(gb, cosine_selected=1, cosine_across=0), "ArgumentError",
     "PairwiseRegime: the least cosine must not exceed the greatest, got 1 > 0."),
    ("pairwise: a pull for all pairs", lambda gb: pairwise(gb, pull_across=1),
     "ArgumentError",
     "PairwiseRegime: pull_across must be None for all pairs."),
    ("pairwise: a token norm short", lambda gb: pairwise(gb, token_norms=((1, 2),)),
     "ArgumentError",
     "PairwiseRegime: token_norms of 1 must be (least, greatest), got [2]."),
    ("pairwise: token norms a number", lambda gb: pairwise(gb, token_norms=3),
     "ArgumentError",
     "PairwiseRegime: token_norms must hold (key, least, greatest), got 3."),
    ("pairwise: a token twice",
     lambda gb: pairwise(gb, "roles-norms", 1, token_norms=((1, 0, 1),) * 2),
     "ArgumentError",
     "PairwiseRegime: token_norms must name every key once."),
    ("pairwise: no norms for the head", lambda gb: pairwise(gb).check(head(gb)),
     "AssumptionError",
     ("PairwiseRegime: norms of every role present must be given, got none for "
      "key 0.")),
    ("pairwise: norms that do not hold", lambda gb: norms(gb, (1, 2)).check(head(gb)),
     "AssumptionError",
     "PairwiseRegime: the norm interval must hold at key 2, got 3 against 2."),
    ("isotropic: never", lambda gb: gb.IsotropicRegime(0), "ArgumentError",
     "IsotropicRegime: probability must lie strictly between 0 and 1, got 0."),
    ("isotropic: more than always", lambda gb: gb.IsotropicRegime(1.5), "ArgumentError",
     "IsotropicRegime: probability must lie strictly between 0 and 1, got 3/2."),
    ("isotropic: NaN", lambda gb: gb.IsotropicRegime(np.nan), "ArgumentError",
     "IsotropicRegime: probability must be a finite number, got nan."),
    ("isotropic: infinite", lambda gb: gb.IsotropicRegime(np.inf), "ArgumentError",
     "IsotropicRegime: probability must be a finite number, got inf."),
    ("isotropic: words", lambda gb: gb.IsotropicRegime("half"), "ArgumentError",
     "IsotropicRegime: probability must be a finite number, got 'half'."),
    ("isotropic: nothing", lambda gb: gb.IsotropicRegime(None), "ArgumentError",
     "IsotropicRegime: probability must be a finite number, got None."),
    ("isotropic: for certify",
     lambda gb: gb.certify(head(gb), 1, regime=gb.IsotropicRegime()), TypeError,
     ("certify: regime must be a name, a CellRegime or a PairwiseRegime, got "
      "IsotropicRegime.")),
    # Head files
    ("head file: missing", lambda gb: gb.HeadData.load("none.npz"), "HeadDataError",
     "HeadData: none.npz must be a file, got none there."),
    ("head file: a folder", lambda gb: gb.HeadData.load("folder.npz"), "HeadDataError",
     "HeadData: folder.npz must be a file, got none there."),
    ("head file: another ending", lambda gb: gb.HeadData.load("x.csv"), "HeadDataError",
     "HeadData: a head file must end in .npz or .safetensors, got 'x.csv'."),
    ("head file: no ending", lambda gb: gb.HeadData.load("x"), "HeadDataError",
     "HeadData: a head file must end in .npz or .safetensors, got 'x'."),
    ("head file: a null byte in its name", lambda gb: gb.HeadData.load("a\0b.npz"),
     "HeadDataError",
     "HeadData: a\0b.npz must be a file, got none there."),
    ("head file: a name too long", lambda gb: gb.HeadData.load("x" * 300 + ".npz"),
     OSError,
     ("[Errno 36] File name too long: "
      "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxx.npz'")),
    ("head file: saved under another ending", lambda gb: head(gb).save("x.csv"),
     "HeadDataError",
     "HeadData: a head file must end in .npz or .safetensors, got 'x.csv'."),
    ("head file: saved into no folder", lambda gb: head(gb).save("none/x.npz"), OSError,
     "[Errno 2] No such file or directory: 'none/x.npz'"),
    ("head file: saved over a folder", lambda gb: head(gb).save("folder.npz"), OSError,
     "[Errno 21] Is a directory: 'folder.npz'"),
    # Certificates
    ("certificate: missing", lambda gb: gb.Certificate.load("none.json"),
     "CertificateFormatError",
     ("Certificate: none.json must be a JSON file ([Errno 2] No such file or "
      "directory: 'none.json').")),
    ("certificate: a folder", lambda gb: gb.Certificate.load("folder"),
     "CertificateFormatError",
     ("Certificate: folder must be a JSON file ([Errno 21] Is a directory: "
      "'folder').")),
    ("certificate: a head", lambda gb: gb.Certificate.load("good.npz"),
     "CertificateFormatError",
     "Certificate: good.npz must be a JSON file (…)."),
    ("certificate: no path", lambda gb: gb.Certificate.load(None),
     "CertificateFormatError",
     ("Certificate: None must be a JSON file (expected str, bytes or os.PathLike "
      "object, not NoneType).")),
    ("certificate: a null byte in its name", lambda gb: gb.Certificate.load("a\0b"),
     "CertificateFormatError",
     "Certificate: a\0b must be a JSON file (embedded null byte)."),
    ("certificate: data that is no certificate",
     lambda gb: gb.Certificate.from_dict(3), "CertificateFormatError",
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None.")),
    ("certificate: endless data",
     lambda gb: gb.Certificate.from_dict({"format": deep(100_000)}),
     "CertificateFormatError",
     f"{MALFORMED} (RecursionError('…'))."),
    ("certificate: it cannot be shown",
     lambda gb: gb.Certificate.from_dict(json.loads(headed(query_position=None))),
     "CertificateFormatError",
     f"{MALFORMED} (KeyError('query_position'))."),
    ("certificate: saved into no folder",
     lambda gb: gb.certify(head(gb)).save("none/c.json"), OSError,
     "[Errno 2] No such file or directory: 'none/c.json'"),
    ("set: a certificate", lambda gb: gb.CertificateSet.load("good.json"),
     "CertificateFormatError",
     ("Certificate: format must be geobounds-certificates version 2, got "
      "'geobounds-certificate' version 2.")),
    ("set: no certificates at all", lambda gb: gb.CertificateSet([]), "ArgumentError",
     "CertificateSet: certificates must not be empty."),
    ("checker: no heads", lambda gb: gb.verify("good.json"), REFUSED,
     "head: none given"),
    ("checker: a number for a certificate", lambda gb: gb.verify(3, head(gb)), REFUSED,
     "certificate: not a JSON object"),
    ("checker: nothing", lambda gb: gb.verify(None, head(gb)), REFUSED,
     "certificate: not a JSON object"),
    ("checker: a null byte in its name", lambda gb: gb.verify("a\0b", head(gb)),
     REFUSED,
     "certificate: embedded null byte"),
    ("checker: a null byte in the head's name",
     lambda gb: gb.verify("good.json", "a\0b"), REFUSED,
     "head: a\0b is not a head file (embedded null byte)"),
    ("checker: a head that is a number", lambda gb: gb.verify("good.json", 3), REFUSED,
     "head: 3 is not a head file ('int' object has no attribute 'stored')"),
    ("checker: a head that is a certificate",
     lambda gb: gb.verify("good.json", "good.json"), REFUSED,
     "head: good.json is not a head file (a header longer than the file)"),
    ("checker: a certificate that is a head",
     lambda gb: gb.verify("good.npz", "good.npz"), REFUSED,
     "certificate: not JSON data (…)"),
    ("checker: another head",
     lambda gb: gb.verify("good.json", gb.HeadData(W, np.ones((4, 1)))), REFUSED,
     "head: not the head that was certified (its sha256 differs)"),
    ("checker: a damaged head", lambda gb: gb.verify("good.json", "truncated.npz"),
     REFUSED,
     "head: truncated.npz is not a head file (BadZipFile: File is not a zip file)"),
    ("checker: a head declared huge",
     lambda gb: gb.verify("good.json", "10-12-numbers-in-32-bytes.npz"), REFUSED,
     ("head: 10-12-numbers-in-32-bytes.npz is not a head file ([1000000000000] is "
      "no shape of an array)")),
    ("checker: a bomb for a head",
     lambda gb: gb.verify("good.json", "a-bomb-that-says-so.npz"), REFUSED,
     ("head: a-bomb-that-says-so.npz is not a head file (arrays are not read if "
      "compressed or given twice)")),
    ("checker: a head of weights only",
     lambda gb: gb.verify("good.json", gb.HeadData(W)), REFUSED,
     "head: it has no values"),
    ("checker: endless data",
     lambda gb: gb.verify({"format": deep(100_000)}, head(gb)), REFUSED,
     "certificate: not JSON data (…)"),
    ("checker: a huge version",
     lambda gb: gb.verify({"format": "x", "version": 10**5000}, head(gb)), REFUSED,
     "certificate: not JSON data (…)"),
    ("checker: data with a set in it", lambda gb: gb.verify({"format": {1}}, head(gb)),
     REFUSED,
     "certificate: not JSON data (…)"),
    ("checker: a certificate with NaN",
     lambda gb: gb.verify(certificate_of_nan(gb), head(gb)), REFUSED,
     "certificate: Out of range float values are not JSON compliant"),
    ("checker: a missing certificate", lambda gb: gb.verify("none.json", head(gb)),
     OSError,
     "[Errno 2] No such file or directory: 'none.json'"),
    ("checker: a folder for a certificate", lambda gb: gb.verify("folder", head(gb)),
     OSError,
     "[Errno 21] Is a directory: 'folder'"),
    ("checker: a missing head", lambda gb: gb.verify("good.json", "none.npz"), OSError,
     "[Errno 2] No such file or directory: 'none.npz'"),
    ("checker: a folder for a head", lambda gb: gb.verify("good.json", "folder.npz"),
     OSError,
     "[Errno 21] Is a directory: 'folder.npz'"),
]

# Head files by name and content; the reason in brackets, or the whole message.
HEAD_FILES = [
    ("npz: empty", lambda: b"", "BadZipFile: File is not a zip file"),
    ("npz: words", lambda: b"no archive", "BadZipFile: File is not a zip file"),
    ("npz: truncated at the end", lambda: archive(members())[:-30],
     "BadZipFile: File is not a zip file"),
    ("npz: truncated", lambda: archive(members())[:300],
     "BadZipFile: File is not a zip file"),
    ("npz: the beginning is missing", lambda: archive(members())[300:],
     "ValueError: negative seek value -300"),
    ("npz: an array under its name", lambda: npy(WEIGHTS),
     "BadZipFile: File is not a zip file"),
    ("npz: a byte flipped", lambda: flipped(archive(members()), 130),
     "BadZipFile: Bad CRC-32 for file 'header.npy'"),
    ("npz: no weights", lambda: archive(members(weights=None)), "no weights"),
    ("npz: no header", lambda: archive(members(header=None)), "no header"),
    ("npz: no members", lambda: archive({}), "no header"),
    ("npz: names with paths",
     lambda: archive({f"../{name}": x for name, x in members().items()}),
     "no header"),
    ("npz: absolute names",
     lambda: archive({f"/{name}": x for name, x in members().items()}),
     "no header"),
    ("npz: an array twice", lambda: archive([*members().items(), *members().items()]),
     "arrays are not read if compressed or given twice"),
    ("npz: another magic",
     lambda: archive(members(weights=npy(WEIGHTS, magic=b"\x93NUMPX\1\0"))),
     "no array"),
    ("npz: another version",
     lambda: archive(members(weights=npy(WEIGHTS, magic=b"\x93NUMPY\x09\0"))),
     "no array"),
    ("npz: an array of six bytes", lambda: archive(members(weights=b"\x93NUMPY")),
     "no array"),
    ("npz: an array of no bytes", lambda: archive(members(weights=b"")), "no array"),
    ("npz: a pickled array", lambda: archive(members(weights=pickled())),
     "arrays of '|O' do not form a head, nor do pickles"),
    ("npz: objects", lambda: archive(members(weights=npy(b"\x80", "|O", (1,)))),
     "arrays of '|O' do not form a head, nor do pickles"),
    ("npz: records",
     lambda: archive(members(weights=npy(b"\0" * 8, [("a", "<f8")], (1,)))),
     "the description of an array is not as numpy writes it"),
    ("npz: Fortran order",
     lambda: archive(members(weights=npy(WEIGHTS, shape=(1, 4), order="True"))),
     "columns before rows"),
    ("npz: big-endian",
     lambda: archive(members(weights=npy(b"\0" * 32, ">f8", (1, 4)))),
     "arrays of '>f8' do not form a head, nor do pickles"),
    ("npz: words in an array",
     lambda: archive(members(weights=npy(b"\0" * 32, "<U2", (1, 4)))),
     "arrays of '<U2' do not form a head, nor do pickles"),
    ("npz: complex", lambda: archive(members(weights=npy(b"\0" * 64, "<c16", (1, 4)))),
     "arrays of '<c16' do not form a head, nor do pickles"),
    ("npz: integers",
     lambda: archive(members(weights=npy((1, 0, 0, 0), "<i8", (1, 4)))),
     "HeadData: weights of FILE must be floats, got int64."),
    ("npz: 10^12 numbers in 32 bytes",
     lambda: archive(members(weights=npy(b"\0" * 32, "<f8", (10**12,)))),
     "[1000000000000] is no shape of an array"),
    ("npz: 10^6 rows in 32 bytes",
     lambda: archive(members(weights=npy(b"\0" * 32, "<f8", (10**6, 10**6)))),
     "32 bytes for an array of 8000000000000"),
    ("npz: 10^12 rows of nothing",
     lambda: archive(members(weights=npy(b"", "<f8", (10**12, 0)))),
     "[1000000000000, 0] is no shape of an array"),
    ("npz: more rows than an index holds",
     lambda: archive(members(weights=npy(b"", "<f8", (2**70, 0)))),
     "[1180591620717411303424, 0] is no shape of an array"),
    ("npz: a hundred axes",
     lambda: archive(members(weights=npy(WEIGHTS, shape=(1,) * 99 + (4,)))),
     "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  is no shape of an array"),
    ("npz: negative sizes",
     lambda: archive(members(weights=npy(WEIGHTS, shape=(-1, -4)))),
     "the description of an array is not as numpy writes it"),
    ("npz: no shape", lambda: archive(members(weights=npy(WEIGHTS, shape="four"))),
     "the description of an array is not as numpy writes it"),
    ("npz: code for a shape",
     lambda: archive(members(weights=npy(WEIGHTS, shape="__import__('os').getpid()"))),
     "the description of an array is not as numpy writes it"),
    ("npz: a bad escape for a shape",
     lambda: archive(members(weights=npy(WEIGHTS, shape="'\\d'"))),
     "the description of an array is not as numpy writes it"),
    ("npz: endless facts",
     lambda: archive(members(weights=npy(WEIGHTS, shape="(" + "1," * 4000 + ")"))),
     "the description of an array is too long"),
    ("npz: a byte too many",
     lambda: archive(members(weights=npy(WEIGHTS, shape=(1, 4)) + b"\0")),
     "33 bytes for an array of 32"),
    ("npz: three axes", lambda: archive(members(weights=npy(WEIGHTS, shape=(1, 1, 4)))),
     ("HeadData: weights must have shape (n_query, n_key) or (n_key,), got shape "
      "(1, 1, 4). Axis 0 (length 1) looks like a head axis: pass weights[h], or "
      "use split_heads.")),
    ("npz: values of other keys",
     lambda: archive(members(values=npy(VALUES, shape=(2, 2)))),
     "HeadData: values must have shape (4, d_head) for 4 keys, got shape (2, 2)."),
    ("npz: a mask of another shape",
     lambda: archive(members(visible=npy((True,) * 2, "|b1", (1, 2)))),
     "HeadData: visible must have the shape of weights (1, 4), got shape (1, 2)."),
    ("npz: a truth value of 2",
     lambda: archive(members(visible=npy(b"\1\1\1\2", "|b1", (1, 4)))),
     "a truth value is neither 0 nor 1"),
    ("npz: a mask of decimals",
     lambda: archive(members(visible=npy((1.0,) * 4, "<f8", (1, 4)))),
     ("HeadData: FILE must hold a head, got a field amiss (HeadData: visible must "
      "be a bool array, got dtype float64. An additive mask becomes one by "
      "comparing: mask == 0.).")),
    ("npz: nothing seen",
     lambda: archive(members(visible=npy((False,) * 4, "|b1", (1, 4)))),
     "HeadData: weights must be 0 on hidden keys, got 0.5 at query 0, key 0."),
    ("npz: a negative position",
     lambda: archive(members(query_positions=npy((-3,), "<i8"))),
     "HeadData: query_positions must be non-negative and below 2**62, got -3."),
    ("npz: positions in decimals",
     lambda: archive(members(query_positions=npy((3.0,)))),
     ("HeadData: FILE must hold a head, got a field amiss (HeadData: "
      "query_positions must be integers, got dtype float64.).")),
    ("npz: weights of NaN",
     lambda: archive(members(weights=npy((float("nan"),) * 4, shape=(1, 4)))),
     "HeadData: weights must be finite, got nan at query 0, key 0."),
    ("npz: a negative weight",
     lambda: archive(members(weights=npy((-1.0, 1, 1, 1), shape=(1, 4)))),
     "HeadData: weights must be non-negative, got -1.0 at query 0, key 0."),
    ("npz: infinite values",
     lambda: archive(members(values=npy((float("inf"),) * 4, shape=(4, 1)))),
     "HeadData: values must be finite, got NaN or infinity at key 0."),
    ("npz: encrypted", lambda: patched(8, 6, b"\1\0"),
     "RuntimeError: … is encrypted, …"),
    ("npz: unknown compression", lambda: patched(10, 8, b"\x63\0"),
     "arrays are not read if compressed or given twice"),
    ("npz: deflated", lambda: archive(members(), zipfile.ZIP_DEFLATED),
     "arrays are not read if compressed or given twice"),
    ("npz: bzip2", lambda: archive(members(), zipfile.ZIP_BZIP2),
     "arrays are not read if compressed or given twice"),
    ("npz: lzma", lambda: archive(members(), zipfile.ZIP_LZMA),
     "arrays are not read if compressed or given twice"),
    ("npz: a bomb that says so", lambda: bomb(),
     "arrays are not read if compressed or given twice"),
    ("npz: a bomb declared small", lambda: patched(24, 22, b"\x10\0\0\0", bomb()),
     "arrays are not read if compressed or given twice"),
    ("npz: a member declared huge", lambda: patched(20, 18, b"\xfe\xff\xff\x7f" * 2),
     "EOFError"),
    ("npz: a bomb for a header",
     lambda: archive(members(header=bomb_array()), zipfile.ZIP_DEFLATED),
     "arrays are not read if compressed or given twice"),
    ("npz: another checksum", lambda: patched(16, 14, b"abcd"),
     "BadZipFile: Bad CRC-32 for file 'weights.npy'"),
    ("npz: a member beyond the end", lambda: patched(42, None, b"\xff\xff\xff\x7f"),
     "BadZipFile: Truncated file header"),
    ("npz: two names for a member", lambda: patched(None, 30, b"\xff"),
     ("BadZipFile: File name in directory 'weights.npy' and header "
      "b'\\xffeights.npy' differ.")),
    ("npz: a directory declared huge",
     lambda: archive(members())[:-12] + b"\xff\xff\xff\x7f" + archive(members())[-8:],
     "BadZipFile: Bad offset for central directory"),
    ("npz: a header that ends", lambda: archive(members("{")),
     "header: not JSON data (…"),
    ("npz: a header that is a list", lambda: archive(members("[1, 2]")),
     "HeadData: FILE must have the format 'geobounds-head-1', got None."),
    ("npz: a header that is null", lambda: archive(members("null")),
     "HeadData: FILE must have the format 'geobounds-head-1', got None."),
    ("npz: a header that is a word", lambda: archive(members('"geobounds-head-1"')),
     "HeadData: FILE must have the format 'geobounds-head-1', got None."),
    ("npz: a header without fields", lambda: archive(members("{}")),
     "HeadData: FILE must have the format 'geobounds-head-1', got None."),
    ("npz: a header nested without end", lambda: archive(members("[" * 100_000)),
     "header: not JSON data (…"),
    ("npz: a header with a key twice",
     lambda: archive(members('{"format": 1, "format": "geobounds-head-1"}')),
     "header: not JSON data (a key stands twice)"),
    ("npz: a header with a huge integer",
     lambda: archive(members('{"sink": ' + "9" * 5000 + "}")),
     "header: not JSON data (…"),
    ("npz: another format", lambda: archive(members(header(format="geobounds-head-9"))),
     ("HeadData: FILE must have the format 'geobounds-head-1', got "
      "'geobounds-head-9'.")),
    ("npz: a format without end",
     lambda: archive(members(header(format="x" * 100_000))),
     ("HeadData: FILE must have the format 'geobounds-head-1', got "
      "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.")),
    ("npz: a sink in words", lambda: archive(members(header(sink="0"))),
     ("HeadData: FILE must hold a head, got a field amiss (HeadData: sink must be "
      "a key index or None, got sink='0'.).")),
    ("npz: a sink of NaN", lambda: archive(members(header(sink=float("nan")))),
     ("HeadData: FILE must hold a head, got a field amiss (HeadData: sink must be "
      "a key index or None, got sink=nan.).")),
    ("npz: a sink too large", lambda: archive(members(header(sink=4))),
     "HeadData: sink must lie between 0 and 3 (4 keys), got sink=4."),
    ("npz: a huge sink", lambda: archive(members(header(sink=10**30))),
     ("HeadData: sink must lie between 0 and 3 (4 keys), got "
      "sink=1000000000000000000000000000000.")),
    ("npz: a sink nested", lambda: archive(members(header(sink=deep(900)["a"]))),
     ("HeadData: FILE must hold a head, got a field amiss (HeadData: sink must be "
      "a key index or None, got sink={'a': {'a': {'a': {'a': {'a': {'a': {'a'.).")),
    ("npz: a meta that is a list", lambda: archive(members(header(meta=[1]))),
     "HeadData: meta must be JSON data, got [1] (…)."),
    ("npz: NaN in meta", lambda: archive(members(header(meta={"a": float("nan")}))),
     ("HeadData: meta must be JSON data, got {'a': nan} (Out of range float "
      "values are not JSON compliant).")),
    ("npz: too few dtypes", lambda: archive(members(header(dtypes=["float64"]))),
     ("HeadData: FILE must hold a head, got a field amiss (not enough values to "
      "unpack (expected 2, got 1)).")),
    ("npz: dtypes a number", lambda: archive(members(header(dtypes=3))),
     "TypeError: 'int' object is not iterable"),
    ("safetensors: empty", lambda: b"", "a header longer than the file"),
    ("safetensors: words", lambda: b"no tensors at all",
     "a header longer than the file"),
    ("safetensors: a header longer than the file", lambda: tensors(length=2**40),
     "a header longer than the file"),
    ("safetensors: the longest header", lambda: tensors(length=2**64 - 1),
     "a header longer than the file"),
    ("safetensors: a header of no bytes", lambda: tensors(length=0),
     "header: not JSON data (…"),
    ("safetensors: truncated", lambda: tensors()[:-1], "31 bytes for an array of 32"),
    ("safetensors: a truncated header", lambda: tensors()[:100],
     "a header longer than the file"),
    ("safetensors: a list", lambda: b"\2\0\0\0\0\0\0\0[]",
     "a header that is no JSON object"),
    ("safetensors: nested without end",
     lambda: struct.pack("<Q", 100_000) + b"[" * 100_000,
     "header: not JSON data (…"),
    ("safetensors: no header", lambda: tensors(__metadata__=None), "no header"),
    ("safetensors: a header that is a number",
     lambda: tensors(__metadata__={"header": 3}),
     "no header"),
    ("safetensors: no weights", lambda: tensors(weights=None), "no weights"),
    ("safetensors: negative offsets",
     lambda: tensors(weights={"data_offsets": [-32, 0]}),
     "an array outside the file"),
    ("safetensors: offsets upside down",
     lambda: tensors(weights={"data_offsets": [76, 44]}),
     "an array outside the file"),
    ("safetensors: offsets beyond the end",
     lambda: tensors(weights={"data_offsets": [10**9, 10**9 + 32]}),
     "0 bytes for an array of 32"),
    ("safetensors: huge offsets",
     lambda: tensors(weights={"data_offsets": [0, 10**30]}),
     "76 bytes for an array of 32"),
    ("safetensors: overlapping offsets",
     lambda: tensors(weights={"data_offsets": [8, 40]}),
     "arrays that overlap"),
    ("safetensors: offsets in decimals",
     lambda: tensors(weights={"data_offsets": [0.0, 32.0]}),
     "an array outside the file"),
    ("safetensors: one offset", lambda: tensors(weights={"data_offsets": [32]}),
     "ValueError: not enough values to unpack (expected 2, got 1)"),
    ("safetensors: an unknown type", lambda: tensors(weights={"dtype": "F128"}),
     "arrays of 'F128' do not form a head, nor do pickles"),
    ("safetensors: a type without end",
     lambda: tensors(weights={"dtype": "F" * 100_000}),
     ("arrays of 'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF do not form a head, nor "
      "do pickles")),
    ("safetensors: a type that is a list", lambda: tensors(weights={"dtype": ["F64"]}),
     "TypeError: unhashable type: 'list'"),
    ("safetensors: integers", lambda: tensors(weights={"dtype": "I64"}),
     "HeadData: weights of FILE must be floats, got int64."),
    ("safetensors: 10^12 numbers in 32 bytes",
     lambda: tensors(weights={"shape": [10**12]}),
     "[1000000000000] is no shape of an array"),
    ("safetensors: a shape of many huge numbers",
     lambda: tensors(weights={"shape": [10**4000] * 500}),
     "[100000000000000000000000000000000000000 is no shape of an array"),
    ("safetensors: a shape in words", lambda: tensors(weights={"shape": "four"}),
     "'four' is no shape of an array"),
    ("safetensors: a truth value for a size",
     lambda: tensors(weights={"shape": [True, 4]}),
     "[True, 4] is no shape of an array"),
    ("safetensors: a mapping for a shape", lambda: tensors(weights={"shape": {"4": 4}}),
     "{'4': 4} is no shape of an array"),
    ("safetensors: no shape", lambda: tensors(weights={"shape": None}),
     "None is no shape of an array"),
    ("safetensors: a header that is no UTF-8", lambda: b"\4\0\0\0\0\0\0\0\xff{}}",
     "header: not JSON data (…"),
    ("safetensors: entries cut off", lambda: tensors(query_positions=None)[:30],
     "a header longer than the file"),
]

# Certificates by name and content; the messages of Certificate.load (of its part behind
# the brackets where MALFORMED, None where it loads) and of verify.
CERTIFICATE_FILES = [
    ("empty", lambda: b"",
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("words", lambda: b"no JSON",
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("no text", lambda: b"\xff\xfe\x80",
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("UTF-16", lambda: GOOD.decode().encode("utf-16"),
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("a mark before it", lambda: b"\xef\xbb\xbf" + GOOD,
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("a list", lambda: b"[]",
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None."),
     "certificate: not a JSON object"),
    ("null", lambda: b"null",
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None."),
     "certificate: not a JSON object"),
    ("a word", lambda: b'"geobounds-certificate"',
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None."),
     "certificate: not a JSON object"),
    ("a number", lambda: b"1e999",
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None."),
     "certificate: not a JSON object"),
    ("no fields", lambda: b"{}",
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None."),
     "format: unknown, None version None"),
    ("nested without end", lambda: b"[" * 200_000,
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("objects nested without end", lambda: b'{"a":' * 200_000,
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("a format nested", lambda: b'{"format": ' + b"[" * 900 + b"]" * 900 + b"}",
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ version None."),
     ("format: unknown, "
      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ version None")),
    ("a huge integer", lambda: b'{"version": ' + b"9" * 5000 + b"}",
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("a key twice", lambda: b'{"format": 1, "format": 2}',
     "Certificate: FILE must be a JSON file (a key stands twice).",
     "certificate: not JSON data (a key stands twice)"),
    ("truncated", lambda: GOOD[:-40],
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("more behind it", lambda: GOOD + b"{}",
     "Certificate: FILE must be a JSON file (…).",
     "certificate: not JSON data (…)"),
    ("another format", lambda: changed(format="x" * 100_000),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx version 2."),
     ("format: unknown, "
      "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx version 2")),
    ("another version", lambda: changed(version=3),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "'geobounds-certificate' version 3."),
     "format: unknown, 'geobounds-certificate' version 3"),
    ("version 0", lambda: changed(version=0),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "'geobounds-certificate' version 0."),
     "format: unknown, 'geobounds-certificate' version 0"),
    ("a version that is true", lambda: changed(version=True),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "'geobounds-certificate' version True."),
     "format: unknown, 'geobounds-certificate' version True"),
    ("a version in decimals", lambda: changed(version=2.0),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "'geobounds-certificate' version 2.0."),
     "format: unknown, 'geobounds-certificate' version 2.0"),
    ("the format of a set", lambda: changed(format="geobounds-certificates"),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got "
      "'geobounds-certificates' version 2."),
     "certificate: missing or unknown fields"),
    ("a field too many", lambda: changed(more=1),
     f"{CHANGED}",
     "certificate: missing or unknown fields"),
    ("no head", lambda: changed(head=None),
     f"{MALFORMED} (KeyError('head')).",
     "certificate: missing or unknown fields"),
    ("definitions that are a list", lambda: changed(definitions=[]),
     f"{MALFORMED} (KeyError('ranking')).",
     "definitions: not an object"),
    ("claims that are an object", lambda: changed(claims={}),
     f"{CHANGED}",
     "claims: none"),
    ("no claims", lambda: changed(claims=[]), None, "claims: none"),
    ("NaN", lambda: GOOD.replace(b'"boundary_tie": false', b'"boundary_tie": NaN'),
     (f"{MALFORMED} (ValueError('Out of range float values are not JSON "
      "compliant'))."),
     "certificate: not JSON data (…)"),
    ("changed after signing", lambda: GOOD.replace(b'"n_key": 4', b'"n_key": 5'),
     f"{CHANGED}",
     "sha256: the content was changed after signing"),
    ("terms that are not lowest", lambda: claimed(f_score="2/4"),
     (f'{MALFORMED} (ValueError("must be a fraction in lowest terms such as '
      "'2/3', got '2/4'\"))."),
     "n=2: f_score: should be '0'"),
    ("a bound in decimals", lambda: claimed(f_score=0.5),
     (f'{MALFORMED} (ValueError("must be a fraction in lowest terms such as '
      "'2/3', got 0.5\"))."),
     "n=2: f_score: should be '0'"),
    ("a bound over zero", lambda: claimed(f_score="1/0"),
     (f'{MALFORMED} (ValueError("must be a fraction in lowest terms such as '
      "'2/3', got '1/0'\"))."),
     "n=2: f_score: should be '0'"),
    ("a bound of 5000 digits", lambda: claimed(f_score="9" * 5000),
     f"{MALFORMED} (ValueError('…')).",
     "n=2: f_score: should be '0'"),
    ("a bound with an exponent", lambda: claimed(f_score="1e-9999999"),
     (f'{MALFORMED} (ValueError("must be a fraction in lowest terms such as '
      "'2/3', got '1e-9999999'\"))."),
     "n=2: f_score: should be '0'"),
    ("an n that is a list", lambda: claimed(n=[]),
     f"{MALFORMED} (TypeError(\"unhashable type: 'list'\")).",
     "n=[]: n: out of range"),
    ("an n of two lines", lambda: claimed(n="a\nb\x1b[31m"),
     None,
     "n='a\\nb\\x1b[31m': n: out of range"),
    ("an unknown regime", lambda: claimed(regime={"name": "x" * 100_000}),
     ("Certificate: regime must be one of ('cells', 'pairwise', 'pairwise-roles', "
      "'pairwise-roles-norms', 'inversions'), got "
      "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx."),
     "n=2: regime: unknown name"),
    ("cells that are a number", lambda: claimed(regime={"name": "cells", "cells": 3}),
     f"{MALFORMED} (TypeError(\"'int' object is not iterable\")).",
     "n=2: cells: not a list"),
    ("a cell that is a list", lambda: claimed(regime={"name": "cells", "cells": [[]]}),
     (f"{MALFORMED} (TypeError('list indices must be integers or slices, not "
      "str'))."),
     "n=2: cells: missing or unknown fields"),
    ("an interval of three", lambda: claimed(measured=["0", "1", "1"]),
     f"{MALFORMED} (ValueError('too many values to unpack (expected 2)')).",
     "n=2: measured: not [low, high]"),
    ("a regime without numbers", lambda: claimed(regime={"name": "pairwise"}),
     f"{MALFORMED} (KeyError('norms_selected')).",
     "n=2: regime: missing or unknown fields"),
    ("no position", lambda: headed(query_position=None),
     None,
     "head: missing or unknown fields"),
    ("set, a list", lambda: b"[]",
     ("Certificate: format must be geobounds-certificates version 2, got None "
      "version None."),
     "certificate: not a JSON object"),
    ("set, no certificates", lambda: whole(certificates=None),
     "Certificate: certificates must be a list of at least one.",
     "certificate: missing or unknown fields"),
    ("set, certificates that are a number", lambda: whole(certificates=3),
     "Certificate: certificates must be a list of at least one.",
     "certificates: none"),
    ("set, a member that is a number", lambda: whole(certificates=[3]),
     ("Certificate: format must be geobounds-certificate version 1 or 2, got None "
      "version None."),
     "certificate 0: certificate: not a JSON object"),
    ("set, no members", lambda: whole(certificates=[]),
     "Certificate: certificates must be a list of at least one.",
     "certificates: none"),
    ("set, version 1", lambda: whole(version=1),
     ("Certificate: format must be geobounds-certificates version 2, got "
      "'geobounds-certificates' version 1."),
     "format: unknown, 'geobounds-certificates' version 1"),
    ("set, a field too many", lambda: whole(more=1),
     f"{CHANGED}",
     "certificate: missing or unknown fields"),
    ("set, changed after signing",
     lambda: SET.replace(b'"version": 2', b'"version": 2, "x": 0', 1),
     f"{CHANGED}",
     "certificate: missing or unknown fields"),
]

COMMANDS = [
    ("none", "", 2, "geobounds: error: the following arguments are required: COMMAND"),
    ("an unknown one", "prove", 2,
     "geobounds: error: argument COMMAND: invalid choice: 'prove' (choose from …)"),
    ("an unknown option", "certify good.npz --fast", 2,
     "geobounds: error: unrecognized arguments: --fast"),
    ("certify without a head", "certify", 2,
     "geobounds certify: error: the following arguments are required: HEAD.npz"),
    ("certify a missing head", "certify none.npz", 2,
     "geobounds: HeadData: none.npz must be a file, got none there."),
    ("certify a folder", "certify folder.npz", 2,
     "geobounds: HeadData: folder.npz must be a file, got none there."),
    ("certify another ending", "certify good.json", 2,
     ("geobounds: HeadData: a head file must end in .npz or .safetensors, got "
      "'good.json'.")),
    ("certify a damaged head", "certify truncated.npz", 2,
     ("geobounds: HeadData: truncated.npz must be a head written by HeadData.save "
      "(BadZipFile: File is not a zip file).")),
    ("certify a bomb", "certify a-bomb-that-says-so.npz", 2,
     ("geobounds: HeadData: a-bomb-that-says-so.npz must be a head written by "
      "HeadData.save (arrays are not read if compressed or given twice).")),
    ("certify a head declared huge", "certify 10-12-numbers-in-32-bytes.npz", 2,
     ("geobounds: HeadData: 10-12-numbers-in-32-bytes.npz must be a head written "
      "by HeadData.save ([1000000000000] is no shape of an array).")),
    ("certify weights only", "certify weights.npz", 2,
     f"geobounds: certify: {NO_VALUES}"),
    ("certify the second of two", "certify good.npz weights.npz -o good.json", 2,
     f"geobounds: weights.npz: certify: {NO_VALUES}"),
    ("certify n in words", "certify good.npz --n two", 2,
     ("geobounds certify: error: argument --n: must be whole numbers separated by "
      "commas, got 'two'")),
    ("certify n empty", "certify good.npz --n 1,,2", 2,
     ("geobounds certify: error: argument --n: must be whole numbers separated by "
      "commas, got '1,,2'")),
    ("certify n of 5000 digits", "certify good.npz --n NINES", 2,
     ("geobounds certify: error: argument --n: must be whole numbers separated by "
      "commas, got '99999999999999999999999999999999999999999999999999999999999")),
    ("certify n too large", "certify good.npz --n 4", 2,
     ("geobounds: certify: n must lie between 1 and 3 (4 candidates), got n=4. No "
      "token would be left unselected.")),
    ("certify n negative", "certify good.npz --n=-1", 2,
     ("geobounds: certify: n must lie between 1 and 3 (4 candidates), got n=-1. "
      "Select at least one token.")),
    ("certify n twice", "certify good.npz --n 2,2", 2,
     ("geobounds: certify: n must hold different numbers, at least one, got n=[2, "
      "2].")),
    ("certify a query in words", "certify good.npz --query last", 2,
     "geobounds certify: error: argument --query: invalid int value: 'last'"),
    ("certify a query too large", "certify good.npz --query 7", 2,
     "geobounds: certify: query must lie between -1 and 0, got query=7."),
    ("certify another regime", "certify good.npz --regime none", 2,
     ("geobounds certify: error: argument --regime: invalid choice: 'none' "
      "(choose from …)")),
    ("certify another ranking", "certify good.npz --ranking random", 2,
     ("geobounds certify: error: argument --ranking: invalid choice: 'random' "
      "(choose from …)")),
    ("certify another policy", "certify good.npz --sink-policy none", 2,
     ("geobounds certify: error: argument --sink-policy: invalid choice: 'none' "
      "(choose from …)")),
    ("certify too few cells", "certify good.npz --resolution 0", 2,
     ("geobounds: CellRegime: resolution must be at least 3 (selected, unselected "
      "and the sink are cells of their own), got resolution=0.")),
    ("certify into no folder", "certify good.npz -o none/c.json", 2,
     "geobounds: certify: No such file or directory: none/c.json."),
    ("certify over a folder", "certify good.npz -o folder", 2,
     "geobounds: certify: Is a directory: folder."),
    ("certify over the head", "certify good.npz -o good.npz", 2,
     "geobounds: certify: --out must not be a head file read, got 'good.npz'."),
    ("certify over the head by another name",
     "certify good.npz -o ./folder/../good.npz", 2,
     ("geobounds: certify: --out must not be a head file read, got "
      "'./folder/../good.npz'.")),
    ("certify over a file that stays", "certify truncated.npz -o good.json", 2,
     ("geobounds: HeadData: truncated.npz must be a head written by HeadData.save "
      "(BadZipFile: File is not a zip file).")),
    ("inspect a missing head", "inspect none.npz", 2,
     "geobounds: HeadData: none.npz must be a file, got none there."),
    ("inspect two heads", "inspect good.npz good.npz", 2,
     "geobounds: error: unrecognized arguments: good.npz"),
    ("inspect a damaged head", "inspect truncated.safetensors", 2,
     ("geobounds: HeadData: truncated.safetensors must be a head written by "
      "HeadData.save (31 bytes for an array of 32).")),
    ("inspect weights only", "inspect weights.npz", 2,
     f"geobounds: inspect: {NO_VALUES}"),
    ("inspect n in decimals", "inspect good.npz --n 1.5", 2,
     "geobounds inspect: error: argument --n: invalid int value: '1.5'"),
    ("inspect n of 0", "inspect good.npz --n 0", 2,
     ("geobounds: inspect: n must lie between 1 and 3 (4 candidates), got n=0. "
      "Select at least one token.")),
    ("inspect one candidate", "inspect one.npz", 2,
     ("geobounds: inspect: at least 2 candidates are needed to select from, got 1 "
      "at query 0.")),
    ("verify without a head", "verify good.json", 2,
     "geobounds verify: error: the following arguments are required: HEAD.npz"),
    ("verify a missing certificate", "verify none.json good.npz", 2,
     "geobounds: verify: none.json must be a file, got none there."),
    ("verify a missing head", "verify good.json none.npz", 2,
     "geobounds: verify: none.npz must be a file, got none there."),
    ("verify a folder", "verify folder good.npz", 2,
     "geobounds: verify: folder must be a file, got none there."),
    ("verify what is no JSON", "verify words.json good.npz", 1,
     "certificate: not JSON data (…)"),
    ("verify a head for a certificate", "verify good.npz good.npz", 1,
     "certificate: not JSON data (…)"),
    ("verify a changed certificate", "verify changed-after-signing.json good.npz", 1,
     "sha256: the content was changed after signing"),
    ("verify another head", "verify good.json one.npz", 1,
     "head: no query at position 3"),
    ("verify a damaged head", "verify good.json truncated.npz", 1,
     "head: truncated.npz is not a head file (BadZipFile: File is not a zip file)"),
    ("verify nested without end", "verify nested-without-end.json good.npz", 1,
     "certificate: not JSON data (…)"),
    ("capture without a text", "capture smollm2 --layer 0 --head 0", 2,
     "geobounds: capture: give --prompt or --text-file, one of them, got neither."),
    ("capture with two texts",
     "capture smollm2 --layer 0 --head 0 --prompt a --text-file b", 2,
     "geobounds: capture: give --prompt or --text-file, one of them, got both."),
    ("capture into another ending",
     "capture smollm2 --layer 0 --head 0 --prompt a -o h.csv", 2,
     "geobounds: capture: --out must end in .npz or .safetensors, got 'h.csv'."),
    ("capture without a head", "capture smollm2 --layer 0 --prompt a", 2,
     "geobounds capture: error: the following arguments are required: --head"),
    ("capture a layer in words", "capture smollm2 --layer first --head 0 --prompt a", 2,
     "geobounds capture: error: argument --layer: invalid int value: 'first'"),
    ("report windows in words", "report --windows few", 2,
     "geobounds report: error: argument --windows: invalid int value: 'few'"),
    ("scan another dtype", "scan --dtype int8", 2,
     ("geobounds scan: error: argument --dtype: invalid choice: 'int8' (choose "
      "from …)")),
]
# fmt: on
