// How many of the nearest rows an index finds, measured on demand.

import { post } from "./api.js";
import { h, replace } from "./dom.js";
import { millis, plural } from "./format.js";
import { problem } from "./problem.js";

const K = 10;
const SAMPLE = 50;

/** Returns a button that asks stored vectors again with and without the index of a column. */
export function recallButton({ path, version }, column) {
  const answer = h("div", { "aria-live": "polite" });
  const button = h(
    "button",
    {
      type: "button",
      class: "small",
      "aria-label": `Measure the recall of ${column}`,
      on: { click: measure },
    },
    "Measure recall",
  );

  async function measure() {
    button.disabled = true;
    button.classList.add("busy");
    try {
      replace(answer, told(await post(path("recall"), { column, k: K, sample: SAMPLE, version })));
    } catch (error) {
      replace(answer, problem(error));
    }
    button.disabled = false;
    button.classList.remove("busy");
  }

  return h("div", {}, button, answer);
}

function told(found) {
  const times = `${millis(found.p50_ms)} a query, exact ${millis(found.exact_p50_ms)}`;
  const share = `${(100 * found.recall).toFixed(1)} %`;
  return [
    h("b", {}, share),
    h(
      "span",
      { class: "muted" },
      ` of the ${found.k} nearest, ${plural(found.sample, "query", "queries")}; ${times}`,
    ),
  ];
}
