// The drawing of fragments and indices.

import { h, replace, svg } from "./dom.js";
import { count, plural } from "./format.js";

const NARROWEST = 260;
const GAP = 3;
const LANE = 34;
const FRAGMENTS = 64;
const LABEL = 20;
const PIXELS_PER_BLOCK = 6;

/** Returns the picture of an answer of `coverage`, as wide as there is room. */
export function coveragePicture(coverage) {
  const holder = h("div", { class: "holder" });
  new ResizeObserver(([{ contentRect }]) =>
    replace(holder, draw(coverage, Math.max(NARROWEST, contentRect.width))),
  ).observe(holder);
  return holder;
}

function draw({ fragments, indices }, width) {
  const blocks = placeBlocks(joinFragments(fragments, width / PIXELS_PER_BLOCK), width);
  const height = LABEL + FRAGMENTS + indices.length * (LABEL + LANE) + 6;
  const lanes = indices.map((index, at) =>
    lane(index, blocks, LABEL + FRAGMENTS + at * (LABEL + LANE)),
  );
  const told = indices.map(
    (each) => `${each.name} covers ${plural(each.covered.length, "fragment")}`,
  );
  return svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      class: "coverage",
      role: "img",
      "aria-label": [plural(fragments.length, "fragment"), ...told].join("; "),
    },
    svg("text", { x: 0, y: 13 }, "fragments"),
    blocks.map((block) => fragmentBlock(block)),
    lanes,
  );
}

/** Returns blocks of one fragment each, or of neighbours where there are very many. */
function joinFragments(fragments, most) {
  const size = Math.ceil(fragments.length / most);
  const blocks = [];
  for (let at = 0; at < fragments.length; at += size) {
    const joined = fragments.slice(at, at + size);
    blocks.push({
      ids: joined.map((each) => each.id),
      rows: joined.reduce((sum, each) => sum + Number(each.rows), 0),
      deleted: joined.reduce((sum, each) => sum + Number(each.deleted), 0),
    });
  }
  return blocks;
}

/** Places blocks side by side: widths follow the rows, and none gets too narrow to be seen. */
function placeBlocks(blocks, width) {
  const free = width - GAP * (blocks.length - 1);
  const least = Math.min(free / blocks.length, 14);
  const rows = Math.max(
    1,
    blocks.reduce((sum, each) => sum + each.rows, 0),
  );
  let x = 0;
  return blocks.map((each) => {
    const own = least + ((free - least * blocks.length) * each.rows) / rows;
    const placed = { ...each, x, width: own };
    x += own + GAP;
    return placed;
  });
}

function fragmentBlock(block) {
  const inner = FRAGMENTS - 8;
  const gone = block.rows === 0 ? 0 : (inner * block.deleted) / block.rows;
  const shown = block.deleted > 0 ? Math.max(gone, 2.5) : 0;
  const name = namesOf(block);
  return svg(
    "g",
    {},
    svg("title", {}, `${name}: ${plural(block.rows, "row")}, ${count(block.deleted)} deleted`),
    svg("rect", { class: "rows", x: block.x, y: LABEL, width: block.width, height: inner, rx: 4 }),
    svg("rect", {
      class: "deleted",
      x: block.x,
      y: LABEL + inner - shown,
      width: block.width,
      height: shown,
      rx: Math.min(3, shown / 2),
    }),
    block.width < 46
      ? null
      : svg("text", { class: "inside", x: block.x + 8, y: LABEL + 19 }, blockLabel(block)),
  );
}

function blockLabel(block) {
  const name =
    block.ids.length === 1 ? String(block.ids[0]) : `${block.ids[0]}–${block.ids.at(-1)}`;
  return block.width < 150 ? name : `${name} · ${plural(block.rows, "row")}`;
}

function namesOf({ ids }) {
  return ids.length === 1 ? `fragment ${ids[0]}` : `fragments ${ids[0]} to ${ids.at(-1)}`;
}

function lane(index, blocks, y) {
  const covered = new Set(index.covered);
  const reasons = new Map(index.gaps.map((gap) => [gap.fragment, gap.reason]));
  return svg(
    "g",
    {},
    svg("text", { x: 0, y: y + 13 }, laneLabel(index)),
    blocks.map((block) => laneBlock(index, block, covered, reasons, y + LABEL)),
  );
}

function laneLabel(index) {
  const types = [...new Set(index.segments.map((each) => each.type))].join(", ");
  return `${index.name} · ${types} · ${plural(index.segments.length, "segment")}`;
}

function laneBlock(index, block, covered, reasons, y) {
  const held = block.ids.filter((id) => covered.has(id));
  const share = held.length / block.ids.length;
  const height = LANE - 10;
  const reason = block.ids.map((id) => reasons.get(id)).find((each) => each !== undefined);
  const told =
    share === 1 ? `covered by ${index.name}` : (reason ?? `not covered by ${index.name}`);
  return svg(
    "g",
    {},
    svg("title", {}, `${namesOf(block)}: ${told}`),
    share === 1
      ? null
      : svg("rect", { class: "gap", x: block.x, y, width: block.width, height, rx: 4 }),
    share === 0
      ? null
      : svg("rect", {
          class: "covered",
          x: block.x,
          y: y + height * (1 - share),
          width: block.width,
          height: height * share,
          rx: 4,
        }),
  );
}
