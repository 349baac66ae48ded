// The view of one name: who holds it, who waits, and what has happened.

import { el, keyed, replace, setText } from "./dom.js";
import { age, left, timeOfDay } from "./time.js";
import { fullOf, kindOf, lockKinds, person, several } from "./words.js";
import { gauge } from "./gauge.js";
import { timeline } from "./timeline.js";
import { releaser } from "./release.js";

const keptEvents = 500; // so many things that have happened are kept in the page
const shownEvents = 100;

/** query is the name, escaped; title is the name as far as the browser can show it. */
export function lockView(query, title, session) {
  let row = null,
    past = [],
    spans = [];
  const name = el("h1.name", {}, title),
    kind = el("span.chip");
  const now = el("section.card", { "aria-labelledby": "now" });
  const waiting = el("section.card", { "aria-labelledby": "waiting" });
  const events = el("tbody");
  const lanes = timeline();
  const note = el(
    "p.muted",
    { hidden: true },
    "Many locks are open on pages now, so this one is seen as often as the list is.",
  );
  const release = releaser(session);

  const redraw = () => {
    setText(name, row.name);
    setText(kind, kindOf(row.kind));
    const isLock = lockKinds.includes(row.kind) || row.kind === "free";
    replace(
      now,
      el("h2", { id: "now" }, isLock ? "Held by" : "Now"),
      isLock ? null : gauge(row),
      holders(row, release),
    );
    const queue = row.queue ?? [];
    replace(
      waiting,
      el("h2", { id: "waiting" }, row.kind === "barrier" ? "Have come" : "Waiting"),
      queue.length === 0
        ? el(
            "p.muted",
            {},
            row.waiters < 0 && row.kind !== "free"
              ? "Redis does not know who waits for this."
              : "Nobody waits.",
          )
        : el(
            "ol.queue",
            {},
            queue.map((w) =>
              el("li", {}, person(w), w.since ? el("span.muted", {}, "for ", age(w.since)) : null),
            ),
          ),
      row.waiters > queue.length
        ? el("p.muted", {}, `and ${several(row.waiters - queue.length, "more", "more")}`)
        : null,
    );
    release.show(row);
  };

  return {
    node: el(
      "div",
      {},
      el("p.back", {}, el("a", { href: "/" }, "All locks")),
      el("div.title", {}, name, kind),
      note,
      el("div.pair", {}, now, waiting),
      el(
        "section.card",
        { "aria-labelledby": "past" },
        el("div.card-head", {}, el("h2", { id: "past" }, "What has happened"), lanes.control),
        lanes.node,
        el(
          "div.scroll",
          { tabindex: 0, role: "region", "aria-label": "What has happened, the latest first" },
          el(
            "table.events",
            { role: "table" },
            el(
              "thead",
              {},
              el(
                "tr",
                { role: "row" },
                el("th", { scope: "col", role: "columnheader" }, "Time"),
                el("th", { scope: "col", role: "columnheader" }, "What"),
              ),
            ),
            events,
          ),
        ),
      ),
      release.node,
    ),
    stream: () => `/events/lock?name=${query}`,
    tell(message) {
      if (message.whole) past = [];
      if (message.spans) spans = message.spans;
      if (message.past) past = [...past, ...message.past].slice(-keptEvents);
      if (message.row) {
        row = message.row;
        redraw();
      }
      note.hidden = !message.remote;
      if ((row && message.past) || message.whole) {
        keyed(
          events,
          past
            .filter((e) => e.what !== "watched" && e.what !== "unwatched")
            .slice(-shownEvents)
            .reverse(),
          (e) => String(e.n),
          eventRow,
        );
      }
      if (row) lanes.draw({ row, past, spans });
    },
    stop: () => {
      lanes.stop();
      release.stop();
    },
  };
}

function holders(row, release) {
  const all = row.holders ?? [];
  if (all.length === 0) {
    if (!lockKinds.includes(row.kind) && row.kind !== "free") return null;
    return el("p.muted", {}, row.state ? `Nobody. It is ${row.state}.` : "Nobody. It is free.");
  }
  return el(
    "ul.holders",
    {},
    all.map((h) =>
      el(
        "li",
        {},
        person(h),
        h.note ? el("span.note", {}, h.note) : null,
        el(
          "dl.facts",
          {},
          all.length === 1 || h.write
            ? [el("div", {}, el("dt", {}, "held for"), el("dd", {}, age(row.since)))]
            : null,
          el("div", {}, el("dt", {}, "time left"), el("dd", {}, left(h.until))),
        ),
        h.permit ? release.button(row, h) : null,
      ),
    ),
    row.held > all.length
      ? el("li.muted", {}, `and ${several(row.held - all.length, "more", "more")}`)
      : null,
  );
}

function eventRow(e) {
  const bad = e.what === "expired" || e.what === "taken" || e.what === "failed" || e.what === "broken";
  return el(
    bad ? "tr.bad" : "tr",
    { role: "row" },
    el("td", { role: "cell" }, el("time", { datetime: new Date(e.at).toISOString() }, timeOfDay(e.at))),
    el("td", { role: "cell" }, sentence(e)),
  );
}

/** Returns what has happened, as a sentence. */
export function sentence(e) {
  switch (e.what) {
    case "granted":
      return `Granted to ${fullOf(e.holder)}`;
    case "released":
      return `Released by ${fullOf(e.from)}`;
    case "passed":
      return `Passed from ${fullOf(e.from)} to ${fullOf(e.holder)}`;
    case "expired":
      return `Lost by ${fullOf(e.from)}: its time was over, and it had not released`;
    case "taken":
      return `Taken from ${fullOf(e.from)} by force, on a page of this console`;
    case "waits":
      return `${fullOf(e.waiter)} began to wait`;
    case "counted":
      return `${e.value ?? 0}, was ${e.was ?? 0}`;
    default:
      return e.what[0].toUpperCase() + e.what.slice(1) + (e.from ? ` by ${fullOf(e.from)}` : "");
  }
}
