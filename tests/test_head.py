"""HeadData: what is accepted, kept exactly, refused; files; heads of one layer."""

import contextlib
import json
import os
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from safetensors import safe_open
from safetensors.numpy import save_file
from strategies import build, heads

import geobounds as gb

ENDINGS = (".npz", ".safetensors")
WEIGHTS = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]
VALUES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def same(a, b):
    """Whether two heads hold the same data."""
    names = ("weights", "values", "visible", "query_positions")
    return (a.sink, a.meta) == (b.sink, b.meta) and all(
        getattr(a, x).dtype == getattr(b, x).dtype
        and np.array_equal(getattr(a, x), getattr(b, x), equal_nan=x == "values")
        for x in names
    )


def header(**fields):
    """Return the header of a head file as an array of bytes."""
    fields = {"format": "geobounds-head-1", "dtypes": [None, None]} | fields
    text = json.dumps(fields)
    return np.frombuffer(text.encode(), dtype=np.uint8)


# Examples


def test_one_row_sees_every_key_and_stands_at_the_last_position():
    head = gb.HeadData([0.5, 0.25, 0.25], VALUES)

    assert head.weights.tolist() == [[0.5, 0.25, 0.25]]
    assert head.visible.tolist() == [[True] * 3]
    assert head.query_positions.tolist() == [2]
    assert (head.n_query, head.n_key, head.d_head, head.sink) == (1, 3, 2, 0)
    assert repr(head) == "HeadData(1 query, 3 keys, d_head=2, float64, sink=0)"


def test_causal_rows_see_no_later_key():
    head = gb.HeadData(WEIGHTS, VALUES, visible="causal")

    assert head.visible.tolist() == [[True, True, False], [True, True, True]]
    assert head.query_positions.tolist() == [1, 2]
    assert repr(head) == "HeadData(2 queries, 3 keys, d_head=2, float64, sink=0)"


def test_positions_given_move_the_causal_mask():
    head = gb.HeadData([[0.5, 0.0, 0.0]], visible="causal", query_positions=[0])

    assert head.visible.tolist() == [[True, False, False]]


def test_more_queries_than_keys_stand_at_positions_from_zero():
    head = gb.HeadData([[0.5]] * 3, visible="all")

    assert head.query_positions.tolist() == [0, 1, 2]


def test_a_mask_of_ones_own_is_kept():
    mask = np.array([[True, True, False], [False, True, True]])
    head = gb.HeadData([[0.5, 0.5, 0], [0, 0.5, 0.5]], visible=mask)

    assert head.visible.tolist() == mask.tolist()


@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_the_mask_of_one_row_may_be_a_vector_or_a_tensor(shape):
    mask = np.array([True, True, False]).reshape(shape)
    head = gb.HeadData([0.5, 0.5, 0.0], visible=mask)
    other = gb.HeadData([0.5, 0.5, 0.0], visible=torch.from_numpy(mask))

    assert head.visible.tolist() == other.visible.tolist() == [[True, True, False]]


def test_a_head_of_weights_only_says_so():
    head = gb.HeadData([0.5, 0.5], sink=None)

    assert head.values is None
    assert repr(head) == "HeadData(1 query, 2 keys, no values, float64, sink=None)"
    with pytest.raises(gb.HeadDataError, match=r"^d_head: values must be given, got"):
        _ = head.d_head


def test_the_mass_of_each_row_need_not_be_one():
    head = gb.HeadData([[0.5, 0.25], [0.75, 0.5], [np.nan, 1]], visible="all")

    assert head.mass.tolist()[:2] == [0.75, 1.25]
    assert np.isnan(head.mass[2])


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_float_types_are_kept_as_they_are(name):
    head = gb.HeadData(np.array([0.1, 0.2], dtype=name), np.ones((2, 1), dtype=name))

    assert head.weights.dtype == head.values.dtype == name
    assert head.dtype_name == head.value_dtype_name == name


def test_bfloat16_tensors_are_widened_without_loss():
    weights = torch.tensor([0.1, 0.3]).to(torch.bfloat16)
    head = gb.HeadData(weights, weights[:, None])

    assert head.weights.dtype == head.values.dtype == np.float32
    assert head.weights[0].tolist() == weights.tolist()
    assert head.dtype_name == head.value_dtype_name == "bfloat16"


def test_bfloat16_arrays_are_widened_without_loss():
    """As ml_dtypes makes them."""
    weights = np.array([0.5, 0.25], dtype=ml_dtypes.bfloat16)
    head = gb.HeadData(weights, np.array([[3.0], [1.5]], dtype=ml_dtypes.bfloat16))

    assert head.dtype_name == "bfloat16"
    assert head.weights.dtype == np.float32
    assert head.values.tolist() == [[3.0], [1.5]]


def bits_of(numbers):
    """Return numbers that bfloat16 holds as uint16 bits."""
    return np.array(numbers, dtype=ml_dtypes.bfloat16).view(np.uint16)


def test_bfloat16_bits_are_the_same_head_as_tensors_and_arrays():
    """Three ways to give one head: equal numbers, names and digests."""
    weights, values = [0.5, 0.2001953125, 0.0], [[3.140625, -0.0], [1e38, 1], [0, 2]]
    kinds = (
        (torch.tensor(weights).bfloat16(), torch.tensor(values).bfloat16(), {}),
        (
            np.array(weights, dtype=ml_dtypes.bfloat16),
            np.array(values, dtype=ml_dtypes.bfloat16),
            {},
        ),
        (bits_of(weights), bits_of(values), {"dtype": "bfloat16"}),
        (bits_of(weights).astype(">u2"), bits_of(values), {"dtype": "bfloat16"}),
    )
    found = [gb.HeadData(w, v, sink=None, **options) for w, v, options in kinds]
    wide = gb.HeadData(found[0].weights, found[0].values, sink=None)

    assert {head.dtype_name for head in found} == {"bfloat16"}
    assert {head.value_dtype_name for head in found} == {"bfloat16"}
    assert {head.digest() for head in found} == {wide.digest()}
    assert all(same(head, found[0]) for head in found)
    assert wide.dtype_name == "float32"


def test_every_number_of_bfloat16_is_widened_without_loss():
    """All 65,536 patterns; NaN and infinity sit on a key that no query sees."""
    bits = np.arange(2**16, dtype=np.uint16)
    numbers = bits.view(ml_dtypes.bfloat16).astype(np.float32)
    visible = np.isfinite(numbers)
    weights = np.zeros(2**16, dtype=np.uint16)
    weights[0] = bits_of(1)
    head = gb.HeadData(weights, bits[:, None], visible=visible, dtype="bfloat16")

    assert np.array_equal(head.values[:, 0], numbers, equal_nan=True)
    assert head.values.view(np.uint32)[:, 0].tolist() == [b << 16 for b in range(2**16)]


@pytest.mark.parametrize(
    ("weights", "values", "dtype"),
    [
        (np.ones(2, dtype=np.int16), None, "bfloat16"),
        (np.ones(2, dtype=np.float32), None, "bfloat16"),
        (np.ones(2, dtype=np.uint32), None, "bfloat16"),
        ([16256, 16256], None, "bfloat16"),
        (np.ones(2, dtype=np.uint16), [[1.0], [2.0]], "bfloat16"),
        (np.ones(2, dtype=np.uint16), None, "float16"),
        (np.ones(2, dtype=np.float32), None, "float32"),
    ],
)
def test_a_type_is_named_only_for_bits_of_bfloat16(weights, values, dtype):
    message = r'^HeadData: dtype must be "bfloat16" with uint16 arrays, or None, got'

    with pytest.raises(TypeError, match=message):
        gb.HeadData(weights, values, dtype=dtype)


@pytest.mark.parametrize(("shape", "hint"), [((), r"\(\)"), ((1, 2, 3), "head axis")])
def test_bits_of_a_wrong_shape_are_refused(shape, hint):
    with pytest.raises(gb.HeadDataError, match="weights must have shape .*" + hint):
        gb.HeadData(np.full(shape, 16256, dtype=np.uint16), dtype="bfloat16")


def test_whole_numbers_without_a_name_are_no_bits():
    """uint16 alone are numbers, as they were."""
    head = gb.HeadData(np.array([1, 3], dtype=np.uint16))

    assert (head.weights.tolist(), head.dtype_name) == ([[1.0, 3.0]], "float64")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_tensors_with_gradients_are_taken(dtype):
    tensor = torch.tensor([0.5, 0.25], dtype=dtype, requires_grad=True)
    head = gb.HeadData(tensor, tensor[:, None])

    assert head.weights[0].tolist() == [0.5, 0.25]
    assert head.dtype_name == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64", "bool"])
def test_integers_become_exact_floats(dtype):
    head = gb.HeadData(np.array([1, 0, 1], dtype=dtype))

    assert head.weights.dtype == np.float64
    assert head.weights.tolist() == [[1.0, 0.0, 1.0]]


def test_the_largest_exact_integer_is_taken():
    values = [[2**53], [-(2**53)]]

    assert gb.HeadData([1, 1], values).values.tolist() == values


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_big_endian_arrays_hold_the_same_head(name):
    native = np.array([0.1, 0.2, 0.7], dtype=name)
    values = np.arange(6, dtype=name).reshape(3, 2)
    swapped = native.astype(native.dtype.newbyteorder(">"))
    head = gb.HeadData(native, values)
    other = gb.HeadData(swapped, values.astype(values.dtype.newbyteorder(">")))

    assert other.weights.dtype.isnative
    assert same(head, other)
    assert head.digest() == other.digest()


def test_arrays_are_copied_and_read_only():
    weights, values = np.array([0.5, 0.5]), np.ones((2, 1))
    mask, positions = np.array([True, True]), np.array([1])
    head = gb.HeadData(weights, values, visible=mask, query_positions=positions)
    weights[0], values[0], mask[0], positions[0] = 9, 9, False, 0

    assert head.weights.tolist() == [[0.5, 0.5]]
    assert head.values.tolist() == [[1.0], [1.0]]
    assert head.visible.tolist() == [[True, True]]
    assert head.query_positions.tolist() == [1]
    for array in (head.weights, head.values, head.visible, head.query_positions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_meta_is_copied():
    meta = {"layer": [1]}
    head = gb.HeadData([1.0], meta=meta)
    meta["layer"].append(2)

    assert head.meta == {"layer": [1]}


def test_a_slice_is_one_query_with_its_mask_and_position():
    meta = {"model": "tiny"}
    head = gb.HeadData(WEIGHTS, VALUES, visible="causal", sink=1, meta=meta)
    one = head[0]

    assert (one.n_query, one.sink, one.meta) == (1, 1, meta)
    assert one.weights.tolist() == [WEIGHTS[0]]
    assert one.visible.tolist() == [[True, True, False]]
    assert one.query_positions.tolist() == [1]
    assert same(head[-2], one)


def test_values_on_keys_no_query_sees_may_be_anything():
    """Padding is often NaN; it takes part in nothing."""
    values = [[1.0], [np.nan], [np.inf]]
    mask = [True, False, False]
    head = gb.HeadData([0.5, 0.0, 0.0], values, visible=mask)

    assert head.values64.tolist() == [[1.0], [0.0], [0.0]]
    assert head.squared_norms64.tolist() == [1.0, 0.0, 0.0]


def test_integer_values_are_the_values():
    integers, exponent = gb.HeadData([1, 1], [[0.75], [-2.0]]).integer_values

    assert (integers.tolist(), exponent) == ([[3], [-8]], -2)


# Rows with a problem (rows 12 and 14 of the replay)


def test_a_row_of_nan_and_a_row_of_zeros_are_refused_and_the_others_measured():
    """Row 12: each with its reason."""
    weights = [[0.5, 0.5], [np.nan, np.nan], [0.0, 0.0], [0.75, 0.25]]
    head = gb.HeadData(weights, [[1.0], [2.0]], visible="all")

    assert list(head.problems) == [1, 2]
    assert "be finite, got nan at query 1, key 0" in head.problems[1]
    assert "mass on a visible key, got none at query 2" in head.problems[2]
    assert [gb.measure(head, 1, query=q).n for q in (0, 3)] == [1, 1]
    for query, reason in ((1, "be finite"), (-2, "have mass on a visible key")):
        with pytest.raises(gb.HeadDataError, match=r"^measure: weights must " + reason):
            gb.measure(head, 1, query=query)
        with pytest.raises(gb.HeadDataError, match=r"^certify: weights must " + reason):
            gb.certify(head, 1, query=query)
        with pytest.raises(gb.HeadDataError, match=r"^HeadData: weights must "):
            head[query]
        with pytest.raises(gb.HeadDataError, match=r"^digest: weights must "):
            head.digest(query)


@pytest.mark.parametrize(
    ("row", "visible", "reason"),
    [
        ([np.inf, 0.5], [True, True], "be finite, got inf at query 0, key 0"),
        ([0.5, -np.inf], [True, True], "be finite, got -inf at query 0, key 1"),
        ([0.5, -0.5], [True, True], "be non-negative, got -0.5 at query 0, key 1"),
        ([0.5, 0.5], [True, False], "be 0 on hidden keys, got 0.5 at query 0, key 1"),
        ([0.5, np.nan], [True, False], "be 0 on hidden keys, got nan"),
        ([0.0, 0.0], [True, True], r"got none at query 0 \(2 visible keys: a fully"),
        ([0.0, 0.0], [False, False], r"got none at query 0 \(0 visible keys"),
        ([np.nan, -1.0], [True, True], "be finite, got nan at query 0, key 0"),
    ],
)
def test_each_problem_of_a_row_is_named(row, visible, reason):
    """As the only row it refuses the head, beside a good one only itself."""
    with pytest.raises(gb.HeadDataError, match=r"^HeadData: weights must .*" + reason):
        gb.HeadData(row, visible=visible)
    two = gb.HeadData([row, [0.5, 0.5]], visible=[visible, [True, True]])
    assert list(two.problems) == [0]


def test_a_head_whose_every_row_is_bad_is_refused_with_the_first_reason():
    message = r"weights must be finite, got nan at query 0, key 1 \(and 1 more rows\)\."

    with pytest.raises(gb.HeadDataError, match=message):
        gb.HeadData([[0.5, np.nan], [0.0, 0.0]], visible="all")


def test_negative_zero_is_a_weight_of_zero():
    assert gb.HeadData([0.5, -0.0], visible=[True, False]).problems == {}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_gives_no_certificate(bad):
    """Row 14: the head cannot even be built."""
    message = "values must be finite, got NaN or infinity at key 1"

    with pytest.raises(gb.HeadDataError, match=r"^HeadData: " + message):
        gb.HeadData([0.5, 0.5], [[1.0], [bad]])


def test_a_row_with_infinite_weight_gives_no_certificate():
    head = gb.HeadData([[np.inf, 0.5], [0.5, 0.5]], [[1.0], [2.0]], visible="all")

    with pytest.raises(gb.HeadDataError, match=r"^certify: weights must be finite"):
        gb.certify(head, 1, query=0)


# Digest


def test_the_digest_of_a_known_head_is_pinned():
    """A change of the format would orphan every certificate."""
    head = gb.HeadData([0.5, 0.25, 0.25], VALUES)

    assert head.digest() == (
        "d2719d257f61f1e5fc340bbf9c25735c27c2d99663b7580cb9d0aaf67143c71b"
    )


def test_the_digest_is_the_same_for_slice_and_whole():
    head = gb.HeadData(WEIGHTS, VALUES, visible="causal")

    assert head.digest(0) == head[0].digest()
    assert head.digest() == head.digest(-1) == head[1].digest()
    assert head.digest(0) != head.digest(1)


def test_the_digest_reads_every_part_of_the_head():
    base = {"visible": [True, True], "query_positions": [1], "sink": 0}
    weights, values = np.array([0.5, 0.0]), np.array([[1.0], [2.0]])
    digests = [
        gb.HeadData(weights, values, **base).digest(),
        gb.HeadData(weights, None, **base).digest(),
        gb.HeadData([0.5, 2.0**-1074], values, **base).digest(),
        gb.HeadData(weights, np.nextafter(values, 9), **base).digest(),
        gb.HeadData(weights, values.astype(np.float32), **base).digest(),
        gb.HeadData(weights.astype(np.float16), values, **base).digest(),
        gb.HeadData(weights, values, **base | {"visible": [True, False]}).digest(),
        gb.HeadData(weights, values, **base | {"query_positions": [2]}).digest(),
        gb.HeadData(weights, values, **base | {"sink": 1}).digest(),
        gb.HeadData(weights, values, **base | {"sink": None}).digest(),
    ]

    assert len(set(digests)) == len(digests)


def test_the_digest_does_not_read_meta():
    assert gb.HeadData([1.0]).digest() == gb.HeadData([1.0], meta={"a": 1}).digest()


# Files


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_saved_head_loads_as_it_was(tmp_path, ending, dtype):
    head = gb.HeadData(
        np.array(WEIGHTS, dtype=dtype),
        np.array(VALUES, dtype=dtype),
        visible="causal",
        query_positions=[1, 7],
        sink=1,
        meta={"text": "é", "layer": 3},
    )
    path = tmp_path / f"head{ending}"
    head.save(str(path))
    loaded = gb.HeadData.load(path)

    assert same(head, loaded)
    assert [loaded.digest(q) for q in (0, 1)] == [head.digest(q) for q in (0, 1)]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def stored_types(path):
    """Return the types of the arrays in a file, and its header."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            types = {name: archive[name].dtype.name for name in archive.files}
            return types, json.loads(archive["header"].tobytes())
    with safe_open(path, framework="numpy") as archive:
        names = list(archive.keys())
        types = {name: archive.get_tensor(name).dtype.name for name in names}
        return types, json.loads(archive.metadata()["header"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_bfloat16_is_stored_in_half_the_space_and_loads_as_it_was(tmp_path, ending):
    """NaN of a hidden key included."""
    head = gb.HeadData(
        torch.tensor([0.5, 0.25, 0.0], dtype=torch.bfloat16),
        torch.tensor([[1.5, -3e38], [1e-40, 2], [np.nan, -np.inf]]).bfloat16(),
        visible=[True, True, False],
        sink=1,
    )
    path = tmp_path / f"h{ending}"
    head.save(path)
    types, extra = stored_types(path)
    loaded = gb.HeadData.load(path)

    assert (types["weights"], types["values"]) == ("uint16", "uint16")
    assert extra["dtypes"] == ["bfloat16", "bfloat16"]
    assert same(head, loaded)
    assert loaded.digest() == head.digest()
    assert (loaded.dtype_name, loaded.value_dtype_name) == ("bfloat16", "bfloat16")
    assert gb.verify(gb.certify(head, 1), path)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("narrow", ["weights", "values"])
def test_only_what_came_as_bfloat16_is_stored_so(tmp_path, ending, narrow):
    types = {"weights": torch.float32, "values": torch.float32}
    types[narrow] = torch.bfloat16
    head = gb.HeadData(
        torch.tensor([0.5, 0.25], dtype=types["weights"]),
        torch.tensor([[1.5], [2.5]], dtype=types["values"]),
    )
    path = tmp_path / f"h{ending}"
    head.save(path)
    found, _ = stored_types(path)
    names = {torch.float32: "float32", torch.bfloat16: "uint16"}

    assert {k: found[k] for k in types} == {k: names[t] for k, t in types.items()}
    assert gb.HeadData.load(path).digest() == head.digest()


def write_head(path, arrays, extra):
    """Write arrays and a header as they are, in either format."""
    text = json.dumps({"format": "geobounds-head-1"} | extra)
    if path.suffix == ".npz":
        np.savez(path, header=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
    else:
        save_file(arrays, path, metadata={"header": text})


@pytest.mark.parametrize("ending", ENDINGS)
def test_old_files_with_widened_bfloat16_still_load(tmp_path, ending):
    """Files once held float32 under the tag; they are the same head, and stay it."""
    head = gb.HeadData(
        torch.tensor([0.5, 0.25], dtype=torch.bfloat16),
        torch.tensor([[1.5], [2.5]], dtype=torch.bfloat16),
    )
    old, new = tmp_path / f"old{ending}", tmp_path / f"new{ending}"
    arrays, extra = head.arrays(), {"sink": 0, "meta": {}, "dtypes": ["bfloat16"] * 2}
    write_head(old, arrays, extra)
    loaded = gb.HeadData.load(old)
    loaded.save(new)

    assert stored_types(old)[0]["weights"] == "float32"
    assert stored_types(new)[0]["weights"] == "uint16"
    assert loaded.dtype_name == "bfloat16"
    assert loaded.digest() == gb.HeadData.load(new).digest() == head.digest()
    assert gb.verify(gb.certify(head, 1), old)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_file_that_calls_other_numbers_bfloat16_loses_none_of_them(
    tmp_path, ending, dtype
):
    """Only what bfloat16 holds may be narrowed; 1/3 is not."""
    weights = np.array([[0.5, 1 / 3]], dtype=dtype)
    head = gb.HeadData(weights, weights.T)
    path, again = tmp_path / f"h{ending}", tmp_path / f"again{ending}"
    write_head(path, head.arrays(), {"sink": 0, "dtypes": ["bfloat16"] * 2})
    loaded = gb.HeadData.load(path)
    loaded.save(again)

    assert loaded.weights.tolist() == weights.tolist()
    assert loaded.digest() == gb.HeadData.load(again).digest() == head.digest()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["weights", "values"])
@pytest.mark.parametrize("dtype", ["uint16", "int64", "uint8"])
def test_whole_numbers_are_no_weights_and_no_values_of_a_file(
    tmp_path, ending, name, dtype
):
    """Bits of bfloat16 that lost their tag would pass for them."""
    head = gb.HeadData([0.5, 0.25], [[1.5], [2.5]])
    arrays = head.arrays() | {name: np.ones(head.arrays()[name].shape, dtype=dtype)}
    path = tmp_path / f"h{ending}"
    write_head(path, arrays, {"sink": 0, "dtypes": [None, None]})

    with pytest.raises(gb.HeadDataError, match=f"{name} of .* must be floats, got"):
        gb.HeadData.load(path)
    assert not gb.verify(gb.certify(head, 1), path)


@pytest.mark.parametrize("tags", [None, 3, [None], ["bfloat16"] * 3, [["bfloat16"], 1]])
@pytest.mark.parametrize("ending", ENDINGS)
def test_odd_tags_are_refused_or_change_nothing(tmp_path, ending, tags):
    head = gb.HeadData([0.5, 0.25], [[1.5], [2.5]])
    path = tmp_path / f"h{ending}"
    write_head(path, head.arrays(), {"sink": 0, "dtypes": tags})

    with contextlib.suppress(gb.HeadDataError):
        assert gb.HeadData.load(path).digest() == head.digest()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_head_of_weights_only_without_sink_loads_as_it_was(tmp_path, ending):
    path = tmp_path / f"head{ending}"
    gb.HeadData([0.5, 0.5], sink=None).save(path)
    loaded = gb.HeadData.load(path)

    assert loaded.values is None
    assert loaded.sink is None


@pytest.mark.parametrize("ending", ENDINGS)
def test_saving_replaces_a_file_and_leaves_usual_permissions(tmp_path, ending):
    path = tmp_path / f"head{ending}"
    path.write_text("old")
    gb.HeadData([0.5, 0.5]).save(path)
    mask = os.umask(0)
    os.umask(mask)

    assert gb.HeadData.load(path).n_key == 2
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_save_leaves_nothing_behind(tmp_path, ending):
    """The target is a folder, so the last step fails."""
    path = tmp_path / f"head{ending}"
    path.mkdir()

    with pytest.raises(OSError, match="directory"):
        gb.HeadData([0.5, 0.5]).save(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_with_a_problem_survive_a_file(tmp_path, ending):
    head = gb.HeadData([[0.5, 0.5], [np.nan, 0.0]], visible="all")
    path = tmp_path / f"head{ending}"
    head.save(path)

    assert gb.HeadData.load(path).problems == head.problems


def test_a_pickled_array_is_never_read(tmp_path):
    """Loading must not run code: the array of objects would call print."""

    class Malice:
        def __reduce__(self):
            return print, ("ran code",)

    path = tmp_path / "head.npz"
    objects = np.array([Malice()], dtype=object)
    np.savez(path, header=header(), weights=objects)

    with pytest.raises(gb.HeadDataError, match="must be a head written by"):
        gb.HeadData.load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_is_missing_is_refused(tmp_path, ending):
    with pytest.raises(gb.HeadDataError, match="must be a file, got none there"):
        gb.HeadData.load(tmp_path / f"none{ending}")


@pytest.mark.parametrize("name", ["head.npy", "head", "head.NPZ", "head.npz.gz"])
def test_another_ending_is_refused(tmp_path, name):
    message = "a head file must end in .npz or .safetensors, got"

    with pytest.raises(gb.HeadDataError, match=message):
        gb.HeadData.load(tmp_path / name)
    with pytest.raises(gb.HeadDataError, match=message):
        gb.HeadData([1.0]).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("content", [b"", b"no head", b"\x80\x04N."])
def test_a_damaged_file_is_refused(tmp_path, ending, content):
    path = tmp_path / f"head{ending}"
    path.write_bytes(content)

    with pytest.raises(
        gb.HeadDataError, match=r"must be a head written by HeadData.sa"
    ):
        gb.HeadData.load(path)


def test_a_torn_tensor_file_is_refused_at_every_length(tmp_path):
    path = tmp_path / "head.safetensors"
    gb.HeadData([0.5, 0.5], [[1.0], [2.0]]).save(path)
    whole = path.read_bytes()

    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(gb.HeadDataError, match="must be a head written by"):
            gb.HeadData.load(path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"weights": np.ones(2)},
        {"header": header()},
        {"header": np.frombuffer(b"{", dtype=np.uint8), "weights": np.ones(2)},
        {"header": np.frombuffer(b"\xff", dtype=np.uint8), "weights": np.ones(2)},
    ],
)
def test_an_archive_without_header_or_weights_is_refused(tmp_path, arrays):
    path = tmp_path / "head.npz"
    np.savez(path, **arrays)

    with pytest.raises(
        gb.HeadDataError, match=r"must be a head written by HeadData.sa"
    ):
        gb.HeadData.load(path)


@pytest.mark.parametrize("metadata", [None, {}, {"other": "1"}, {"header": "{"}])
def test_a_tensor_file_without_header_is_refused(tmp_path, metadata):
    path = tmp_path / "head.safetensors"
    save_file({"weights": np.ones(2)}, path, metadata=metadata)

    with pytest.raises(
        gb.HeadDataError, match=r"must be a head written by HeadData.sa"
    ):
        gb.HeadData.load(path)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '"geobounds-head-1"',
        "{}",
        '{"format": "x"}',
        '{"format": "geobounds-head-2", "dtypes": [null, null]}',
    ],
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_of_another_format_is_refused(tmp_path, ending, text):
    path = tmp_path / f"head{ending}"
    np.savez(
        tmp_path / "head.npz",
        header=np.frombuffer(text.encode(), dtype=np.uint8),
        weights=np.ones(2),
    )
    save_file(
        {"weights": np.ones(2)},
        tmp_path / "head.safetensors",
        metadata={"header": text},
    )

    with pytest.raises(gb.HeadDataError, match=r"must (have the format|be a head wr)"):
        gb.HeadData.load(path)


def test_a_file_that_holds_no_valid_head_is_refused(tmp_path):
    path = tmp_path / "head.npz"
    np.savez(path, header=header(sink=5), weights=np.ones(2))

    with pytest.raises(gb.HeadDataError, match="sink must lie between 0 and 1"):
        gb.HeadData.load(path)


def test_a_file_may_leave_out_all_but_the_weights(tmp_path):
    path = tmp_path / "head.npz"
    np.savez(path, header=header(), weights=np.array([0.5, 0.5]))
    head = gb.HeadData.load(path)

    assert (head.n_key, head.values, head.sink, head.meta) == (2, None, 0, {})


# One layer (rows 8, 9, 10 of the replay)


def test_grouped_queries_read_the_values_of_their_group():
    """Rows 8 and 9: values filled with their KV head's number, 4 heads on 2."""
    weights = np.full((4, 3), 0.25)
    values = np.stack([np.full((3, 2), h) for h in range(2)])
    found = gb.split_heads(weights, values)

    assert [head.values[0, 0] for head in found] == [0, 0, 1, 1]
    assert all((head.values == head.values[0, 0]).all() for head in found)


def test_eight_heads_on_two_kv_heads_keep_their_own_weights():
    """Row 8."""
    weights = np.arange(1, 25).reshape(8, 3) / 32
    found = gb.split_heads(weights, np.ones((2, 3, 1)))

    assert [head.weights[0].tolist() for head in found] == weights.tolist()


def test_four_heads_on_one_kv_head_give_four_results():
    """Row 10: results per query head; nothing is merged."""
    weights = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]] * 2)
    found = gb.split_heads(weights, np.array([[[1.0], [1.0], [-1.0]]]))

    assert len(found) == 4
    assert [gb.measure(head, 1).selected.tolist() for head in found] == [[0], [1]] * 2


def test_options_hold_for_every_head_of_a_layer():
    weights = np.full((2, 2, 3), 0.25)
    weights[:, 0, 2] = 0
    options = {"visible": "causal", "sink": 1, "meta": {"layer": 0}}
    found = gb.split_heads(torch.from_numpy(weights), torch.ones(1, 3, 2), **options)

    assert [(head.sink, head.meta) for head in found] == [(1, {"layer": 0})] * 2
    assert found[1].visible.tolist() == [[True, True, False], [True] * 3]


def test_a_layer_may_be_given_as_bits_of_bfloat16():
    layer = torch.full((2, 3), 0.25, dtype=torch.bfloat16)
    values = torch.ones(1, 3, 1, dtype=torch.bfloat16)
    bits = [x.view(torch.uint16).numpy() for x in (layer, values)]
    found = gb.split_heads(*bits, dtype="bfloat16", sink=1)
    expected = gb.split_heads(layer, values, sink=1)

    assert [x.digest() for x in found] == [x.digest() for x in expected]
    assert {(x.dtype_name, x.value_dtype_name) for x in found} == {("bfloat16",) * 2}
    with pytest.raises(TypeError, match=r"^split_heads: dtype must be \"bfloat16\""):
        gb.split_heads(layer.float().numpy(), bits[1], dtype="bfloat16")


def test_the_heads_of_a_bfloat16_layer_say_so():
    layer = torch.full((2, 3), 0.25, dtype=torch.bfloat16)
    found = gb.split_heads(layer, torch.ones(1, 3, 1))

    assert {head.dtype_name for head in found} == {"bfloat16"}
    assert {head.value_dtype_name for head in found} == {"float32"}
    assert found[0].weights.dtype == np.float32


# Properties


@given(heads())
def test_a_head_keeps_the_numbers_it_is_given(case):
    """Fails if anything is normalised, rounded or masked away."""
    head = build(case)

    assert head.weights[0].tolist() == case.weights.tolist()
    assert head.values.tolist() == case.values.tolist()
    assert head.visible[0].tolist() == case.visible.tolist()
    assert head.mass[0] == sum(map(Fraction, case.weights.tolist()))
    assert head.problems == {}


@given(heads())
def test_bytes_of_a_saved_head_give_the_same_digest(tmp_path_factory, case):
    head = build(case)
    path = tmp_path_factory.mktemp("head") / "h.npz"
    head.save(path)

    assert gb.HeadData.load(path).digest() == head.digest()


# Errors


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((), r"got shape \(\)\.$"),
        (
            (2, 3, 4),
            r"Axis 0 \(length 2\) looks like a head axis: pass weights\[h\], or",
        ),
        (
            (2, 3, 4, 4),
            r"Axis 0 \(length 2\) .*batch axis and axis 1 \(length 3\) .*s\[b, h\], or",
        ),
        ((1, 1, 1, 1, 1), r"got shape \(1, 1, 1, 1, 1\)\.$"),
    ],
)
def test_an_axis_too_many_is_named(shape, hint):
    """Row 39."""
    message = r"^HeadData: weights must have shape \(n_query, n_key\) or \(n_key,\), "

    with pytest.raises(gb.HeadDataError, match=message + ".*" + hint):
        gb.HeadData(np.full(shape, 0.5))


def test_a_tuple_of_layers_is_explained():
    """Row 7: attentions as a model returns them."""
    layers = tuple(np.ones((1, 2, 3, 3)) for _ in range(2))
    message = (
        r"^HeadData: weights must be one array, got a tuple of arrays of shape "
        r"\(1, 2, 3, 3\)\. Models return one array per layer: .*"
        r"weights\[layer\]\[batch, head\]\.$"
    )

    with pytest.raises(TypeError, match=message):
        gb.HeadData(layers)
    with pytest.raises(TypeError, match=r"^split_heads: weights must be one array"):
        gb.split_heads(layers, np.ones((1, 3, 1)))
    with pytest.raises(TypeError, match=r"^split_heads: values must be one array"):
        gb.split_heads(np.ones((2, 3)), layers)


def test_a_tuple_of_tuples_is_explained():
    """Row 7: attentions of a generation, of tensors."""
    steps = ((torch.ones(1, 2, 3, 3),), (torch.ones(1, 2, 1, 4),))
    message = (
        r"got a tuple of tuples \(2 levels\) of arrays of shape \(1, 2, 3, 3\)\. .*"
        r"one tuple per generated token.*weights\[step\]\[layer\]\[batch, head\]\.$"
    )

    with pytest.raises(TypeError, match=message):
        gb.HeadData(steps)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_a_head_without_queries_or_keys_is_refused(shape):
    with pytest.raises(gb.HeadDataError, match="at least one query and one key, got"):
        gb.HeadData(np.zeros(shape), visible="all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"visible must be given for 2 queries, got None\. Pass \"causal\""),
        ({"visible": "none"}, r"visible must be \"causal\", \"all\" or a bool array"),
        (
            {"visible": [[True, True]]},
            r"visible must have the shape of weights \(2, 2\), got shape \(1, 2\)",
        ),
        (
            {"visible": [True, True]},
            r"visible must have the shape of weights \(2, 2\), got shape \(2,\)",
        ),
        (
            {"visible": "all", "query_positions": [1]},
            r"query_positions must have shape \(2,\), got shape \(1,\)",
        ),
        (
            {"visible": "all", "query_positions": [0, -1]},
            "query_positions must be non-negative and below",
        ),
        (
            {"visible": "all", "sink": 2},
            r"sink must lie between 0 and 1 \(2 keys\), got sink=2",
        ),
        ({"visible": "all", "sink": -1}, "got sink=-1"),
        (
            {"visible": "all", "meta": {"a": {1}}},
            r"meta must be JSON data, got \{'a': \{1\}\} \(",
        ),
        ({"visible": "all", "meta": {"a": np.nan}}, "meta must be JSON data, got"),
        (
            {"visible": "all", "values": [[1.0]]},
            r"values must have shape \(2, d_head\) for 2 keys, got shape \(1, 1\)",
        ),
        ({"visible": "all", "values": [1.0, 2.0]}, r"got shape \(2,\)"),
        ({"visible": "all", "values": np.ones((2, 0))}, r"got shape \(2, 0\)"),
        ({"visible": "all", "values": np.ones((1, 2, 3))}, r"got shape \(1, 2, 3\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(options, message):
    with pytest.raises(gb.HeadDataError, match=r"^HeadData: .*" + message):
        gb.HeadData([[0.5, 0.5], [0.5, 0.5]], **options)


def test_the_mask_of_one_row_is_asked_for_in_its_own_shape():
    message = r"shape of weights \(2,\), got shape \(3,\)"

    with pytest.raises(gb.HeadDataError, match=message):
        gb.HeadData([0.5, 0.5], visible=[True] * 3)


def test_a_ragged_list_is_refused():
    with pytest.raises(gb.HeadDataError, match="rectangular array, got a ragged list"):
        gb.HeadData([[0.5, 0.5], [0.5]], visible="all")


@pytest.mark.parametrize(
    ("integer", "dtype"),
    [(2**53 + 1, "int64"), (-(2**53) - 1, "int64"), (2**63 + 1, "uint64")],
)
def test_an_integer_that_no_float_may_hold_is_refused(integer, dtype):
    message = (
        rf"values must be exact as float64, got the integer {abs(integer)} > 2\*\*"
    )

    with pytest.raises(gb.HeadDataError, match=message):
        gb.HeadData([0.5, 0.5], np.array([[integer], [1]], dtype=dtype))


@pytest.mark.parametrize(
    "weights",
    ["abc", [None], [1j], [[object()]], [np.datetime64(1, "s")], (None, None)],
)
def test_what_is_no_real_number_is_refused(weights):
    message = "weights must be float16, bfloat16, float32 or float64, got dtype"

    with pytest.raises(TypeError, match=message):
        gb.HeadData(weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"visible": [1, 0]},
            r"bool array, got dtype int64\. An additive mask becomes",
        ),
        ({"visible": [0.0, -np.inf]}, "bool array, got dtype float64"),
        (
            {"query_positions": [0.5]},
            "query_positions must be integers, got dtype float",
        ),
        ({"sink": True}, "sink must be a key index or None, got sink=True"),
    ],
)
def test_arguments_of_another_kind_are_refused(options, message):
    with pytest.raises(TypeError, match=r"^HeadData: .*" + message):
        gb.HeadData([0.5, 0.0], **options)


@pytest.mark.parametrize("sink", ["0", 0.0])
def test_a_sink_that_is_no_index_is_refused(plain, sink):
    message = f"^HeadData: sink must be a key index or None, got sink={sink!r}"

    with pytest.raises(TypeError, match=message):
        plain.HeadData([0.5, 0.0], sink=sink)


def test_a_truth_value_is_no_query():
    with pytest.raises(TypeError, match=r"^HeadData: query must be an int, got .*True"):
        gb.HeadData([0.5, 0.5])[True]


@pytest.mark.parametrize("query", [0.0, None, "0", slice(0, 1)])
def test_a_query_that_is_no_int_is_refused(plain, query):
    head = plain.HeadData([0.5, 0.5])

    with pytest.raises(TypeError, match=r"^HeadData: query must be an int, got query="):
        head[query]


@pytest.mark.parametrize("query", [2, -3])
def test_a_query_out_of_range_is_refused(query):
    head = gb.HeadData(WEIGHTS, visible="causal")
    message = rf"query must lie between -2 and 1, got query={query}\."

    with pytest.raises(gb.ArgumentError, match=r"^HeadData: " + message):
        head[query]
    with pytest.raises(gb.ArgumentError, match=r"^digest: " + message):
        head.digest(query)


@pytest.mark.parametrize(
    ("weights", "values", "message"),
    [
        ((3,), (1, 3, 2), r"weights must have shape \(n_heads, n_query, n_key\) or"),
        (
            (2, 4, 3, 3),
            (1, 3, 2),
            r"Axis 0 \(length 2\) looks like a batch axis: pass weights\[b\]",
        ),
        ((4, 3), (3, 2), r"values must have shape \(n_kv_heads, n_key, d_head\), got"),
        (
            (4, 3),
            (2, 1, 3, 2),
            r"got shape \(2, 1, 3, 2\)\. Axis 0 \(length 2\) .*: pass values\[b\]",
        ),
        ((4, 3), (3, 3, 2), "divide the number of heads, got 4 heads and 3 KV heads"),
        ((4, 3), (0, 3, 2), "got 4 heads and 0 KV heads"),
    ],
)
def test_a_layer_that_does_not_split_is_refused(weights, values, message):
    """Row 39: the axis is named."""
    with pytest.raises(gb.HeadDataError, match=r"^split_heads: .*" + message):
        gb.split_heads(np.full(weights, 0.25), np.ones(values))
