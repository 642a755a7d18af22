"""What Glue, STS and botocore say, as the Lance codes.

The seed's table has 16 for a refused access; the current Lance table has 15 for that and 16 for unknown credentials,
and the current table wins. A missing object that Lake Formation hides behind AccessDenied stays 15: never "absent".
"""

from __future__ import annotations

from typing import Any

from reconciler.catalog.glue_session import BrokenAnswer, RefusedAnswer
from reconciler.catalog.http_transport import Broken
from reconciler.catalog.lance_errors import clean
from reconciler.catalog.service import is_page
from reconciler.catalog.statuses import may_have_landed, may_pass
from reconciler.model.errors import CatalogError, Code

_UNDECODABLE = (RecursionError, UnicodeDecodeError)
"""What botocore's parser fails with on an error whose body is no JSON of this world."""
NOT_FOUND = frozenset({"EntityNotFoundException"})
_NO_SUCH_OPERATION = frozenset({"UnknownOperationException", "InvalidAction"})
EXISTS = frozenset({"AlreadyExistsException", "FederatedResourceAlreadyExistsException"})
_CODES = {
    "InvalidInputException": Code.INVALID_INPUT,
    "ValidationException": Code.INVALID_INPUT,
    "ConcurrentModificationException": Code.CONCURRENT_MODIFICATION,
    "AccessDeniedException": Code.PERMISSION_DENIED,
    "AccessDenied": Code.PERMISSION_DENIED,
    "UnrecognizedClientException": Code.UNAUTHENTICATED,
    "ExpiredTokenException": Code.UNAUTHENTICATED,
    "ExpiredToken": Code.UNAUTHENTICATED,
    "InvalidSignatureException": Code.UNAUTHENTICATED,
    "SignatureDoesNotMatch": Code.UNAUTHENTICATED,
    "IncompleteSignature": Code.UNAUTHENTICATED,
    "MissingAuthenticationToken": Code.UNAUTHENTICATED,
    "InvalidClientTokenId": Code.UNAUTHENTICATED,
    "ThrottlingException": Code.THROTTLING,
    "Throttling": Code.THROTTLING,
    "TooManyRequestsException": Code.THROTTLING,
    "RequestLimitExceeded": Code.THROTTLING,
    "OperationTimeoutException": Code.SERVICE_UNAVAILABLE,
    "ResourceNotReadyException": Code.SERVICE_UNAVAILABLE,
    "FederationSourceRetryableException": Code.SERVICE_UNAVAILABLE,
    "RequestTimeout": Code.SERVICE_UNAVAILABLE,
    "RequestTimeoutException": Code.SERVICE_UNAVAILABLE,
    "ServiceUnavailable": Code.SERVICE_UNAVAILABLE,
    "ServiceUnavailableException": Code.SERVICE_UNAVAILABLE,
    "InternalServiceException": Code.INTERNAL,
    "InternalFailure": Code.INTERNAL,
    "ResourceNumberLimitExceededException": Code.INTERNAL,
    "GlueEncryptionException": Code.INTERNAL,
    "FederationSourceException": Code.INTERNAL,
    "UnknownOperationException": Code.UNSUPPORTED,
    "InvalidAction": Code.UNSUPPORTED,
}
_STATUS = {401: Code.UNAUTHENTICATED, 403: Code.PERMISSION_DENIED, 408: Code.SERVICE_UNAVAILABLE,
           425: Code.SERVICE_UNAVAILABLE, 429: Code.THROTTLING, 501: Code.UNSUPPORTED,
           502: Code.SERVICE_UNAVAILABLE, 503: Code.SERVICE_UNAVAILABLE, 504: Code.SERVICE_UNAVAILABLE}  # fmt: skip
_PASSING_NAMES = frozenset({"InternalServiceException", "InternalFailure"})
_MAY_HAVE_LANDED = frozenset({
    "OperationTimeoutException", "FederationSourceRetryableException", "InternalServiceException", "InternalFailure",
    "RequestTimeout", "RequestTimeoutException",
})  # fmt: skip
"""Errors below 500 after which a write may be there all the same, or may yet come."""
_HINTS = {
    Code.PERMISSION_DENIED: "; check the IAM policy and the Lake Formation permissions of this caller",
    Code.UNAUTHENTICATED: "; check the credentials, their expiry and the clock of this machine",
}


def name_of(error: BaseException) -> str:
    """Glue's own name of the error, "" for anything else."""
    answer = getattr(error, "response", None)
    return str(answer.get("Error", {}).get("Code", "")) if isinstance(answer, dict) else ""


def status_of(error: BaseException) -> int:
    answer = getattr(error, "response", None)
    found: Any = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if isinstance(answer, dict) else 0
    return int(found)


def no_such_operation(error: BaseException | None) -> bool:
    """Only the service's own name for it: a bare 500 or 501 may be of any proxy, and says nothing."""
    return error is not None and name_of(error) in _NO_SUCH_OPERATION


def passes(error: BaseException) -> bool:
    """True when a read is worth another try."""
    if isinstance(error, CatalogError):
        return error.retryable and not error.spent
    if name_of(error) in _PASSING_NAMES or may_pass(status_of(error)):
        return status_of(error) != 501
    return to_catalog_error(error, "", write=False).retryable


def to_catalog_error(
    error: BaseException, doing: str, *, write: bool, missing: Code = Code.INTERNAL, exists: Code = Code.INTERNAL
) -> CatalogError:
    """`missing` and `exists`: what a not-found and an already-exists mean for this call."""
    if isinstance(error, CatalogError):
        return error
    name, status = name_of(error), status_of(error)
    if not name and not status:
        return _from_library(error, doing, write)
    if name in NOT_FOUND:
        code = missing
    elif name in EXISTS:
        code = exists
    else:
        code = _CODES.get(name) or _STATUS.get(status) or Code.INTERNAL
    unknown = write and (name in _MAY_HAVE_LANDED or may_have_landed(status))
    return CatalogError(code, f"{doing}: {_words(error, name)}{_HINTS.get(code, '')}", unknown_outcome=unknown)


def is_strange(error: BaseException) -> bool:
    """An answer that is none of Glue's: of a form that it never has, or an error for which botocore found no name and
    took the status."""
    from botocore.parsers import ResponseParserError

    if isinstance(error, (BrokenAnswer, ResponseParserError, *_UNDECODABLE)):
        return True
    return name_of(error).isdecimal() and 300 <= status_of(error) < 500 and status_of(error) not in _STATUS


def _words(error: BaseException, name: str) -> str:
    answer: Any = getattr(error, "response", {})
    said = clean(str(answer.get("Error", {}).get("Message", "")))
    if name.isdecimal():
        name = f"it answered {name}"
        said = "" if is_page(said) else said
    return f"{name}: {said}" if said else name


def never_sent(error: BaseException) -> bool:
    """No connection came about: the server has seen nothing."""
    from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError

    return isinstance(error, (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError))


def no_answer(error: BaseException) -> bool:
    """Nobody answered: no connection, or it broke. Also when that was the request for the keys of a role."""
    from botocore.exceptions import HTTPClientError

    own = error.__cause__ if isinstance(error, CatalogError) and error.__cause__ is not None else error
    return never_sent(own) or (isinstance(own, HTTPClientError) and not isinstance(own, RefusedAnswer))


def _from_library(error: BaseException, doing: str, write: bool) -> CatalogError:
    from botocore import exceptions as b
    from botocore.parsers import ResponseParserError

    told = error.__cause__ if isinstance(error.__cause__, Broken) else error  # in our own words
    text = clean(str(told)) or type(error).__name__
    if isinstance(error, RefusedAnswer):
        return CatalogError(Code.INTERNAL, f"{doing}: {text}", unknown_outcome=write)
    if isinstance(error, _UNDECODABLE):
        text = "the answer is not complete JSON"
    if isinstance(error, (b.NoCredentialsError, b.PartialCredentialsError, b.CredentialRetrievalError)):
        return CatalogError(
            Code.UNAUTHENTICATED, f"{doing}: {text}; give spec.access_key_id or use the AWS environment"
        )
    if isinstance(error, b.NoRegionError):
        return CatalogError(Code.INVALID_INPUT, f"{doing}: no AWS region: give spec.region or set AWS_REGION")
    if never_sent(error):
        return CatalogError(Code.SERVICE_UNAVAILABLE, f"{doing}: {text}")
    if isinstance(error, (b.HTTPClientError, ResponseParserError, BrokenAnswer, *_UNDECODABLE)):
        return CatalogError(Code.SERVICE_UNAVAILABLE, f"{doing}: {text}", unknown_outcome=write)
    if isinstance(error, (b.ParamValidationError, b.BotoCoreError, ValueError)):
        return CatalogError(Code.INVALID_INPUT, f"{doing}: {text}")
    if isinstance(error, AttributeError):  # botocore's parser, on a list where a map belongs
        text = f"the answer does not have the form of Glue's API ({text})"
    return CatalogError(Code.INTERNAL, f"{doing}: {text}", unknown_outcome=write)
