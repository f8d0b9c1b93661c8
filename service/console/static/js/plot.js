// Distances or scores by rank, small.

import { h, svg } from "./dom.js";
import { figure, plural } from "./format.js";

const WIDTH = 360;
const HEIGHT = 92;
const PAD = { left: 62, right: 8, top: 8, bottom: 8 };
const MOST_DOTS = 400;

/** Returns a plot of values in the order of the rows; nulls leave gaps. */
export function rankPlot(name, values) {
  const known = values
    .map((value, rank) => ({ rank, value }))
    .filter(({ value }) => value !== null);
  if (known.length === 0) return null;
  const [low, high] = [Math.min(...known.map(valueOf)), Math.max(...known.map(valueOf))];
  const place = scale(low, high, values.length);
  const told = `${name} of ${plural(known.length, "row")}: from ${figure(low)} to ${figure(high)}`;
  const ticks = [high, low].map((value) => {
    const [, y] = place({ rank: 0, value });
    return [
      svg("line", { class: "grid", x1: PAD.left, x2: WIDTH - PAD.right, y1: y, y2: y }),
      svg("text", { x: PAD.left - 6, y: y + 3.5, "text-anchor": "end" }, figure(value)),
    ];
  });
  return h(
    "figure",
    { class: "plot" },
    h("figcaption", { class: "muted" }, h("span", { class: "mono" }, name), " by rank"),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": told },
      low === high ? ticks.slice(0, 1) : ticks,
      svg("path", { class: "line", d: lineThrough(known, place) }),
      known.length > MOST_DOTS ? null : known.map((each) => dot(each, place)),
    ),
  );
}

/** Returns a line from row to row, broken where rows between have no value. */
function lineThrough(known, place) {
  return known
    .map(
      (each, at) => `${known[at - 1]?.rank === each.rank - 1 ? "L" : "M"}${place(each).join(" ")}`,
    )
    .join("");
}

function valueOf({ value }) {
  return value;
}

function scale(low, high, length) {
  const width = WIDTH - PAD.left - PAD.right - 8;
  const height = HEIGHT - PAD.top - PAD.bottom;
  return ({ rank, value }) => [
    PAD.left + 4 + (length === 1 ? width / 2 : (width * rank) / (length - 1)),
    PAD.top + (high === low ? height / 2 : (height * (high - value)) / (high - low)),
  ];
}

function dot(each, place) {
  const [cx, cy] = place(each);
  return svg(
    "circle",
    { cx, cy, r: 3 },
    svg("title", {}, `row ${each.rank + 1}: ${figure(each.value)}`),
  );
}
