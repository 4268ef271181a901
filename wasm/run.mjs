// node run.mjs SETTINGS WIDTH HEIGHT CHANNELS TYPE BANDS < samples > result: a picture through the library, as raw interleaved samples,
// in BANDS bands. SETTINGS is JSON as page/library.js takes it. node run.mjs describe: the methods, as JSON. For tests/wasm.
import { readFileSync, writeSync } from "node:fs";
import { load_library } from "./node_library.mjs";

const write = (bytes) => {
  for (let at = 0; at < bytes.length;) at += writeSync(1, bytes, at);
};

const run = (library, [settings, width, height, channels, type, bands]) => {
  const { buffer } = new Uint8Array(readFileSync(0));  // a copy that starts at 0, as floats need
  library.open({ width, height, channels, alpha: false, type, samples: type === "f32" ? new Float32Array(buffer) : new Uint8Array(buffer) });
  library.prepare(JSON.parse(settings), 192 * 2 ** 20);
  const rows = Math.ceil(height / bands);
  for (let first = 0; first < height; first += rows) {
    write(new Uint8Array(library.run(first, Math.min(rows, height - first)).buffer));
  }
};

const library = await load_library();
const [settings, width, height, channels, type, bands] = process.argv.slice(2);
try {
  if (settings === "describe") write(new TextEncoder().encode(JSON.stringify(library.methods())));
  else run(library, [settings, Number(width), Number(height), Number(channels), type, Number(bands)]);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
