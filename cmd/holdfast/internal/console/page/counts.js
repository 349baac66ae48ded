// The view of all semaphores, permits, latches, barriers and numbers.

import { el, keyed, setText } from "./dom.js";
import { left } from "./time.js";
import { countKinds, hrefOf, kindOf } from "./words.js";
import { arrows, pagedList } from "./pages.js";
import { gauge } from "./gauge.js";

/** again has the stream opened anew. */
export function countsView(again) {
  const cards = el("ul.cards");
  const nothing = el("p.nothing", {}, "Redis is being asked. With very many names this takes a few seconds.");
  arrows(cards);
  const redraw = (_, message) => {
    if (!message.looked && list.order.length === 0 && !message.error) return;
    keyed(cards, list.shown(), (row) => row.id, countCard);
    nothing.hidden = list.order.length > 0;
    setText(
      nothing,
      list.filtered()
        ? "Nothing that stands in Redis now is like that."
        : "No semaphore, latch or barrier stands in Redis now.",
    );
  };
  const list = pagedList("counts", countKinds, redraw, again);
  return {
    node: el("div", {}, el("h1", {}, "Semaphores and latches"), list.controls, cards, nothing, list.pager),
    stream: list.stream,
    tell: list.tell,
  };
}

function countCard(row) {
  return el(
    "li.card",
    {},
    el(
      "div.card-head",
      {},
      el("a.name", { href: hrefOf(row.id) }, row.name),
      el("span.chip", {}, kindOf(row.kind)),
    ),
    gauge(row),
    row.kind === "count" ? el("p.muted", {}, "It may be any program's number.") : null,
    row.until > 0
      ? el("p.muted", {}, row.kind === "permits" ? "the last permit ends in " : "lasts ", left(row.until))
      : null,
  );
}
