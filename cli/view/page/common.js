"use strict";
// What the parts of the page share: markup, requests to the server, texts of numbers, plots.

// ---- Markup

class Markup {
  constructor(text) { this.text = text; }
}
const escaped = (text) =>
  text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
const as_markup = (value) => {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(as_markup).join("");
  return value === undefined || value === null || value === false ? "" : escaped(String(value));
};
// Values put into html`...` are text, unless they are made by html`...` themselves.
export const html = (strings, ...values) => new Markup(String.raw({ raw: strings }, ...values.map(as_markup)));
export const put = (element, markup) => { element.innerHTML = as_markup(markup); };
export const by_id = (id) => document.getElementById(id);

// Calls `work` once, `delay` ms after the last call. `soon.waiting()` tells whether a call is due.
export const debounced = (work, delay) => {
  let timer = 0;
  const soon = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      work(...values);
    }, delay);
  };
  soon.waiting = () => timer !== 0;
  soon.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  return soon;
};

// ---- Requests

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}
export const is_abort = (error) => error.name === "AbortError";

export const address = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
};

// The answer itself. Throws Refused with the server's one line.
export const fetch_answer = async (path, { query, post, body, signal } = {}) => {
  const sent = post === undefined ? body : JSON.stringify(post);
  let answer;
  try {
    answer = await fetch(address(path, query), {
      method: sent === undefined ? "GET" : "POST", body: sent, signal, cache: "no-store",
      headers: post === undefined ? {} : { "Content-Type": "application/json" } });
  } catch (error) {
    if (is_abort(error)) throw error;
    throw new Refused("the server does not answer: was ungrain view ended?", 0);
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refused(said.error || `the server answered ${answer.status}`, answer.status);
};
export const ask = async (path, options) => (await fetch_answer(path, options)).json();

// ---- Numbers

// Four significant digits, without an exponent where that is readable.
export const short_number = (value) => {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) return value.toExponential(2);
  if (size >= 1000) return value.toFixed(0);
  return String(Number(value.toPrecision(4)));
};
export const bytes_text = (bytes) => {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; bytes >= 1000 && unit < units.length - 1; ++unit) bytes /= 1000;
  return `${unit === 0 ? bytes : bytes.toPrecision(3)} ${units[unit]}`;
};
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// ---- Plots: SVG whose colours come from the style, so that they follow light and dark.

const plot = { width: 320, left: 40, right: 316 };

// About `count` round values between `low` and `high`.
const ticks_of = (low, high, count) => {
  const rough = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * (rough / unit > 5 ? 10 : rough / unit > 2 ? 5 : 2);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) ticks.push(i * step);
  return ticks;
};
const channel_names = (count) =>
  count === 1 ? ["gray"] : count === 3 ? ["red", "green", "blue"] : Array.from({ length: count }, (_, i) => `channel ${i + 1}`);
const channel_class = (count, i) => count === 3 ? ["red", "green", "blue"][i] : `s${i % 8}`;

// Counts of values between `low` and `high`, with the window's ends as lines. Heights follow the square root, so that
// small counts beside a peak can be seen.
export const histogram_plot = ({ channels, low, high, black, white }) => {
  const height = 110;
  const bottom = 92;
  const largest = Math.max(1, ...channels.flat());
  const x_of = (value) => (4 + (value - low) / (high - low) * (plot.width - 8)).toFixed(1);
  const y_of = (count) => (bottom - Math.sqrt(count / largest) * (bottom - 4)).toFixed(1);
  const shape = (counts) =>
    counts.map((count, i) => `V${y_of(count)}H${x_of(low + (high - low) * (i + 1) / counts.length)}`).join("");
  return html`<svg class="plot histogram" viewBox="0 0 ${plot.width} ${height}" role="img"
aria-label="Histogram from ${short_number(low)} to ${short_number(high)}; shown from black at ${short_number(black)} to white at ${
  short_number(white)}">${channels.map((counts, i) => html`<path class="area ${channel_class(channels.length, i)}"
d="M4 ${bottom}${shape(counts)}V${bottom}Z"/>`)}<path class="axis" d="M4 ${bottom}H${plot.width - 4}"/>${
  ticks_of(low, high, 4).map((value) => html`<text class="tick" x="${x_of(value)}" y="${height - 3}">${short_number(value)}</text>`)
  }<path class="window" d="M${x_of(black)} 2V${bottom}M${x_of(white)} 2V${bottom}"/></svg>`;
};

// The noise's standard deviation over the level, one curve a channel of [level, deviation].
export const noise_plot = (curves) => {
  const points = curves.flat();
  if (points.length === 0) return "";
  const height = 170;
  const [top, bottom] = [8, 132];
  let low = Math.min(...points.map(([x]) => x));
  let high = Math.max(...points.map(([x]) => x));
  if (high - low < 1e-12) [low, high] = [low - 1, high + 1];
  const largest = Math.max(1e-12, ...points.map(([, y]) => y)) * 1.08;
  const x_of = (value) => (plot.left + (value - low) / (high - low) * (plot.right - plot.left)).toFixed(1);
  const y_of = (value) => (bottom - value / largest * (bottom - top)).toFixed(1);
  const names = channel_names(curves.length);
  return html`<svg class="plot" viewBox="0 0 ${plot.width} ${height}" role="img" aria-label="The noise's standard deviation over the level">${
    ticks_of(0, largest, 4).map((value) => html`<path class="grid" d="M${plot.left} ${y_of(value)}H${plot.right}"/><text class="tick y"
x="${plot.left - 5}" y="${Number(y_of(value)) + 4}">${short_number(value)}</text>`)}${
    ticks_of(low, high, 4).map((value) => html`<text class="tick" x="${x_of(value)}" y="${bottom + 15}">${short_number(value)}</text>`)
    }<path class="axis" d="M${plot.left} ${top}V${bottom}H${plot.right}"/><text class="tick" x="${(plot.left + plot.right) / 2}" y="${
    height - 6}">level</text>${curves.map((curve, i) => html`<path class="line ${channel_class(curves.length, i)}" d="M${
    curve.map(([x, y]) => `${x_of(x)} ${y_of(y)}`).join("L")}"><title>${names[i]}</title></path>`)}</svg>`;
};
