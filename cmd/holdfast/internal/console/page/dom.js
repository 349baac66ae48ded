// Elements. All text from Redis gets into the page here, and only as text: nothing is ever parsed as markup.

const svgSpace = "http://www.w3.org/2000/svg";

/** Makes an element: el("a.big", {href: "/"}, "text", other). Functions are listeners; null children are left out. */
export function el(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElement(tag), classes, attributes, children);
}

/** Makes an element of SVG. */
export function svg(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElementNS(svgSpace, tag), classes, attributes, children);
}

function fill(node, classes, attributes, children) {
  if (classes.length > 0) node.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...there(children));
  return node;
}

function there(children) {
  return children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false);
}

/** Replaces all that is in a node. */
export function replace(node, ...children) {
  node.replaceChildren(...there(children));
}

/** Sets a text if it differs, so that what is selected, or read aloud, is left alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets or takes away an attribute. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/**
 * Makes the children of a node those for the items, in their order. A child that stays is not touched unless its
 * item has changed; so focus and selection stay too.
 */
export function keyed(node, items, keyOf, make) {
  const before = new Map();
  for (const child of node.children) before.set(child.dataset.key, child);
  const focused = document.activeElement;
  let at = node.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = before.get(key);
    before.delete(key);
    if (!child || !alike(child.item, item)) {
      const fresh = make(item);
      fresh.dataset.key = key;
      fresh.item = item;
      if (child) {
        const inside = child.contains(focused) ? child.querySelector("a, button") === focused : false;
        if (at === child) at = fresh;
        child.replaceWith(fresh);
        if (inside) fresh.querySelector("a, button")?.focus();
      }
      child = fresh;
    }
    if (child === at) at = at.nextElementSibling;
    else node.insertBefore(child, at);
  }
  for (const child of before.values()) child.remove();
  if (focused && focused !== document.activeElement && node.contains(focused)) focused.focus();
}

function alike(a, b) {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** Tells those who listen to the page. It is for what they have caused, and for trouble. */
export function announce(text) {
  document.getElementById("said").textContent = text;
}
