// The list: only the rows that are in sight exist, so ten thousand entries are as quick as ten.
const ROW = 52, SPARE = 8;
const list = document.getElementById("list"), rows = document.getElementById("rows");
let shown = [];

function showList() {
  shown = matching();
  rows.style.height = shown.length * ROW + "px";
  const count = document.getElementById("count"), all = entries.length.toLocaleString("en");
  count.textContent = shown.length === entries.length ? all + (entries.length === 1 ? " entry" : " entries")
    : shown.length.toLocaleString("en") + " of " + all + " entries";
  list.scrollTop = 0;
  showRows();
}

function showRows() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
  const made = [];
  for (let i = first; i < last; i++) made.push(rowOf(shown[i], i));
  if (!shown.length) made.push(el("div", { class: "empty" }, entries.length ? "Nothing matches." : "Nothing to tell."));
  rows.replaceChildren(...made);
  const active = shown.findIndex((entry) => entry.key === state.at);
  if (active >= first && active < last) list.setAttribute("aria-activedescendant", "row-" + active);
  else list.removeAttribute("aria-activedescendant");
}

function rowOf(entry, i) {
  const row = el("div", { role: "option", class: "row " + entry.style, id: "row-" + i, "aria-posinset": i + 1,
    "aria-setsize": shown.length, "aria-selected": entry.key === state.at },
    el("span", { class: "symbol", "aria-hidden": "true" }, entry.symbol),
    el("span", { class: "what" }, el("span", { class: "mono" }, titleOf(entry)),
      el("span", { class: "why" }, [entry.id, entry.action || entry.code || entry.kind, entry.reason]
        .filter(Boolean).join(" \u00b7 "))),
    ...chipsOf(entry));
  row.style.top = i * ROW + "px";
  row.addEventListener("click", () => choose(entry.key, true));
  return row;
}

function chipsOf(entry) {
  const words = [];
  if (weightOf(entry)) words.push(weightOf(entry));
  else if (entry.policy && entry.policy.some((p) => p.startsWith("refusing "))) words.push("refusing");
  if (entry.verdict && entry.verdict !== "allowed") words.push(entry.verdict);
  if (entry.risk && entry.risk !== "safe") words.push(entry.risk);
  if (entry.status && entry.status !== "done") words.push(entry.status);
  return words.map((word) => el("span", { class: "chip " + word }, word));
}

function move(by) {
  if (!shown.length) return;
  const now = shown.findIndex((entry) => entry.key === state.at);
  const next = now < 0 ? (by < 0 && by !== -Infinity ? shown.length - 1 : by === Infinity ? shown.length - 1 : 0)
    : Math.max(0, Math.min(shown.length - 1, now + by));
  choose(shown[next].key, false);
  bringIntoSight(next);
}

// Enter in the search opens the first match; in the list what is chosen there.
function openFirst() {
  if (!shown.length) return;
  choose(shown[0].key, true);
  bringIntoSight(0);
  openDetail();
}

function isShown(key) { return shown.some((entry) => entry.key === key); }

function bringIntoSight(i) {
  if (i * ROW < list.scrollTop) list.scrollTop = i * ROW;
  else if ((i + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (i + 1) * ROW - list.clientHeight;
  showRows();
}

list.addEventListener("scroll", showRows, { passive: true });
new ResizeObserver(showRows).observe(list);
list.addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
  if (by !== undefined) move(by);
  else if (event.key === "Enter") isShown(state.at) ? openDetail() : openFirst();
  else return;
  event.preventDefault();
});
