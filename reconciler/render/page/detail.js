// One entry, with everything that the plan says about it.
const detail = document.getElementById("detail");
const MOST_LINKS = 50;

function showDetail() {
  const entry = byId.get(state.at);
  if (!entry) {
    detail.replaceChildren(el("p", { class: "dim" }, state.at ? "This plan has no entry " + state.at + "."
      : "Choose an entry: click, or use the arrow keys in the list. Enter opens the first."));
    return;
  }
  const close = el("button", { type: "button", id: "close" }, "Close");
  close.addEventListener("click", closeDetail);
  detail.replaceChildren(close, ...notInTheList(entry),
    el("h2", {}, el("span", { class: "mono" }, entry.symbol + " " + titleOf(entry))),
    el("p", { class: "dim" }, [entry.type, entry.id && "step " + entry.id, entry.action || entry.code || entry.kind,
      entry.plane && entry.plane + " plane"].filter(Boolean).join(" \u00b7 ")),
    el("div", { class: "chips" }, ...[entry.status, entry.verdict, entry.risk, entry.severity].filter(Boolean)
      .map((word) => el("span", { class: "chip " + word }, word))),
    ...told(entry), ...policyOf(entry), ...(entry.diff || []).flatMap(diffTable), ...around(entry));
  detail.scrollTop = 0;
  const here = detail.querySelector(".here rect"), box = detail.querySelector(".scroll");
  if (here && box) box.scrollLeft = here.getAttribute("x") - box.clientWidth / 2 + WIDE / 2;
}

// A link may lead to an entry that the search and the filters leave out.
function notInTheList(entry) {
  if (isShown(entry.key)) return [];
  return [el("p", { class: "notice", role: "status" }, "Not in the list: the search and the filters leave this one out.")];
}

function told(entry) {
  const held = entry.verdict ? entry.verdict !== "allowed" : entry.style === "blocked";
  const kind = held ? "held" : entry.risk === "destructive" || entry.style === "delete" ? "held destroys" : "";
  const why = entry.blocked_by ? el("p", { class: "dim" }, "blocked by: ", el("code", {}, entry.blocked_by)) : null;
  return [entry.reason || why ? el("div", { class: kind }, el("p", {}, entry.reason), why) : null,
    entry.hint ? el("p", {}, "Fix: " + entry.hint) : null,
    entry.waiver ? el("p", {}, "Waived: " + entry.waiver) : null,
    entry.source ? el("p", { class: "dim" }, "declared at ", el("code", {}, entry.source)) : null].filter(Boolean);
}

function policyOf(entry) {
  const about = entry.kind === "finding" ? [] : findings.get(objectOf(entry)) || [];
  if (!about.length) return [];
  return [el("h3", {}, "Policy"), el("ul", { class: "links" }, ...about.map((finding) =>
    el("li", {}, el("a", { href: linkTo(finding.key) }, finding.code), " " + finding.reason)))];
}

function diffTable([title, lines]) {
  const cell = (text, name) => text === null ? el("td", { class: "mono nothing" }, "\u2014")
    : el("td", { class: "mono " + name }, text);
  return [el("h3", {}, title), el("table", { "aria-label": title },
    el("thead", {}, el("tr", {}, ...["name", "before", "after"].map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...lines.map(([name, before, after]) =>
      el("tr", {}, el("th", { class: "mono", scope: "row" }, name), cell(before, "old"), cell(after, "new")))))];
}

function around(entry) {
  if (!entry.id) return [];
  const picture = pictureOf(entry);
  const made = picture ? [el("h3", {}, "Order"), el("div", { class: "scroll" }, picture)] : [];
  for (const [title, ids] of [["Needs", entry.needs || []], ["Needed by", neededBy.get(entry.id) || []]]) {
    if (!ids.length) continue;
    const more = ids.length - MOST_LINKS;
    made.push(el("h3", {}, title), el("ul", { class: "links" }, ...ids.slice(0, MOST_LINKS).map(stepLink),
      more > 0 ? el("li", { class: "dim" }, more.toLocaleString("en") + " more") : null));
  }
  if (entry.action === "deregister_table" || entry.action === "drop_namespace") {
    made.push(el("p", { class: "dim" }, "Deletes also wait for every create and update of the plan."));
  }
  return made;
}

function stepLink(id) {
  const entry = byId.get(id);
  if (!entry) return el("li", {}, id);
  return el("li", {}, el("a", { href: linkTo(id) }, id), " " + entry.action + " " + entry.name);
}

function openDetail() {
  document.body.classList.add("open");
  showDetail();
  detail.focus();
}

function closeDetail() {
  document.body.classList.remove("open");
  list.focus();
}
