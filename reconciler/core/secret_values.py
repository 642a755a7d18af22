"""Which values are credentials by their form alone, whatever they are called: what their makers gave a prefix for that.

Only forms that nothing else has. Every pattern is searched for only where its mark stands, and none goes back over what
it has read, so that a long text takes no longer than it is long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MASK = "***"
_WORD = "A-Za-z0-9"
_MIXED = r"(?=[\w.-]{0,255}[A-Z])(?=[\w.-]{0,255}[a-z])"
"""Names have small letters and dashes, too; what was drawn by chance has letters of both kinds."""


@dataclass(frozen=True, slots=True)
class _Form:
    marks: tuple[str, ...]
    """One of them is in every such value, in lower case."""
    name: str
    pattern: re.Pattern[str]


def _form(marks: str, name: str, pattern: str) -> _Form:
    return _Form(tuple(marks.split()), name, re.compile(pattern))


def _token(marks: str, name: str, pattern: str) -> _Form:
    """One word, neither the middle nor the beginning of a longer one."""
    return _form(marks, name, f"(?<![{_WORD}])(?:{pattern})(?![{_WORD}])")


_FORMS = (
    _form(
        "-----begin",
        "a private key",
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END[A-Z0-9 ]{0,80}-----|\Z)",
    ),
    _form("putty-user-key-file-", "a private key", r"PuTTY-User-Key-File-[0-9]:(?s:.*)"),
    _token("age-secret-key-", "a private key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,100}"),
    _token("akia asia", "an AWS access key", r"A(?:KI|SI)A[0-9A-Z]{16}"),
    _token("ghp_ gho_ ghu_ ghs_ ghr_", "a GitHub token", r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _token("github_pat_", "a GitHub token", r"github_pat_[A-Za-z0-9_]{40,255}"),
    _token(
        "glpat- gldt- glrt- glsoat- glptt- glft-",
        "a GitLab token",
        rf"gl(?:pat|dt|rt|soat|ptt|ft)-{_MIXED}[\w.-]{{20,255}}",
    ),
    _form(
        "eyj",
        "a JSON web token",
        r"(?<![\w-])eyJ[\w-]{8,}\.(?:eyJ[\w-]{8,}\.[\w-]{16,}|[\w-]*\.[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,})",
    ),
    _token("xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", "a Slack token", r"xox[abeoprs]-[0-9][A-Za-z0-9-]{9,255}"),
    _token("xapp-", "a Slack token", r"xapp-[0-9]-[A-Za-z0-9-]{10,255}"),
    _form("hooks.slack.com", "a Slack webhook", r"hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}"),
    _token("aiza", "a Google API key", r"AIza[\w-]{35}"),
    _token("ya29.", "a Google token", r"ya29\.[\w-]{20,4000}"),
    _token("gocspx-", "a Google client secret", r"GOCSPX-[\w-]{28}"),
    _token("_live_ _test_", "a Stripe key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _token("sk-", "an API key", rf"sk-(?:(?:admin|ant|or|proj|svcacct)-{_MIXED}[\w-]{{20,255}}|[A-Za-z0-9]{{48}})"),
    _token("hf_", "a Hugging Face token", r"hf_[A-Za-z0-9]{34}"),
    _token("dapi", "a Databricks token", r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    _token("npm_", "an npm token", r"npm_[A-Za-z0-9]{36}"),
    _token("pypi-age", "a PyPI token", r"pypi-AgE[\w-]{50,1000}"),
    _token("dckr_pat_", "a Docker token", r"dckr_pat_[\w-]{20,255}"),
    _token("dop_v1_ doo_v1_ dor_v1_", "a DigitalOcean token", r"do[por]_v1_[0-9a-f]{64}"),
    _token("hvs. hvb.", "a Vault token", r"hv[sb]\.[\w-]{24,1000}"),
    _token("sg.", "a SendGrid key", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _form("key=", "an account key", r"(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}={0,2}"),
    _form("sig", "a signed address", r"[?&](?:sig|(?i:x-(?:amz|goog)-signature))=[A-Za-z0-9%+/_-]{30,}"),
    _form("password= passwd= pwd=", "a password", r"(?<=[?&;])(?i:password|passwd|pwd)=[^;&\s*$<{\[]{1,255}"),
)


def credential_in(text: str) -> str | None:
    """What kind of credential stands in it, in words: `a GitHub token`."""
    lower = text.lower()
    found = (f.name for f in _FORMS if any(m in lower for m in f.marks) and f.pattern.search(text) is not None)
    return next(found, None)


def without_credentials(text: str) -> str:
    if credential_in(text) is None:
        return text
    for form in _FORMS:
        text = form.pattern.sub(MASK, text)
    return text
