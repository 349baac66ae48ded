// The view of all semaphores, permits, slots, latches, barriers and numbers.

import { el, keyed, setText } from "./dom.js";
import { ago, left } from "./time.js";
import { emptyOf, notKnown } from "./answer.js";
import { countKinds, hrefOf, kindOf } from "./words.js";
import { arrows, pagedList } from "./pages.js";
import { gauge } from "./gauge.js";

/** again has the stream opened anew. */
export function countsView(again) {
  const cards = el("ul.cards");
  const nothing = el("p.nothing");
  arrows(cards);
  const redraw = (_, message, answer) => {
    keyed(cards, list.shown(), (row) => row.id, countCard);
    nothing.hidden = list.order.length > 0;
    const empty = list.filtered()
      ? emptyOf(answer, "Nothing is like that in Redis", "Nothing was like that in Redis")
      : emptyOf(answer, "No semaphore, latch or barrier is in Redis", "No semaphore, latch or barrier was in Redis");
    setText(nothing, answer.how === "unknown" ? notKnown(answer) : empty);
  };
  const list = pagedList("counts", countKinds, redraw, again);
  return {
    node: el("div", {}, el("h1", {}, "Semaphores and latches"), list.controls, cards, nothing, list.pager),
    stream: list.stream,
    tell: list.tell,
    counts: true,
  };
}

function countCard(row) {
  return el(
    row.seen ? "li.card.old" : "li.card",
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
      ? el("p.muted", {}, row.kind === "permits" ? "the last permit ends in " : "lasts ", left(row.until, row.seen))
      : null,
    row.seen ? el("p.muted", {}, "not seen now; as of ", ago(row.seen)) : null,
  );
}
