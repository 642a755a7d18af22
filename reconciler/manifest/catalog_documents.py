"""`spec` of a Catalog document as pydantic models, one for each built-in type and one for what plug-ins serve.

They say the same as `catalog.*` in the JSON Schema, which a test proves with generated documents. Keys are flat: a dot
in a key is part of its name.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from reconciler.manifest.ages import Retention
from reconciler.model.coverage import DEFAULT_MAX_ROWS, DEFAULT_MAX_UNINDEXED
from reconciler.model.spark import DEFAULT_IN_PROCESS_BYTES, DEFAULT_IN_PROCESS_ROWS


def whole(value: object) -> object:
    """`integer` in JSON Schema takes 20.0 for 20."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


ABSENT: Any = None
"""The default of lists and mappings: pydantic deep-copies a mutable default for every document. A null that is
written is refused, because defaults are not validated and values are."""

Element = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$")]
NonEmpty = Annotated[str, StringConstraints(min_length=1)]
CatalogName = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Id = Annotated[list[Element], Field(min_length=1, max_length=32)]
Count = Annotated[int, BeforeValidator(whole), Field(ge=0, le=2**31 - 1)]

Reference = Annotated[str, StringConstraints(pattern=r"^\$\{(env|file):[^}]*\}$")]
Flag = bool | Reference
Address = Annotated[str, StringConstraints(pattern=r"^(https?://[^/\s]|\$\{(env|file):)")]
ApiPath = Annotated[str, StringConstraints(min_length=1, pattern=r"^(/|\$\{(env|file):)")]
Milliseconds = Annotated[int, BeforeValidator(whole), Field(ge=1, le=86_400_000)] | Reference
Seconds = Annotated[int, BeforeValidator(whole), Field(ge=1, le=86_400)] | Reference
Retries = Annotated[int, BeforeValidator(whole), Field(ge=0, le=100)] | Reference
RoleSeconds = Annotated[int, BeforeValidator(whole), Field(ge=901, le=43_200)] | Reference


class Thresholds(Strict):
    deletes: Count = 10
    deletePercent: Annotated[float, BeforeValidator(_number), Field(ge=0, le=100)] = 20.0


RowCount = Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**15)]
Share = Annotated[str, StringConstraints(pattern=r"^(100|[0-9]{1,2}(\.[0-9]{1,6})?)%$")]


class IndexRefreshSpec(Strict):
    maxRows: RowCount = DEFAULT_MAX_ROWS
    maxUnindexed: RowCount | Share = DEFAULT_MAX_UNINDEXED


class InProcessSpec(Strict):
    maxRows: RowCount = DEFAULT_IN_PROCESS_ROWS
    maxBytes: RowCount = DEFAULT_IN_PROCESS_BYTES


class ManagementSpec(Strict):
    owner: Element = "default"
    adopt: bool = False
    ignore: list[NonEmpty] = ABSENT
    thresholds: Thresholds = Thresholds()
    indexRefresh: bool | Annotated[int, BeforeValidator(whole), Field(ge=0, le=0)] | IndexRefreshSpec = True
    tagRetention: Retention = "30d"
    inProcess: InProcessSpec = InProcessSpec()
    expect: Annotated[dict[NonEmpty, NonEmpty], Field(min_length=1)] = ABSENT


class Flat(Strict):
    """Further keys are those that start with one of `prefixes`; and a key that is written has a value."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, str]
    prefixes: ClassVar[tuple[str, ...]] = ("storage.",)
    needs: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Keys that make no sense without others."""
    excludes: ClassVar[tuple[tuple[str, str], ...]] = ()
    either: ClassVar[tuple[str, ...]] = ()
    """Keys of which one is needed, and only one."""

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for key, value in data.items():
            if (key not in known and not key.startswith(cls.prefixes)) or value is None:
                raise ValueError(f"unknown key or missing value: {key}")
            if any(other not in data for other in cls.needs.get(key, ())):
                raise ValueError(f"{key} does not stand alone")
        if any(one in data and other in data for one, other in cls.excludes):
            raise ValueError("keys that exclude each other")
        if cls.either and sum(key in data for key in cls.either) != 1:
            raise ValueError("one of the keys is needed")
        return data


class _Catalog(Flat):
    management: ManagementSpec | None = None
    requireEnvironment: bool | None = None


class _Tls(_Catalog):
    ca_file: NonEmpty | None = Field(None, alias="tls.ca_file")
    cert_file: NonEmpty | None = Field(None, alias="tls.cert_file")
    key_file: NonEmpty | None = Field(None, alias="tls.key_file")
    verify: Flag | None = Field(None, alias="tls.verify")
    needs: ClassVar[dict[str, tuple[str, ...]]] = {"tls.key_file": ("tls.cert_file",)}


class _OAuth(_Tls):
    auth_token: NonEmpty | None = None
    credential: NonEmpty | None = None
    oauth2_server_uri: Address | None = None
    scope: NonEmpty | None = None
    connect_timeout: Milliseconds | None = None
    read_timeout: Milliseconds | None = None
    max_retries: Retries | None = None
    prefixes: ClassVar[tuple[str, ...]] = ("storage.", "header.")
    needs: ClassVar[dict[str, tuple[str, ...]]] = {
        **_Tls.needs,
        "oauth2_server_uri": ("credential",),
        "scope": ("credential",),
    }
    excludes: ClassVar[tuple[tuple[str, str], ...]] = (("credential", "auth_token"),)


class DirCatalog(_Catalog):
    type: Literal["dir"]
    path: NonEmpty
    manifest_enabled: Flag | None = None
    dir_listing_enabled: Flag | None = None
    plain_folders: Flag | None = None


class RestCatalog(_OAuth):
    type: Literal["rest"]
    uri: Address
    delimiter: NonEmpty | None = None
    api_key: NonEmpty | None = None


class IcebergCatalog(_OAuth):
    type: Literal["iceberg"]
    endpoint: Address
    warehouse: NonEmpty | None = None
    prefix: NonEmpty | None = None
    root: NonEmpty | None = None


class UnityCatalog(_Tls):
    type: Literal["unity"]
    endpoint: Address
    catalog: NonEmpty
    api_path: ApiPath | None = None
    auth_token: NonEmpty | None = None
    connect_timeout: Seconds | None = None
    read_timeout: Seconds | None = None
    max_retries: Retries | None = None
    root: NonEmpty | None = None


_ROLE = ("assume_role_arn",)


class GlueCatalog(_Catalog):
    type: Literal["glue"]
    catalog_id: NonEmpty | None = None
    endpoint: Address | None = None
    region: NonEmpty | None = None
    access_key_id: NonEmpty | None = None
    secret_access_key: NonEmpty | None = None
    session_token: NonEmpty | None = None
    assume_role_arn: NonEmpty | None = None
    assume_role_region: NonEmpty | None = None
    assume_role_external_id: NonEmpty | None = None
    assume_role_session_name: NonEmpty | None = None
    assume_role_timeout_sec: RoleSeconds | None = None
    connect_timeout: Seconds | None = None
    read_timeout: Seconds | None = None
    max_retries: Retries | None = None
    root: NonEmpty | None = None
    catalogs: Flag | None = None
    needs: ClassVar[dict[str, tuple[str, ...]]] = {
        "access_key_id": ("secret_access_key",),
        "secret_access_key": ("access_key_id",),
        "session_token": ("access_key_id", "secret_access_key"),
        "assume_role_region": _ROLE,
        "assume_role_external_id": _ROLE,
        "assume_role_session_name": _ROLE,
        "assume_role_timeout_sec": _ROLE,
    }


class OtherCatalog(Strict):
    """A type of a plug-in, whose own schema is asked later."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Any]

    type: NonEmpty
    management: ManagementSpec = ManagementSpec()
    requireEnvironment: bool = False


BUILT_IN = ("dir", "rest", "iceberg", "unity", "glue")


def _tag(data: Any) -> str:
    type_ = data.get("type") if isinstance(data, dict) else None
    return type_ if isinstance(type_, str) and type_ in BUILT_IN else "other"


AnyCatalog = Annotated[
    Annotated[DirCatalog, Tag("dir")]
    | Annotated[RestCatalog, Tag("rest")]
    | Annotated[IcebergCatalog, Tag("iceberg")]
    | Annotated[UnityCatalog, Tag("unity")]
    | Annotated[GlueCatalog, Tag("glue")]
    | Annotated[OtherCatalog, Tag("other")],
    Discriminator(_tag),
]
