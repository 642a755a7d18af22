"""Waivers: a finding that somebody took on, with a reason and up to a day.

A waiver holds up to and with its last day. Dates are ISO texts, which order as days do.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.text import plural
from reconciler.model.desired import Desired
from reconciler.model.diagnostic import Source
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Plan
from reconciler.model.policy import DeclaredWaiver, Rule

_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


class Waivers:
    """`mattered`: the day decided about a finding."""

    def __init__(self, desired: Desired, today: str) -> None:
        self._desired = desired
        self._today = today
        limits = [p.max_waiver_days for p in desired.policies if p.max_waiver_days is not None]
        self._longest = min(limits, default=None)
        self.mattered = False

    def finding(self, rule: Rule, key: ObjectKey | None, message: str, hint: str, source: Source | None) -> Finding:
        found = self._declared(key, rule.code)
        if found is None:
            return Finding(rule.code, rule.severity, key, message, hint, source)
        self.mattered = True
        problem = self._problem(found)
        if problem is not None:
            return Finding(rule.code, rule.severity, key, f"{message}; {problem}", hint, source)
        return Finding(rule.code, rule.severity, key, message, hint, source, Waiver(found.reason, found.until))

    def _declared(self, key: ObjectKey | None, code: str) -> DeclaredWaiver | None:
        if key is None:
            return None
        store = self._desired.tables if key.kind == "Table" else self._desired.namespaces
        want = store.get(key.catalog, {}).get(key.ident)
        return next((w for w in want.waivers if w.code == code), None) if want is not None else None

    def _problem(self, waiver: DeclaredWaiver) -> str | None:
        """Why it does not hold. Without a day none does."""
        if waiver.until < self._today or not self._today:
            return expiry(waiver.until)
        if self._longest is not None and _day(waiver.until) - _day(self._today) > self._longest:
            return (
                f"its waiver until {waiver.until} is not taken: the policy allows {plural(self._longest, 'day')} ahead"
            )
        return None


def expiry(until: str) -> str:
    return f"its waiver expired on {until}"


def as_of(plan: Plan, today: str) -> Plan:
    """A saved plan on a later day: a waiver that expired since no longer holds, and the finding counts again."""
    if all(f.waiver is None or today <= f.waiver.until for f in plan.findings):
        return plan
    return replace(plan, findings=tuple(_on(f, today) for f in plan.findings))


def _on(f: Finding, today: str) -> Finding:
    if f.waiver is None or today <= f.waiver.until:
        return f
    return replace(f, waiver=None, message=f"{f.message}; {expiry(f.waiver.until)}")


def _day(date: str) -> int:
    """Days since the year 0 of an ISO date."""
    year, month, day = (int(part) for part in date.split("-"))
    leap = month > 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400 + _BEFORE_MONTH[month - 1] + day + leap
