// node bench.mjs [--megapixels 4] [--workers 1]: bilateral of radius 3 in node, each worker a thread of its own with a copy of the
// library. Prints a table with the median of 5 runs after 2 warm-ups. A time is printed only where the result agrees with the library's
// reference on a part of the picture.
import os from "node:os";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { load_library } from "./node_library.mjs";

const cases = [];
for (const type of ["u8", "f32"]) {
  for (const channels of [1, 3]) cases.push({ type, channels });
}
const settings = { method: "bilateral", values: { radius: "3", sigma_range: "30" } };
const runs = 5;
const warm_ups = 2;
const largest_errors = { u8: 1, f32: 0.01 };  // levels of 255

// A gradient with noise of about 20 levels, the same every time.
const samples_of = ({ width, height, channels, type }) => {
  const samples = new (type === "f32" ? Float32Array : Uint8Array)(width * height * channels);
  let state = 1;
  for (let i = 0; i < samples.length; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    samples[i] = Math.min(255, Math.max(0, 60 + (i / samples.length) * 120 + ((state >>> 8) / 2 ** 24 - 0.5) * 70));
  }
  return samples;
};
const picture_of = (one) => ({ ...one, alpha: false, samples: samples_of(one) });

const worst_difference = (library, { type, channels }) => {
  library.open(picture_of({ width: 97, height: 61, channels, type }));
  const results = ["cpu", "reference"].map((device) => {
    library.prepare(settings, 64 * 2 ** 20, device);
    return library.run(0, 61);
  });
  return results[0].reduce((worst, value, i) => Math.max(worst, Math.abs(value - results[1][i])), 0);
};

if (!isMainThread) {
  const library = await load_library();
  parentPort.on("message", ({ one, first, rows }) => {
    if (one) {
      library.open(picture_of(one));
      library.prepare(settings, 192 * 2 ** 20);
    } else {
      library.run(first, rows);
    }
    parentPort.postMessage("done");
  });
} else {
  const option = (name, usual) => {
    const at = process.argv.indexOf(name);
    return at < 0 ? usual : Number(process.argv[at + 1]);
  };
  const workers = option("--workers", 1);
  const width = 2048;
  const height = Math.round(option("--megapixels", 4) * 1e6 / width);
  const team = Array.from({ length: workers }, () => new Worker(fileURLToPath(import.meta.url), { workerData }));
  const ask_all = (question) => Promise.all(team.map((worker, index) => new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.postMessage(question(index));
  })));
  const rows = Math.ceil(height / workers);
  const library = await load_library();
  console.log(`${os.cpus()[0].model || os.arch()}, ${os.cpus().length} processors, node ${process.version}, ${workers} workers, ${
    (width * height / 1e6).toFixed(1)} Mpixel, ungrain ${library.version}`);
  for (const one of cases) {
    const error = worst_difference(library, one);
    if (!(error <= largest_errors[one.type])) throw new Error(`${one.type}, ${one.channels} channels: differs from the reference by ${error}`);
    await ask_all(() => ({ one: { width, height, ...one } }));
    const times = [];
    const processor = [];
    for (let run = 0; run < warm_ups + runs; ++run) {
      const began = performance.now();
      const before = process.cpuUsage();
      await ask_all((index) => ({ first: index * rows, rows: Math.min(rows, height - index * rows) }));
      if (run >= warm_ups) {
        times.push(performance.now() - began);
        processor.push(process.cpuUsage(before).user / 1000);
      }
    }
    const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
    const speed = (ms) => (width * height / 1e3 / ms).toFixed(1);
    console.log(`${one.channels === 1 ? "gray" : "RGB "} ${one.type.padEnd(3)}  ${speed(median(times))} Mpixel/s (${
      speed(median(processor))} Mpixel for a second of processor time), largest error ${error.toFixed(4)}`);
  }
  await Promise.all(team.map((worker) => worker.terminate()));
}
