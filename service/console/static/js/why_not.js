// Why a row is not in an answer.

import { post } from "./api.js";
import { chips } from "./chips.js";
import { field, h, replace } from "./dom.js";
import { problem } from "./problem.js";
import { parseRowId } from "./query_body.js";

/** Returns a form that asks about one row; `query` gives the body of the query in view. */
export function whyNotForm(context, query) {
  const row = h("input", { inputmode: "numeric", spellcheck: "false" });
  const answer = h("div", { "aria-live": "polite" });

  async function ask(event) {
    event.preventDefault();
    try {
      const body = { ...query(), row: { row_id: parseRowId(row.value) } };
      const found = await post(context.path("why_not"), body);
      replace(answer, reason(found));
    } catch (error) {
      replace(answer, problem(error));
    }
  }

  return h(
    "details",
    { class: "card why" },
    h("summary", {}, "Why is a row not here?"),
    h(
      "form",
      { class: "inline", on: { submit: ask } },
      field("Row id", row),
      h("button", { type: "submit" }, "Ask"),
    ),
    answer,
  );
}

function reason({ reason: word, text, detail }) {
  return h(
    "div",
    { class: "reason" },
    h("span", { class: "pill accent" }, word.replaceAll("_", " ")),
    h("p", {}, text),
    chips(detail),
  );
}
