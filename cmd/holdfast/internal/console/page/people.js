// The people of one name: who holds it, and who waits.

import { el, keyed, replace, setText } from "./dom.js";
import { age, instant, left } from "./time.js";
import { lockKinds, person, several } from "./words.js";
import { gauge } from "./gauge.js";

/** Makes the section of who holds, and of how many there are of what is counted. */
export function holdersSection(release) {
  const title = el("h2", { id: "now" });
  const count = el("div");
  const list = el("ul.holders");
  const rest = el("p.muted");
  let row = null,
    seen = 0, // when it was seen, if that is not now
    shorts = "";

  const item = (h) => {
    return el(
      "li",
      {},
      row.kind === "slots" ? el("span.number", {}, `${h.number}${h.over ? ", in quarantine" : ""}`) : null,
      person(row.kind === "shards" ? { ...h, count: 0 } : h),
      row.kind === "shards" ? el("span.note", {}, h.shards ? `has ${h.shards}` : "has none") : null,
      h.note ? el("span.note", {}, h.note) : null,
      el("dl.facts", {}, h.alone ? fact("held for", age(h.since)) : null, fact("time left", left(h.until))),
      h.permit ? release.button(row, h) : null,
    );
  };
  const say = (text) => {
    setText(rest, text);
    rest.hidden = !text;
  };
  const sayRest = () => {
    const lock = lockKinds.includes(row.kind) || row.kind === "free";
    const text = restOf(row, row.holders ?? [], lock, seen);
    say(shorts && row.kind === "free" ? `Nobody at the last look. ${shorts}` : [text, shorts].filter(Boolean).join(" "));
  };
  return {
    node: el("section.card", { "aria-labelledby": "now" }, title, count, list, rest),
    /** Says in place of all else that it is not known. */
    unknown(text) {
      row = null;
      setText(title, "Held by");
      replace(count);
      keyed(list, [], String, item);
      say(text);
    },
    /** Says how many short holds there were; "" if there were none. */
    short(text) {
      if (shorts === text) return;
      shorts = text;
      if (row) sayRest();
    },
    show(now, at) {
      row = now;
      seen = at;
      const isLock = lockKinds.includes(row.kind) || row.kind === "free";
      const holders = row.holders ?? [];
      setText(title, isLock ? "Held by" : "Now");
      replace(count, isLock ? null : gauge(row));
      const known = (h) => (row.held === 1 || h.write ? { ...h, alone: true, since: row.since } : h);
      keyed(list, holders.map(known), (h) => `${h.owner ?? ""} ${h.permit ?? ""} ${h.write ?? ""}`, item);
      sayRest();
    },
  };
}

function fact(name, value) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value));
}

/** Says that nobody holds it, or did when it was seen, or how many more do than are shown. */
function restOf(row, holders, isLock, seen) {
  if (row.held > holders.length) return `and ${several(row.held - holders.length, "more", "more")}`;
  if (holders.length > 0 || !isLock) return "";
  const state = row.state || "free";
  return seen ? `Nobody at ${instant(seen)}. It was ${state} then.` : `Nobody. It is ${state}.`;
}

/** Makes the section of who waits, or, of a barrier, who has come. */
export function waitersSection() {
  const title = el("h2", { id: "waiting" });
  const list = el("ol.queue");
  const rest = el("p.muted");
  const item = (w) => el("li", {}, person(w), w.since ? el("span.muted", {}, "for ", age(w.since)) : null);
  return {
    node: el("section.card", { "aria-labelledby": "waiting" }, title, list, rest),
    unknown(text) {
      setText(title, "Waiting");
      keyed(list, [], String, item);
      setText(rest, text);
      rest.hidden = false;
    },
    show(row, seen) {
      const queue = row.queue ?? [];
      setText(title, row.kind === "barrier" ? "Have come" : "Waiting");
      keyed(list, queue, (w) => `${w.owner ?? ""} ${w.write ?? ""}`, item);
      let text = "";
      if (row.waiters > queue.length) text = `and ${several(row.waiters - queue.length, "more", "more")}`;
      else if (row.waiters < 0 && row.kind !== "free") text = "Redis does not know who waits for this.";
      else if (queue.length === 0) text = seen ? `Nobody waited at ${instant(seen)}.` : "Nobody waits.";
      setText(rest, text);
      rest.hidden = !text;
    },
  };
}
