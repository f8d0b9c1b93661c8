// An executed plan as a tree: the last step on top, what feeds it below.

import { chips } from "./chips.js";
import { bar, h, replace } from "./dom.js";
import { bytes, count, millis, plural } from "./format.js";

/** Shows the answer of `analyze_plan` in an element. */
export function showPlan(element, report) {
  const longest = Math.max(...times(report.plan), 1e-9);
  replace(
    element,
    h(
      "div",
      { class: "stats" },
      report.stats ? h("b", {}, `${millis(report.stats.elapsed_ms)} in all`) : null,
      report.stats ? h("span", { class: "muted" }, `${bytes(report.stats.bytes_read)} read`) : null,
      h("span", { class: "muted" }, "Run anew to be measured; bars compare the steps' own times."),
    ),
    h("ul", { class: "plan" }, step(report.plan, longest)),
    skipped(report.skipped),
  );
}

function times({ measured, inputs }) {
  return [measured ? measured.elapsed_ms : 0, ...inputs.flatMap(times)];
}

function step({ node, settings, measured, inputs }, longest) {
  return h(
    "li",
    {},
    h(
      "div",
      { class: "step" },
      h(
        "div",
        { class: "title" },
        h("b", {}, node),
        measured ? timeBar(measured, longest) : h("span", { class: "muted" }, "had nothing to do"),
      ),
      chips(settings),
      measured ? h("div", { class: "muted" }, measures(measured).join(" · ")) : null,
    ),
    inputs.length === 0
      ? null
      : h(
          "ul",
          {},
          inputs.map((each) => step(each, longest)),
        ),
  );
}

function timeBar({ elapsed_ms: elapsed }, longest) {
  const told = millis(elapsed);
  return h(
    "span",
    { class: "time" },
    bar(elapsed, longest, `${told} of at most ${millis(longest)}`),
    h("span", { class: "mono" }, told),
  );
}

function measures(measured) {
  const { rows, partitions, bytes_read: read, store_requests: requests } = measured;
  const { cache_hits: hits, cache_misses: misses, postings } = measured;
  return [
    plural(rows, "row"),
    partitions > 0 ? plural(partitions, "partition") : null,
    postings > 0 ? plural(postings, "posting") : null,
    read > 0 ? `${bytes(read)} read` : null,
    requests > 0 ? plural(requests, "request") : null,
    hits + misses > 0 ? `cache: ${count(hits)} found, ${count(misses)} not` : null,
  ].filter((each) => each !== null);
}

function skipped(segments) {
  if (segments.length === 0) return null;
  return h(
    "ul",
    { class: "notes" },
    segments.map(({ index, segment, reason }) =>
      h("li", {}, `Segment ${segment} of ${index} is not used: ${reason}.`),
    ),
  );
}
