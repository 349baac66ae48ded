// The view of one name: who holds it, who waits, and what has happened.

import { el, keyed, setText } from "./dom.js";
import { instant, now, timeOfDay, zoneOf } from "./time.js";
import { fullOf, kindOf, several } from "./words.js";
import { notKnown } from "./answer.js";
import { shortHolds } from "./lanes.js";
import { holdersSection, waitersSection } from "./people.js";
import { timeline } from "./timeline.js";
import { releaser } from "./release.js";

const keptEvents = 500; // so many things that have happened are kept in the page
const shownEvents = 100;
const bad = ["expired", "lost", "taken", "failed", "broken"];

const lately = 10_000; // ms for which short holds are counted beside who holds it

/** query is the name, escaped; title is the name as far as the browser can show it; retitle is called with a better one. */
export function lockView(query, title, session, retitle) {
  const release = releaser(session);
  const holders = holdersSection(release);
  const waiters = waitersSection();
  const past = pastSection();
  const name = el("h1.name", {}, title);
  const kind = el("span.chip", { hidden: true });
  const remote = el(
    "p.muted",
    {},
    "Many locks are open on pages now, so this one is seen as often as the list is.",
  );
  remote.hidden = true;
  let row = null,
    how = "unknown";

  const shorts = () => {
    const all = shortHolds(past.all(), now() - lately);
    const times = all.reduce((sum, s) => sum + s.times, 0);
    const seconds = Math.ceil((now() - Math.min(...all.map((s) => s.from))) / 1000);
    const text = `${several(times, "short hold", "short holds")} in the last ${seconds} s, between two looks.`;
    holders.short(times > 0 ? text : "");
  };
  const timer = setInterval(shorts, 1000);

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
    tell(message, answer) {
      remote.hidden = !message.remote;
      if (message.name) {
        setText(name, message.name);
        retitle(message.name);
      }
      if (message.row) row = message.row;
      if (answer.how === "unknown") row = null;
      kind.hidden = !row || (row.kind === "free" && answer.how === "old");
      if (!row) {
        holders.unknown(notKnown(answer));
        waiters.unknown("Not known.");
        release.show(null);
      } else {
        if (message.row || how !== answer.how) {
          const asked = row.state === "asked" ? "its holder is asked to release it" : "";
          setText(kind, [kindOf(row.kind), row.paused, asked].filter(Boolean).join(", "));
          for (const part of [holders, waiters]) part.show(row, answer.how === "old" ? answer.at : 0);
        }
        release.show(row, answer.how === "old");
      }
      how = answer.how;
      past.tell(message, row, answer);
      shorts();
    },
    stop() {
      clearInterval(timer);
      past.stop();
      release.stop();
    },
  };
}

/** Makes the section of what has happened: as lanes, and as a table. */
function pastSection() {
  let past = [];
  let spans = [];
  let forgot = 0; // when the latest of those was that were forgotten
  const lanes = timeline();
  const rows = el("tbody");
  const heading = (text) => el("th", { scope: "col", role: "columnheader" }, text);
  const when = heading("Time");
  const head = el("thead", {}, el("tr", { role: "row" }, when, heading("What")));
  const table = el(
    "div.scroll",
    { tabindex: 0, role: "region", "aria-label": "What has happened, the latest first", hidden: true },
    el("table.events", { role: "table" }, head, rows),
  );
  return {
    node: el(
      "section.card",
      { "aria-labelledby": "past" },
      el("div.card-head", {}, el("h2", { id: "past" }, "What has happened"), lanes.control),
      lanes.node,
      table,
    ),
    all: () => past,
    tell(message, row, answer) {
      if (message.whole) past = [];
      if (message.spans) spans = message.spans;
      if (message.past) past = joined(past, message.past);
      if (past.length > keptEvents) {
        forgot = past.at(-keptEvents - 1).at;
        past = past.slice(-keptEvents);
      }
      if (message.past || message.whole) {
        const shown = past.filter((e) => e.what !== "watched" && e.what !== "unwatched");
        keyed(rows, shown.slice(-shownEvents).reverse(), (e) => String(e.n), eventRow);
        table.hidden = shown.length === 0;
        setText(when, `Time (${zoneOf(message.now)})`);
      }
      const whole = Math.max(message.since ?? 0, forgot);
      const old = answer.how !== "known";
      lanes.draw({ row, past, spans, asOf: answer.at || message.now, old, whole });
    },
    stop: lanes.stop,
  };
}

/** Returns what has happened with what is new of it. Short holds come again, with more of them. */
function joined(past, news) {
  const counted = new Set(news.filter((e) => e.what === "unseen").map((e) => e.begun));
  return [...past.filter((e) => e.what !== "unseen" || !counted.has(e.begun)), ...news];
}

function eventRow(e) {
  const text = zoneOf(e.at) === zoneOf(now()) ? timeOfDay(e.at) : instant(e.at);
  const datetime = new Date(e.at).toISOString();
  const at = el("time", { datetime, title: instant(e.at) }, e.late ? `by ${text}` : text);
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
    case "lost":
      return `Lost by ${fullOf(e.from)}, or released: Redis has dropped keys`;
    case "taken":
      return `Taken from ${fullOf(e.from)} by force, on a page of this console`;
    case "already":
      return `${fullOf(e.holder)} held it already`;
    case "unseen":
      return `${several(e.times, "short hold", "short holds")} since ${timeOfDay(e.begun)}, seen by no look`;
    case "gone":
      return `${fullOf(e.waiter)} waits no longer`;
    case "waits":
      return `${fullOf(e.waiter)} began to wait`;
    case "counted":
      return `${e.value ?? 0}, was ${e.was ?? 0}`;
    default:
      return e.what[0].toUpperCase() + e.what.slice(1) + (e.from ? ` by ${fullOf(e.from)}` : "");
  }
}
