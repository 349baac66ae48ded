// The people of one name: who holds it, and who waits.

import { el, keyed, replace, setText } from "./dom.js";
import { age, left } from "./time.js";
import { lockKinds, person, several } from "./words.js";
import { gauge } from "./gauge.js";

/** Makes the section of who holds, and of how many there are of what is counted. */
export function holdersSection(release) {
  const title = el("h2", { id: "now" });
  const count = el("div");
  const list = el("ul.holders");
  const rest = el("p.muted");
  let row = null;

  const item = (h) => {
    return el(
      "li",
      {},
      person(h),
      h.note ? el("span.note", {}, h.note) : null,
      el("dl.facts", {}, h.alone ? fact("held for", age(h.since)) : null, fact("time left", left(h.until))),
      h.permit ? release.button(row, h) : null,
    );
  };
  return {
    node: el("section.card", { "aria-labelledby": "now" }, title, count, list, rest),
    show(now) {
      row = now;
      const isLock = lockKinds.includes(row.kind) || row.kind === "free";
      const holders = row.holders ?? [];
      setText(title, isLock ? "Held by" : "Now");
      replace(count, isLock ? null : gauge(row));
      const known = (h) => (row.held === 1 || h.write ? { ...h, alone: true, since: row.since } : h);
      keyed(list, holders.map(known), (h) => `${h.owner ?? ""} ${h.permit ?? ""} ${h.write ?? ""}`, item);
      setText(rest, restOf(row, holders, isLock));
      rest.hidden = !rest.textContent;
    },
  };
}

function fact(name, value) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value));
}

/** Says that nobody holds it, or how many more do than are shown. */
function restOf(row, holders, isLock) {
  if (row.held > holders.length) return `and ${several(row.held - holders.length, "more", "more")}`;
  if (holders.length > 0 || !isLock) return "";
  return row.state ? `Nobody. It is ${row.state}.` : "Nobody. It is free.";
}

/** Makes the section of who waits, or, of a barrier, who has come. */
export function waitersSection() {
  const title = el("h2", { id: "waiting" });
  const list = el("ol.queue");
  const rest = el("p.muted");
  const item = (w) => el("li", {}, person(w), w.since ? el("span.muted", {}, "for ", age(w.since)) : null);
  return {
    node: el("section.card", { "aria-labelledby": "waiting" }, title, list, rest),
    show(row) {
      const queue = row.queue ?? [];
      setText(title, row.kind === "barrier" ? "Have come" : "Waiting");
      keyed(list, queue, (w) => `${w.owner ?? ""} ${w.write ?? ""}`, item);
      let text = "";
      if (row.waiters > queue.length) text = `and ${several(row.waiters - queue.length, "more", "more")}`;
      else if (row.waiters < 0 && row.kind !== "free") text = "Redis does not know who waits for this.";
      else if (queue.length === 0) text = "Nobody waits.";
      setText(rest, text);
      rest.hidden = !text;
    },
  };
}
