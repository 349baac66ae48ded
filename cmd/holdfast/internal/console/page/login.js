// The form for the token.

const query = new URLSearchParams(location.search);
const next = query.get("next") ?? "/";
document.getElementById("next").value = next;
document.getElementById("wrong").hidden = !query.has("wrong");

// Whoever came by a link on another site has a cookie that the browser did not send along. It sends it now.
const known = await fetch("/session").then(
  (answer) => answer.ok,
  () => false,
);
if (known && next.startsWith("/") && !next.startsWith("//") && !next.includes("\\")) location.replace(next);
