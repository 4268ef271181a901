"use strict";
// One copy of the library. Messages: {module} once, then {picture}, {prepare: settings, memory} and {band: {first, rows}} in any
// number. Each is answered by one message with the same key, or {failed, memory}; {progress} comes before the answer of a band.

const start = async (compiled) => {
  const module = await ungrain_module({
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(compiled, imports).then(done, (error) => postMessage({ failed: String(error.message), memory: true }));
      return {};
    },
    print: () => {}, printErr: () => {},
  });
  return new Library(module);
};

let library;
const answers = {
  module: async ({ module }) => {
    library = await start(module);
    return [{ module: { version: library.version, methods: library.methods() } }];
  },
  picture: ({ picture }) => {
    library.open(picture);
    return [{ picture: true }];
  },
  prepare: ({ prepare, memory }) => [{ prepare: library.prepare(prepare, memory) }],
  band: ({ band: { first, rows } }) => {
    const samples = library.run(first, rows, (fraction) => postMessage({ progress: fraction }));
    return [{ band: { first, rows, samples } }, [samples.buffer]];
  },
};

onmessage = async ({ data }) => {
  try {
    const kind = Object.keys(answers).find((key) => key in data);
    postMessage(...await answers[kind](data));
  } catch (error) {
    // RangeError: the browser has no memory left for the module or an array. RuntimeError: the module is of no use any more.
    const memory = error.memory === true || error instanceof RangeError || error instanceof WebAssembly.RuntimeError;
    postMessage({ failed: String(error.message || error), memory });
  }
};
