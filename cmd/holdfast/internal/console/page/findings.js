// The view of what Check finds.

import { announce, el } from "./dom.js";
import { ago, instant } from "./time.js";
import { several } from "./words.js";

export function findingsView(session) {
  const result = el("div");
  const ask = el("button.main", { type: "button", click: () => check() }, "Check Redis");

  const check = async () => {
    ask.disabled = true;
    result.replaceChildren(el("p.muted", {}, "Redis is being asked."));
    try {
      const ask = { method: "POST", headers: { "X-Holdfast-CSRF": session.csrf } };
      const answer = await fetch("/check", ask).catch(() => null);
      if (!answer) throw new Error("the console does not answer");
      if (!answer.ok) throw new Error(await answer.text());
      show(await answer.json());
    } catch (error) {
      result.replaceChildren(el("p.trouble", {}, `Not known: Redis could not be checked: ${error.message}`));
      announce("Redis could not be checked.");
    }
    ask.disabled = false;
    ask.focus();
  };

  const show = (found) => {
    const voids = found.findings.filter((f) => f.voids),
      notes = found.findings.filter((f) => !f.voids);
    let text =
      voids.length > 0
        ? `${several(voids.length, "finding voids", "findings void")} a promise.`
        : "Nothing voids a promise.";
    if (found.error)
      text = `Not known: ${found.silent ? "Redis does not answer" : "Redis could not be checked"}. ${found.error}`;
    else if (notes.length > 0) text += ` ${several(notes.length, "more is", "more are")} worth knowing.`;
    result.replaceChildren(
      el(voids.length > 0 || found.error ? "p.verdict.bad" : "p.verdict.good", {}, text),
      el("ul.findings", {}, [...voids, ...notes].map(finding)),
      el("p.muted", {}, `Checked at ${instant(found.at)}, `, ago(found.at), found.error ? "." : ". The same is shown for a minute."),
    );
    announce(text);
  };

  return {
    node: el(
      "div",
      {},
      el("h1", {}, "Findings"),
      el(
        "p.lead",
        {},
        "Check asks every master for what voids a promise of Holdfast: eviction, missing persistence, " +
          "asynchronous replication, and rights that are lacking. To find out about rights it locks and " +
          "releases a name of its own.",
      ),
      ask,
      result,
    ),
  };
}

function finding(f) {
  return el(
    "li.card",
    {},
    el(
      "div.card-head",
      {},
      el("strong", {}, f.problem + (f.kind ? `: ${f.kind}` : "")),
      el(f.voids ? "span.chip.bad" : "span.chip", {}, f.voids ? "voids a promise" : "note"),
    ),
    el("p", {}, f.detail),
    el("p.muted", {}, el("code", {}, f.server)),
  );
}
