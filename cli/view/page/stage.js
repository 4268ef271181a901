"use strict";
// The picture on the screen: tiles of what is visible are asked for, kept and drawn; pan, zoom and rectangles.
import { clamp, fetch_answer, is_abort } from "./common.js";

const tile_side = 256;
// Browsers open six connections to a server: one is left for all that is no tile.
const most_requests = 5;
const most_tiles = (navigator.deviceMemory || 8) <= 2 ? 256 : 768;  // 256 KiB each
export const most_zoom = 8;
const zoom_steps = [1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8];
const dim_after = 250;  // ms for which what the last settings made is shown as if it were the new one's

// A scene: {picture: {file, as, page, width, height}, low, high, gain, split, cells: [{left, right}]}. Cells lie beside each
// other; a layer {kind, words} is `right`, and left of `split` (a share of the cell's width) it is `left` if there is one.
export const layer_key = (scene, layer) => {
  const { file, as, page } = scene.picture;
  const changed = layer.kind !== "noisy";
  return JSON.stringify([file, as, page, layer.kind, changed ? layer.words : [], scene.low, scene.high,
    layer.kind === "difference" || layer.kind === "removed" ? scene.gain : 1]);
};
const tile_key = (layer, level, x, y) => `${layer}/${level}/${x}/${y}`;
// The smaller copies of a picture end with the one that is a single tile.
const last_level = ({ width, height }) => Math.max(0, Math.ceil(Math.log2(Math.max(width, height) / tile_side)));

// ---- Tiles that have arrived, the least recently drawn ones given up first.

class TileCache {
  tiles = new Map();

  get(key) {
    const tile = this.tiles.get(key);
    if (tile) {
      this.tiles.delete(key);
      this.tiles.set(key, tile);
    }
    return tile;
  }
  has(key) { return this.tiles.has(key); }
  exact(key) { return this.tiles.get(key)?.exact === true; }

  add(key, tile) {
    this.tiles.get(key)?.bitmap.close();
    this.tiles.delete(key);
    this.tiles.set(key, tile);
    for (const [old, { bitmap }] of this.tiles) {
      if (this.tiles.size <= most_tiles) break;
      bitmap.close();
      this.tiles.delete(old);
    }
  }
}

// ---- Requests: what is wanted now, the most urgent first; what is wanted no longer is given up.

class TileLoader {
  constructor(cache, { arrived, failed }) {
    this.cache = cache;
    this.arrived = arrived;
    this.failed = failed;
    this.client = crypto.getRandomValues(new Uint32Array(1))[0];
    this.turn = 0;
    this.wanted = new Map();
    this.running = new Map();
    this.given_up = new Set();  // refused by the server: not asked for again in this turn
    this.aborted = 0;
  }

  new_turn() {
    ++this.turn;
    this.given_up.clear();
  }

  want(wanted) {
    this.wanted = wanted;
    for (const [key, request] of this.running) {
      if (wanted.has(key)) continue;
      request.abort();
      ++this.aborted;
      this.running.delete(key);
    }
    this.start_requests();
  }

  pending() {
    let count = 0;
    for (const key of this.wanted.keys()) if (!this.given_up.has(key)) ++count;
    return count;
  }

  start_requests() {
    if (this.running.size >= most_requests) return;
    const waiting = [...this.wanted.values()].filter(({ key }) => !this.running.has(key) && !this.given_up.has(key));
    waiting.sort((a, b) => a.urgency - b.urgency || a.distance - b.distance);
    for (const tile of waiting.slice(0, most_requests - this.running.size)) this.load(tile);
  }

  // The tiles of a layer that are wanted now, as a rectangle: the server makes them together.
  wanted_together({ scene, layer, level }) {
    const alike = [...this.wanted.values()].filter((one) =>
      one.scene.picture === scene.picture && one.layer === layer && one.level === level);
    if (alike.length < 2) return {};
    const xs = alike.map(({ x }) => x);
    const ys = alike.map(({ y }) => y);
    return { vx0: Math.min(...xs), vy0: Math.min(...ys), vx1: Math.max(...xs) + 1, vy1: Math.max(...ys) + 1 };
  }

  async load(wanted) {
    const { key, scene, layer, level, x, y } = wanted;
    const request = new AbortController();
    this.running.set(key, request);
    try {
      const changed = layer.kind !== "noisy";
      const answer = await fetch_answer("/api/tile", { signal: request.signal, query: {
        file: scene.picture.file, as: scene.picture.as, page: scene.picture.page, level, x, y, kind: layer.kind,
        words: JSON.stringify(changed ? layer.words : []), low: scene.low, high: scene.high, gain: scene.gain,
        client: this.client, turn: this.turn, exact: this.cache.has(key) ? 1 : undefined,
        ...(changed ? this.wanted_together(wanted) : {}) } });
      const bytes = new Uint8ClampedArray(await answer.arrayBuffer());
      const width = Number(answer.headers.get("X-Width"));
      const height = Number(answer.headers.get("X-Height"));
      const bitmap = await createImageBitmap(new ImageData(bytes, width, height),
        { premultiplyAlpha: "none", colorSpaceConversion: "none" });
      this.cache.add(key, { bitmap, width, height, exact: answer.headers.get("X-Exact") !== "0" });
      if (this.running.get(key) === request) this.running.delete(key);
      if (this.cache.exact(key)) this.wanted.delete(key);
      this.arrived(key);
    } catch (error) {
      if (error.status === 409) await new Promise((resume) => setTimeout(resume, 50));
      if (this.running.get(key) === request) this.running.delete(key);
      if (!is_abort(error)) this.refuse(key, error);
    }
    this.start_requests();
  }

  refuse(key, error) {
    if (error.status === 409) return;  // a newer turn overtook it: asked for again if it is still wanted
    this.given_up.add(key);
    if (error.status === 0) setTimeout(() => {
      this.given_up.delete(key);
      this.start_requests();
    }, 2000);
    this.failed(error);
  }
}

// ---- The stage

export class Stage {
  constructor(canvas, { changed, pending, failed, arrived, rectangle_drawn, pointed }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.changed = changed;
    this.tell_pending = pending;
    this.rectangle_drawn = rectangle_drawn;
    this.pointed = pointed;
    this.cache = new TileCache();
    this.loader = new TileLoader(this.cache, { failed, arrived: () => {
      arrived();
      this.draw_soon();
    } });
    this.scene = null;
    this.coming = null;  // a scene that is loaded before it is shown
    this.view = { zoom: null, x: 0, y: 0 };  // device pixels a picture's pixel, null: fitted; the picture's point in the middle
    this.rectangle = null;
    this.drawing_rectangle = false;
    this.pointer = null;  // where it is over the canvas, in device pixels
    this.marks_middle = false;  // the pixel whose values the keyboard asked for
    this.refines = true;
    this.shown = new Map();  // by cell and side: the layer that was drawn last without a gap
    this.changed_at = 0;
    this.frame = 0;
    this.idle_waiters = [];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw_soon());
    new ResizeObserver(([entry]) => this.resize(entry)).observe(canvas);
    this.listen();
  }

  resize(entry) {
    const exact = entry.devicePixelContentBoxSize?.[0];
    const sharpness = window.devicePixelRatio || 1;
    const width = Math.max(1, exact ? exact.inlineSize : Math.round(entry.contentRect.width * sharpness));
    const height = Math.max(1, exact ? exact.blockSize : Math.round(entry.contentRect.height * sharpness));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.draw();
    this.changed();
  }

  // Another scene. What changes pixels is a new turn; the split is not.
  show(scene, { same_turn = false } = {}) {
    const keys = (one) => one?.cells.flatMap(({ left, right }) => [left, right].map((layer) => layer && layer_key(one, layer))).join();
    if (keys(scene) !== keys(this.scene)) {
      if (!same_turn) this.loader.new_turn();
      this.changed_at = performance.now();
      setTimeout(() => this.draw_soon(), dim_after + 20);
    }
    if (this.scene && this.scene.picture.file !== scene.picture.file) this.shown.clear();
    this.scene = scene;
    this.coming?.ready(false);
    this.coming = null;
    this.draw_soon();
  }

  // ---- Geometry, in device pixels of the canvas

  cell_boxes(scene = this.scene) {
    const count = scene ? scene.cells.length : 1;
    const { width, height } = this.canvas;
    const columns = count === 4 ? 2 : count === 1 ? 1 : width >= height * 0.9 ? count : 1;
    const rows = Math.ceil(count / columns);
    return Array.from({ length: count }, (_, i) => {
      const left = Math.round(width * (i % columns) / columns);
      const right = Math.round(width * (i % columns + 1) / columns);
      const top = Math.round(height * Math.floor(i / columns) / rows);
      const bottom = Math.round(height * (Math.floor(i / columns) + 1) / rows);
      const gap = count > 1 ? 1 : 0;
      return { x: left, y: top, width: right - left - gap, height: bottom - top - gap };
    });
  }

  fitted_zoom() {
    const { width, height } = this.scene.picture;
    const box = this.cell_boxes()[0];
    return Math.min(most_zoom, box.width / width, box.height / height);
  }
  zoom() { return this.scene ? this.view.zoom ?? this.fitted_zoom() : 1; }
  least_zoom() { return Math.min(1, this.fitted_zoom()); }

  // The middle of the view, kept where the picture fills the cell or is centred in it.
  middle() {
    const { width, height } = this.scene.picture;
    const box = this.cell_boxes()[0];
    const zoom = this.zoom();
    const along = (at, length, room) => room >= length ? length / 2 : clamp(at, room / 2, length - room / 2);
    if (this.view.zoom === null) return { x: width / 2, y: height / 2 };
    return { x: along(this.view.x, width, box.width / zoom), y: along(this.view.y, height, box.height / zoom) };
  }

  // Where the picture's upper left corner lies: a whole pixel, so that 100 % shows the file's own pixels.
  origin(box) {
    const zoom = this.zoom();
    const { x, y } = this.middle();
    return { x: Math.round(box.x + box.width / 2 - x * zoom), y: Math.round(box.y + box.height / 2 - y * zoom) };
  }

  // The browser puts the canvas on whole pixels of the screen, wherever the layout has it.
  device_point(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const stretched = this.canvas.width / bounds.width;
    const sharpness = Math.abs(stretched - window.devicePixelRatio) < 0.01 ? window.devicePixelRatio : stretched;
    return { x: event.clientX * sharpness - Math.round(bounds.left * sharpness),
      y: event.clientY * sharpness - Math.round(bounds.top * sharpness) };
  }
  cell_at(point) {
    const boxes = this.cell_boxes();
    return boxes.find((box) => point.x < box.x + box.width + 1 && point.y < box.y + box.height + 1) || boxes.at(-1);
  }
  picture_point(point, box = this.cell_at(point)) {
    const origin = this.origin(box);
    return { x: (point.x - origin.x) / this.zoom(), y: (point.y - origin.y) / this.zoom() };
  }

  // The picture's pixel under a point of the canvas and the cell it is in; null beside the picture.
  pixel_under(point) {
    const box = this.cell_at(point);
    const { x, y } = this.picture_point(point, box);
    const { width, height } = this.scene.picture;
    const within = (at, length) => at >= 0 && at < length;
    const seen = within(point.x - box.x, box.width) && within(point.y - box.y, box.height);
    if (!seen || !within(x, width) || !within(y, height)) return null;
    return { x: Math.floor(x), y: Math.floor(y), cell: this.cell_boxes().findIndex((one) => one.x === box.x && one.y === box.y) };
  }
  middle_pixel() {
    const { x, y } = this.middle();
    return { x: Math.floor(x), y: Math.floor(y) };
  }

  // ---- Changes of the view

  set_view(view) {
    this.view = { ...this.view, ...view };
    this.draw_soon();
    this.changed();
  }
  fit() { this.set_view({ zoom: null }); }

  // The picture's point under `point` stays where it is.
  zoom_to(zoom, point) {
    if (!this.scene) return;
    const box = point ? this.cell_at(point) : this.cell_boxes()[0];
    const fixed = point || { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    const at = this.picture_point(fixed, box);
    const next = clamp(zoom, this.least_zoom(), most_zoom);
    this.view = { zoom: next, x: at.x + (box.x + box.width / 2 - fixed.x) / next, y: at.y + (box.y + box.height / 2 - fixed.y) / next };
    Object.assign(this.view, this.middle());
    this.set_view({});
  }
  step_zoom(direction) {
    const now = this.zoom();
    const next = direction > 0 ? zoom_steps.find((step) => step > now * 1.001) : zoom_steps.findLast((step) => step < now / 1.001);
    if (next === undefined || next < this.least_zoom()) return direction < 0 ? this.fit() : undefined;
    return this.zoom_to(next);
  }
  // By device pixels.
  pan(dx, dy) {
    if (!this.scene || this.view.zoom === null) return;
    const zoom = this.zoom();
    this.view.x += dx / zoom;
    this.view.y += dy / zoom;
    Object.assign(this.view, this.middle());
    this.set_view({});
  }

  // ---- Drawing

  draw_soon() {
    if (!this.frame) this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  level() {
    const zoom = this.zoom();
    return clamp(Math.floor(Math.log2(1 / zoom) + 1e-9), 0, last_level(this.scene.picture));
  }

  draw() {
    if (!this.scene) return;
    const wanted = new Map();
    this.draw_scene(this.context, this.scene.split);
    if (this.rectangle) this.draw_outline(this.rectangle);
    if (this.marks_middle) {
      const { x, y } = this.middle_pixel();
      this.draw_outline([x, y, x + 1, y + 1], 12);
    }
    this.want_tiles(this.scene, wanted, 0);
    if (this.coming) this.want_tiles(this.coming.scene, wanted, 1);
    this.loader.want(wanted);
    if (this.coming && !this.lacks_tiles(this.coming.scene)) {
      this.coming.ready(true);
      this.coming = null;
    }
    const pending = this.pending();
    this.tell_pending(pending);
    if (pending === 0) this.idle_waiters.splice(0).forEach((resolve) => resolve());
  }

  draw_scene(context, split) {
    const background = getComputedStyle(this.canvas).backgroundColor;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = background;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.cell_boxes().forEach((box, i) => {
      const { left, right } = this.scene.cells[i];
      const edge = left ? Math.round(box.x + split * box.width) : box.x;
      this.draw_layer(context, right, `${i} right`, { ...box, x: edge, width: box.x + box.width - edge }, box);
      if (left) this.draw_layer(context, left, `${i} left`, { ...box, width: edge - box.x }, box);
    });
  }

  // The tiles of one level that the area shows, as {level, x, y}.
  tiles_in(area, box) {
    const { width, height } = this.scene.picture;
    const level = this.level();
    const side = tile_side * 2 ** level;
    const from = this.picture_point({ x: area.x, y: area.y }, box);
    const to = this.picture_point({ x: area.x + area.width, y: area.y + area.height }, box);
    const first = (at) => Math.max(0, Math.floor(at / side));
    const last = (at, length) => Math.min(Math.ceil(length / side), Math.ceil(at / side)) - 1;
    const tiles = [];
    if (area.width <= 0) return tiles;
    for (let y = first(from.y); y <= last(to.y, height); ++y) {
      for (let x = first(from.x); x <= last(to.x, width); ++x) tiles.push({ level, x, y });
    }
    return tiles;
  }

  draw_layer(context, layer, slot, area, box) {
    const key = layer_key(this.scene, layer);
    context.save();
    context.beginPath();
    context.rect(area.x, area.y, area.width, area.height);
    context.clip();
    let complete = true;
    for (const tile of this.tiles_in(area, box)) {
      if (this.paint_tile(context, key, tile, tile, box)) continue;
      complete = false;
      this.paint_instead(context, key, slot, tile, box);
    }
    if (complete && area.width > 0) this.shown.set(slot, key);
    context.restore();
  }

  // What there is for a tile that is not: another level of it, what the last settings made, the noisy picture.
  paint_instead(context, key, slot, tile, box) {
    if (this.paint_other_levels(context, key, tile, box)) return;
    const dimmed = performance.now() - this.changed_at > dim_after;
    context.globalAlpha = dimmed ? 0.6 : 1;
    const noisy = layer_key(this.scene, { kind: "noisy" });
    for (const other of [this.shown.get(slot), noisy]) {
      if (other && (this.paint_tile(context, other, tile, tile, box) || this.paint_other_levels(context, other, tile, box))) break;
    }
    context.globalAlpha = 1;
  }

  paint_other_levels(context, key, tile, box) {
    let painted = false;
    for (let level = tile.level + 1; level <= last_level(this.scene.picture) && !painted; ++level) {
      const up = level - tile.level;
      painted = this.paint_tile(context, key, { level, x: tile.x >> up, y: tile.y >> up }, tile, box);
    }
    for (let down = 1; down <= Math.min(2, tile.level); ++down) {
      let complete = true;
      for (let i = 0; i < 4 ** down; ++i) {
        const part = { level: tile.level - down, x: (tile.x << down) + i % 2 ** down, y: (tile.y << down) + Math.floor(i / 2 ** down) };
        complete = this.paint_tile(context, key, part, part, box) && complete;
      }
      if (complete) return true;
    }
    return painted;
  }

  // The part of `source` that covers the tile `place`. Edges are rounded alike for neighbours: no seams.
  paint_tile(context, key, source, place, box) {
    const tile = this.cache.get(tile_key(key, source.level, source.x, source.y));
    if (!tile) return false;
    const { width, height } = this.scene.picture;
    const size = 2 ** source.level;
    const side = tile_side * 2 ** place.level;
    const left = place.x * side;
    const top = place.y * side;
    const right = Math.min(left + side, width, (source.x * tile_side + tile.width) * size);
    const bottom = Math.min(top + side, height, (source.y * tile_side + tile.height) * size);
    if (right <= left || bottom <= top) return false;
    const zoom = this.zoom();
    const origin = this.origin(box);
    const at = { x: Math.round(origin.x + left * zoom), y: Math.round(origin.y + top * zoom) };
    const to = { x: Math.round(origin.x + right * zoom), y: Math.round(origin.y + bottom * zoom) };
    context.imageSmoothingEnabled = zoom < 1 || source.level > place.level;
    context.imageSmoothingQuality = "medium";
    context.drawImage(tile.bitmap, left / size - source.x * tile_side, top / size - source.y * tile_side, (right - left) / size,
      (bottom - top) / size, at.x, at.y, to.x - at.x, to.y - at.y);
    return true;
  }

  // Tiles that lack, and those that are coarse. Those behind the split come after the visible ones.
  want_tiles(scene, wanted, urgency) {
    this.cell_boxes(scene).forEach((box, i) => {
      const { left, right } = scene.cells[i];
      const edge = left ? box.x + scene.split * box.width : box.x;
      const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
      const origin = this.origin(box);
      for (const layer of [left, right]) {
        if (!layer) continue;
        const prefix = layer_key(scene, layer);
        for (const { level, x, y } of this.tiles_in(box, box)) {
          const key = tile_key(prefix, level, x, y);
          if (this.cache.exact(key)) continue;
          const coarse = this.cache.has(key);
          if (coarse && (!this.refines || urgency > 0)) continue;
          const side = tile_side * 2 ** level * this.zoom();
          const from = origin.x + x * side;
          const hidden = left && (layer === left ? from >= edge : from + side <= edge);
          wanted.set(key, { key, scene, layer, level, x, y, urgency: 4 * urgency + (coarse ? 2 : 0) + (hidden ? 1 : 0),
            distance: Math.hypot(from + side / 2 - middle.x, origin.y + (y + 0.5) * side - middle.y) });
        }
      }
    });
  }

  lacks_tiles(scene) {
    return this.cell_boxes(scene).some((box, i) => [scene.cells[i].left, scene.cells[i].right].some((layer) => layer &&
      this.tiles_in(box, box).some(({ level, x, y }) => {
        const key = tile_key(layer_key(scene, layer), level, x, y);
        return !this.cache.has(key) && !this.loader.given_up.has(key);
      })));
  }

  // True once every tile of the scene has arrived; the shown scene stays until then. False where another is shown before.
  prepare(scene) {
    return new Promise((ready) => {
      this.coming = { scene, ready };
      this.draw();
    });
  }

  // Around a rectangle of the picture, at least `least` CSS pixels wide and high.
  draw_outline([x0, y0, x1, y1], least = 0) {
    const zoom = this.zoom();
    const sharpness = window.devicePixelRatio || 1;
    const more = Math.max(0, (least * sharpness - (x1 - x0) * zoom) / 2);
    for (const box of this.cell_boxes()) {
      const origin = this.origin(box);
      const { context } = this;
      context.save();
      context.beginPath();
      context.rect(box.x, box.y, box.width, box.height);
      context.clip();
      for (const [colour, line] of [["#000", 4], ["#fff", 2]]) {
        context.lineWidth = line * sharpness;
        context.strokeStyle = colour;
        context.strokeRect(origin.x + x0 * zoom - more, origin.y + y0 * zoom - more, (x1 - x0) * zoom + 2 * more,
          (y1 - y0) * zoom + 2 * more);
      }
      context.restore();
    }
  }

  // ---- What tests ask

  pending() { return this.loader.pending(); }
  idle() { return new Promise((resolve) => {
    this.idle_waiters.push(resolve);
    this.draw_soon();
  }); }
  // The colour that is on the screen for a pixel of the picture, or would be with the split moved away to show `side`.
  pixel(x, y, side, cell = 0) {
    const box = this.cell_boxes()[cell];
    const origin = this.origin(box);
    const at = { x: Math.floor(origin.x + (x + 0.5) * this.zoom()), y: Math.floor(origin.y + (y + 0.5) * this.zoom()) };
    let { canvas } = this;
    if (side) {
      canvas = document.createElement("canvas");
      canvas.width = this.canvas.width;
      canvas.height = this.canvas.height;
      this.draw_scene(canvas.getContext("2d", { alpha: false }), side === "noisy" ? 1 : 0);
    }
    // A canvas that is read from is no longer drawn by the GPU: the one on the screen is copied.
    this.sample ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    this.sample.drawImage(canvas, at.x, at.y, 1, 1, 0, 0, 1, 1);
    return [...this.sample.getImageData(0, 0, 1, 1).data];
  }

  // ---- Pointers: drag to move, two fingers or the wheel to zoom, a rectangle while that is chosen.

  listen() {
    const { canvas } = this;
    const held = new Map();
    let rectangle_from = null;
    const spread = () => {
      const [a, b] = [...held.values()];
      return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.scene || event.button > 0) return;
      const point = this.device_point(event);
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, point);
      rectangle_from = this.drawing_rectangle && held.size === 1 ? { point: this.picture_point(point), box: this.cell_at(point) } : null;
      canvas.classList.add("held");
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId)) return;
      const before = held.size === 2 ? spread() : held.get(event.pointerId);
      const point = this.device_point(event);
      held.set(event.pointerId, point);
      if (rectangle_from) {
        this.rectangle = this.rectangle_between(rectangle_from.point, this.picture_point(point, rectangle_from.box));
        this.draw_soon();
      } else if (held.size === 2) {
        const now = spread();
        this.pan(before.x - now.x, before.y - now.y);
        this.zoom_to(this.zoom() * now.distance / Math.max(1, before.distance), now);
      } else if (held.size === 1) {
        this.pan(before.x - point.x, before.y - point.y);
      }
    });
    const let_go = (event) => {
      if (!held.delete(event.pointerId)) return;
      canvas.classList.toggle("held", held.size > 0);
      if (rectangle_from && event.type === "pointerup") this.rectangle_drawn(this.rectangle);
      rectangle_from = null;
    };
    canvas.addEventListener("pointerup", let_go);
    canvas.addEventListener("pointercancel", let_go);
    const point_at = (point) => {
      this.pointer = point;
      this.pointed();
    };
    canvas.addEventListener("pointermove", (event) => point_at(this.device_point(event)));
    for (const gone of ["pointerleave", "pointercancel"]) canvas.addEventListener(gone, () => point_at(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
      this.zoom_to(this.zoom() * Math.exp(-event.deltaY * unit * 0.002), this.device_point(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      if (!this.scene) return;
      if (this.view.zoom === null) this.zoom_to(1, this.device_point(event));
      else this.fit();
    });
  }

  rectangle_between(a, b) {
    const { width, height } = this.scene.picture;
    const x0 = clamp(Math.floor(Math.min(a.x, b.x)), 0, width - 1);
    const y0 = clamp(Math.floor(Math.min(a.y, b.y)), 0, height - 1);
    return [x0, y0, clamp(Math.ceil(Math.max(a.x, b.x)), x0 + 1, width), clamp(Math.ceil(Math.max(a.y, b.y)), y0 + 1, height)];
  }
}
