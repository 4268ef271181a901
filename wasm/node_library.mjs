// The library in node, for tests and benchmarks: build/wasm/module with page/library.js, as the workers of the page have it.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";

const here = path.dirname(fileURLToPath(import.meta.url));
export const module_folder = process.env.UNGRAIN_WASM_MODULE || path.join(here, "../build/wasm/module");

export const load_library = async () => {
  const [glue, library, wasm] = await Promise.all([
    readFile(path.join(module_folder, "ungrain.js"), "utf8"), readFile(path.join(here, "page/library.js"), "utf8"),
    readFile(path.join(module_folder, "ungrain.wasm"))]);
  const { ungrain_module, Library } = new Function("require", "__dirname", "__filename", "module", "exports",
    `${glue}\n${library.replace('"use strict";', "")}\nreturn { ungrain_module, Library };`)(undefined, here, here, undefined, undefined);
  return new Library(await ungrain_module({ wasmBinary: wasm }));
};
