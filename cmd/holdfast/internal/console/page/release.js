// A release by force: it asks for the name to be typed.

import { announce, el, setText } from "./dom.js";
import { fullOf } from "./words.js";

const kinds = ["mutex", "rwlock", "leader"];

export function releaser(session) {
  let row = null,
    wanted = null;
  const from = el("p"),
    expect = el("strong.name"),
    wrong = el("p.trouble", { id: "release-wrong", role: "alert", hidden: true });
  const typed = el("input", {
    id: "typed",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "release-wrong",
  });
  const go = el("button.danger", { type: "submit" }, "Take it from its holder");
  const dialog = el(
    "dialog",
    { "aria-labelledby": "release-title" },
    el(
      "form",
      {
        submit: (event) => {
          event.preventDefault();
          send();
        },
      },
      el("h2", { id: "release-title" }, "Release by force"),
      from,
      el(
        "p",
        {},
        "The holder’s work may still be going on. It is told by its next renewal. Whoever waits is next.",
      ),
      el("label", { for: "typed" }, "Type the name ", expect),
      typed,
      wrong,
      el("div.buttons", {}, el("button", { type: "button", click: () => dialog.close() }, "Leave it"), go),
    ),
  );
  const done = el("p.done", { hidden: true });
  const ask = el(
    "button.danger",
    { type: "button", click: () => open(row, row.holders) },
    "Release by force…",
  );
  const card = el("section.card.release", { "aria-label": "Release by force", hidden: true }, ask, done);

  const open = (of, holders) => {
    wanted = {
      id: of.id,
      from: holders.map((h) => (h.owner ?? "") + (h.permit ?? "")),
      permit: holders[0]?.permit ?? "",
    };
    setText(
      from,
      `It is taken from ${holders.slice(0, 5).map(fullOf).join(", ")}${holders.length > 5 ? " and others" : ""}.`,
    );
    setText(expect, of.name);
    typed.value = "";
    wrong.hidden = true;
    dialog.showModal();
    typed.focus();
  };

  const refuse = (text) => {
    setText(wrong, text);
    wrong.hidden = false;
    typed.focus();
  };

  const send = async () => {
    go.disabled = true;
    try {
      const answer = await fetch("/release", {
        method: "POST",
        body: JSON.stringify({ ...wanted, typed: typed.value }),
        headers: { "Content-Type": "application/json", "X-Holdfast-CSRF": session.csrf },
      });
      if (!answer.ok) return refuse((await answer.text()).trim());
      const taken = (await answer.json()).from;
      const text =
        taken.length === 0 ? "They did not hold it any more; nothing was changed." : `Taken from ${taken.map(fullOf).join(", ")}.`;
      dialog.close();
      done.hidden = card.hidden = false;
      setText(done, text);
      announce(text);
    } catch (error) {
      refuse(`The console did not answer: ${error.message}`);
    } finally {
      go.disabled = false;
    }
  };

  return {
    node: el("div", {}, card, dialog),
    /** now is null if it is not known who holds it; it is old if Redis cannot be asked. */
    show(now, old) {
      row = now;
      const can = session.releases && row && kinds.includes(row.kind) && (row.holders ?? []).length > 0;
      ask.hidden = !can;
      ask.disabled = Boolean(old);
      card.hidden = !can && done.hidden;
    },
    /** Makes the button that frees one permit. */
    button: (of, permit) =>
      session.releases &&
      el("button.danger.small", { type: "button", click: () => open(of, [permit]) }, "Free this permit…"),
    stop: () => dialog.open && dialog.close(),
  };
}
