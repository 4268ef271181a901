"use strict";
// Settings as controls, made from the methods' descriptors, and as the words of a command line.
import { clamp, html, put, short_number } from "./common.js";

// The ones that everyone turns; the rest is folded away.
const prominent = ["--strength", "--luminance", "--chroma", "--keep-grain"];

const label_of = (option) => option.option.replace(/^--/, "").replaceAll("-", " ");
const id_of = (option) => `option${option.option}`;
const is_number = (option) => option.kind === "integer" || option.kind === "real";
const is_bounded = (option) => is_number(option) && option.min !== null && option.max !== null;
const default_number = (option) => Number.parseFloat(option.default_text);
const default_is_number = (option) => /^-?[\d.]+$/.test(option.default_text || "");

// `table` is what the session tells of a kind of file: {methods, common, default_method}.
export const method_of = (table, settings) =>
  table.methods.find(({ name }) => name === settings.method) || table.methods[0];
// Every option that the words may hold, in their order.
const options_of = (table, settings) => [...table.common, ...method_of(table, settings).options];

// ---- Words

export const no_settings = (table) => ({ method: table.default_method, preset: "", noise_model: "", values: {} });

// Only what differs from the defaults.
export const words_of = (table, settings) => [
  ...(settings.method === table.default_method ? [] : ["--method", settings.method]),
  ...(settings.preset ? ["--preset", settings.preset] : []),
  ...(settings.noise_model ? ["--noise-model", settings.noise_model] : []),
  ...options_of(table, settings).filter(({ option }) => settings.values[option])
    .flatMap(({ option, kind }) => kind === "flag" ? [option] : [option, settings.values[option]]),
];

// From words that were in the address. Words that nothing here takes are left out.
export const settings_of = (table, words) => {
  const settings = no_settings(table);
  const at = words.indexOf("--method");
  if (at >= 0 && table.methods.some(({ name }) => name === words[at + 1])) settings.method = words[at + 1];
  const options = options_of(table, settings);
  for (let i = 0; i < words.length; ++i) {
    const option = options.find((one) => one.option === words[i]);
    if (option?.kind === "flag") {
      settings.values[words[i]] = "yes";
    } else if (option) {
      settings.values[words[i]] = String(words[++i] ?? "");
    } else if (words[i] === "--preset") {
      settings.preset = String(words[++i] ?? "");
    } else if (words[i] === "--noise-model") {
      settings.noise_model = String(words[++i] ?? "");
    } else if (words[i] === "--method") {
      ++i;
    }
  }
  return settings;
};
export const copy_of = (settings) => ({ ...settings, values: { ...settings.values } });

// ---- Sliders. Ranges are wide and defaults small, so that a slider's way is a power of the value which puts the default
// at a third of it.

const slider_steps = 240;
const slider_is_linear = (option) => option.kind === "integer" && option.max - option.min <= 64;
const power_of = (option) => {
  const share = (default_number(option) - option.min) / (option.max - option.min);
  return share > 0 && share < 1 / 3 ? Math.min(5, Math.log(share) / Math.log(1 / 3)) : 1;
};
const fits_kind = (option, value) => {
  if (option.kind !== "integer") return Number(value.toPrecision(value >= 1 ? 3 : 2));
  const whole = Math.round(value);
  return option.odd && whole % 2 === 0 ? clamp(whole + 1, option.min, option.max) : whole;
};
const slider_of = (option, value) => {
  if (slider_is_linear(option)) return value;
  const share = clamp((value - option.min) / (option.max - option.min), 0, 1);
  return Math.round(slider_steps * share ** (1 / power_of(option)));
};
const value_of_slider = (option, place) => slider_is_linear(option) ? fits_kind(option, place)
  : fits_kind(option, option.min + (option.max - option.min) * (place / slider_steps) ** power_of(option));

// ---- Controls

// "a whole number from 0 to 128"; empty for what is chosen from a list.
const what_it_takes = (option) => {
  const range = is_bounded(option) ? ` from ${short_number(option.min)} to ${short_number(option.max)}`
    : option.min !== null && option.min !== undefined ? ` from ${short_number(option.min)} up` : "";
  if (option.kind === "integer") return `${option.odd ? "an odd whole number" : "a whole number"}${range}`;
  if (option.kind === "real") return `a number${range}`;
  return option.kind === "per_channel" ? `a number${range}, or one for each channel, with commas` : "";
};
const help_of = (option) => {
  const takes = what_it_takes(option);
  return `${option.help}${takes && ` (${takes})`}${option.default_text && `; default ${option.default_text}`}`;
};

const number_control = (option, value) => html`<input type="number" id="${id_of(option)}" step="${
  option.kind === "integer" ? (option.odd ? 2 : 1) : "any"}" value="${value}" placeholder="${
  option.default_text}"${option.min !== null && html` min="${option.min}"`}${option.max !== null && html` max="${option.max}"`
  } aria-describedby="${id_of(option)}-help" data-value>`;
const slider = (option, value) => {
  const known = value !== "" ? Number(value) : default_is_number(option) ? default_number(option) : option.min;
  const linear = slider_is_linear(option);
  return html`<input type="range" min="${linear ? option.min : 0}" max="${linear ? option.max : slider_steps}" step="${
    linear && option.odd ? 2 : 1}" value="${slider_of(option, known)}" aria-label="${label_of(option)}, slider" aria-valuetext="${
    value || option.default_text}" data-slider>`;
};
const choice_control = (option, value) => {
  const listed = option.choices.includes(option.default_text);
  return html`<select id="${id_of(option)}" aria-describedby="${id_of(option)}-help" data-value>${
    !listed && html`<option value="">${option.default_text || "default"}</option>`}${option.choices.map((choice) =>
    html`<option value="${listed && choice === option.default_text ? "" : choice}"${
      (choice === value || (listed && value === "" && choice === option.default_text)) && html` selected`}>${choice}</option>`)
    }</select>`;
};
const text_control = (option, value) => html`<input type="text" id="${id_of(option)}" value="${value}" placeholder="${
  option.default_text}" autocomplete="off" spellcheck="false" aria-describedby="${id_of(option)}-help" data-value>`;
const flag_control = (option, value) => html`<input type="checkbox" id="${id_of(option)}"${value && html` checked`} aria-describedby="${
  id_of(option)}-help" data-value>`;

const control = (option, value) => {
  const make = { integer: number_control, real: number_control, choice: choice_control, flag: flag_control }[option.kind] || text_control;
  const unit = option.unit && html` <small>${option.unit}</small>`;
  // A short default leaves room for the slider beside it.
  const short = is_bounded(option) && default_is_number(option) && !option.unit && label_of(option).length < 11;
  const kinds = [option.kind, short && "short", !default_is_number(option) && "automatic", value !== "" && "changed"];
  return html`<div class="option ${kinds.filter(Boolean).join(" ")}" data-option="${option.option}" title="${help_of(option)}"><label
for="${id_of(option)}">${label_of(option)}${unit}</label>${make(option, value)}<button type="button" class="reset" data-reset
aria-label="${label_of(option)}: back to the default" title="Back to the default"${value === "" && html` hidden`}>×</button>${
    is_bounded(option) && slider(option, value)}<span class="unseen" id="${id_of(option)}-help">${help_of(option)}</span></div>`;
};

// The controls in `container`; they change `settings` and call `changed(option)`. Read anew by draw().
export class SettingsPanel {
  constructor(container, { changed, invalid, valid, own_strength }) {
    Object.assign(this, { container, changed, invalid, valid, own_strength });
    this.kept = new Map();  // values of other methods: coming back finds them again
    container.addEventListener("input", (event) => this.input(event.target));
    container.addEventListener("change", (event) => this.input(event.target));
    container.addEventListener("click", ({ target }) => {
      if (target.closest("[data-reset]")) this.reset(target.closest("[data-option]"));
    });
  }

  option(name) { return options_of(this.table, this.settings).find(({ option }) => option === name); }
  value(name) {
    const own = name === "--strength" ? this.own_strength.get() : undefined;
    return own ?? this.settings.values[name] ?? "";
  }

  draw(table = this.table, settings = this.settings) {
    Object.assign(this, { table, settings });
    const method = method_of(table, settings);
    const preset = method.presets.find(({ name }) => name === settings.preset);
    const open = (id) => this.container.querySelector(`#${id}`)?.open && html` open`;
    const controls = (options) => options.map((option) => control(option, this.value(option.option)));
    const first = prominent.map((name) => table.common.find(({ option }) => option === name)).filter(Boolean);
    const changed = (options) => {
      const count = options.filter(({ option }) => this.value(option) !== "").length;
      return count > 0 && html` <small>${count} changed</small>`;
    };
    const rest = table.common.filter((option) => !first.includes(option));
    put(this.container, html`<div class="option choice"><label for="method">method</label><select id="method" aria-describedby="summary">${
      table.methods.map(({ name }) => html`<option${name === settings.method && html` selected`}>${name}</option>`)}</select></div>
<p class="small" id="summary">${method.summary}</p>${method.presets.length > 0 && html`<div class="option choice" title="${
      preset?.help}"><label for="preset">preset</label><select id="preset"><option value="">none</option>${method.presets.map(({ name, help }) =>
      html`<option value="${name}" title="${help}"${name === settings.preset && html` selected`}>${name}</option>`)}</select></div>${
      preset && html`<p class="small">${preset.help}</p>`}`}${controls(first)}${this.own_strength.offered() &&
      html`<p class="check"><label><input type="checkbox" id="own-strength"${this.own_strength.get() !== undefined && html` checked`}>
strength of this picture only</label></p>`}<details id="method-options"${open("method-options")}><summary>Options of ${method.name}${
      changed(method.options)}</summary>${controls(method.options)}</details>${rest.length > 0 && html`<details id="common-options"${
      open("common-options")}><summary>Options of every method${changed(rest)}</summary>${controls(rest)}</details>`}`);
  }

  input(target) {
    if (target.id === "method") return this.choose_method(target.value);
    if (target.id === "preset") {
      this.settings.preset = target.value;
      return this.redraw(target.id);
    }
    if (target.id === "own-strength") {
      this.own_strength.set(target.checked ? this.value("--strength") || this.option("--strength").default_text : undefined);
      return this.redraw(target.id);
    }
    const row = target.closest("[data-option]");
    if (!row) return undefined;
    const option = this.option(row.dataset.option);
    const field = row.querySelector("[data-value]");
    if ("slider" in target.dataset) field.value = value_of_slider(option, Number(target.value));
    const bad = field.validity && !field.validity.valid;
    field.setAttribute("aria-invalid", bad);
    if (bad) return this.invalid(`${option.option} takes ${what_it_takes(option)}`);
    this.valid();
    const value = option.kind === "flag" ? (field.checked ? "yes" : "") : field.value.trim();
    return this.set(row, option, value);
  }

  set(row, option, value) {
    const is_default = value === "" || (default_is_number(option) && Number(value) === default_number(option));
    const kept = is_default ? "" : value;
    if (option.option === "--strength" && this.own_strength.get() !== undefined) {
      this.own_strength.set(value || option.default_text);
    } else if (kept === this.value(option.option)) {
      return;
    } else if (is_default) {
      delete this.settings.values[option.option];
    } else {
      this.settings.values[option.option] = value;
    }
    row.classList.toggle("changed", kept !== "");
    row.querySelector("[data-reset]").hidden = kept === "";
    const range = row.querySelector("[data-slider]");
    if (range) {
      const usual = default_is_number(option) ? default_number(option) : option.min;
      if (document.activeElement !== range) range.value = slider_of(option, value === "" ? usual : Number(value));
      range.setAttribute("aria-valuetext", value || option.default_text);
    }
    this.changed(option.option);
  }

  reset(row) {
    const option = this.option(row.dataset.option);
    const field = row.querySelector("[data-value]");
    if (option.kind === "flag") field.checked = false;
    else field.value = "";
    field.setAttribute("aria-invalid", false);
    field.focus();
    this.valid();
    this.set(row, option, "");
  }

  choose_method(name) {
    if (name === this.settings.method) return;
    const common = new Set(this.table.common.map(({ option }) => option));
    const { values } = this.settings;
    const own = Object.entries(values).filter(([option]) => !common.has(option));
    this.kept.set(method_of(this.table, this.settings), { preset: this.settings.preset, own });
    const before = this.kept.get(method_of(this.table, { method: name })) || { preset: "", own: [] };
    this.settings.values = Object.fromEntries([...Object.entries(values).filter(([option]) => common.has(option)), ...before.own]);
    this.settings.method = name;
    this.settings.preset = before.preset;
    this.redraw("method");
  }

  // Controls made anew, with the focus where it was.
  redraw(focused) {
    this.draw();
    this.container.querySelector(`#${focused}`)?.focus();
    this.changed(focused);
  }
}
