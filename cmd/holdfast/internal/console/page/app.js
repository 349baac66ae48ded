// The console in the browser: which view is shown, and the frame around it.

import { announce, setAttribute, setText } from "./dom.js";
import { duration, now, setClock, tick } from "./time.js";
import { open } from "./stream.js";
import { listView } from "./list.js";
import { countsView } from "./counts.js";
import { lockView } from "./lock.js";
import { findingsView } from "./findings.js";

const byID = (id) => document.getElementById(id);
const main = byID("main");

const session = await fetch("/session").then((answer) => answer.json());
setText(byID("target"), session.target + (session.pattern ? `, ${session.pattern}` : ""));
setText(byID("cost"), session.cost);
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
    frame(message);
    view.tell(message);
    tick();
  };
  const [view, title] = choose(begin);
  document.title = `${title} – Holdfast console`;
  main.replaceChildren(view.node);
  for (const a of document.querySelectorAll("nav a[href]")) {
    setAttribute(a, "aria-current", a.getAttribute("href") === location.pathname ? "page" : null);
  }
  looked = 0;
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
  return [lockView(query, title, session), title];
}

let looked = 0; // when the console has last looked, on the server's clock

/** Shows what every message tells: how many there are, and trouble. */
function frame(message) {
  looked = message.looked;
  if (message.totals) {
    setText(byID("locks"), message.totals.locks.toLocaleString("en"));
    setText(byID("counts"), message.totals.counts.toLocaleString("en"));
  }
  const trouble = message.error ? `Not all could be looked at: ${message.error}` : "";
  if (byID("trouble").textContent !== trouble) setText(byID("trouble"), trouble);
  byID("trouble").hidden = !trouble;
}

const states = {
  live: "Live",
  lost: "Not connected",
  resting: "Resting",
  none: "",
  connecting: "Connecting",
};

function live(state) {
  const node = byID("live");
  if (node.dataset.state === state) return;
  if (state === "lost") announce("The console does not answer.");
  if (state === "live" && node.dataset.state === "lost") announce("The console answers again.");
  node.dataset.state = state;
  lag();
}

/** Shows how it stands with the stream, and how old what it tells is: a look at very many names takes its time. */
function lag() {
  const node = byID("live"),
    state = node.dataset.state,
    behind = now() - looked;
  setText(
    node,
    states[state] + (state === "live" && looked && behind > 4000 ? `, as of ${duration(behind)} ago` : ""),
  );
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
