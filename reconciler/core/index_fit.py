"""Which index fits which column, and what parameters it takes. Measured with pylance 14, on empty and filled tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.model.arrow import ArrowType, Decimal, FixedBinary, ListOf, MapOf, Scalar, Struct, Temporal
from reconciler.model.state import VECTOR_INDEXES, Index, Param

_TEXT = frozenset({"string", "large_string"})
_FLOATS = frozenset({"float16", "float32", "float64"})
_UNSORTED = frozenset({"null", "blob"})
_UNHASHED = frozenset({"bool", "float16"})


def unsuitable(index: Index, type_: ArrowType) -> str | None:
    """Why pylance would refuse this index on a column of this type, or None. It takes a zonemap on any type."""
    if index.type in VECTOR_INDEXES:
        return _vector(index, type_)
    match index.type:
        case "label_list":
            fits = isinstance(type_, ListOf) and type_.size is None and not _nested(type_.item)
            return None if fits else "it needs a list or large_list of plain values"
        case "inverted":
            inner = type_.item if isinstance(type_, ListOf) and type_.size is None else type_
            return None if _text(inner) else "it needs a string column or a list of strings"
        case "ngram":
            return None if _text(type_) else "it needs a string column"
        case "btree" | "bitmap":
            fits = sortable(type_)
            return (
                None if fits else "it needs a column of plain values, not lists, structs, maps, dictionaries or blobs"
            )
        case "bloomfilter":
            fits = sortable(type_) and _hashable(type_)
            return None if fits else "it needs integers, float32, float64, strings, binary, dates, times or timestamps"
        case _:
            return None


_PQ_BITS = (4, 8)
_SQ_BITS = 8
_RQ_BITS = 9
_LEAST_M, _M, _EF = 4, 20, 150
_NGRAM = 3
_HNSW: Mapping[str, Param] = {"m": _M, "ef_construction": _EF, "max_level": 7}
_BITS = {"pq": 8, "sq": 8, "rq": 5}
_TEXT_INDEX: Mapping[str, Param] = {
    "with_position": False, "base_tokenizer": "simple", "language": "English", "max_token_length": 40,
    "lower_case": True, "stem": True, "remove_stop_words": True, "ascii_folding": True, "min_ngram_length": _NGRAM,
    "max_ngram_length": _NGRAM, "prefix_only": False, "block_size": 128, "document_granularity": "row",
}  # fmt: skip
_EXACT: Mapping[str, Param] = {"stem": False, "remove_stop_words": False}
_OF_TOKENIZER: Mapping[str, Mapping[str, Param]] = {
    "ngram": _EXACT,
    "code": {
        **_EXACT, "split_identifiers": False, "split_on_numerics": True, "preserve_original": True,
        "index_operators": False,
    },
}  # fmt: skip
_MODELS = ("jieba", "lindera")
_TOKENIZERS = ("simple", "whitespace", "raw", "ngram", "icu", "icu/split", "code", "jieba")
_LANGUAGES = (
    "Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian",
    "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish",
)  # fmt: skip


def defaults(type_: str, params: Mapping[str, Param]) -> dict[str, Param]:
    """What pylance gives an index that is built with `params`: of each parameter that it takes and that does not depend
    on the rows."""
    if type_ == "inverted":
        return {**_TEXT_INDEX, **_OF_TOKENIZER.get(str(params.get("base_tokenizer")), {})}
    if type_ not in VECTOR_INDEXES:
        return {}
    kind = type_[-2:]
    quantized: dict[str, Param] = {"num_bits": _BITS[kind]} if kind in _BITS else {}
    return {"metric": "l2", **quantized, **(_HNSW if "hnsw" in type_ else {})}


def not_taken(params: Mapping[str, Param], type_: str) -> Iterator[tuple[str, str]]:
    """Values that pylance refuses, some of them only once there are rows, or does not do, with the reason; by name.
    What is left out has the default of pylance."""
    bits, parts = params.get("num_bits"), params.get("num_sub_vectors")
    if isinstance(bits, int):
        if type_.endswith("pq") and bits not in _PQ_BITS:
            yield "num_bits", f"Lance quantizes products with {' or '.join(map(str, _PQ_BITS))} bits"
        elif type_.endswith("sq") and bits != _SQ_BITS:
            yield "num_bits", f"Lance quantizes scalars with {_SQ_BITS} bits, whatever is asked for"
        elif type_.endswith("rq") and bits > _RQ_BITS:
            yield "num_bits", f"Lance takes 1 to {_RQ_BITS} bits"
    if bits == _PQ_BITS[0] and isinstance(parts, int) and parts % 2:
        yield "num_sub_vectors", f"with {bits} bits it must be even"
    m, ef = params.get("m", _M), params.get("ef_construction", _EF)
    if isinstance(m, int) and isinstance(ef, int):
        if m < _LEAST_M:
            yield "m", f"Lance takes {_LEAST_M} or more"
        if ef < m:
            key = "ef_construction" if "ef_construction" in params else "m"
            yield key, f"ef_construction ({ef}) must not be less than m ({m})"
    if type_ == "inverted":
        yield from _not_tokenized(params)


def _not_tokenized(params: Mapping[str, Param]) -> Iterator[tuple[str, str]]:
    language, tokenizer = str(params.get("language", _LANGUAGES[0])), str(params.get("base_tokenizer", _TOKENIZERS[0]))
    if language not in _LANGUAGES:
        yield "language", f"{language!r} is not one of {', '.join(_LANGUAGES)}"
    family, _, model = tokenizer.partition("/")
    if tokenizer not in _TOKENIZERS and not (family in _MODELS and model):
        known = (*_TOKENIZERS, *(f"{family}/MODEL" for family in _MODELS))
        yield "base_tokenizer", f"{tokenizer!r} is not one of {', '.join(known)}"
    shortest, longest = (params.get(f"{side}_ngram_length", _NGRAM) for side in ("min", "max"))
    if tokenizer == "ngram" and isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        key = "min_ngram_length" if "min_ngram_length" in params else "max_ngram_length"
        yield key, f"min_ngram_length ({shortest}) must not be more than max_ngram_length ({longest})"


_BINARY = ("ivf_flat", "ivf_hnsw_flat")


def _vector(index: Index, type_: ArrowType) -> str | None:
    if not isinstance(type_, ListOf) or type_.size is None:
        return "a vector index needs a fixed_size_list column"
    item = type_.item.name if isinstance(type_.item, Scalar) else str(type_.item)
    if item not in _FLOATS and item != "uint8":
        return "the vector's items must be float16, float32, float64 or uint8"
    if (index.params.get("metric") == "hamming") != (item == "uint8"):
        return "the metric hamming needs uint8 items, and uint8 items the metric hamming"
    if item == "uint8" and index.type not in _BINARY:
        return f"uint8 items can only have {' or '.join(_BINARY)}"
    parts = index.params.get("num_sub_vectors")
    if isinstance(parts, int) and type_.size % parts:
        return f"num_sub_vectors {parts} does not divide the size {type_.size}"
    return None


def _nested(type_: ArrowType) -> bool:
    return isinstance(type_, ListOf | Struct | MapOf) or type_ == Scalar("blob")


def _text(type_: ArrowType) -> bool:
    return isinstance(type_, Scalar) and type_.name in _TEXT


def sortable(type_: ArrowType) -> bool:
    """Plain values, which have an order."""
    if isinstance(type_, Scalar):
        return type_.name not in _UNSORTED
    return isinstance(type_, Temporal | Decimal | FixedBinary)


def _hashable(type_: ArrowType) -> bool:
    if isinstance(type_, Scalar):
        return type_.name not in _UNHASHED
    return isinstance(type_, Temporal) and type_.name != "duration"
