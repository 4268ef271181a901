"use strict";
// The samples of a pixel, noisy and clean, as text.
import { ask, is_abort, short_number } from "./common.js";

const least_interval = 100;  // ms between two requests
const ask_again_after = 500;  // ms, where the pixel is not denoised yet

const sample_text = (value) => Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : short_number(value);
const samples_text = (samples) => samples.map(sample_text).join(" ");

export class ValueReadout {
  // `place()` is what to ask for: {file, as, page, x, y, words, denoised}; null: nothing is pointed at. `denoised` tells
  // whether the clean samples are shown.
  constructor(element, place) {
    Object.assign(this, { element, place });
    this.key = null;
    this.timer = 0;
    this.asked_at = -least_interval;
    this.request = new AbortController();
  }

  // To be called when the place may have changed.
  update() {
    const place = this.place();
    if (!place) return this.hide();
    const key = JSON.stringify(place);
    if (key === this.key) return;
    this.key = key;
    this.ask_after(Math.max(0, this.asked_at + least_interval - performance.now()));
  }

  hide() {
    clearTimeout(this.timer);
    this.request.abort();
    this.key = null;
    this.element.hidden = true;
  }

  ask_after(delay) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), delay);
  }

  async ask() {
    const place = this.place();
    if (!place) return this.hide();
    this.request.abort();
    this.request = new AbortController();
    this.asked_at = performance.now();
    const key = this.key = JSON.stringify(place);
    const { signal } = this.request;
    const { denoised, words, ...pixel } = place;
    try {
      const { noisy, clean } = await ask("/api/value", { query: { ...pixel, words: JSON.stringify(words) }, signal });
      const after = !denoised ? "" : ` → ${clean ? samples_text(clean) : "…"}`;
      this.element.textContent = `x ${pixel.x}, y ${pixel.y}: ${samples_text(noisy)}${after}`;
      this.element.hidden = false;
      if (denoised && !clean && key === this.key) this.ask_after(ask_again_after);
    } catch (error) {
      if (!is_abort(error)) this.element.hidden = true;  // the tiles tell what is wrong
    }
  }
}
