// What is shown: the entries of the plan, the filters, and both in the address.
const data = JSON.parse(document.getElementById("plan").textContent);
const entries = data.entries;
const byId = new Map(), neededBy = new Map(), findings = new Map();
const FILTERS = ["kind", "catalog", "action", "status", "risk", "verdict", "policy"];
const state = { q: "", sort: "", at: "" };
for (const name of FILTERS) state[name] = "";

for (const entry of entries) {
  entry.key = entry.id || "@" + entry.order;
  byId.set(entry.key, entry);
  for (const need of entry.needs || []) {
    if (!neededBy.has(need)) neededBy.set(need, []);
    neededBy.get(need).push(entry.id);
  }
  if (entry.kind === "finding") {
    if (!findings.has(objectOf(entry))) findings.set(objectOf(entry), []);
    findings.get(objectOf(entry)).push(entry);
  }
}
const inPlanOrder = entries.slice().sort((a, b) => a.order - b.order);

function objectOf(entry) { return JSON.stringify([entry.catalog, entry.name, entry.type]); }

function titleOf(entry) {
  return entry.catalog && entry.name ? entry.catalog + ":" + entry.name : entry.catalog || entry.name;
}

// An entry of several words of the policy answers to each of them.
function values(entry, filter) {
  if (filter !== "policy") return entry[filter] ? [entry[filter]] : [];
  const found = new Set();
  for (const text of entry.policy || []) {
    const space = text.indexOf(" ");
    found.add(text.slice(0, space)).add(text.slice(space + 1));
  }
  return [...found];
}

// Of a finding: does it refuse the plan, warn, or is it waived.
function weightOf(entry) { return entry.kind === "finding" && entry.policy ? entry.policy[0].split(" ")[0] : ""; }

function haystack(entry) {
  if (entry.hay === undefined) {
    const parts = [titleOf(entry), entry.id, entry.kind, entry.type, entry.action, entry.status, entry.risk,
      entry.verdict, entry.plane, entry.blocked_by, entry.reason, entry.source, entry.code, entry.hint, entry.waiver];
    for (const [title, lines] of entry.diff || []) parts.push(title, ...lines.flat());
    entry.hay = parts.filter(Boolean).join("\n").toLowerCase();
  }
  return entry.hay;
}

function matching() {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  const set = FILTERS.filter((name) => state[name]);
  return (state.sort === "plan" ? inPlanOrder : entries).filter((entry) =>
    set.every((name) => values(entry, name).includes(state[name])) &&
    words.every((word) => haystack(entry).includes(word)));
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(state)) state[name] = given.get(name) || "";
  // A link may have been made for another plan: what this one does not have is no filter.
  for (const name of FILTERS) if (!entries.some((entry) => values(entry, name).includes(state[name]))) state[name] = "";
  if (state.sort !== "plan") state.sort = "";
}

function address() {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value) given.set(name, value);
  return "#" + given;
}

// A step that was looked at is a place to go back to; a letter that was typed is not.
function writeAddress(asPlace) {
  if (address() === (location.hash || "#")) return;
  try {
    history[asPlace ? "pushState" : "replaceState"](null, "", address());
  } catch { /* Inside a frame that may not have an address, the page works without one. */ }
}

// All text enters the page as text.
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return made;
}

function linkTo(key) { return "#" + new URLSearchParams({ at: key }); }
