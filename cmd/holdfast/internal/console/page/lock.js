// The view of one name: who holds it, who waits, and what has happened.

import { el, keyed, setText } from "./dom.js";
import { timeOfDay } from "./time.js";
import { fullOf, kindOf } from "./words.js";
import { holdersSection, waitersSection } from "./people.js";
import { timeline } from "./timeline.js";
import { releaser } from "./release.js";

const keptEvents = 500; // so many things that have happened are kept in the page
const shownEvents = 100;
const bad = ["expired", "taken", "failed", "broken"];

/** query is the name, escaped; title is the name as far as the browser can show it. */
export function lockView(query, title, session) {
  const release = releaser(session);
  const holders = holdersSection(release);
  const waiters = waitersSection();
  const past = pastSection();
  const name = el("h1.name", {}, title);
  const kind = el("span.chip");
  const remote = el(
    "p.muted",
    {},
    "Many locks are open on pages now, so this one is seen as often as the list is.",
  );
  remote.hidden = true;
  let row = null;

  return {
    node: el(
      "div",
      {},
      el("p.back", {}, el("a", { href: "/" }, "All locks")),
      el("div.title", {}, name, kind),
      remote,
      el("div.pair", {}, holders.node, waiters.node),
      past.node,
      release.node,
    ),
    stream: () => `/events/lock?name=${query}`,
    tell(message) {
      remote.hidden = !message.remote;
      if (message.row) {
        row = message.row;
        setText(name, row.name);
        setText(kind, kindOf(row.kind));
        for (const part of [holders, waiters, release]) part.show(row);
      }
      if (row) past.tell(message, row);
    },
    stop() {
      past.stop();
      release.stop();
    },
  };
}

/** Makes the section of what has happened: as lanes, and as a table. */
function pastSection() {
  let past = [];
  let spans = [];
  const lanes = timeline();
  const rows = el("tbody");
  const heading = (text) => el("th", { scope: "col", role: "columnheader" }, text);
  const head = el("thead", {}, el("tr", { role: "row" }, heading("Time"), heading("What")));
  const scroll = { tabindex: 0, role: "region", "aria-label": "What has happened, the latest first" };
  return {
    node: el(
      "section.card",
      { "aria-labelledby": "past" },
      el("div.card-head", {}, el("h2", { id: "past" }, "What has happened"), lanes.control),
      lanes.node,
      el("div.scroll", scroll, el("table.events", { role: "table" }, head, rows)),
    ),
    tell(message, row) {
      if (message.whole) past = [];
      if (message.spans) spans = message.spans;
      if (message.past) past = [...past, ...message.past].slice(-keptEvents);
      if (message.past || message.whole) {
        const shown = past.filter((e) => e.what !== "watched" && e.what !== "unwatched");
        keyed(rows, shown.slice(-shownEvents).reverse(), (e) => String(e.n), eventRow);
      }
      lanes.draw({ row, past, spans });
    },
    stop: lanes.stop,
  };
}

function eventRow(e) {
  const at = el("time", { datetime: new Date(e.at).toISOString() }, timeOfDay(e.at));
  const cell = (content) => el("td", { role: "cell" }, content);
  return el(bad.includes(e.what) ? "tr.bad" : "tr", { role: "row" }, cell(at), cell(sentence(e)));
}

/** Returns what has happened, as a sentence. */
function sentence(e) {
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
