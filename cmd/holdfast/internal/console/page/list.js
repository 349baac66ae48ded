// The view of all locks.

import { el, keyed, setText } from "./dom.js";
import { age, ago, left } from "./time.js";
import { emptyOf, notKnown } from "./answer.js";
import { density } from "./density.js";
import { hrefOf, kindOf, lockKinds, person, several, shortOf } from "./words.js";
import { arrows, pagedList } from "./pages.js";

const columns = [
  ["name", "Name"],
  [null, "Kind"],
  [null, "Held by"],
  ["age", "Age"],
  ["left", "Left"],
  ["waiters", "Waiters"],
];

/** again has the stream opened anew. */
export function listView(again) {
  const body = el("tbody");
  const headings = columns.map(([by, text]) =>
    el(
      "th",
      { scope: "col", role: "columnheader" },
      by
        ? el(
            "button.sort",
            {
              type: "button",
              click: () => {
                list.sortBy(by);
                sorted();
              },
            },
            text,
          )
        : text,
    ),
  );
  const table = el(
    "table.locks",
    { role: "table", hidden: true },
    el("caption.unseen", {}, "Locks, elections and the work of Onces"),
    el("thead", {}, el("tr", { role: "row" }, headings)),
    body,
  );
  const nothing = el("p.nothing");
  const tiles = ["Held", "Waited for", "Waiters", "Held for longest"].map((name) => {
    const value = el("dd", {}, "–");
    return { value, node: el("div.tile", {}, el("dt", {}, name), value) };
  });
  arrows(body);

  const sorted = () =>
    columns.forEach(([by], n) => {
      if (by === list.sort) headings[n].setAttribute("aria-sort", list.down ? "descending" : "ascending");
      else headings[n].removeAttribute("aria-sort");
    });

  const redraw = (_, message, answer) => {
    const unknown = answer.how === "unknown";
    if (message.totals) {
      const t = message.totals;
      [t.held, t.waited, t.waiters].forEach((n, at) => setText(tiles[at].value, n.toLocaleString("en")));
      tiles[3].value.replaceChildren(age(t.longest));
    } else if (unknown) for (const tile of tiles) setText(tile.value, "–");
    keyed(body, list.shown(), (row) => row.id, lockRow);
    if (list.order.length > 0 && performance.getEntriesByName("first-list").length === 0)
      performance.mark("first-list");
    table.hidden = list.order.length === 0;
    nothing.hidden = list.order.length > 0;
    const empty = list.filtered()
      ? emptyOf(answer, "Nothing is like that in Redis", "Nothing was like that in Redis")
      : emptyOf(answer, "No lock is held or waited for", "No lock was held or waited for");
    setText(nothing, unknown ? notKnown(answer) : empty);
  };
  const list = pagedList("locks", lockKinds, redraw, again, density());
  sorted();
  return {
    node: el(
      "div",
      {},
      el("h1", {}, "Locks"),
      el(
        "dl.tiles",
        {},
        tiles.map((t) => t.node),
      ),
      list.controls,
      el("div.card.flush", {}, table, nothing),
      list.pager,
    ),
    stream: list.stream,
    tell: list.tell,
    counts: true,
  };
}

function lockRow(row) {
  const cell = (label, ...content) => el("td", { role: "cell", "data-label": label }, ...content);
  return el(
    row.seen ? "tr.old" : "tr",
    { role: "row" },
    el(
      "th",
      { scope: "row", role: "rowheader" },
      el("a.name", { href: hrefOf(row.id) }, row.name),
      row.paused ? el("span.note", {}, row.paused) : null,
      row.state === "asked" ? el("span.note", {}, "its holder is asked to release it") : null,
      row.seen ? el("span.muted.seen", {}, "not seen now; as of ", ago(row.seen)) : null,
    ),
    cell("Kind", el("span.chip", {}, kindOf(row.kind))),
    cell("Held by", holdersOf(row)),
    cell("Age", age(row.since, row.seen)),
    cell("Left", left(row.until, row.seen)),
    cell("Waiters", waitersOf(row)),
  );
}

function holdersOf(row) {
  const holders = row.holders ?? [];
  if (holders.length === 0) return el("span.muted", {}, row.state || "nobody");
  return el(
    "span.people",
    {},
    holders.map((h) => person(h, h.note ? el("span.note", {}, h.note) : null)),
    row.held > holders.length
      ? el("span.muted", {}, `and ${several(row.held - holders.length, "more", "more")}`)
      : null,
  );
}

function waitersOf(row) {
  if (row.waiters < 0) return el("span.muted", { title: "not known" }, "–");
  if (row.waiters === 0) return el("span.muted", {}, "0");
  const queue = (row.queue ?? []).map(shortOf).join(", ");
  return el(
    "span.people",
    {},
    el("strong", {}, String(row.waiters)),
    queue
      ? el("span.muted.clip", { title: queue }, `next ${queue}${row.waiters > row.queue.length ? " …" : ""}`)
      : null,
  );
}
