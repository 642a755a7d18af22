// Filters, keys, links and print.
const form = document.getElementById("filters"), search = document.getElementById("q");
const LABELS = { kind: "entries", catalog: "catalogs", action: "actions", status: "outcomes", risk: "risks", verdict: "verdicts",
  policy: "policy" };
const QUICK = [["with a refusing finding", "policy", "refusing"], ["incomplete", "kind", "problem"], ["blocked", "verdict", "blocked"],
  ["unsupported", "verdict", "unsupported"], ["destructive", "risk", "destructive"], ["orphaned", "kind", "orphaned"],
  ["left out", "kind", "left out"],
  ["failed", "status", "failed"], ["unknown", "status", "unknown"], ["not run", "status", "not run"], ["never ended", "status", "never ended"]];

function counts(filter) {
  const found = new Map();
  for (const entry of entries) for (const value of values(entry, filter)) found.set(value, (found.get(value) || 0) + 1);
  return found;
}

function makeFilters() {
  const before = document.getElementById("quick");
  for (const filter of FILTERS) {
    const found = [...counts(filter)].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    if (found.length < 2 && filter !== "policy" || !found.length) continue;
    before.before(el("select", { name: filter, "aria-label": "Only these " + LABELS[filter] },
      el("option", { value: "" }, filter === "policy" ? "any policy" : "all " + LABELS[filter]),
      ...found.map(([value, count]) => el("option", { value }, value + " (" + count.toLocaleString("en") + ")"))));
  }
  before.before(el("select", { name: "sort", "aria-label": "Order" }, el("option", { value: "" }, "what matters first"),
    el("option", { value: "plan" }, "in order of the plan")));
  for (const [label, filter, value] of QUICK) {
    const count = counts(filter).get(value);
    if (!count) continue;
    const button = el("button", { type: "button", "data-filter": filter, "data-value": value, "aria-pressed": "false" },
      count.toLocaleString("en") + " " + label);
    button.addEventListener("click", () => change(filter, state[filter] === value ? "" : value));
    before.append(button);
  }
}

// What the list no longer has is no longer chosen: the pane must not show it as if it had.
function change(filter, value) {
  state[filter] = value;
  showFilters();
  showList();
  if (!isShown(state.at)) {
    state.at = "";
    document.body.classList.remove("open");
  }
  writeAddress(false);
  showDetail();
}

function showFilters() {
  search.value = state.q;
  for (const select of form.querySelectorAll("select")) {
    select.value = state[select.name];
    select.classList.toggle("set", Boolean(state[select.name]));
  }
  for (const button of form.querySelectorAll("[data-filter]")) {
    button.setAttribute("aria-pressed", String(state[button.dataset.filter] === button.dataset.value));
  }
}

function choose(key, open) {
  state.at = key;
  writeAddress(open);
  if (open) document.body.classList.add("open");
  showRows();
  showDetail();
}

function showAll() {
  readAddress();
  showFilters();
  showList();
  if (!state.at && shown.length) state.at = shown[0].key;
  showDetail();
  const at = shown.findIndex((entry) => entry.key === state.at);
  if (at >= 0) bringIntoSight(at);
}

function forPrint() {
  const most = data.plain, lines = (entry) => (entry.diff || []).flatMap(([title, rows]) => rows.map(
    ([name, before, after]) => before === null ? "+ " + name + " = " + after
      : after === null ? "- " + name + " = " + before : "~ " + name + ": " + before + " -> " + after));
  document.getElementById("plain-title").textContent = shown.length > most
    ? "The first " + most + " of " + shown.length + " entries" : shown.length + " entries";
  document.getElementById("plain-list").replaceChildren(...shown.slice(0, most).map((entry) =>
    el("li", { class: entry.style }, el("p", {}, el("strong", { class: "mono" }, entry.symbol + " " + titleOf(entry)),
      " " + [entry.id, weightOf(entry), entry.action || entry.code || entry.kind, entry.status, entry.verdict, entry.risk, entry.reason,
        entry.source]
        .filter(Boolean).join(" \u00b7 ")), entry.diff ? el("pre", {}, lines(entry).join("\n")) : null)));
}

makeFilters();
document.documentElement.classList.add("scripted");
document.getElementById("app").hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", (event) => {
  if (event.target.name in state) change(event.target.name, event.target.value);
});
form.addEventListener("reset", (event) => {
  event.preventDefault();
  for (const name of [...FILTERS, "q", "sort"]) state[name] = "";
  change("q", "");
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#at=']");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(new URLSearchParams(link.getAttribute("href").slice(1)).get("at"), true);
  const at = shown.findIndex((entry) => entry.key === state.at);
  if (at >= 0) bringIntoSight(at);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Enter" && event.target === search) {
    event.preventDefault();
    openFirst();
  } else if (event.key === "Escape" && document.body.classList.contains("open")) closeDetail();
  else if (event.key === "ArrowDown" && event.target === search) {
    event.preventDefault();
    list.focus();
    move(0);
  }
});
addEventListener("hashchange", showAll);
addEventListener("popstate", showAll);
addEventListener("beforeprint", forPrint);
showAll();
