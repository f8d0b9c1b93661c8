// Errors, shown as the server words them.

import { h } from "./dom.js";

/** Returns an error as a part of the page. */
export function problem(error) {
  const facts = [
    error.status ? `${error.status} ${error.title}` : error.title,
    error.instance ? `request ${error.instance}` : null,
  ].filter((each) => each);
  return h(
    "div",
    { class: "problem", role: "alert" },
    error.message,
    facts.length === 0 ? null : h("small", {}, facts.join(" · ")),
  );
}

/** Tells whether an error only says that the reader has moved on. */
export function isAbort(error) {
  return error.name === "AbortError";
}
