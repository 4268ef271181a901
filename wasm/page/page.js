"use strict";
// The page: a picture comes in, settings, the result beside it, and out as a file.

const by_id = (id) => document.getElementById(id);
const made = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const default_method = "bm3d";  // the program's
const mebibytes = (bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`;

const say = (text) => { by_id("said").textContent = text; };
const fail = (text) => { by_id("failure").textContent = text; };

let team;
let methods = [];
let picture;  // {name, width, height, channels, alpha, type, samples}
let result;   // the samples of the clean picture

// ---- The module, unpacked from the page itself

const unpacked = async (text) => {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};
const start = async () => {
  const module = await WebAssembly.compile(await unpacked(by_id("module-source").textContent));
  by_id("module-source").remove();
  const source = URL.createObjectURL(new Blob([by_id("worker-source").textContent], { type: "text/javascript" }));
  team = new Team(source, module);
  const { version, methods: known } = await team.describe();
  methods = known;
  by_id("version").textContent = version;
  by_id("method").append(...methods.map(({ name, summary }) => made("option", { value: name, textContent: name, title: summary })));
  by_id("method").value = default_method;
  draw_method();
  by_id("choose").disabled = false;
};

// ---- Settings

const of_sequences = /_[tz]$/;  // parameters that do nothing to a single picture
const method_now = () => methods.find(({ name }) => name === by_id("method").value);

const control_of = (parameter, id) => {
  if (parameter.kind === "choice") {
    return made("select", { id }, made("option", { value: "", textContent: `${parameter.default_text} (default)` }),
      ...parameter.choices.filter((choice) => choice !== parameter.default_text).map((choice) => made("option", { textContent: choice })));
  }
  // A word stands for some numbers, and several numbers for one of each channel.
  const plain = (parameter.kind === "real" || parameter.kind === "integer") && !parameter.named;
  const control = made("input", { id, type: plain ? "number" : "text", placeholder: parameter.default_text, autocomplete: "off" });
  if (plain) {
    control.step = parameter.kind === "real" ? "any" : parameter.odd ? "2" : "1";
    if (Number.isFinite(parameter.min)) control.min = parameter.min;
    if (Number.isFinite(parameter.max)) control.max = parameter.max;
  }
  return control;
};
const option_of = (parameter) => {
  const id = `parameter-${parameter.name}`;
  const control = control_of(parameter, id);
  control.dataset.parameter = parameter.name;
  control.setAttribute("aria-describedby", `${id}-help`);
  const label = made("label", { htmlFor: id, textContent: parameter.name.replaceAll("_", " ") });
  if (parameter.unit) label.append(" ", made("small", { textContent: parameter.unit }));
  return made("div", { className: "option" }, label, control, made("small", { id: `${id}-help`, textContent: parameter.help }));
};
const draw_method = () => {
  const { name, summary, parameters, presets } = method_now();
  by_id("summary").textContent = name === default_method ? `${summary}. What the program does where nothing else is asked for.` : summary;
  by_id("more-of").textContent = name;
  by_id("parameters").replaceChildren(...parameters.filter(({ name }) => !of_sequences.test(name)).map(option_of));
  by_id("preset-option").hidden = presets.length === 0;
  by_id("preset").replaceChildren(made("option", { value: "", textContent: "none" }), ...presets.map((preset) =>
    made("option", { textContent: preset.name })));
  draw_preset();
};
const draw_preset = () => {
  by_id("preset-help").textContent = method_now().presets.find(({ name }) => name === by_id("preset").value)?.help || "";
};
const settings_now = () => {
  const noise = {};
  for (const name of ["strength", "keep_grain"]) {
    if (by_id(name).value !== "") noise[name] = Number(by_id(name).value);
  }
  const given = [...document.querySelectorAll("[data-parameter]")].filter(({ value }) => value.trim() !== "");
  return {
    method: by_id("method").value, preset: by_id("preset").value, noise,
    values: Object.fromEntries(given.map(({ dataset, value }) => [dataset.parameter, value.trim()])),
  };
};

// ---- Pictures. Browsers decode into RGBA: gray pictures and opaque ones become what they were in their files.

const channels_of = (rgba) => {
  let gray = true;
  let alpha = false;
  for (let i = 0; i < rgba.length && (gray || !alpha); i += 4) {
    gray &&= rgba[i] === rgba[i + 1] && rgba[i] === rgba[i + 2];
    alpha ||= rgba[i + 3] !== 255;
  }
  return { channels: (gray ? 1 : 3) + (alpha ? 1 : 0), alpha };
};
const samples_of = (rgba, { channels, alpha }) => {
  if (channels === 4) return new Uint8Array(rgba.buffer);
  const samples = new Uint8Array(rgba.length / 4 * channels);
  for (let from = 0, to = 0; from < rgba.length; from += 4) {
    samples[to++] = rgba[from];
    if (channels >= 3) {
      samples[to++] = rgba[from + 1];
      samples[to++] = rgba[from + 2];
    }
    if (alpha) samples[to++] = rgba[from + 3];
  }
  return samples;
};
const rgba_of = (samples, { channels, alpha, width, height }) => {
  const rgba = new Uint8ClampedArray(4 * width * height);
  for (let from = 0, to = 0; to < rgba.length; from += channels, to += 4) {
    rgba[to] = samples[from];
    rgba[to + 1] = samples[channels >= 3 ? from + 1 : from];
    rgba[to + 2] = samples[channels >= 3 ? from + 2 : from];
    rgba[to + 3] = alpha ? samples[from + channels - 1] : 255;
  }
  return rgba;
};

// The file's pixels on the canvas `before`, and as samples.
const decoded = async (file, name) => {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${name}: no picture that this browser can read`);
  }
  const { width, height } = bitmap;
  const canvas = by_id("before");
  try {
    Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    const rgba = context.getImageData(0, 0, width, height).data;
    const kind = channels_of(rgba);
    return { name, width, height, ...kind, type: "u8", samples: samples_of(rgba, kind) };
  } catch {
    throw new Error(`${name}: ${width} × ${height} pixels need more memory than this browser gives to a page (${
      mebibytes(width * height * 4)} for each copy)`);
  } finally {
    bitmap.close();
  }
};
const kind_text = ({ channels, alpha }) => `${channels < 3 ? "gray" : "RGB"}${alpha ? " with alpha" : ""}`;

const open = async (file) => {
  if (!file || !team) return;
  cancel();
  fail("");
  const name = file.name || "picture";
  say(`Opening ${name}…`);
  picture = result = undefined;
  set_busy(false);
  by_id("result").hidden = true;
  try {
    picture = await decoded(file, name);
    by_id("about").textContent = `${name}: ${picture.width} × ${picture.height} pixels, ${kind_text(picture)}`;
    by_id("workers").textContent = `Workers for this picture: ${team.count_for(picture)}.`;
    set_busy(false);
    await run();
  } catch (error) {
    say("");
    fail(error.message);
  }
};

// ---- Running

const set_busy = (busy) => {
  by_id("run").disabled = busy || !picture;
  by_id("cancel").disabled = !busy;
  by_id("save").disabled = busy || !result;
  by_id("progress").hidden = !busy;
  by_id("progress").value = 0;
};
const show_result = ({ samples, used, workers, ms }) => {
  result = samples;
  const { width, height } = picture;
  const canvas = by_id("after");
  Object.assign(canvas, { width, height });
  canvas.getContext("2d").putImageData(new ImageData(rgba_of(samples, picture), width, height), 0, 0);
  by_id("used-rows").replaceChildren(...used.map(([name, value]) =>
    made("tr", {}, made("th", { scope: "row", textContent: name }), made("td", { textContent: value }))));
  by_id("result").hidden = false;
  draw_zoom();
  draw_split();
  const speed = width * height / ms / 1000;
  say(`Done in ${(ms / 1000).toFixed(2)} s: ${speed.toPrecision(2)} Mpixel/s with ${workers} ${workers === 1 ? "worker" : "workers"}.`);
};

let turn = 0;  // of the last run that was begun or cancelled
const run = async () => {
  const mine = ++turn;
  fail("");
  say("Measuring and denoising…");
  set_busy(true);
  try {
    const done = await team.denoise(picture, settings_now(), { progress: (share) => { by_id("progress").value = share; } });
    if (mine === turn) show_result(done);
  } catch (error) {
    if (mine !== turn || error.name === "AbortError") return;
    say("");
    fail(`${picture.name}: ${error.memory ? `not enough memory in this browser for ${picture.width} × ${picture.height} pixels with ${
      by_id("method").value} (${error.message}): try a quicker method or a smaller picture` : error.message}`);
  } finally {
    if (mine === turn) set_busy(false);
  }
};
const cancel = () => {
  if (!team?.running) return;
  ++turn;
  team.end();
  set_busy(false);
  say("Cancelled.");
};

const save = () => by_id("after").toBlob((blob) => {
  if (!blob) return fail(`${picture.name}: not enough memory in this browser to write a PNG file`);
  const address = URL.createObjectURL(blob);
  made("a", { href: address, download: `${picture.name.replace(/\.[^.]*$/, "")}.ungrain.png` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  return say("Saved.");
}, "image/png");

// ---- The view

const mode_now = () => document.querySelector("input[name=mode]:checked").value;
const draw_split = () => {
  const share = Number(by_id("split").value);
  const slider = mode_now() === "slider";
  by_id("after").style.clipPath = slider ? `inset(0 0 0 ${share}%)` : "";
  by_id("line").style.left = `${share}%`;
  by_id("split-label").hidden = !slider;
  by_id("stage").dataset.mode = mode_now();
};
const draw_zoom = () => {
  const zoom = by_id("zoom").value;
  by_id("stage").classList.toggle("fit", zoom === "fit");
  by_id("stage").classList.toggle("large", Number(zoom) > 1);
  for (const canvas of [by_id("before"), by_id("after")]) {
    canvas.style.width = zoom === "fit" ? "" : `${canvas.width * Number(zoom)}px`;
  }
};
const split_at = ({ clientX }) => {
  const { left, width } = by_id("layers").getBoundingClientRect();
  by_id("split").value = 100 * (clientX - left) / width;
  draw_split();
};

// ---- Events

by_id("choose").addEventListener("click", () => by_id("file").click());
by_id("file").addEventListener("change", ({ target }) => {
  open(target.files[0]);
  target.value = "";  // so that the same file can be chosen again
});
addEventListener("paste", ({ clipboardData }) => open([...clipboardData.files].find(({ type }) => type.startsWith("image/"))));
const holds_files = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
addEventListener("dragover", (event) => {
  if (!holds_files(event)) return;
  event.preventDefault();
  by_id("drop").hidden = false;
});
addEventListener("dragleave", ({ relatedTarget }) => { if (!relatedTarget) by_id("drop").hidden = true; });
addEventListener("drop", (event) => {
  event.preventDefault();
  by_id("drop").hidden = true;
  open(event.dataTransfer.files[0]);
});
by_id("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (picture && !team.running) run();
});
by_id("cancel").addEventListener("click", cancel);
by_id("save").addEventListener("click", save);
by_id("method").addEventListener("change", draw_method);
by_id("preset").addEventListener("change", draw_preset);
by_id("split").addEventListener("input", draw_split);
by_id("zoom").addEventListener("change", draw_zoom);
for (const mode of document.querySelectorAll("input[name=mode]")) mode.addEventListener("change", draw_split);
by_id("layers").addEventListener("pointerdown", (event) => {
  if (mode_now() !== "slider" || event.button !== 0) return;
  by_id("layers").setPointerCapture(event.pointerId);
  split_at(event);
});
by_id("layers").addEventListener("pointermove", (event) => {
  if (by_id("layers").hasPointerCapture(event.pointerId)) split_at(event);
});
addEventListener("keydown", ({ key }) => { if (key === "Escape") cancel(); });

start().catch((error) => fail(`This browser cannot run the page: ${error.message}. It needs WebAssembly with vectors and exceptions: ` +
  "Chrome or Edge 95, Firefox 113, Safari 16.4 or newer."));
