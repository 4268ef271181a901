"use strict";
// The pages of the open file: their slider, playing, a clip that is still being read, and what the file is taken for.
import { ask, by_id, html, put } from "./common.js";

const usual_rate = 24;  // pages a second, where the file names no rate
const look_again_after = 1000;  // ms, while a clip is being read
const rate_over = 2000;  // ms of playing of which the rate is told
const page_words = { pages: "page", volume: "slice", clip: "frame" };
const kind_names = { pages: "images", volume: "slices of a volume", clip: "frames of a clip" };

export const page_word = (info) => page_words[info.as];
// How many volumes a file has and how many slices each; null where its pages are no slices.
export const volumes_of = ({ as, pages, volume }) =>
  as === "volume" && volume?.depth > 0 ? { depth: volume.depth, count: Math.ceil(pages / volume.depth) } : null;
// "12 of 90", with several volumes "12 of 90, volume 2 of 3".
const place_text = (info, page) => {
  const volumes = volumes_of(info);
  if (!volumes || volumes.count < 2) return `${page + 1} of ${info.pages}`;
  return `${page % volumes.depth + 1} of ${volumes.depth}, volume ${Math.floor(page / volumes.depth) + 1} of ${volumes.count}`;
};

export class Stack {
  // `page()` is the one that is shown, `scene_of(page)` what is shown of another, `set_page(page, options)` goes there.
  // `grown()` is called when more of a clip has been read, `choose_kind(as)` when the file is to be taken for something else.
  constructor(stage, { page, scene_of, set_page, grown, choose_kind, failed }) {
    Object.assign(this, { stage, page, scene_of, set_page, grown, failed });
    this.info = null;
    this.playing = null;  // the loop that plays
    this.reached = null;  // pages a second
    this.timer = 0;
    by_id("page").addEventListener("input", () => set_page(by_id("page").valueAsNumber - 1));
    by_id("play").addEventListener("click", () => this.toggle_play());
    by_id("kind").addEventListener("change", () => choose_kind(by_id("kind").value));
    document.addEventListener("visibilitychange", () => this.watch());
  }

  // Another file, or the same one taken for something else.
  open(info) {
    this.info = info;
    put(by_id("kind"), info.kinds.map((as) =>
      html`<option value="${as}"${as === info.as && html` selected`}>${kind_names[as]}</option>`));
    by_id("kind-label").hidden = info.kinds.length < 2;
    by_id("page-label").textContent = page_word(info);
    this.draw();
    this.watch();
  }

  draw() {
    const { info } = this;
    const slider = by_id("page");
    by_id("pages").hidden = info.pages < 2 && info.kinds.length < 2;
    slider.disabled = by_id("play").disabled = info.pages < 2;
    slider.max = info.pages;
    slider.value = this.page() + 1;
    const text = place_text(info, this.page());
    slider.setAttribute("aria-valuetext", text);
    by_id("page-text").textContent = text;
  }
  // The choice was refused: the list shows what is true.
  draw_kind() { by_id("kind").value = this.info.as; }

  next_kind() {
    const { kinds, as } = this.info || { kinds: [] };
    return kinds[(kinds.indexOf(as) + 1) % kinds.length];
  }

  // ---- A clip that is still being read

  watch() {
    clearTimeout(this.timer);
    if (this.info?.complete !== false || document.hidden) return;
    this.timer = setTimeout(() => this.look_again(), look_again_after);
  }

  async look_again() {
    const { info } = this;
    try {
      const { pages, complete, rate, note } = await ask("/api/info", { query: { file: info.file, as: info.as } });
      if (info !== this.info) return;
      Object.assign(info, { pages, complete, rate, note });
      this.grown();
    } catch (error) {
      if (info !== this.info) return;
      this.failed(error);
      if (error.status !== 0) return;
    }
    this.watch();
  }

  // ---- Playing

  toggle_play() {
    if (this.playing) this.stop();
    else if (this.info?.pages > 1) this.play();
  }

  stop() {
    if (!this.playing) return;
    this.playing = null;
    this.stage.refines = true;
    this.draw_playing();
    this.set_page(this.page());
  }

  draw_playing() {
    by_id("play").setAttribute("aria-pressed", this.playing !== null);
    by_id("play").textContent = this.playing ? "Stop" : "Play";
    this.reached = null;
    by_id("reached").textContent = "";
    by_id("reached").hidden = this.playing === null;
  }

  // Pages follow each other at the clip's rate, or as fast as their tiles arrive; coarse ones will do. A page is shown once
  // the tiles of every panel are there. One that is a little late does not delay those after it, so that timers do not add up.
  async play() {
    const mine = {};
    const shown_at = [];
    this.playing = mine;
    this.stage.refines = false;
    this.draw_playing();
    let due = performance.now();
    while (this.playing === mine) {
      const from = this.page();
      const next = (from + 1) % this.info.pages;
      if (!await this.stage.prepare(this.scene_of(next))) continue;
      const period = 1000 / (this.info.rate > 0 ? this.info.rate : usual_rate);
      const now = performance.now();
      due = now > due + 1.5 * period ? now : due + period;
      if (due > now) await new Promise((resume) => setTimeout(resume, due - now));
      if (this.playing !== mine) return;
      if (this.page() !== from) continue;  // moved by hand meanwhile
      this.set_page(next, { same_turn: true });
      this.count(shown_at);
    }
  }

  // Twice a second, over the last seconds.
  count(shown_at) {
    const now = performance.now();
    shown_at.push(now);
    while (shown_at.length > 2 && shown_at[0] < now - rate_over) shown_at.shift();
    if (shown_at.length < 2 || now - (this.told_at || 0) < 500) return;
    this.told_at = now;
    this.reached = 1000 * (shown_at.length - 1) / (now - shown_at[0]);
    by_id("reached").textContent = `${this.reached.toFixed(1)} ${page_word(this.info)}s/s`;
  }
}
