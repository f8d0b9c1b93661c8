// The panel of queries: the form, and what comes back.

import { keyHeader, post, serviceAddress, storedKey, withParameter } from "./api.js";
import { empty, h, replace } from "./dom.js";
import { isAbort, problem } from "./problem.js";
import { showPlan } from "./plan.js";
import { QueryForm } from "./query_form.js";
import { showRows } from "./results.js";
import { showSnippets } from "./snippets.js";
import { tabs } from "./tabs.js";
import { whyNotForm } from "./why_not.js";

/** Returns the panel of queries. */
export function queryPanel() {
  const element = h("section", { class: "search" });
  let shown = null;

  function show(context) {
    if (shown === context) return;
    shown = context;
    const view = new QueryView(context);
    replace(element, view.form.element, view.element);
    view.start();
  }

  return { id: "query", title: "Query", element, show };
}

class QueryView {
  constructor(context) {
    this.context = context;
    this.body = null;
    this.measured = null;
    this.form = new QueryForm(context, () => this.run());
    this.rows = h("div", { "aria-busy": "false" });
    this.plan = h("div", {});
    this.code = h("div", {});
    this.tabs = tabs(
      "Answer",
      [
        { id: "rows", title: "Rows", element: this.rows },
        { id: "plan", title: "Plan", element: this.plan },
        { id: "code", title: "Code", element: this.code },
      ],
      (id) => this.open(id),
    );
    this.why = h("div", {});
    this.element = h(
      "div",
      { class: "answer" },
      h("div", { class: "card" }, this.tabs.element),
      this.why,
    );
  }

  start() {
    this.tabs.open("rows");
    for (const each of [this.rows, this.plan, this.code])
      replace(each, empty("Ask something: the answer stands here, with its plan and as code."));
  }

  /** Asks what the form holds. */
  async run() {
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.rows.setAttribute("aria-busy", "true");
    this.element.classList.add("waiting");
    try {
      const body = await this.form.body();
      this.take(body);
      const answer = await post(withParameter(this.context.path("query"), "format", "json"), body, {
        signal,
      });
      showRows(this.rows, answer, this.form.vectors.length > 0 ? (id) => this.near(id) : null);
    } catch (error) {
      if (isAbort(error)) return;
      replace(this.rows, problem(error));
    }
    this.rows.setAttribute("aria-busy", "false");
    this.element.classList.remove("waiting");
  }

  /** Makes a body the query in view. */
  take(body) {
    this.body = body;
    const url = `${serviceAddress()}/${this.context.path("query")}`;
    const key = storedKey();
    showSnippets(this.code, url, body, key === null ? null : keyHeader(key));
    const isVectorOnly = ("vector" in body || "row_id" in body) && !("full_text_query" in body);
    replace(this.why, isVectorOnly ? whyNotForm(this.context, () => this.body) : null);
    if (this.shown === "plan") this.measure();
  }

  near(id) {
    this.form.nearRow(id);
    this.run();
  }

  open(id) {
    this.shown = id;
    if (id === "plan" && this.body !== null) this.measure();
  }

  async measure() {
    const { body, context } = this;
    if (this.measured === body) return;
    this.measured = body;
    replace(this.plan, h("p", { class: "busy muted" }, "Running it with a watch"));
    try {
      const report = await post(
        withParameter(context.path("analyze_plan"), "format", "json"),
        body,
      );
      if (this.body === body) showPlan(this.plan, report);
    } catch (error) {
      if (this.body === body) replace(this.plan, problem(error));
    }
  }
}
