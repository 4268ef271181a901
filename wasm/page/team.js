"use strict";
// The workers: each has a copy of the library and of the picture, and filters bands of rows, which have the same bits as in a run over
// the whole picture. To cancel, the workers are ended.

const most_workers = 8;
const copies_bytes = 2 ** 30;     // for the copies of the picture in all workers
const buffers_bytes = 192 * 2 ** 20;  // for the library's own buffers in one worker

class Refused extends Error {
  constructor(message, memory) {
    super(message);
    this.memory = memory;
  }
}

// One worker that is asked one thing at a time.
class Helper {
  constructor(source) {
    this.worker = new Worker(source);
    this.worker.onmessage = ({ data }) => {
      if ("progress" in data) return this.on_progress(data.progress);
      const { resolve, reject } = this.waiting;
      return "failed" in data ? reject(new Refused(data.failed, data.memory)) : resolve(data);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.waiting?.reject(new Refused(event.message || "the worker could not start", true));
    };
    this.on_progress = () => {};
    this.picture = undefined;
  }
  ask(question, transfer = []) {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.worker.postMessage(question, transfer);
    });
  }
  async show(picture) {
    if (this.picture === picture) return;
    await this.ask({ picture });
    this.picture = picture;
  }
  end() {
    this.worker.terminate();
    this.waiting?.reject(new DOMException("cancelled", "AbortError"));
  }
}

// Bands of about equal height, several for each worker so that all end together, but much higher than what is read around them.
const bands_of = (height, workers, reach) => {
  const least = Math.max(64, 4 * reach);
  const share = Math.ceil(height / workers);
  const rows = workers === 1 ? height : Math.min(share, Math.max(least, Math.ceil(share / 4)));
  return Array.from({ length: Math.ceil(height / rows) }, (_, index) =>
    ({ first: index * rows, rows: Math.min(rows, height - index * rows) }));
};

class Team {
  constructor(source, module) {
    Object.assign(this, { source, module, helpers: [], running: false });
  }

  async helper(index) {
    if (!this.helpers[index]) {
      const helper = this.helpers[index] = new Helper(this.source);
      this.about = (await helper.ask({ module: this.module })).module;
    }
    return this.helpers[index];
  }
  async describe() {
    await this.helper(0);
    return this.about;
  }

  count_for(picture) {
    const processors = navigator.hardwareConcurrency || 2;
    const copies = Math.floor(copies_bytes / picture.samples.byteLength);
    const of_rows = Math.floor(picture.height / 64);
    return Math.max(1, Math.min(most_workers, processors, copies, of_rows));
  }

  // {samples, used, workers, ms}: the result and the parameters that made it. Where memory does not suffice, one worker tries alone.
  async denoise(picture, settings, { progress = () => {}, workers = this.count_for(picture) } = {}) {
    this.running = true;
    try {
      return await this.denoise_with(workers, picture, settings, progress);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (error.memory) this.end();  // a module that ran out of memory is of no use
      if (!error.memory || workers === 1) throw error;
      return await this.denoise_with(1, picture, settings, progress);
    } finally {
      this.running = false;
    }
  }

  async denoise_with(workers, picture, settings, progress) {
    const began = performance.now();
    const helpers = await Promise.all(Array.from({ length: workers }, (_, index) => this.helper(index)));
    const prepared = await Promise.all(helpers.map(async (helper) => {
      await helper.show(picture);
      return (await helper.ask({ prepare: settings, memory: buffers_bytes })).prepare;
    }));
    const row_samples = picture.width * picture.channels;
    const samples = new picture.samples.constructor(row_samples * picture.height);
    const bands = bands_of(picture.height, workers, prepared[0].reach);
    const fractions = bands.map(() => 0);
    let next = 0;
    await Promise.all(helpers.map(async (helper) => {
      while (next < bands.length) {
        const index = next++;
        const report = (fraction) => {
          fractions[index] = fraction;
          progress(bands.reduce((sum, { rows }, band) => sum + rows * fractions[band], 0) / picture.height);
        };
        helper.on_progress = report;
        const { band } = await helper.ask({ band: bands[index] });
        samples.set(band.samples, band.first * row_samples);
        report(1);
      }
    }));
    return { samples, used: prepared[0].used, workers, ms: performance.now() - began };
  }

  end() {
    for (const helper of this.helpers) helper.end();
    this.helpers = [];
  }
}
