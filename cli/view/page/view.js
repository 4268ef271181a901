"use strict";
// The page: what is chosen, where it stands in the address, and what the controls outside of the settings do.
import {
  address, ask, by_id, bytes_text, clamp, debounced, histogram_plot, html, is_abort, noise_plot, put, short_number,
} from "./common.js";
import { copy_of, method_of, no_settings, settings_of, SettingsPanel, words_of } from "./settings.js";
import { page_word, Stack, volumes_of } from "./stack.js";
import { most_zoom, Stage } from "./stage.js";
import { ValueReadout } from "./value.js";

const modes = ["split", "noisy", "clean", "difference", "removed", "side"];
const most_panels = 4;
const largest_preset = 1 << 20;  // bytes

let session;
let files = [];
let info = null;
let stage;
let stack;
let readout;
let settings_panel;
const state = {
  file: null, page: 0, mode: "split", split: 0.5, gain: 4, low: null, high: null,  // null: as the picture was opened
  as: "pages",  // what the open file is taken for: pages, volume or clip; the settings are those of this kind
  panels: [],  // {kind, settings}; the active one is what the settings show and what is seen where there is one panel
  active: 0, rectangle: null,
  own_strength: {},  // by file
};
const for_kind = { pages: "for images", volume: "for volumes", clip: "for clips" };
const panels_of = {};  // {panels, active} of the kinds of file that are not open
const own_kinds = {};  // by file: what it is taken for unless another kind is chosen
const chosen_kinds = {};  // by file

// ---- Messages

// A message stays until it is dismissed, or until what it is about works again.
let failure_about = "";
const failure = (error, about = "") => {
  if (is_abort(error)) return;
  failure_about = error.status === 0 ? "server" : about;
  by_id("failure-text").textContent = error.message || String(error);
  by_id("failure").hidden = false;
};
const no_failure = (about = failure_about) => { if (about === failure_about) by_id("failure").hidden = true; };
const say = (text) => { by_id("said").textContent = text; };
// Work whose failure is told in the bar.
const attempt = async (work, about) => {
  try {
    return await work();
  } catch (error) {
    failure(error, about);
    return undefined;
  }
};

// ---- What is chosen

// The methods and options of the kind of file that is open.
const table = () => session.kinds[state.as];
const active_panel = () => state.panels[state.active];
// With the picture's own strength, if it has one.
const words_for = (settings, file) => {
  const own = state.own_strength[file];
  if (own === undefined) return words_of(table(), settings);
  const usual = table().common.find(({ option }) => option === "--strength")?.default_text;
  return words_of(table(), { ...settings, values: { ...settings.values, "--strength": Number(own) === Number(usual) ? "" : own } });
};
// Side by side, each panel has the strength of its own settings.
const words_shown = (settings) => state.mode === "side" ? words_of(table(), settings) : words_for(settings, state.file);
const words_now = () => words_shown(active_panel().settings);
const draw_settings = () => settings_panel.draw(table(), active_panel().settings);

// Every kind of file has settings of its own, which are kept while another is open. `given` are panels of the address.
const take_for = (as, given) => {
  if (as !== state.as) {
    panels_of[state.as] = { panels: state.panels, active: state.active };
    state.as = as;
    Object.assign(state, panels_of[as] || { panels: [], active: 0 });
  }
  if (given) {
    state.panels = given.panels.map(({ kind, words }) => ({ kind, settings: settings_of(table(), words) }));
    state.active = given.active;
  }
  if (state.panels.length === 0) state.panels = [{ kind: "clean", settings: no_settings(table()) }];
  state.active = clamp(state.active, 0, state.panels.length - 1);
  if (state.mode === "side") need_two_panels();
};

// ---- The address: a reload goes on where it was, and each window has its own.

const write_address = () => {
  if (!info || info.file !== state.file) return;  // until it is open, the address knows more than the page
  const { zoom, x, y } = stage.view;
  const place = zoom === null ? {} : { zoom: Number(zoom.toFixed(5)), x: Number(x.toFixed(2)), y: Number(y.toFixed(2)) };
  const words = state.panels.map(({ settings }) => words_of(table(), settings));
  const parts = {
    file: state.file, as: chosen_kinds[state.file], page: state.page || undefined, mode: state.mode === "split" ? undefined : state.mode,
    split: state.split === 0.5 ? undefined : Number(state.split.toFixed(4)), ...place,
    low: state.low ?? undefined, high: state.high ?? undefined, gain: state.gain === 4 ? undefined : state.gain,
    rectangle: state.rectangle?.join(), active: state.active || undefined,
    words: state.panels.length === 1 && words[0].length > 0 ? JSON.stringify(words[0]) : undefined,
    panels: state.panels.length > 1 ? JSON.stringify(state.panels.map(({ kind }, i) => [kind, words[i]])) : undefined,
    strengths: Object.keys(state.own_strength).length > 0 ? JSON.stringify(state.own_strength) : undefined,
  };
  history.replaceState(null, "", address(location.pathname + location.search + "#", parts).replace("#?", "#"));
};
const write_address_soon = debounced(write_address, 150);

const parsed = (text, otherwise) => {
  try {
    return text ? JSON.parse(text) : otherwise;
  } catch {
    return otherwise;
  }
};
const number_or = (text, otherwise) => text !== null && text !== "" && Number.isFinite(Number(text)) ? Number(text) : otherwise;
const list_or = (value, otherwise) => Array.isArray(value) ? value : otherwise;

// The panels, whose words have a meaning once it is known what the file is taken for, are returned.
const read_address = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const is_file = (number) => files.some(({ file }) => file === number);
  const file = number_or(given.get("file"), null);
  state.file = is_file(file) ? file : files[0]?.file ?? null;
  const as = Object.hasOwn(session.kinds, given.get("as")) ? given.get("as") : undefined;
  state.page = number_or(given.get("page"), 0);
  state.mode = modes.includes(given.get("mode")) ? given.get("mode") : "split";
  state.split = clamp(number_or(given.get("split"), 0.5), 0, 1);
  state.gain = number_or(given.get("gain"), 4);
  state.low = number_or(given.get("low"), null);
  state.high = number_or(given.get("high"), null);
  const corners = (given.get("rectangle") || "").split(",").map(Number);
  const is_rectangle = corners.length === 4 && corners.every(Number.isInteger) && corners[2] > corners[0] && corners[3] > corners[1];
  state.rectangle = is_rectangle ? corners : null;
  const panels = list_or(parsed(given.get("panels")), [["clean", parsed(given.get("words"))]]);
  const strengths = Object.entries(Object(parsed(given.get("strengths"), {})));
  state.own_strength = Object.fromEntries(
    strengths.filter(([, strength]) => Number(strength) >= 0).map(([one, strength]) => [one, String(strength)]));
  stage.view = { zoom: number_or(given.get("zoom"), null), x: number_or(given.get("x"), 0), y: number_or(given.get("y"), 0) };
  if (stage.view.zoom !== null) stage.view.zoom = clamp(stage.view.zoom, 1e-3, most_zoom);
  return { as, active: Math.round(number_or(given.get("active"), 0)),
    panels: panels.slice(0, most_panels).map((panel) => list_or(panel, [])).map(([kind, words]) => ({
      kind: modes.slice(1, 5).includes(kind) ? kind : "clean", words: list_or(words, []).map(String) })) };
};

// ---- The scene

const window_now = () => ({ low: state.low ?? info.low, high: state.high ?? info.high });
const cells_now = () => {
  const clean = { kind: "clean", words: words_now() };
  if (state.mode === "side") {
    return state.panels.map(({ kind, settings }) => ({ left: null, right: { kind, words: words_shown(settings) } }));
  }
  if (state.mode === "split") return [{ left: { kind: "noisy", words: [] }, right: clean }];
  return [{ left: null, right: { kind: state.mode, words: clean.words } }];
};
const scene_of = (page) => ({
  picture: { file: info.file, as: info.as, page, width: info.width, height: info.height },
  ...window_now(), gain: state.gain, split: state.split, cells: cells_now(),
});
const show_scene = (options) => {
  if (!info || info.file !== state.file) return;
  stage.rectangle = state.rectangle;
  stage.show(scene_of(state.page), options);
  draw_mode();
  readout.update();
};

// After a change of settings: pixels at once, words when they rest.
const settings_changed = debounced(() => {
  if (active_panel().kind === "noisy" && state.mode === "side") active_panel().kind = "clean";
  show_scene();
  write_address();
  check_soon();
  mark_files();
}, 80);

// ---- Mode, panels, split, zoom

const draw_mode = () => {
  document.body.dataset.mode = state.mode;
  for (const input of document.querySelectorAll("[name=mode]")) input.checked = input.value === state.mode;
  by_id("gain").value = String(state.gain);
  const shows_gain = ["difference", "removed"];
  const gains = shows_gain.includes(state.mode) || (state.mode === "side" && state.panels.some(({ kind }) => shows_gain.includes(kind)));
  by_id("gain-label").hidden = !gains;
  by_id("add-panel").hidden = state.mode !== "side";
  by_id("add-panel").disabled = state.panels.length >= most_panels;
  const settings_of_what = [state.mode === "side" && `of panel ${state.active + 1}`, state.as !== "pages" && for_kind[state.as]];
  by_id("settings-of").textContent = settings_of_what.filter(Boolean).join(", ");
  by_id("split").hidden = state.mode !== "split";
  by_id("split").style.left = `${state.split * 100}%`;
  by_id("split").setAttribute("aria-valuenow", Math.round(state.split * 100));
  draw_cells();
};

const kind_names = { noisy: "noisy", clean: "clean", difference: "difference", removed: "removed" };
const settings_text = (settings) => {
  const words = words_of(table(), settings).filter((word, i, all) => word !== "--method" && all[i - 1] !== "--method");
  return [settings.method, ...words.map((word) => word.replace(/^--/, ""))].join(" ");
};
const cell_markup = ({ kind, settings }, i) => html`<div class="cell" data-cell="${i}"><select
aria-label="Panel ${i + 1} shows" data-kind>${Object.entries(kind_names).map(([value, name]) =>
    html`<option value="${value}"${value === kind && html` selected`}>${name}</option>`)}</select>${
  kind !== "noisy" && html`<button type="button" class="pick" aria-pressed="${i === state.active}" data-pick
title="Settings of this panel">${settings_text(settings)}</button>`}${
  state.panels.length > 2 && html`<button type="button" data-remove aria-label="Remove panel ${i + 1}"
title="Remove this panel">×</button>`}</div>`;

let cells_text = "";
const draw_cells = () => {
  const container = by_id("cells");
  const side = state.mode === "side";
  const markup = side ? html`${state.panels.map(cell_markup)}`
    : state.mode === "split" ? html`<p class="tag left">noisy</p><p class="tag right">clean</p>`
      : html`<p class="tag left">${kind_names[state.mode]}</p>`;
  if (cells_text !== markup.text) {
    cells_text = markup.text;
    const focused = container.contains(document.activeElement) ? document.activeElement : null;
    const again = focused && [focused.closest("[data-cell]")?.dataset.cell, Object.keys(focused.dataset)[0]];
    put(container, markup);
    if (again) container.querySelector(`[data-cell="${again[0]}"] [data-${again[1]}]`)?.focus();
  }
  if (!side) return;
  const boxes = stage.cell_boxes();
  [...container.children].forEach((cell, i) => {
    if (!boxes[i]) return;
    cell.style.left = `${boxes[i].x / stage.canvas.width * 100}%`;
    cell.style.top = `${boxes[i].y / stage.canvas.height * 100}%`;
    cell.style.maxWidth = `${boxes[i].width / stage.canvas.width * 100}%`;
  });
};

// Noisy beside what is chosen.
const need_two_panels = () => {
  if (state.panels.length > 1) return;
  state.panels = [{ kind: "noisy", settings: copy_of(active_panel().settings) }, active_panel()];
  state.active = 1;
};
const set_mode = (mode) => {
  state.mode = mode;
  if (mode === "side") need_two_panels();
  draw_settings();
  show_scene();
  write_address_soon();
};
const add_panel = () => {
  if (state.panels.length >= most_panels) return;
  state.panels.push({ kind: "clean", settings: copy_of(active_panel().settings) });
  pick_panel(state.panels.length - 1);
};
const pick_panel = (i) => {
  state.active = i;
  draw_settings();
  show_scene();
  check_soon();
  write_address_soon();
};
const remove_panel = (i) => {
  state.panels.splice(i, 1);
  pick_panel(clamp(state.active - (state.active >= i ? 1 : 0), 0, state.panels.length - 1));
};

const set_split = (share) => {
  state.split = clamp(share, 0, 1);
  show_scene();
  write_address_soon();
};

const zoom_choices = [["fit", "fit"], ...[12.5, 25, 50, 100, 200, 400, 800].map((percent) => [String(percent / 100), `${percent} %`])];
const draw_zoom = () => {
  const { zoom } = stage.view;
  const now = zoom === null ? "fit" : String(zoom);
  const listed = zoom_choices.some(([value]) => value === now);
  const choices = listed ? zoom_choices : [...zoom_choices, [now, `${short_number(zoom * 100)} %`]];
  put(by_id("zoom"), choices.map(([value, text]) => html`<option value="${value}"${value === now && html` selected`}>${
    value === "fit" && stage.scene ? `fit (${short_number(Number((stage.zoom() * 100).toPrecision(3)))} %)` : text}</option>`));
};
const view_changed = () => {
  draw_zoom();
  draw_cells();
  readout.update();
  write_address_soon();
};

// ---- Pictures

const file_of = (number) => files.find(({ file }) => file === number);

const read_files = async () => {
  ({ files } = await ask("/api/files"));
  draw_files();
};

const thumbnails = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    thumbnails.unobserve(target);
    target.src = target.dataset.address;
  }
}, { rootMargin: "200px" });

const draw_files = () => {
  by_id("file-list").hidden = files.length < 2;
  by_id("open-batch").hidden = files.length < 2;
  thumbnails.disconnect();
  put(by_id("file-list"), files.map(({ file, name }) => html`<li><button type="button" class="file" data-file="${file}"
title="${name}"><img alt="" width="96" height="72" data-address="${address("/api/thumbnail", { file })}"><span class="name">${
  name}</span><span class="badge" hidden></span></button></li>`));
  for (const image of by_id("file-list").querySelectorAll("img")) thumbnails.observe(image);
  mark_files();
};
const mark_files = () => {
  for (const button of by_id("file-list").querySelectorAll("[data-file]")) {
    const file = Number(button.dataset.file);
    if (file === state.file) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    const badge = button.querySelector(".badge");
    badge.hidden = state.own_strength[file] === undefined;
    badge.textContent = `strength ${state.own_strength[file]}`;
  }
};

let opening = new AbortController();
let opened_file = null;
// `as`: what it is to be taken for. `given`: what the address tells. `keep_view`: page, window and place stay.
const open_file = async (file, { keep_view = false, as = chosen_kinds[file], given } = {}) => {
  opening.abort();
  opening = new AbortController();
  stack.stop();
  state.file = file;
  opened_file = null;
  mark_files();
  by_id("file-list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  const opened = await ask("/api/info", { query: { file, as }, signal: opening.signal });
  const same_size = info && info.width === opened.width && info.height === opened.height;
  info = opened;
  opened_file = file;
  if (as === undefined) own_kinds[file] = info.as;
  if (as === undefined || as === own_kinds[file]) delete chosen_kinds[file];
  else chosen_kinds[file] = as;
  take_for(info.as, given);
  if (!keep_view) {
    state.page = 0;
    state.low = state.high = null;
    if (!same_size) {
      stage.view.zoom = null;
      state.rectangle = null;
    }
  }
  state.page = clamp(Math.round(state.page), 0, info.pages - 1);
  if (state.rectangle) state.rectangle = stage_rectangle(state.rectangle);
  no_failure();
  draw_info();
  stack.open(info);
  draw_settings();
  show_scene();
  draw_zoom();
  write_address_soon();
  check_soon();
  measure_soon();
};

// Refused, the file stays what it was.
const choose_kind = async (as) => {
  if (!info || info.file !== state.file || as === info.as) return;
  try {
    await open_file(state.file, { keep_view: true, as });
  } catch (error) {
    if (is_abort(error)) return;
    opened_file = info.file;
    stack.draw_kind();
    failure(error);
  }
};
const stage_rectangle = ([x0, y0, x1, y1]) => {
  const left = clamp(x0, 0, info.width - 1);
  const top = clamp(y0, 0, info.height - 1);
  return [left, top, clamp(x1, left + 1, info.width), clamp(y1, top + 1, info.height)];
};

const open_beside = (step) => {
  const at = files.findIndex(({ file }) => file === state.file) + step;
  if (files[at]) attempt(() => open_file(files[at].file));
};

const is_whole = () => /^[ui]\d/.test(info.type);
const pages_text = () => {
  const volumes = volumes_of(info);
  if (volumes?.count > 1) return `${volumes.count} volumes of ${volumes.depth} slices`;
  return (info.pages > 1 || info.complete === false) && `${info.pages} ${page_word(info)}s${info.complete === false ? " so far" : ""}`;
};
const draw_about = () => {
  const about = [info.format, `${info.width} x ${info.height}`, pages_text(), info.rate && `${short_number(info.rate)} frames/s`,
    `${info.channels} ${info.channels === 1 ? "channel" : "channels"}`, info.colour, info.type,
    info.volume?.spacing && `voxels ${list_or(info.volume.spacing, [info.volume.spacing]).map(short_number).join(" x ")}`, info.note];
  by_id("about").textContent = about.filter(Boolean).join(" · ");
};
const draw_info = () => {
  document.title = `${info.name} – ungrain view`;
  by_id("title").textContent = info.name;
  by_id("title").title = info.name;
  draw_about();
  by_id("low").step = by_id("high").step = is_whole() ? "1" : "any";
  by_id("save-name").placeholder = info.name.replace(/(\.nii\.gz|\.ome\.tiff?|\.[^.]*)?$/i, ".ungrain$1");
};

// ---- Pages

const set_page = (page, options) => {
  if (!info || info.file !== state.file) return;
  state.page = clamp(page, 0, info.pages - 1);
  stack.draw();
  show_scene(options);
  write_address_soon();
  if (!stack.playing) {
    measure_soon();
    check_soon();
  }
};
// More of a clip has been read, or it turned out to be shorter.
const clip_grown = () => {
  no_failure("server");
  draw_about();
  if (state.page >= info.pages) set_page(info.pages - 1);
  else stack.draw();
};

// ---- Values of a pixel: under the pointer, or in the middle while the keyboard asks for it

let values_in_middle = false;
const pixel_asked = () => {
  if (!info || info.file !== state.file || !stage.scene) return null;
  if (stage.marks_middle) return { ...stage.middle_pixel(), cell: state.mode === "side" ? state.active : 0 };
  return stage.pointer && stage.pixel_under(stage.pointer);
};
const value_asked = () => {
  const pixel = pixel_asked();
  if (!pixel) return null;
  const { kind, words } = cells_now()[pixel.cell].right;
  return { file: info.file, as: info.as, page: state.page, x: pixel.x, y: pixel.y, words, denoised: kind !== "noisy" };
};
const mark_middle = () => {
  stage.marks_middle = values_in_middle && document.activeElement === stage.canvas;
  stage.draw_soon();
  readout.update();
};
const toggle_values = () => {
  values_in_middle = !values_in_middle;
  stage.canvas.focus();
  mark_middle();
};

// ---- Histogram, window, rectangle, noise

const area_now = () => state.rectangle || [0, 0, info.width, info.height];
const corners = () => {
  const [x0, y0, x1, y1] = area_now();
  return { x0, y0, x1, y1 };
};
// The values that the histogram spans: the window and a margin, within what the samples can be.
const histogram_span = () => {
  if (info.type === "u8" && state.low === null && state.high === null) return [0, 255];
  const { low, high } = window_now();
  const margin = 0.3 * (Math.max(high, info.high) - Math.min(low, info.low));
  const from = Math.min(low, info.low) - margin;
  const to = Math.max(high, info.high) + margin;
  const span = /^u\d/.test(info.type) ? [Math.max(0, from), Math.min(to, Math.max(info.white, high))] : [from, to];
  return span[1] > span[0] ? span : [span[0], span[0] + 1];
};

let histogram = null;  // {channels, low, high}
let measuring = new AbortController();
const draw_histogram = () => {
  const { low, high } = window_now();
  for (const [id, value] of [["low", low], ["high", high]]) {
    if (document.activeElement !== by_id(id)) by_id(id).value = Number(value.toPrecision(7));
  }
  by_id("auto-window").disabled = state.low === null && state.high === null;
  if (!histogram) return;
  const within = (value) => clamp(value, histogram.low, histogram.high);
  put(by_id("histogram"), histogram_plot({ ...histogram, black: within(low), white: within(high) }));
};
const draw_rectangle_numbers = () => {
  const [x0, y0, x1, y1] = area_now();
  for (const [name, value, most] of [["x", x0, info.width - 1], ["y", y0, info.height - 1], ["width", x1 - x0, info.width],
    ["height", y1 - y0, info.height]]) {
    const input = by_id(`rectangle-${name}`);
    input.max = most;
    if (document.activeElement !== input) input.value = value;
  }
  by_id("part-of").textContent = state.rectangle ? `${x1 - x0} x ${y1 - y0} pixels from (${x0}, ${y0}) on` : "whole picture";
  by_id("whole-picture").disabled = !state.rectangle;
};

const measure = async () => {
  if (!info || info.file !== state.file) return;
  measuring.abort();
  measuring = new AbortController();
  const { signal } = measuring;
  draw_rectangle_numbers();
  const [low, high] = histogram_span();
  const query = { file: info.file, as: info.as, page: state.page };
  await attempt(async () => {
    const { channels } = await ask("/api/histogram", { query: { ...query, ...corners(), low, high }, signal });
    histogram = { channels, low, high };
    draw_histogram();
  });
  if (!by_id("noise-part").open || signal.aborted) return;
  await attempt(async () => {
    noise_found = await ask("/api/noise", { query: { ...query, ...(state.rectangle ? corners() : {}) }, signal });
    draw_noise();
  });
};
const measure_soon = debounced(measure, 250);

let noise_found = null;
const draw_noise = () => {
  if (noise_found) {
    put(by_id("noise"), html`<p class="small">${noise_found.text}</p>${noise_found.found && noise_plot(noise_found.curves)}`);
  }
  by_id("use-noise").disabled = noise_found?.model === null || noise_found?.model === undefined;
  const used = active_panel().settings.noise_model;
  put(by_id("noise-in-use"), used ? html`noise model ${used} in use <button type="button" id="forget-noise"
title="Noise as the method measures it">Measure instead</button>` : "");
};
const use_noise = (model) => {
  active_panel().settings.noise_model = model;
  draw_noise();
  settings_changed();
};

const set_window = (low, high) => {
  state.low = low;
  state.high = high;
  draw_histogram();
  window_changed();
};
const window_changed = debounced(() => {
  show_scene();
  write_address();
  measure_soon();
}, 60);

const set_rectangle = (rectangle) => {
  state.rectangle = rectangle && stage_rectangle(rectangle);
  stage.rectangle = state.rectangle;
  stage.draw_soon();
  draw_rectangle_numbers();
  measure_soon();
  write_address_soon();
};
const choose_rectangle_tool = (chosen) => {
  stage.drawing_rectangle = chosen;
  by_id("draw-rectangle").setAttribute("aria-pressed", chosen);
  stage.canvas.classList.toggle("drawing", chosen);
};

// ---- Keep: command line, Python, preset, saving

let checked = null;
let checking = new AbortController();
const check = async () => {
  if (!info || info.file !== state.file) return;
  checking.abort();
  checking = new AbortController();
  await attempt(async () => {
    checked = await ask("/api/check", {
      post: { file: info.file, as: info.as, page: state.page, words: words_now() }, signal: checking.signal });
    no_failure("settings");
    no_failure("server");
    // No line ends within a word, as it would after the hyphens of an option.
    put(by_id("command"), checked.command.split(" ").map((word, i) => html`${i > 0 && " "}<span class="word">${word}</span>`));
    by_id("python").textContent = checked.python;
    put(by_id("resolved"), html`<p class="small">${checked.noise}</p><table><tbody>${
      checked.params.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}</tbody></table>`);
  }, "settings");
};
const check_soon = debounced(check, 300);

const copy_text = async (id) => {
  const { textContent } = by_id(id);
  try {
    await navigator.clipboard.writeText(textContent);
    say("copied");
  } catch {
    getSelection().selectAllChildren(by_id(id));
    say(document.execCommand("copy") ? "copied" : "marked: copy it with Ctrl+C");
  }
};
const download_preset = () => {
  if (!checked) return;
  const link = document.createElement("a");
  const text = typeof checked.preset === "string" ? checked.preset : JSON.stringify(checked.preset, null, 2);
  link.href = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  link.download = `${active_panel().settings.method}.preset${text.trimStart().startsWith("{") ? ".json" : ""}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

// A preset's settings become those of the active panel. What they have and the page has no control for is told.
const load_preset = async (file) => {
  const refuse = (why) => failure(new Error(`${file.name}: ${why}`), "preset");
  if (file.size > largest_preset) return refuse(`${bytes_text(file.size)} are too much for a preset`);
  const { as } = state;
  const panel = active_panel();
  try {
    const { words } = await ask("/api/preset", { post: { as, text: await file.text() } });
    panel.settings = settings_of(session.kinds[as], words);
    const taken = ["--method", ...words_of(session.kinds[as], panel.settings)];
    const lost = words.filter((word) => word.startsWith("--") && !taken.includes(word));
    if (lost.length > 0) refuse(`left out ${lost.join(", ")}, which has no control here`);
    else no_failure("preset");
  } catch (error) {
    return refuse(error.message);
  }
  draw_settings();
  draw_noise();
  settings_changed();
  return say(`settings of ${file.name}`);
};

const save = async () => {
  if (!info || info.file !== state.file) return;
  const name = by_id("save-name").value.trim();
  await ask("/api/save", { post: { file: info.file, as: info.as, words: words_now(), name: name || null } });
  await read_jobs();
};

// ---- Jobs

let jobs = [];
let jobs_timer = 0;
const job_output = (job, output, i) =>
  typeof output.download === "string" ? output.download : address("/api/download", { job, output: i });
const job_markup = ({ job, kind, state: stands, done, failed, total, fraction, lines, outputs }) => {
  const runs = stands === "running";
  const button = runs ? html`<button type="button" data-cancel>Cancel</button>`
    : stands !== "done" && html`<button type="button" data-resume>Resume</button>`;
  const links = outputs.slice(0, 50).map((output, i) =>
    html`<p class="output"><a href="${job_output(job, output, i)}" download>${output.name}</a></p>`);
  return html`<li class="job ${stands}" data-job="${job}"><p class="row"><strong>${kind === "batch" ? "Batch" : "Save"}</strong> <span>${
    runs ? `${done} of ${total}` : stands}${failed > 0 && html`, <span class="bad">${failed} failed</span>`}</span>${button}</p>${
    runs && html`<progress max="1" value="${fraction}" aria-label="Progress"></progress>`}${stands === "done" && links}${
    lines.length > 0 && html`<ul class="lines">${lines.slice(-8).map((line) => html`<li>${line}</li>`)}</ul>`}</li>`;
};

let drawn_jobs = "";
const draw_jobs = () => {
  const markup = jobs.toReversed().map(job_markup);
  const text = markup.map((one) => one.text).join("");
  if (text === drawn_jobs) return;
  drawn_jobs = text;
  const batches = jobs.filter(({ kind }) => kind === "batch").toReversed();
  const newest_batch = batches.slice(0, 1).map((job) => html`<ul>${job_markup(job)}</ul>`);
  for (const [container, list] of [[by_id("jobs"), markup], [by_id("batch-jobs"), newest_batch]]) {
    const focused = container.contains(document.activeElement) && Object.keys(document.activeElement.dataset)[0];
    put(container, list);
    if (focused) container.querySelector(`[data-${focused}], button`)?.focus();
  }
};
const read_jobs = async () => {
  clearTimeout(jobs_timer);
  const before = new Map(jobs.map(({ job, state: stands }) => [job, stands]));
  ({ jobs } = await ask("/api/jobs"));
  for (const { job, kind, state: stands } of jobs) {
    if (before.get(job) === "running" && stands !== "running") say(`${kind}: ${stands}`);
  }
  draw_jobs();
  if (jobs.some(({ state: stands }) => stands === "running")) {
    jobs_timer = setTimeout(() => attempt(read_jobs), document.hidden ? 2000 : 400);
  }
};
const on_job_click = (event) => {
  const job = Number(event.target.closest("[data-job]")?.dataset.job);
  const what = "cancel" in event.target.dataset ? "cancel" : "resume" in event.target.dataset ? "resume" : null;
  if (what) attempt(async () => {
    await ask(`/api/jobs/${what}`, { post: { job } });
    await read_jobs();
  });
};

// ---- Batch and upload

// The settings are those of one kind of file. Pictures that were not opened yet are asked for as what they are: the server
// refuses words that their kind does not take.
const kind_of = (file) => chosen_kinds[file] ?? own_kinds[file];
const is_in_batch = (file) => [undefined, state.as].includes(kind_of(file));
const batch_note = (file) => {
  if (!is_in_batch(file)) return `left out: needs settings ${for_kind[kind_of(file)]}`;
  return state.own_strength[file] === undefined ? "" : `strength ${state.own_strength[file]}`;
};
const open_batch = () => {
  put(by_id("batch-files"), files.map(({ file, name }) =>
    html`<li><span>${name}</span> <span class="small">${batch_note(file)}</span></li>`));
  if (!by_id("batch-folder").value) by_id("batch-folder").value = "ungrained";
  by_id("batch-dialog").showModal();
};
const start_batch = async () => {
  const { settings } = active_panel();
  const chosen = files.map(({ file }) => file).filter(is_in_batch);
  await ask("/api/batch", { post: {
    files: chosen.map((file) => ({ file, as: chosen_kinds[file], words: words_for(settings, file) })),
    folder: by_id("batch-folder").value.trim() } });
  await read_jobs();
};

const upload = async (chosen) => {
  let last = null;
  for (const file of chosen) {
    if (file.size > session.upload_limit) {
      failure(new Error(`${file.name}: ${bytes_text(file.size)}, but at most ${
        bytes_text(session.upload_limit)} can be added; name it on the command line instead`));
      continue;
    }
    say(`adding ${file.name}…`);
    last = await attempt(() => ask("/api/upload", { query: { name: file.name }, body: file })) ?? last;
  }
  if (!last) return;
  await read_files();
  say("added");
  await open_file(last.file);
};

// ---- Keys

const keys = [
  ["Arrow keys", "move the picture"], ["Shift + ← →", "move the line between noisy and clean"], ["+ −", "larger, smaller"],
  ["0", "fit the window"], ["1 2 4 8", "100, 200, 400, 800 %"], ["S N C", "split, noisy, clean"], ["D V", "difference, removed"],
  ["B", "side by side"], ["[ ]", "previous, next picture"], [", .", "previous, next page, slice or frame"], ["P", "play, stop"],
  ["K", "take the pages for images, slices or frames"], ["R", "draw a rectangle; Escape ends it"],
  ["I", "values of the pixel in the middle"], ["?", "this list"],
];
const key_actions = {
  "+": () => stage.step_zoom(1), "=": () => stage.step_zoom(1), "-": () => stage.step_zoom(-1), 0: () => stage.fit(),
  1: () => stage.zoom_to(1), 2: () => stage.zoom_to(2), 4: () => stage.zoom_to(4), 8: () => stage.zoom_to(8),
  s: () => set_mode("split"), n: () => set_mode("noisy"), c: () => set_mode("clean"), d: () => set_mode("difference"),
  v: () => set_mode("removed"), b: () => set_mode("side"), "[": () => open_beside(-1), "]": () => open_beside(1),
  ",": () => set_page(state.page - 1), ".": () => set_page(state.page + 1), p: () => stack.toggle_play(),
  k: () => choose_kind(stack.next_kind()), i: toggle_values,
  r: () => choose_rectangle_tool(!stage.drawing_rectangle), "?": () => by_id("help-dialog").showModal(),
};
const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const on_key = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const { target, key } = event;
  const on_picture = target === stage.canvas || target === document.body;
  if (key === "Escape") return choose_rectangle_tool(false);
  if (arrows[key] && on_picture) {
    const [x, y] = arrows[key];
    if (event.shiftKey && x) set_split(state.split + x * 0.02);
    else stage.pan(x * stage.canvas.width / 10, y * stage.canvas.height / 10);
    event.preventDefault();
    return undefined;
  }
  const writes = target.matches("input:not([type=checkbox], [type=range], [type=radio]), textarea, select");
  const action = key_actions[key.toLowerCase()];
  if (!action || writes || !(on_picture || by_id("single-keys").checked)) return undefined;
  event.preventDefault();
  return action();
};

const on_split_key = (event) => {
  const steps = { ArrowLeft: -0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1, Home: -1, End: 1 };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  event.stopPropagation();
  set_split(state.split + step * (event.shiftKey ? 5 : 1));
};

// ---- Wiring

const on = (id, what, work) => by_id(id).addEventListener(what, work);
// The files that were chosen. The same ones can be chosen again.
const take_files = (id) => {
  const chosen = [...by_id(id).files];
  by_id(id).value = "";
  return chosen;
};

// A drag with the pointer that began on `element`; `work` gets the share of the width of `area`.
const on_drag = (element, area, work) => {
  element.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    const bounds = area().getBoundingClientRect();
    const share = ({ clientX }) => (clientX - bounds.left) / bounds.width;
    const move = (moved) => work(share(moved), "move");
    element.setPointerCapture(event.pointerId);
    work(share(event), "start");
    element.addEventListener("pointermove", move);
    const end = () => element.removeEventListener("pointermove", move);
    element.addEventListener("pointerup", end, { once: true });
    element.addEventListener("pointercancel", end, { once: true });
  });
};

// The end of the window that is nearer to the pointer follows it.
let window_end = "low";
const drag_window = (share, step) => {
  if (!histogram) return;
  const inner = clamp((share * 320 - 4) / 312, 0, 1);
  const exact = histogram.low + inner * (histogram.high - histogram.low);
  const value = is_whole() ? Math.round(exact) : Number(exact.toPrecision(4));
  const { low, high } = window_now();
  if (step === "start") window_end = Math.abs(value - low) <= Math.abs(value - high) ? "low" : "high";
  const least = is_whole() ? 1 : (histogram.high - histogram.low) / 1000;
  if (window_end === "low") set_window(Math.min(value, high - least), high);
  else set_window(low, Math.max(value, low + least));
};

const listen_to_view = () => {
  by_id("modes").addEventListener("change", (event) => set_mode(event.target.value));
  on("gain", "change", () => {
    state.gain = Number(by_id("gain").value);
    show_scene();
    write_address_soon();
  });
  on("add-panel", "click", add_panel);
  on("zoom-in", "click", () => stage.step_zoom(1));
  on("zoom-out", "click", () => stage.step_zoom(-1));
  on("zoom", "change", () => by_id("zoom").value === "fit" ? stage.fit() : stage.zoom_to(Number(by_id("zoom").value)));
  on("draw-rectangle", "click", () => choose_rectangle_tool(!stage.drawing_rectangle));
  on("cells", "click", ({ target }) => {
    const i = Number(target.closest("[data-cell]")?.dataset.cell);
    if (target.closest("[data-pick]")) pick_panel(i);
    else if (target.closest("[data-remove]")) remove_panel(i);
  });
  on("cells", "change", ({ target }) => {
    state.panels[Number(target.closest("[data-cell]").dataset.cell)].kind = target.value;
    show_scene();
    write_address_soon();
  });
  on("split", "keydown", on_split_key);
  on_drag(by_id("split"), () => stage.canvas, set_split);
  for (const what of ["focus", "blur"]) on("canvas", what, mark_middle);
  document.addEventListener("keydown", on_key);
};

const listen_to_measures = () => {
  for (const id of ["low", "high"]) on(id, "input", () => {
    const { low, high } = window_now();
    const value = by_id(id).valueAsNumber;
    const orderly = Number.isFinite(value) && (id === "low" ? value < high : value > low);
    by_id(id).setAttribute("aria-invalid", !orderly);
    if (orderly) set_window(id === "low" ? value : low, id === "high" ? value : high);
  });
  on("auto-window", "click", () => {
    for (const id of ["low", "high"]) by_id(id).setAttribute("aria-invalid", false);
    set_window(null, null);
  });
  on_drag(by_id("histogram"), () => by_id("histogram"), drag_window);
  for (const name of ["x", "y", "width", "height"]) on(`rectangle-${name}`, "change", () => {
    const [x, y, width, height] = ["x", "y", "width", "height"].map((one) => by_id(`rectangle-${one}`).valueAsNumber);
    if ([x, y, width, height].every(Number.isInteger)) set_rectangle([x, y, x + width, y + height]);
  });
  on("whole-picture", "click", () => set_rectangle(null));
  on("use-noise", "click", () => use_noise(`@${noise_found.model}`));
  on("noise-in-use", "click", ({ target }) => target.id === "forget-noise" && use_noise(""));
  on("noise-part", "toggle", () => by_id("noise-part").open && !noise_found && measure_soon());
};

const listen_to_files = () => {
  on("file-list", "click", ({ target }) => {
    const button = target.closest("[data-file]");
    if (button) attempt(() => open_file(Number(button.dataset.file)));
  });
  on("open-batch", "click", open_batch);
  on("batch-form", "submit", (event) => {
    event.preventDefault();
    attempt(start_batch);
  });
  on("add-files", "click", () => by_id("upload").click());
  on("upload", "change", () => upload(take_files("upload")));
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    by_id("drop").hidden = !event.dataTransfer.types.includes("Files");
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) by_id("drop").hidden = true; });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    by_id("drop").hidden = true;
    const dropped = [...event.dataTransfer.files];
    const is_preset = ({ name }) => /\.json$/i.test(name);
    dropped.filter(is_preset).slice(-1).forEach(load_preset);
    upload(dropped.filter((file) => !is_preset(file)));
  });
};

const listen_to_keeping = () => {
  on("save-form", "submit", (event) => {
    event.preventDefault();
    attempt(save);
  });
  on("copy-command", "click", () => copy_text("command"));
  on("copy-python", "click", () => copy_text("python"));
  on("save-preset", "click", download_preset);
  on("load-preset", "click", () => by_id("preset-file").click());
  on("preset-file", "change", () => take_files("preset-file").forEach(load_preset));
  on("jobs", "click", on_job_click);
  on("batch-jobs", "click", on_job_click);
  on("dismiss", "click", () => no_failure());
  on("open-help", "click", () => by_id("help-dialog").showModal());
  by_id("single-keys").checked = localStorage.getItem("single-keys") !== "no";
  on("single-keys", "change", () => localStorage.setItem("single-keys", by_id("single-keys").checked ? "yes" : "no"));
  put(by_id("keys"), keys.map(([key, what]) => html`<div><dt>${key}</dt><dd>${what}</dd></div>`));
  for (const button of document.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  // The help of the option that has the focus or the pointer, where it moves nothing.
  const show_help = ({ target }) => { by_id("help").textContent = target.closest?.("[data-option]")?.title || ""; };
  for (const what of ["focusin", "pointerover"]) on("settings", what, show_help);
  on("settings", "focusout", () => { by_id("help").textContent = ""; });
};

// ---- Start

// Seen after a moment, and read aloud only where it takes long.
const reveal_busy = debounced(() => {
  by_id("busy").hidden = false;
  say_busy();
}, 200);
const say_busy = debounced(() => { by_id("busy-said").textContent = "computing"; }, 1500);
const show_pending = (count) => {
  if (count > 0) {
    if (by_id("busy").hidden && !reveal_busy.waiting()) reveal_busy();
    return;
  }
  reveal_busy.cancel();
  say_busy.cancel();
  by_id("busy").hidden = true;
  if (by_id("busy-said").textContent === "computing") by_id("busy-said").textContent = "ready";
};

const own_strength = {
  offered: () => files.length > 1 && state.mode !== "side" && table().common.some(({ option }) => option === "--strength"),
  get: () => state.mode === "side" ? undefined : state.own_strength[state.file],
  set: (value) => {
    if (value === undefined) delete state.own_strength[state.file];
    else state.own_strength[state.file] = value;
    mark_files();
  },
};

const open_from_address = async () => {
  const given = read_address();
  if (state.file === null) {
    by_id("title").textContent = "no picture yet";
    by_id("about").textContent = "Drop a picture on the page, or add one.";
    return;
  }
  delete chosen_kinds[state.file];
  try {
    await open_file(state.file, { keep_view: true, as: given.as, given });
  } catch (error) {
    if (is_abort(error) || given.as === undefined || error.status === 0) throw error;
    await open_file(state.file, { keep_view: true, given });  // it cannot be taken for what the address says
  }
};

const start = async () => {
  readout = new ValueReadout(by_id("value"), value_asked);
  stage = new Stage(by_id("canvas"), { changed: view_changed, pending: show_pending, failed: (error) => failure(error, "settings"),
    arrived: () => no_failure("server"), pointed: () => readout.update(), rectangle_drawn: (rectangle) => {
    choose_rectangle_tool(false);
    set_rectangle(rectangle);
  } });
  stack = new Stack(stage, { page: () => state.page, scene_of, set_page, grown: clip_grown, choose_kind, failed: failure });
  draw_zoom();
  listen_to_view();
  listen_to_measures();
  listen_to_files();
  listen_to_keeping();
  const asked_for_files = ask("/api/files");
  session = await ask("/api/session");
  ({ files } = await asked_for_files);
  settings_panel = new SettingsPanel(by_id("settings"), {
    changed: settings_changed, invalid: (text) => failure(new Error(text), "value"), valid: () => no_failure("value"), own_strength });
  by_id("version").textContent = `ungrain ${session.version}`;
  if (!session.writable) by_id("save").textContent = "Make";
  take_for(state.as);
  draw_settings();
  draw_files();
  await open_from_address();
  window.addEventListener("hashchange", () => attempt(open_from_address));
  await read_jobs();
};

const started = attempt(start);

// For tests.
window.ungrain_view = {
  state: () => ({
    file: state.file, as: state.as, page: state.page, pages: info?.pages, mode: state.mode, split: state.split,
    zoom: stage.zoom(), fitted: stage.view.zoom === null,
    centre: stage.scene ? stage.middle() : null, words: session ? words_now() : [], kind: state.mode, window: info && window_now(),
    panels: state.panels.map(({ kind, settings }) => ({ kind, words: words_of(table(), settings) })), active: state.active,
    rectangle: state.rectangle, pending: stage.pending(), turn: stage.loader.turn, aborted: stage.loader.aborted,
    playing: stack.playing !== null, reached: stack.reached, method: session && method_of(table(), active_panel().settings).name,
    jobs: jobs.map(({ job, state: stands, fraction }) => ({ job, state: stands, fraction })),
  }),
  pixel: (x, y, side, cell) => stage.pixel(x, y, side, cell),
  idle: async () => {
    await started;
    const opens = () => state.file !== null && opened_file !== state.file && by_id("failure").hidden;
    while (opens() || settings_changed.waiting() || window_changed.waiting() || stage.frame || stage.pending() > 0) {
      await Promise.race([stage.idle(), new Promise((resume) => setTimeout(resume, 50))]);
    }
  },
};
