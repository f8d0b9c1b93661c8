// Figures as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const GROUPED = new Intl.NumberFormat("en");
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Infinity],
];

/** Returns a count with its thousands apart. */
export function count(value) {
  return GROUPED.format(value);
}

/** Returns a count and what is counted. */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${Number(value) === 1 ? one : many}`;
}

/** Returns bytes in the unit that suits them. */
export function bytes(value) {
  let [size, at] = [Number(value), 0];
  while (size >= 1024 && at < UNITS.length - 1) [size, at] = [size / 1024, at + 1];
  return `${at === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${UNITS[at]}`;
}

/** Returns milliseconds. */
export function millis(value) {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value >= 10 ? value.toFixed(1) : value.toFixed(2)} ms`;
}

/** Returns a share of a whole in percent. */
export function percent(part, whole) {
  if (Number(whole) === 0) return "–";
  const share = (100 * Number(part)) / Number(whole);
  return `${share > 0 && share < 10 ? share.toFixed(1) : Math.floor(share)} %`;
}

/** Returns a distance or score with the digits that tell. */
export function figure(value) {
  if (value === null) return "null";
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(5)));
}

/** Returns how long ago a moment was. */
export function ago(time) {
  let left = (new Date(time).getTime() - Date.now()) / 1000;
  for (const [unit, length] of STEPS) {
    if (Math.abs(left) < length) return RELATIVE.format(Math.round(left), unit);
    left /= length;
  }
  return "";
}

/** Returns a moment in the reader's time zone. */
export function moment(time) {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}
