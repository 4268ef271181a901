"use strict";
// What all pages share: text, tables, plots and the viewer. A page's own script, which follows, calls show().
const data = JSON.parse(document.getElementById("data").textContent);
const images = [...document.querySelectorAll(".pictures img")];

// ---- Text

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
const html = (strings, ...values) => new Markup(String.raw({ raw: strings }, ...values.map(as_markup)));

// Three significant digits, without an exponent.
const short_number = (value) => {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 999.5) return value.toFixed(0);
  const digits = size === 0 ? 0 : Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return String(Number(value.toFixed(digits)));
};
// JSON has no infinity, so it is stored as text.
const number = (value, write) =>
  typeof value === "number" ? write(value) : value === "inf" ? "∞" : value === "-inf" ? "−∞" : "–";
const fixed = (value, digits) => number(value, (one) => one.toFixed(digits));
const size_text = (size) => `${size.width} x ${size.height}`;

// Smaller changes are not shown.
const difference_that_counts = 1.05;
const verdict = (factor) =>
  factor >= difference_that_counts ? "good" : factor <= 1 / difference_that_counts ? "bad" : "even";

// ---- Tables

const cell = (content, kind) => ({ content, kind });
// Rows: a name, then cells, text or cell(). Groups, [name, columns], stand above the head from its second column on.
const table = (head, rows, { groups = [], kind } = {}) => html`<div class="scroll"><table${
  kind && html` class="${kind}"`}><thead>${
  groups.length > 0 && html`<tr class="groups"><th></th>${
    groups.map(([name, columns]) => html`<th colspan="${columns}">${name}</th>`)}</tr>`}<tr>${
  head.map((name) => html`<th>${name}</th>`)}</tr></thead><tbody>${
  rows.map(([name, ...cells]) => html`<tr><th>${name}</th>${cells.map((one) =>
    one && one.kind ? html`<td class="${one.kind}">${one.content}</td>`
      : html`<td>${one && "content" in Object(one) ? one.content : one}</td>`)}</tr>
`)}</tbody></table></div>`;

// Where there is a mask, its numbers stand in a row of their own. Volumes have no FSIM.
const metrics_table = (pictures) => {
  const judged = pictures.filter((picture) => picture.metrics).flatMap(({ name, metrics }) =>
    [{ name, metrics }, ...(metrics.mask ? [{ name: `${name}, in the mask`, metrics: metrics.mask }] : [])]);
  const features = judged.some((picture) => "fsim" in picture.metrics);
  const colour = judged.some((picture) => typeof picture.metrics.fsimc === "number");
  const digits = (value) => number(value, (one) => Number(one.toPrecision(5)));
  return table(["picture", "PSNR dB", "SSIM", ...(features ? ["FSIM"] : []), ...(colour ? ["FSIMc"] : []), "MSE", "largest error"],
    judged.map(({ name, metrics }) => [name, fixed(metrics.psnr, 2), fixed(metrics.ssim, 4),
      ...(features ? [fixed(metrics.fsim, 4)] : []), ...(colour ? [fixed(metrics.fsimc, 4)] : []),
      digits(metrics.mse), digits(metrics.max_abs)]),
    { kind: "metrics" });
};

// ---- Plots: SVG whose colours come from the style, so that they follow its light or dark mode, and whose letters are as
// large on a phone as the text around them.

const area = { width: 400, height: 270, left: 52, right: 392, top: 12, bottom: 226 };

// From values to a place along an axis.
const axis_of = (values, log, from, to) => {
  let low = Math.min(...values);
  let high = Math.max(...values);
  if (log && high / low < 1.2) {
    low /= 1.1;
    high *= 1.1;
  } else if (!log && high - low < 1e-12) {
    low -= 1;
    high += 1;
  }
  const share = (value) => log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const ticks = [];
  if (log) {
    const decades = Math.log10(high / low);
    const every = Math.max(1, Math.ceil(decades / 7));
    for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.ceil(Math.log10(high)); exponent += every) {
      for (const step of decades > 2.5 ? [1] : [1, 2, 5]) {
        const value = step * 10 ** exponent;
        if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
      }
    }
  } else {
    const rough = (high - low) / 5;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * (rough / unit > 5 ? 10 : rough / unit > 2 ? 5 : 2);
    for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) ticks.push(i * step);
  }
  return { ticks, place: (value) => (from + share(value) * (to - from)).toFixed(1) };
};

// Lines through points. A series is {name, points: [[x, y]], colour, dashed}; dashed lines are other programs'. Empty
// without points.
const line_plot = ({ title, x_label, y_label, series, log_x = false, log_y = true, from_zero = true }) => {
  const drawable = ([x, y]) => Number.isFinite(x) && Number.isFinite(y) && (!log_x || x > 0) && (!log_y || y > 0);
  const lines = series.map((one) => ({
    ...one, points: one.points.filter(drawable), colour: `s${one.colour % 8}`, dash: one.dashed && " dashed" }))
    .filter((one) => one.points.length > 0);
  const points = lines.flatMap((one) => one.points);
  if (points.length === 0) return "";
  const { width, height, left, right, top, bottom } = area;
  const x_axis = axis_of(points.map(([x]) => x), log_x, left + 8, right - 8);
  const y_axis = axis_of([...points.map(([, y]) => y), ...(!log_y && from_zero ? [0] : [])], log_y, bottom - 6, top + 6);
  return html`<figure class="plot"><figcaption>${title}</figcaption><svg viewBox="0 0 ${width} ${height}" role="img"
aria-label="${title}">${
    y_axis.ticks.map((value) => html`<path class="grid" d="M${left} ${y_axis.place(value)}H${right}"/><text class="tick y"
x="${left - 6}" y="${Number(y_axis.place(value)) + 4}">${short_number(value)}</text>`)}${
    x_axis.ticks.map((value) => html`<path class="grid" d="M${x_axis.place(value)} ${top}V${bottom}"/><text class="tick x"
x="${x_axis.place(value)}" y="${bottom + 17}">${short_number(value)}</text>`)}<path class="axis"
d="M${left} ${top}V${bottom}H${right}"/><text class="label" x="${(left + right) / 2}" y="${height - 8}">${x_label}</text><text
class="label" transform="translate(12 ${(top + bottom) / 2}) rotate(-90)">${y_label}</text>${
    lines.map((one) => html`<path class="line ${one.colour}${one.dash}" d="M${
      one.points.map(([x, y]) => `${x_axis.place(x)} ${y_axis.place(y)}`).join("L")}"/>${
      one.points.map(([x, y]) => html`<circle class="dot ${one.colour}" cx="${x_axis.place(x)}" cy="${y_axis.place(y)}"
r="3"><title>${one.name}: ${x_label} ${short_number(x)}, ${short_number(y)} ${y_label}</title></circle>`)}`)
    }</svg><ul class="legend">${lines.map((one) => html`<li><svg viewBox="0 0 26 10" aria-hidden="true"><path class="line
${one.colour}${one.dash}" d="M1 5H25"/></svg>${one.name}</li>`)}</ul></figure>`;
};

// A bar {name, value, ours, note} a row, its name above it; `mark` is a line across all bars, 0 for none.
const bar_plot = ({ title, unit, mark = 1, bars }) => {
  if (bars.length === 0) return "";
  const row = 32;
  const longest = 330;  // leaves room for the number behind it
  const largest = Math.max(mark, ...bars.map((bar) => bar.value));
  const kind = (bar) =>
    bar.ours || mark === 0 ? "ours" : { good: "above", bad: "below", even: "even" }[verdict(bar.value / mark)];
  const place = (value) => value / largest * longest;
  return html`<figure class="plot bars"><figcaption>${title}</figcaption><svg viewBox="0 0 ${area.width} ${
    row * bars.length + 8}" role="img" aria-label="${title}">${bars.map((bar, i) => html`<g><title>${bar.name}${
    bar.note && `: ${bar.note}`}</title><text class="bar-name" x="0" y="${row * i + 13}">${bar.name}</text><rect
class="bar ${kind(bar)}" x="0" y="${row * i + 18}" width="${Math.max(1, place(bar.value)).toFixed(1)}" height="10"
rx="2"/><text class="bar-value" x="${(Math.max(1, place(bar.value)) + 5).toFixed(1)}" y="${row * i + 27}">${
    short_number(bar.value)}${unit}</text></g>`)}${mark > 0 && html`<path class="mark" d="M${place(mark).toFixed(1)} 0V${
    row * bars.length + 8}"/>`}</svg></figure>`;
};

// ---- The viewer: two pictures on one canvas, the left one up to the split; or their difference, enlarged around gray.

const select = (label, what, options, chosen) => html`<label>${label} <select data-choose="${what}">${
  options.map(([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`)
  }</select></label>`;

// Pictures numbers `left` and `right` face each other at first.
const viewer = (left, right) => {
  const names = images.map((image, i) => [i, image.alt]);
  const sizes = [1, 2, 4, 8].map((times) => [times, times]);
  return html`<figure class="viewer"><div class="controls">${select("left", "left", names, left)}${
    select("right", "right", names, right)}${
    select("show", "mode", [["slider", "slider"], ["difference", "difference"]], "slider")}${
    select("zoom", "zoom", [[0, "fit"], ...sizes], 0)}<span class="only-difference">${select("times", "gain", sizes, 4)}</span>
</div><div class="stage"><canvas></canvas></div><input type="range" class="split" min="0" max="1000" value="500"
aria-label="where the left picture ends"><p class="names"><span data-name="left"></span><span data-name="right"></span></p>
</figure>`;
};

const bring_to_life = (viewer) => {
  const canvas = viewer.querySelector("canvas");
  const stage = viewer.querySelector(".stage");
  const split = viewer.querySelector(".split");
  const choose = (name) => viewer.querySelector(`[data-choose="${name}"]`);
  const state = { x: 0, y: 0 };  // the picture's point in the canvas's upper left corner, where it is zoomed
  let difference = { key: "", canvas: null };

  const pixels = (image) => {
    const sheet = document.createElement("canvas");
    sheet.width = image.naturalWidth;
    sheet.height = image.naturalHeight;
    const context = sheet.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, sheet.width, sheet.height);
  };

  const difference_of = (left, right, gain) => {
    const key = [images.indexOf(left), images.indexOf(right), gain].join();
    if (difference.key !== key) {
      const result = pixels(left);
      const other = pixels(right).data;
      for (let i = 0; i < result.data.length; ++i) {
        if (i % 4 !== 3) result.data[i] = 128 + gain * (result.data[i] - other[i]);  // clamped by the array
      }
      const sheet = document.createElement("canvas");
      sheet.width = result.width;
      sheet.height = result.height;
      sheet.getContext("2d").putImageData(result, 0, 0);
      difference = { key, canvas: sheet };
    }
    return difference.canvas;
  };

  const draw = () => {
    const left = images[choose("left").value];
    const right = images[choose("right").value];
    const shows_difference = choose("mode").value === "difference";
    viewer.classList.toggle("difference", shows_difference);
    for (const [name, image] of [["left", left], ["right", right]]) {
      const label = viewer.querySelector(`[data-name="${name}"]`);
      label.textContent = [image.alt, image.dataset.numbers].filter(Boolean).join(": ");
    }
    const width = right.naturalWidth;
    const height = right.naturalHeight;
    const zoom = Number(choose("zoom").value);
    stage.classList.toggle("zoomed", zoom > 0);
    const room = stage.clientWidth;
    const sharpness = window.devicePixelRatio || 1;
    const scale = zoom > 0 ? zoom : room / width;
    const shown_height = Math.max(1, Math.min(height * scale, Math.max(320, room * 0.75)));
    const fitted = zoom > 0 ? shown_height : height * scale;
    canvas.width = Math.round(room * sharpness);
    canvas.height = Math.round(fitted * sharpness);
    canvas.style.height = fitted + "px";
    const most_x = Math.max(0, width - room / scale);
    const most_y = Math.max(0, height - fitted / scale);
    state.x = zoom > 0 ? Math.min(Math.max(state.x, 0), most_x) : 0;
    state.y = zoom > 0 ? Math.min(Math.max(state.y, 0), most_y) : 0;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = scale * sharpness < 1;
    context.setTransform(scale * sharpness, 0, 0, scale * sharpness, -state.x * scale * sharpness, -state.y * scale * sharpness);
    if (shows_difference) {
      context.drawImage(difference_of(left, right, Number(choose("gain").value)), 0, 0);
    } else {
      const edge = state.x + (split.value / 1000) * (room / scale);
      context.drawImage(right, 0, 0);
      context.save();
      context.beginPath();
      context.rect(state.x, state.y, edge - state.x, fitted / scale);
      context.clip();
      context.drawImage(left, 0, 0);
      context.restore();
      context.setTransform(1, 0, 0, 1, 0, 0);
      const at = (split.value / 1000) * canvas.width;
      context.fillStyle = "#fff";
      context.fillRect(at - sharpness, 0, 2 * sharpness, canvas.height);
      context.fillStyle = "#000";
      context.fillRect(at + sharpness, 0, sharpness, canvas.height);
    }
    viewer.dataset.drawn = Number(viewer.dataset.drawn || 0) + 1;
  };

  // Fitted: the pointer moves the split. Zoomed: it moves the picture, and the split has its own control.
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY };
    canvas.setPointerCapture(event.pointerId);
    follow(event);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => { if (held) follow(event); });
  const follow = (event) => {
    const zoom = Number(choose("zoom").value);
    if (zoom > 0) {
      state.x -= (event.clientX - held.x) / zoom;
      state.y -= (event.clientY - held.y) / zoom;
      held = { x: event.clientX, y: event.clientY };
    } else {
      const box = canvas.getBoundingClientRect();
      split.value = 1000 * (event.clientX - box.left) / box.width;
    }
    draw();
  };

  split.addEventListener("input", draw);
  for (const select of viewer.querySelectorAll("select")) {
    select.addEventListener("change", () => {
      if (select.dataset.choose === "zoom") {
        const zoom = Number(select.value);
        const image = images[0];
        state.x = image.naturalWidth / 2 - stage.clientWidth / Math.max(1, zoom) / 2;
        state.y = image.naturalHeight / 2 - stage.clientWidth * 0.375 / Math.max(1, zoom);
      }
      draw();
    });
  }
  Promise.all(images.map((image) => image.decode())).then(() => {
    viewer.classList.add("live");
    draw();
    window.addEventListener("resize", draw);
  });
};

// The page, in the order of its parts. `start` makes its viewer work.
const show_with = (start, ...parts) => {
  document.querySelector("main").innerHTML = as_markup(parts);
  const pictures = document.querySelector(".pictures");
  const found = document.querySelector(".viewer");
  if (found) {
    found.append(pictures);
    start(found);
  } else {
    pictures.remove();
  }
};
const show = (...parts) => show_with(bring_to_life, ...parts);
