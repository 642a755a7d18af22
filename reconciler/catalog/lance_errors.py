"""Exceptions of lance, obstore and the operating system as CatalogError.

pylance raises generic types, so the text decides. Text is cleaned before it is shown: no Rust source positions, no
credentials (object stores echo request headers and URLs with signatures in their errors). What is known to be secret
goes first: what looks like a credential may be only a part of it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.catalog.known_secrets import without_secrets
from reconciler.model.errors import CatalogError, Code

_RUST_POSITION = re.compile(r",?\s*(?:at )?/?(?:[\w.+-]+/)+[\w.-]+\.rs:\d+(?::\d+)?")
_SIGNED_QUERY = re.compile(r"\?[^\s\"']*(?:X-Amz-|sig=|Signature=)[^\s\"']*")
_CREDENTIAL = re.compile(
    r"(?i)((?:secret|token|password|credential|access_?key(?:_?id)?|account_?key|authorization|api_?key|sas)[\w-]*"
    r"[\"']?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|(?:bearer|basic)\s+[^\s\"'})\]]+|[^\s,;})\]]+)"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+(?=[^\s\"']*\d)[^\s\"'})\]]{8,}")
"""A header without its name. Words of a sentence ("Basic authentication") have no digits."""
_LONGEST = 600
_MOST_READ = 4096
"""Of a text that a service chose: the patterns take time that grows with its square."""
_DEBUG_TAIL = re.compile(r"\s*(?:Debug source:|stack backtrace:).*", re.DOTALL)
_XML = re.compile(r"<(AWSAccessKeyId|StringToSign|SignatureProvided|CanonicalRequest|RequestId|HostId)>.*?</\1>", re.S)

_CONFLICT = ("retryable commit conflict", "commit conflict", "incompatible transaction", "concurrent transaction",
             "preempted by", "fragment ids must be unique")  # fmt: skip
_RULES: tuple[tuple[tuple[str, ...], Code], ...] = (
    (_CONFLICT, Code.CONCURRENT_MODIFICATION),
    (("permission denied", "access denied", "accessdenied", "forbidden"), Code.PERMISSION_DENIED),
    (("unauthenticated", "unauthorized", "invalidaccesskeyid", "signaturedoesnotmatch", "expiredtoken"),
     Code.UNAUTHENTICATED),
    (("slowdown", "too many requests", "throttl"), Code.THROTTLING),
    (("timed out", "timeout", "connection refused", "connection reset", "connection closed", "error sending request",
      "dns error", "503 service", "service unavailable", "500 internal", "502 bad", "504 gateway"),
     Code.SERVICE_UNAVAILABLE),
    (("dataset already exists",), Code.TABLE_ALREADY_EXISTS),
    (("index not found",), Code.TABLE_INDEX_NOT_FOUND),
    (("index name",), Code.TABLE_INDEX_ALREADY_EXISTS),
    (("does not exist in the dataset", "not found in schema", "column not found"), Code.TABLE_COLUMN_NOT_FOUND),
    (("was not found",), Code.TABLE_NOT_FOUND),
    (("cannot cast", "type conflicts", "cast error", "contains null", "non-nullable", "duplicate field",
      "already exists in the dataset", "can't cast", "schema"), Code.TABLE_SCHEMA_VALIDATION_ERROR),
    (("not supported", "unsupported"), Code.UNSUPPORTED),
    (("invalid user input", "invalid input"), Code.INVALID_INPUT),
)  # fmt: skip
_MISFITS = ("can't cast value", "cannot cast timezone to different timezone", "arithmetic overflow", "would overflow",
            "dictionary key bigger", "too large to store in a decimal", "too small to store in a decimal")  # fmt: skip
"""A cast that lance can do, but not with these values."""
_OS_ERROR = re.compile(r"(?:\(os error |\[errno )(\d{1,3})[)\]]")
"""As Rust and Arrow write failed system calls into their messages: they get the same words as those of Python."""
_STATUS = re.compile(r"\b(?:status(?: code)?|http)[:= ]+(401|403|429)\b")
_STATUS_CODES = {"401": Code.UNAUTHENTICATED, "403": Code.PERMISSION_DENIED, "429": Code.THROTTLING}
"""Only where a status is announced: timings, ports and table names hold the same digits."""
_UNKNOWN_AFTER_WRITE = frozenset({Code.SERVICE_UNAVAILABLE, Code.THROTTLING})
_ERRNO = {
    errno.EACCES: (Code.PERMISSION_DENIED, "permission denied: give this user read and write access"),
    errno.EPERM: (Code.PERMISSION_DENIED, "permission denied: give this user read and write access"),
    errno.EROFS: (Code.PERMISSION_DENIED, "the file system is read-only: mount it writable, or choose another place"),
    errno.ENOSPC: (Code.INTERNAL, "the disk is full: free some space and run again, nothing was overwritten"),
    errno.EDQUOT: (Code.INTERNAL, "the disk quota is used up: free some space and run again"),
    errno.EFBIG: (Code.INTERNAL, "the file size limit of this process is too small"),
    errno.ENOTDIR: (Code.INVALID_INPUT, "a file is where a folder is expected"),
    errno.ENAMETOOLONG: (Code.INVALID_INPUT, "the name is too long for this file system"),
}


def clean(text: str, longest: int = _LONGEST) -> str:
    """One line without Rust positions, without what is known to be secret and what looks like a credential; cut last,
    because half a secret is past knowing."""
    text = _DEBUG_TAIL.sub("", without_secrets(text[:_MOST_READ]))
    text = _XML.sub("", text)
    text = _SIGNED_QUERY.sub("?…", text)
    text = _CREDENTIAL.sub(r"\1***", text)
    text = _SCHEME.sub(r"\1 ***", text)
    text = _RUST_POSITION.sub("", text)
    text = " ".join(text.split())
    return text if len(text) <= longest else text[:longest] + " …"


def is_conflict(error: BaseException) -> bool:
    text = str(error).lower()
    return type(error).__name__ == "CommitConflictError" or any(t in text for t in _CONFLICT)


def is_missing_dataset(error: BaseException) -> bool:
    """pylance says this for a folder that is not there and for one that holds something else."""
    text = str(error)
    return isinstance(error, (ValueError, OSError)) and "was not found" in text and "Dataset at path" in text


def to_catalog_error(error: BaseException, doing: str, *, write: bool) -> CatalogError:
    """`doing` says what was tried and where: "open s3://…/t". A write that timed out may have landed."""
    if isinstance(error, CatalogError):
        return error
    if isinstance(error, OSError) and error.errno in _ERRNO:
        code, why = _ERRNO[error.errno]
        return CatalogError(code, f"cannot {doing}: {why}")
    text = clean(str(error))
    lowered = text.lower()
    if (known := system_error(text, doing)) is not None:
        return known
    if "nosuchbucket" in lowered.replace(" ", "") or "bucket does not exist" in lowered:
        return CatalogError(
            Code.INVALID_INPUT, f"cannot {doing}: the bucket does not exist; create it or correct spec.path"
        )
    if any(t in lowered for t in _MISFITS):
        advice = "values in there do not fit the new type: change those rows first, or keep a type that holds them"
        return CatalogError(Code.TABLE_SCHEMA_VALIDATION_ERROR, f"cannot {doing}: {text}; {advice}")
    code = Code.CONCURRENT_MODIFICATION if is_conflict(error) else _code(lowered)
    unknown = write and code in _UNKNOWN_AFTER_WRITE
    return CatalogError(code, f"cannot {doing}: {text or type(error).__name__}", unknown_outcome=unknown)


def system_error(text: str, doing: str) -> CatalogError | None:
    """For a text that tells of a system call which failed for a reason that we have words for, such as a full disk."""
    number = _OS_ERROR.search(text.lower())
    if number is None or int(number.group(1)) not in _ERRNO:
        return None
    code, why = _ERRNO[int(number.group(1))]
    return CatalogError(code, f"cannot {doing}: {why} ({clean(text)})")  # The text may name the one file.


def _code(lowered: str) -> Code:
    if status := _STATUS.search(lowered):
        return _STATUS_CODES[status.group(1)]
    return next((code for texts, code in _RULES if any(t in lowered for t in texts)), Code.INTERNAL)


@contextmanager
def translated(doing: str, *, write: bool = False) -> Iterator[None]:
    """Everything that is not a CatalogError becomes one, a panic of the Rust core included (a BaseException)."""
    try:
        yield
    except (CatalogError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        raise to_catalog_error(error, doing, write=write) from error
