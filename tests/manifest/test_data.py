# ruff: noqa: E501 - tables of cases read best one to a line
"""`spec.data`: where the rows come from, and that no secret is written out there."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.core.secret_names import names_secret
from reconciler.manifest.limits import limits_of
from reconciler.manifest.load import Loaded
from reconciler.manifest.problem import ManifestError
from reconciler.manifest.schema_files import is_secret_of_source
from reconciler.manifest.secrets import resolved_source
from reconciler.manifest.source_sql import code_in
from reconciler.model.data import DataSpec
from reconciler.model.reading import Reading

from .support import CATALOG, codes, load_text, places, table

SCHEMA = """\
schema:
  - {name: id, type: int64}
  - {name: name, type: string}
  - {name: half, type: float16}
  - {name: vector, type: "fixed_size_list<float32>[4]"}
"""
PARQUET = "{format: parquet, path: in}"


def loaded(tmp_path: Path, data: str, more: str = SCHEMA) -> Loaded:
    return load_text(tmp_path, CATALOG, table("t", f"{more}data: {data}\n"))


def source(tmp_path: Path, text: str, mode: str = "once") -> Loaded:
    return loaded(tmp_path, f"{{source: {text}, mode: {mode}}}")


def test_all_of_it(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "{source: {format: csv, path: [a.csv, s3://b/**/c.csv], delimiter: ;, storage.aws_region: eu-1}, "
        "mode: append, partitions: 4, orderBy: [id, name], columns: {id: ID}}",
    )
    assert found.diagnostics == []
    assert found.desired.tables["lake"][("t",)].data == DataSpec(
        {"format": "csv", "path": ["a.csv", "s3://b/**/c.csv"], "delimiter": ";", "storage.aws_region": "eu-1"},
        "append",
        4,
        ("id", "name"),
        {"id": "ID"},
    )


def test_the_digest_of_the_manifests_covers_it(tmp_path: Path) -> None:
    one, other = (source(tmp_path, f"{{format: parquet, path: {path}}}").desired.digest for path in ("a", "b"))
    assert one != other != source(tmp_path, "{format: parquet, path: b}", "append").desired.digest


GOOD = [
    "{format: parquet, path: in/}",
    "{format: json, path: [a, b], storage.aws_secret_access_key: '${env:KEY}${file:/run/x}'}",
    "{format: lance, path: x.lance, version: 3}",
    "{format: lance, path: x.lance, version: gold}",
    "{format: lance, table: {catalog: lake, id: [other]}}",
    "{format: delta, path: x, options: {versionAsOf: '3'}}",
    "{format: iceberg, table: a.b.c}",
    "{format: jdbc, url: 'jdbc:postgresql://h/db?ssl=true', table: t, user: u, password: '${env:P}'}",
    "{format: jdbc, url: 'jdbc:postgresql://h/db?password=${env:P}', query: 'select 1'}",
    "{format: jdbc, url: '${env:URL}', query: 'select 1', options: {fetchsize: '10'}}",
    "{format: sql, sql: 'select * from v join a.b.c using (id)', views: {V: {format: parquet, path: x}}}",
    "{format: sql, sql: 'with w as (select * from range(9)) select * from w union all select id from w'}",
]


@pytest.mark.parametrize("text", GOOD)
def test_sources(tmp_path: Path, text: str) -> None:
    assert source(tmp_path, text).diagnostics == []


READS = "declare what it reads in `views`, or write it without; --allow-sql-code permits it to those you trust"
WRONG = {
    # the shape
    "{format: parket, path: in}": ("M207", "parket", "did you mean parquet?"),
    "{format: parquet, paths: in, path: in}": ("M203", "paths", "did you mean path?"),
    "{format: parquet}": ("M204", "{format: parquet}", "add path: …"),
    "{format: csv, path: in, delimiter: ab}": ("M207", "ab", ""),
    "{format: csv, path: []}": ("M210", "[]", "give it a value, or remove the key"),
    "{format: parquet, path: in, delimiter: ;}": ("M203", "delimiter", "known keys: format, path"),
    "{format: parquet, path: in, storage: {a: b}}": ("M203", "storage", "write each option as its own key: storage.KEY: value"),
    "{format: lance}": ("M204", "{format: lance}", ""),
    "{format: lance, path: a, table: {catalog: lake, id: [b]}}": ("M209", "{format: lance", "keep one of them"),
    "{format: lance, path: a, version: 0}": ("M208", "0", "from 1 to 9007199254740992"),
    "{format: jdbc, url: 'http://x', table: t}": ("M207", "'http://x'", ""),
    "{format: jdbc, url: 'jdbc:x', table: t, query: q}": ("M209", "{format: jdbc", "keep one of them"),
    "{format: sql, sql: select 1, views: {v: {format: sql, sql: select 1}}}": ("M207", "sql, sql: select 1}}", "one of parquet, csv, json, lance, delta, iceberg, jdbc"),
    "{format: sql, sql: select 1, views: {a b: {format: parquet, path: x}}}": ("M207", "{a b", "letters, digits and '_', and no digit first"),
    # secrets
    "{format: parquet, path: in, storage.aws_secret_access_key: hunter2}": ("M474", "hunter2", "write ${env:NAME} or ${file:PATH}, without a default"),
    "{format: parquet, path: in, storage.aws_secret_access_key: '${env:A:-hunter2}'}": ("M474", "'${env:A:-hunter2}'", "write ${env:NAME} or ${file:PATH}, without a default"),
    "{format: jdbc, url: 'jdbc:x', table: t, password: hunter2}": ("M474", "hunter2", "write ${env:NAME} or ${file:PATH}, without a default"),
    "{format: jdbc, url: 'jdbc:x', table: t, options: {sslpassword: hunter2}}": ("M474", "hunter2", "write ${env:NAME} or ${file:PATH}, without a default"),
    "{format: sql, sql: select 1 from v, views: {v: {format: jdbc, url: 'jdbc:x', table: t, password: hunter2}}}": ("M474", "hunter2", "write ${env:NAME} or ${file:PATH}, without a default"),
    "{format: jdbc, url: 'jdbc:postgresql://u:hunter2@h/db', table: t}": ("M417", "'jdbc:post", "give them in keys of their own, as ${env:NAME}: user and password, or storage.*"),
    "{format: jdbc, url: 'jdbc:sqlserver://h;user=u;password=hunter2', table: t}": ("M417", "'jdbc:sql", "give them in keys of their own, as ${env:NAME}: user and password, or storage.*"),
    "{format: jdbc, url: 'jdbc:oracle:thin:scott/hunter2@h:1521/x', table: t}": ("M417", "'jdbc:ora", "give them in keys of their own, as ${env:NAME}: user and password, or storage.*"),
    "{format: parquet, path: [a, 's3://k:hunter2@b/x']}": ("M417", "'s3:", "give them in keys of their own, as ${env:NAME}: user and password, or storage.*"),
    "{format: parquet, path: 'https://h/x.parquet?sv=2024&sig=hunter2'}": ("M417", "'https", "write the address without it, and storage.* as ${env:NAME}"),
    "{format: csv, path: [a, 'https://b.s3.amazonaws.com/x?X-Amz-Credential=hunter2']}": ("M417", "'https", "write the address without it, and storage.* as ${env:NAME}"),
    "{format: jdbc, url: 'jdbc:x', table: t, options: {url: 'jdbc:y://u:hunter2@h/db'}}": ("M417", "'jdbc:y", "give them in keys of their own, as ${env:NAME}: user and password, or storage.*"),
    "{format: jdbc, url: 'jdbc:x', table: t, password: '${env:hunter2'}": ("M300", "'${env", "references are ${env:NAME}, ${file:PATH} and ${var:NAME}; $${ gives a plain ${"),
    "{format: jdbc, url: 'jdbc:x', table: t, password: 72617261}": ("M206", "72617261", "put it in quotes"),
    "{format: parquet, path: in, storage.pin: 72617261}": ("M206", "72617261", "put it in quotes"),
    # SQL
    "{format: sql, sql: selec x}": ("M475", "selec x", "one SELECT; with WITH, UNION and the like if need be"),
    "{format: sql, sql: insert into t select 1}": ("M475", "insert", "one SELECT; with WITH, UNION and the like if need be"),
    "{format: sql, sql: select 1; select 2}": ("M475", "select 1", "one SELECT; with WITH, UNION and the like if need be"),
    "{format: sql, sql: show tables}": ("M475", "show", "one SELECT; with WITH, UNION and the like if need be"),
    "{format: sql, sql: select transform(a) using 'cat' from a.b}": ("M475", "select tr", "one SELECT; with WITH, UNION and the like if need be"),
    "{format: sql, sql: select 1 from evnts join events, views: {events: {format: parquet, path: x}}}": ("M476", "select", "did you mean events?"),
    "{format: sql, sql: select 1, views: {v: {format: parquet, path: x}}}": ("M476", "v:", "remove it"),
    "{format: sql, sql: select 1 from v, views: {v: {format: parquet, path: x}, V: {format: parquet, path: x}}}": ("M476", "v:", "rename one of them"),
    "{format: sql, sql: 'select * from csv.`/etc/passwd`', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select (select max(value) from text.`file:///etc/passwd`) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from `binaryFile`.`C:x`', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from read_files(\"/etc\")', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from range(1), lateral read_csv(\"/etc\")', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from identifier(\"text.`/etc/passwd`\")', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select java_method(\"java.lang.System\", \"getenv\", \"HOME\") a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select `Reflect`(\"a\", \"b\") a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select transform(array(1), x -> system.builtin.try_reflect(\"a\", \"b\")) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select from_protobuf(a, \"b\", \"/etc/c\") a from range(1) t(a)', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select from_xml(\"<a/>\", \"b int\", map(\"rowValidationXsdPath\", \"/etc/c\")) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select from_xml(\"<a/>\", \"b int\", map(concat(\"rowValidation\", \"XSDPath\"), \"/etc/c\")) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from text.`secret`', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'with a as (select (select max(value) from /* x */ `Parquet`.`b`) c) select * from a', token: x}": ("M496", "'with", READS),
    "{format: sql, sql: 'select * from `org.apache.spark.Text`.secret', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select builtin . /* x */ REFLECT (\"a\", \"b\") a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from range(1) lateral view `system`.`builtin`.`java_method`(\"a\", \"b\") t', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from (select explode(array(1)) a) where exists (select try_reflect(\"a\", \"b\"))', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select my.udf(1) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select udf(1) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from python_worker_logs()', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from system.builtin.load(\"/etc\")', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select from_avro(a, \"{}\", map(\"avroSchemaUrl\", \"/etc/c\")) a from range(1) t(a)', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select schema_of_xml(\"<a/>\", map(\"rowValidationXsdPath\", \"/etc/c\")) a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select \"$${env:HOME}\" a', token: x}": ("M496", "'select", READS),
    "{format: sql, sql: 'select * from many(TABLE v)', token: x}": ("M475", "'select", "one SELECT; with WITH, UNION and the like if need be"),
    "{format: sql, sql: 'execute immediate \"select 1\"', token: x}": ("M475", "'execute", "one SELECT; with WITH, UNION and the like if need be"),
    # another table
    "{format: lance, table: {catalog: lak, id: [a]}}": ("M480", "lak", "did you mean lake?"),
    "{format: lance, table: {catalog: lake, id: [t]}}": ("M482", "{catalog", "name another table"),
    "{format: lance, table: {catalog: lake, id: [a]}, storage.x: y}": ("M479", "storage.x", "remove it"),
}  # fmt: skip


CALL = "reflect('java.lang.System', 'getenv', 'HOME')"


@pytest.mark.parametrize(
    "sql",
    [
        f"select 1 a -- \\\n/*\n, {CALL} b -- */\n",
        f"select 1 a /* /*+ */, {CALL} b -- */\n",
        f"select /*+ coalesce(1) -- */ 1 a,\n */ {CALL} b",
        "select 1 a /* /* */ */",
        "select 1 a /* never closed",
    ],
)
def test_a_comment_that_spark_reads_otherwise(sql: str) -> None:
    """Spark runs the call in the first two of them, and they are a comment for sqlglot."""
    assert code_in(sql, ())


def test_comments_and_marks_in_texts() -> None:
    """Ordinary ones: a backslash within a line, marks in texts and names, quotes in comments."""
    sql = (
        "select /*+ broadcast(v) */ '/*' a, \"--\\\\\" `/*`, r'\\' c -- it's \\ so\r\n"
        ", 'it''s \\' -- ' d /* `x' \\\n */ from v -- end"
    )
    assert not code_in(sql, ())


@pytest.mark.parametrize(
    "sql",
    [
        "select * from range(9)",
        "select explode(array(1)) a, t.b from range(1) t(b) lateral view posexplode(array(1)) u as p, c",
        "select * from values (1, 2) as t(a, b), lateral inline(array(struct(1)))",
        "select from_xml(a, 'b int', map('rowTag', 'x')) c from cat.ns.tab",
        "select from_xml(a, schema_of_xml('<a/>')) c, system.builtin.upper(xpath_string(b, 'c')) d from text.ns.tab",
    ],
)
def test_sql_that_reads_what_it_says(tmp_path: Path, sql: str) -> None:
    assert codes(source(tmp_path, f'{{format: sql, sql: "{sql}", token: x}}')) == []


@pytest.mark.parametrize(
    "type_", ["timestamp[us]", "duration[s]", "time32[ms]", "list<timestamp[us]>", "struct<a: duration[s]>"]
)
def test_a_unit_is_for_times(tmp_path: Path, type_: str) -> None:
    def found(of: str, unit: str) -> Loaded:
        schema = f'schema: [{{name: at, type: "{of}"}}]\n'
        return loaded(
            tmp_path, f"{{source: {PARQUET}, mode: once, columns: {{at: {{from: e, unit: {unit}}}}}}}", schema
        )

    fine = found(type_, "s")
    assert codes(fine) == []
    data = fine.desired.tables["lake"][("t",)].data
    assert data is not None
    assert (dict(data.columns), dict(data.units)) == ({"at": "e"}, {"at": "s"})
    assert codes(found("int64", "s")) == codes(found("date32", "s")) == ["M497"]
    assert codes(found(type_, "m")) == ["M207"]


def test_code_is_permitted_to_those_who_are_trusted(tmp_path: Path) -> None:
    codes_of = {text: WRONG[text][0] for text in WRONG}
    of_code = [text for text, code in codes_of.items() if code == "M496"]
    assert len(of_code) > 20
    for text in of_code:
        spec = f"{SCHEMA}data: {{source: {text}, mode: once}}\n"
        limits = limits_of(Reading(sql_code=True))
        assert codes(load_text(tmp_path, CATALOG, table("t", spec), limits=limits)) == [], text


def test_sql_is_judged_once_more_where_it_runs() -> None:
    """A saved plan was not validated, and what a reference stands for is part of the SQL."""
    for sql in ("select reflect('a', 'b')", "select * from text.`${env:WHERE}`", "drop table x"):
        source = {"format": "sql", "sql": sql}
        with pytest.raises(ManifestError, match="the SQL") as raised:
            resolved_source(source, {"WHERE": "/etc/passwd"})
        assert raised.value.code == "M496"
        resolved_source(source, {"WHERE": "/etc/passwd"}, limits_of(Reading(sql_code=True)))


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, text: str) -> None:
    code, at, hint = WRONG[text]
    found = source(tmp_path, text)
    assert codes(found) == [code]
    ((line, column),) = places(found, code)
    assert (tmp_path / "m.yaml").read_text().splitlines()[line - 1][column - 1 :].startswith(at)
    assert found.diagnostics[0].hint == hint
    told = found.diagnostics[0].message + found.diagnostics[0].hint
    assert "hunter2" not in told
    assert "7261" not in told


RULES = {
    f"{{source: {PARQUET}, mode: once, orderBy: [id, nam]}}": ("M470", "nam]"),
    f"{{source: {PARQUET}, mode: once, orderBy: [id, id]}}": ("M471", "id]"),
    f"{{source: {PARQUET}, mode: once, orderBy: [vector]}}": ("M471", "vector"),
    f"{{source: {PARQUET}, mode: once, orderBy: [half]}}": ("M471", "half"),
    f"{{source: {PARQUET}, mode: once, columns: {{nam: n}}}}": ("M470", "nam:"),
    f"{{source: {PARQUET}, mode: once, columns: {{name: ''}}}}": ("M210", "''"),
    f"{{source: {PARQUET}, mode: once, partitions: 0}}": ("M208", "0"),
    f"{{source: {PARQUET}}}": ("M204", "{source"),
    f"{{source: {PARQUET}, mode: twice}}": ("M207", "twice"),
    "{source: {format: lance, path: x}, mode: append}": ("M472", "append"),
    "{source: {format: jdbc, url: 'jdbc:x', table: t}, mode: append}": ("M472", "append"),
    "{source: {format: jdbc, url: 'jdbc:x', table: t}, mode: replace-if-changed}": ("M473", "replace"),
    "{source: {format: iceberg, table: a.b}, mode: replace-if-changed}": ("M473", "replace"),
    "{source: {format: sql, sql: select 1}, mode: replace-if-changed}": ("M473", "replace"),
    "{source: {format: sql, sql: select 1 from a.b}, mode: replace-if-changed}": ("M473", "replace"),
    "{source: {format: sql, sql: 'select 1 from v, a.b', views: {v: {format: parquet, path: x}}}, mode: replace-if-changed}": ("M473", "replace"),
    "{source: {format: sql, sql: select 1 from v, views: {v: {format: iceberg, table: a.b}}}, mode: replace-if-changed}": ("M473", "replace"),
}  # fmt: skip


@pytest.mark.parametrize("data", RULES)
def test_rules(tmp_path: Path, data: str) -> None:
    code, at = RULES[data]
    found = loaded(tmp_path, data)
    assert codes(found) == [code]
    ((line, column),) = places(found, code)
    assert (tmp_path / "m.yaml").read_text().splitlines()[line - 1][column - 1 :].startswith(at)


@pytest.mark.parametrize(
    "text",
    [
        "{format: parquet, path: x}",
        "{format: lance, path: x}",
        "{format: delta, path: x}",
        "{format: jdbc, url: 'jdbc:x', table: t, token: '1'}",
        "{format: sql, sql: select 1 from v, views: {v: {format: parquet, path: x}}}",
        "{format: sql, sql: select 1 from v, views: {v: {format: iceberg, table: a.b, token: '1'}}}",
        "{format: sql, sql: select 1 from v, views: {v: {format: iceberg, table: a.b}}, token: '1'}",
    ],
)
def test_what_can_be_listed_or_has_a_token_may_be_replaced(tmp_path: Path, text: str) -> None:
    assert source(tmp_path, text, "replace-if-changed").diagnostics == []


def test_the_table_needs_a_schema_and_a_future(tmp_path: Path) -> None:
    data = f"{{source: {PARQUET}, mode: once}}"
    assert codes(loaded(tmp_path, data, "")) == ["M477"]
    assert codes(loaded(tmp_path, data, f"{SCHEMA}state: absent\n")) == ["M478"]
    migration = "migration: {from: {catalog: lake, id: [o]}}\n"
    assert codes(loaded(tmp_path, data, f"{SCHEMA}{migration}")) == ["M487"]


def test_an_unknown_key_hides_no_other_mistake(tmp_path: Path) -> None:
    found = source(tmp_path, "{format: jdbc, urll: x, url: 'jdbc:x', table: t}", "append")
    assert sorted(codes(found)) == ["M203", "M472"]


def test_references_stay_until_the_source_is_read(tmp_path: Path) -> None:
    text = (
        "{format: jdbc, url: 'jdbc:x://${var:host}/a', table: '${var:price}', password: '${env:P}', user: '${env:U}', "
        "options: {a: '${file:F}-b', c: plain}, token: '${var:day}'}"
    )
    (tmp_path / "F").write_text("from-file\n")
    text = text.replace("file:F", f"file:{tmp_path}/F")
    spec = f"{SCHEMA}data: {{source: {text}, mode: once}}\n"
    variables = {"host": "h", "price": "${p}", "day": "5"}
    found = load_text(tmp_path, CATALOG, table("t", spec), variables=variables, environ={})
    assert found.diagnostics == []
    data = found.desired.tables["lake"][("t",)].data
    assert data is not None
    assert data.source["password"] == "${env:P}"
    assert data.source["url"] == "jdbc:x://h/a"
    assert data.source["token"] == "5"
    resolved, secrets = resolved_source(data.source, {"P": "hunter2", "U": "someone"})
    assert resolved["table"] == "${p}", "what a variable stands for is text"
    assert resolved["options"] == {"a": "from-file-b", "c": "plain"}
    assert (resolved["password"], resolved["user"]) == ("hunter2", "someone")
    assert {"hunter2", "from-file"} <= secrets
    assert not secrets & {"someone", "plain", "h", "5", "${p}"}
    with pytest.raises(ManifestError, match=r"spec\.data\.source\.password"):
        resolved_source(data.source, {"U": "u"})


def test_secrets_of_views_are_secrets() -> None:
    view = {"format": "parquet", "path": "${env:WHERE}", "storage.aws_secret_access_key": "${env:KEY}"}
    written = {"format": "sql", "sql": "select 1 from v", "views": {"v": view}}
    resolved, secrets = resolved_source(written, {"WHERE": "s3://bucket", "KEY": "hunter2"})
    assert resolved["views"]["v"]["path"] == "s3://bucket"
    assert secrets == {"hunter2"}


def test_secret_places() -> None:
    for path in (["password"], ["url"], ["storage.x"], ["options", "x"], ["views", "v", "password"]):
        assert is_secret_of_source(path), path
    for path in (["path"], ["user"], ["token"], ["table", "id"], ["views"], ["views", "password"], []):
        assert not is_secret_of_source(path), path


NAMES = {
    True: "storage.aws_secret_access_key storage.aws_access_key_id aws_session_token password sslPassword account_key "
    "sas_token storage.azure_storage_sas_key privateKey api-key credential google_service_account_key",
    False: "aws_region aws_endpoint allow_http fetchsize partitionColumn account_name keytab disasterRecovery user",
}


@pytest.mark.parametrize("secret", NAMES)
def test_names_of_secrets(secret: bool) -> None:
    for name in NAMES[secret].split():
        assert names_secret(name) is secret, name
