// Names with their values, small.

import { h } from "./dom.js";
import { toJson } from "./json.js";

/** Returns the members of an object, each as a chip. */
export function chips(members) {
  const shown = Object.entries(members).map(([name, value]) =>
    h("span", { class: "chip" }, `${name} `, h("span", { class: "mono" }, valueText(value))),
  );
  return h("div", { class: "chips" }, shown);
}

function valueText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  if (value === null || typeof value !== "object") return toJson(value);
  return Object.entries(value)
    .map(([name, each]) => `${name} ${valueText(each)}`)
    .join(", ");
}
