// The density of the list: each lock with all that is known, or in one line.

import { el } from "./dom.js";

const key = "holdfast-density";

/** Makes the switch, which the browser remembers. */
export function density() {
  const root = document.documentElement;
  const node = el(
    "button.switch",
    { id: "density", type: "button", role: "switch", click: () => set(root.dataset.density !== "compact") },
    "Compact",
  );
  const set = (compact) => {
    root.dataset.density = compact ? "compact" : "full";
    node.setAttribute("aria-checked", String(compact));
    try {
      localStorage.setItem(key, root.dataset.density);
    } catch {
      /* it is forgotten then */
    }
  };
  let before = root.dataset.density;
  try {
    before = localStorage.getItem(key) ?? before;
  } catch {
    /* it was not remembered */
  }
  set(before === "compact");
  return node;
}
