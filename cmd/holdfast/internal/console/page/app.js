// The console in the browser: which view is shown, and the frame around it.

import { announce, setAttribute, setText } from "./dom.js";
import { duration, holdAges, now, setClock, tick } from "./time.js";
import { answerOf, troubleOf } from "./answer.js";
import { open } from "./stream.js";
import { listView } from "./list.js";
import { countsView } from "./counts.js";
import { lockView } from "./lock.js";
import { findingsView } from "./findings.js";
import { plain } from "./words.js";

const byID = (id) => document.getElementById(id);
const main = byID("main");

const session = await fetch("/session").then((answer) => answer.json());
setText(byID("target"), session.target + (session.pattern ? `, ${session.pattern}` : ""));
setText(byID("mode"), session.releases ? "Release by force is allowed." : "Read-only.");

let stop = () => {};

/** Shows the view of the address. */
function show() {
  stop();
  let close = () => {};
  const begin = () => {
    close();
    close = view.stream ? open(view.stream(), hear, live) : () => {};
  };
  const hear = (message) => {
    setClock(message.now);
    answer = answerOf(message);
    frame(message, view);
    view.tell(message, answer);
    tick();
  };
  const [view, title] = choose(begin);
  document.title = titled(title);
  delete main.dataset.how;
  main.replaceChildren(view.node);
  for (const a of document.querySelectorAll("nav a[href]")) {
    setAttribute(a, "aria-current", a.getAttribute("href") === location.pathname ? "page" : null);
  }
  answer = null;
  holdAges(0);
  byID("trouble").hidden = true;
  setText(byID("trouble"), "");
  live(view.stream ? "connecting" : "none");
  begin();
  stop = () => {
    close();
    view.stop?.();
  };
}

/** Returns the view of the address, and its title. again opens its stream anew. */
function choose(again) {
  const path = location.pathname;
  if (path === "/counts") return [countsView(again), "Semaphores and latches"];
  if (path === "/findings") return [findingsView(session), "Findings"];
  if (path === "/") return [listView(again), "Locks"];
  const inPath = path.startsWith("/lock/");
  const id = inPath ? path.slice("/lock/".length) : (new URLSearchParams(location.search).get("name") ?? "");
  const query = inPath ? id.replace(/[+&]/g, (c) => encodeURIComponent(c)) : encodeURIComponent(id);
  let title = id;
  try {
    title = decodeURIComponent(id);
  } catch {
    /* a name of odd bytes */
  }
  return [lockView(query, plain(title), session, (name) => (document.title = titled(name))), plain(title)];
}

function titled(text) {
  return `${text} – Holdfast console`;
}

let answer = null; // what the last message was; null before the first
let connection = "connecting"; // how it stands with the stream

/** Shows what every message tells: how many there are, and trouble. */
function frame(message, view) {
  main.dataset.how = answer.how;
  for (const part of ["locks", "counts"]) {
    if (message.totals) setText(byID(part), message.totals[part].toLocaleString("en"));
    else if (view.counts && answer.how === "unknown") setText(byID(part), "–");
  }
  const trouble = troubleOf(answer);
  const node = byID("trouble");
  if (!trouble && node.textContent) announce("Redis can be looked at again.");
  setText(node, trouble);
  node.hidden = !trouble;
  lag();
}

const states = {
  known: "Live",
  partly: "Not all seen",
  asking: "Asking",
  lost: "Not connected",
  resting: "Resting",
  full: "Paused: too many pages are open",
  none: "",
  connecting: "Connecting",
};

/** Notes how it stands with the stream. */
function live(state) {
  if (connection === state) return;
  if (state === "lost") announce("The console does not answer.");
  if (state === "live" && connection === "lost") announce("The console answers again.");
  connection = state;
  lag();
}

/** Returns how it stands with what the page shows: only if it is known, it is live. */
function stateOf() {
  if (connection !== "live") return connection;
  if (!answer) return "connecting";
  return answer.asking ? "asking" : answer.how;
}

/**
 * Shows how it stands, and how old what is shown is: a look at very many names takes its time. What is old has the age
 * that it had when it was seen.
 */
function lag() {
  const node = byID("live"),
    state = stateOf(),
    failed = answer?.silent ? "No answer" : "Nothing seen";
  node.dataset.state = state;
  holdAges(answer?.at && (state !== "known" || answer.how === "old") && state !== "partly" ? answer.at : 0);
  const behind = answer?.at ? now() - answer.at : 0;
  const old = behind > 4000 || (behind > 0 && (state === "old" || state === "lost"));
  setText(node, (states[state] ?? failed) + (old ? `, as of ${duration(behind)} ago` : ""));
}
setInterval(lag, 1000);

/** Goes to another view without loading the page anew. */
function go(href) {
  history.pushState(null, "", href);
  show();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const a = event.target.closest?.("a[href]");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (
    !a ||
    !plain ||
    event.defaultPrevented ||
    a.origin !== location.origin ||
    a.getAttribute("href").startsWith("#")
  )
    return;
  event.preventDefault();
  go(a.getAttribute("href"));
});
addEventListener("popstate", show);

document.addEventListener("keydown", (event) => {
  if (
    event.key !== "/" ||
    event.ctrlKey ||
    event.metaKey ||
    /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
  )
    return;
  const search = main.querySelector("input[type=search]");
  if (search) {
    event.preventDefault();
    search.focus();
  }
});

show();
