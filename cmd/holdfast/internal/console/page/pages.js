// What the two lists share: a search, a kind, pages, and rows that are told by their ids.

import { announce, el, setText } from "./dom.js";
import { kindOf, several } from "./words.js";

const perPage = 50;

const ages = [
  ["", "any time"],
  ["1m", "a minute"],
  ["10m", "10 minutes"],
  ["1h", "an hour"],
  ["24h", "a day"],
];

/** Makes a list: what its address says, the controls, more of which may be given, and what was told of its rows. */
export function pagedList(show, kinds, redraw, again, more = null) {
  const query = new URLSearchParams(location.search);
  const list = {
    rows: new Map(),
    order: [],
    sort: query.get("sort") ?? "name",
    down: query.get("order") === "down",
  };
  let page = Number(query.get("page") ?? 1) || 1,
    matched = 0,
    pages = 1,
    asked = false;

  const search = el("input", {
    type: "search",
    id: "search",
    value: query.get("q") ?? "",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "Name, holder or note",
    "aria-keyshortcuts": "/",
  });
  const kind = el(
    "select",
    { id: "kind" },
    el("option", { value: "" }, "all kinds"),
    kinds.map((k) => el("option", { value: k, selected: query.get("kind") === k }, kindOf(k))),
  );
  const older = el(
    "select",
    { id: "older" },
    ages.map(([value, text]) => el("option", { value, selected: query.get("older") === value }, text)),
  );
  const found = el("p.found");
  const back = el("button", { type: "button", click: () => turn(page - 1) }, "Previous");
  const on = el("button", { type: "button", click: () => turn(page + 1) }, "Next");
  const where = el("span");
  const jump = el("input", { id: "page", type: "number", min: 1, inputmode: "numeric" });
  jump.addEventListener("change", () => jump.value && turn(Math.max(1, Math.min(pages, Number(jump.value)))));
  const number = el("span.field.inline", {}, el("label", { for: "page" }, "Page"), jump);
  list.pager = el("nav.pager", { "aria-label": "Pages", hidden: true }, back, where, number, on);
  list.controls = el(
    "form.controls",
    { role: "search", submit: (event) => event.preventDefault() },
    el("div.field.wide", {}, el("label", { for: "search" }, "Search"), search),
    el("div.field", {}, el("label", { for: "kind" }, "Kind"), kind),
    show === "locks"
      ? el("div.field", {}, el("label", { for: "older" }, "Held for longer than"), older)
      : null,
    more,
    found,
  );

  const ask = () => {
    const wanted = new URLSearchParams();
    if (search.value) wanted.set("q", search.value);
    if (kind.value) wanted.set("kind", kind.value);
    if (older.value) wanted.set("older", older.value);
    if (list.sort !== "name") wanted.set("sort", list.sort);
    if (list.down) wanted.set("order", "down");
    if (page > 1) wanted.set("page", page);
    return wanted;
  };
  const change = () => {
    const wanted = ask().toString();
    history.replaceState(null, "", location.pathname + (wanted ? `?${wanted}` : ""));
    asked = true;
    again();
  };
  const turn = (to) => {
    page = to;
    change();
    list.pager.scrollIntoView?.({ block: "nearest" });
  };
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      page = 1;
      change();
    }, 200);
  });
  for (const choice of [kind, older])
    choice.addEventListener("change", () => {
      page = 1;
      change();
    });

  list.stream = () => {
    const wanted = ask();
    wanted.set("show", show);
    return `/events/list?${wanted}`;
  };
  list.sortBy = (by) => {
    list.down = list.sort === by ? !list.down : by === "waiters" || by === "age";
    list.sort = by;
    page = 1;
    change();
  };

  list.tell = (message, answer) => {
    if (answer.how === "unknown") {
      list.rows.clear();
      list.order = [];
      list.pager.hidden = true;
      setText(found, "");
    }
    if (message.matched !== undefined) {
      ({ matched, page, pages } = message);
      const text = several(matched, "found", "found");
      setText(found, list.filtered() ? text : "");
      if (asked) announce(text);
      asked = false;
      list.pager.hidden = pages < 2;
      back.disabled = page <= 1;
      on.disabled = page >= pages;
      const [first, last] = [(page - 1) * perPage + 1, Math.min(matched, page * perPage)];
      const [a, b, c] = [first, last, matched].map((n) => n.toLocaleString("en"));
      if (document.activeElement !== jump) jump.value = page;
      jump.max = pages;
      setText(where, `${a} to ${b} of ${c}`);
    }
    for (const row of message.rows ?? []) list.rows.set(row.id, row);
    if (message.order) {
      list.order = message.order;
      const kept = new Set(message.order);
      for (const id of list.rows.keys()) if (!kept.has(id)) list.rows.delete(id);
    }
    redraw(list, message, answer);
  };
  list.filtered = () => Boolean(search.value || kind.value || older.value);
  list.shown = () => list.order.map((id) => list.rows.get(id)).filter(Boolean);
  return list;
}

/** Lets the arrow keys go from one row's link to the next. */
export function arrows(node) {
  node.addEventListener("keydown", (event) => {
    const links = [...node.querySelectorAll("a.name")];
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (at < 0 || to === undefined || !links[to]) return;
    event.preventDefault();
    links[to].focus();
  });
}
