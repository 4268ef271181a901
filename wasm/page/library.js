"use strict";
// The library through its C API (include/ungrain.h): structs, texts, a method's description, one picture and its denoiser. For workers
// of the page and for node.

// ---- Structs: fields at the next multiple of their size, as layout.cpp checks

const field_sizes = { i32: 4, pointer: 4, u64: 8, f64: 8 };
const struct_of = (fields) => {
  const offsets = {};
  let end = 0;
  for (const [name, type] of [["struct_size", "i32"], ...fields]) {
    const bytes = field_sizes[type];
    end = Math.ceil(end / bytes) * bytes;
    offsets[name] = { offset: end, type };
    end += bytes;
  }
  const widest = Math.max(...Object.values(offsets).map(({ type }) => field_sizes[type]));
  return { offsets, size: Math.ceil(end / widest) * widest };
};
const of_type = (type, names) => names.map((name) => [name, type]);

const image_spec = struct_of([...of_type("i32", ["width", "height", "channels", "type", "colour", "alpha", "chroma_x", "chroma_y",
  "slice_width", "slice_height", "slice_x", "slice_y", "slice_whole_width", "slice_whole_height", "reserved"]), ["range", "f64"]]);
const image = struct_of([["memory", "i32"], ...of_type("pointer", ["spec", "data", "stride_x", "stride_y", "stride_channel"]),
  ...of_type("i32", ["x", "y", "image_width", "image_height", "gpu", "reserved"])]);
const method_info = struct_of([["for_volumes", "i32"], ["name", "pointer"], ["summary", "pointer"], ["parameters", "u64"],
  ["presets", "u64"], ...of_type("i32", ["has_reference", "has_cpu", "has_cuda", "reserved"])]);
const parameter_info = struct_of([["kind", "i32"], ...of_type("pointer", ["name", "help", "takes", "default_text", "rule", "choices"]),
  ["choice_count", "u64"], ["min", "f64"], ["max", "f64"], ["named", "pointer"], ["named_value", "f64"],
  ...of_type("i32", ["fallback", "unit", "odd", "reserved"])]);
const preset_info = struct_of([["reserved", "i32"], ["name", "pointer"], ["help", "pointer"]]);
const options_struct = struct_of([["threads", "i32"], ["device", "pointer"], ["memory", "u64"],
  ...of_type("i32", ["nonfinite", "band_rows", "images", "reserved"]), ...of_type("pointer", ["progress", "user", "cancel"])]);
const reach_struct = struct_of(of_type("i32", ["x", "y", "whole", "before", "after"]));
const structs = { image_spec, image, method_info, parameter_info, preset_info, options: options_struct, reach: reach_struct };

const sample_types = { u8: { number: 0, bytes: 1 }, f32: { number: 3, bytes: 4 } };
const kinds = ["real", "integer", "choice", "per_channel", "image"];
const units = ["", "pixels", "levels", "levels²", "ΔE", "ΔE²"];
const out_of_memory = 3;
const noise_numbers = ["strength", "luminance", "chroma", "keep_grain"];

class Failure extends Error {
  constructor(message, memory = false) {
    super(message);
    this.memory = memory;  // whether less at once could help
  }
}

// ---- Memory of the module. Everything that a call needs is freed after it.

class Heap {
  constructor(module) {
    this.module = module;
    this.blocks = [];
  }

  // The memory may move whenever it grows: never keep the result.
  get bytes() { return this.module.HEAPU8; }
  get view() { return new DataView(this.module.HEAPU8.buffer); }

  take(size) {
    const address = this.module._malloc(size) >>> 0;
    if (address === 0) throw new Failure(`out of memory: ${Math.ceil(size / 2 ** 20)} MiB could not be had`, true);
    this.blocks.push(address);
    return address;
  }
  text(words) {
    const size = this.module.lengthBytesUTF8(words) + 1;
    const address = this.take(size);
    this.module.stringToUTF8(words, address, size);
    return address;
  }
  struct({ offsets, size }, values = {}) {
    const address = this.take(size);
    this.bytes.fill(0, address, address + size);
    const view = this.view;
    for (const [name, value] of Object.entries({ struct_size: size, ...values })) {
      const { offset, type } = offsets[name];
      if (type === "f64") view.setFloat64(address + offset, value, true);
      else view.setUint32(address + offset, value, true);  // of u64 the lower half
    }
    return address;
  }
  fields(address, { offsets }) {
    const view = this.view;
    return Object.fromEntries(Object.entries(offsets).map(([name, { offset, type }]) =>
      [name, type === "f64" ? view.getFloat64(address + offset, true)
        : type === "pointer" ? view.getUint32(address + offset, true) : view.getInt32(address + offset, true)]));
  }
  pointer(address) { return this.view.getUint32(address, true); }
  read_text(address) { return this.module.UTF8ToString(address); }

  free() {
    for (const address of this.blocks) this.module._free(address);
    this.blocks = [];
  }
}

// ---- The library

class Library {
  constructor(module) {
    this.module = module;
    this.picture = undefined;
    this.on_progress = () => {};
    // Called by the library: 0 goes on.
    this.progress = module.addFunction((_, fraction) => {
      this.on_progress(fraction);
      return 0;
    }, "iid");
  }

  get version() { return this.module.UTF8ToString(this.module._ungrain_version()); }

  // The C function `name` without its "ungrain_".
  call(name, ...values) {
    const status = this.module[`_ungrain_${name}`](...values);
    if (status !== 0) throw new Failure(this.module.UTF8ToString(this.module._ungrain_last_error()), status === out_of_memory);
  }

  // work(heap), whose memory is freed after it.
  with_heap(work) {
    const heap = new Heap(this.module);
    try {
      return work(heap);
    } finally {
      heap.free();
    }
  }
  // A handle that a C function creates: its last argument is where to put it.
  created(heap, name, ...values) {
    const place = heap.take(4);
    this.call(name, ...values, place);
    return heap.pointer(place);
  }

  // What there is for pictures: [{name, summary, parameters, presets}].
  methods() {
    return this.with_heap((heap) => {
      const count = this.created(heap, "method_count");
      return Array.from({ length: count }, (_, index) => this.described(heap, "method_at", method_info, index))
        .filter(({ for_volumes, has_cpu }) => !for_volumes && has_cpu)
        .map((info) => this.method(heap, info));
    });
  }
  described(heap, name, struct, ...values) {
    const address = heap.struct(struct);
    this.call(name, ...values, address);
    return heap.fields(address, struct);
  }
  method(heap, info) {
    const name = heap.read_text(info.name);
    const each = (count, make) => Array.from({ length: count }, (_, index) => make(index));
    return {
      name,
      summary: heap.read_text(info.summary),
      parameters: each(info.parameters, (index) =>
        this.parameter(heap, this.described(heap, "parameter_at", parameter_info, info.name, index)))
        .filter(({ kind }) => kind !== "image"),
      presets: each(info.presets, (index) => {
        const preset = this.described(heap, "preset_at", preset_info, info.name, index);
        return { name: heap.read_text(preset.name), help: heap.read_text(preset.help) };
      }),
    };
  }
  parameter(heap, info) {
    const text = (name) => heap.read_text(info[name]);
    return {
      name: text("name"), help: text("help"), takes: text("takes"), default_text: text("default_text"), kind: kinds[info.kind],
      unit: units[info.unit], min: info.min, max: info.max, odd: info.odd === 1, named: text("named"),
      choices: Array.from({ length: info.choice_count }, (_, index) => heap.read_text(heap.pointer(info.choices + 4 * index))),
    };
  }

  // Interleaved samples: {width, height, channels, alpha, type ("u8", "f32"), samples}. It stays until the next one.
  open(picture) {
    this.close();
    const heap = new Heap(this.module);
    try {
      const samples = heap.take(picture.samples.byteLength);
      heap.bytes.set(new Uint8Array(picture.samples.buffer, picture.samples.byteOffset, picture.samples.byteLength), samples);
      const { width, height, channels, alpha } = picture;
      const type = picture.type || "u8";
      const spec = heap.struct(image_spec, {
        width, height, channels, type: sample_types[type].number, colour: channels < 3 ? 0 : 1, alpha: alpha ? 1 : 0,
        range: type === "f32" ? 255 : 0,
      });
      const whole = heap.struct(image, { spec, data: samples });
      this.picture = { width, height, channels, alpha, type, heap, spec, whole, noise: 0, denoiser: 0 };
    } catch (error) {
      heap.free();
      throw error;
    }
  }
  close() {
    if (!this.picture) return;
    this.drop_denoiser();
    this.module._ungrain_measured_noise_destroy(this.picture.noise);
    this.picture.heap.free();
    this.picture = undefined;
  }
  drop_denoiser() {
    this.module._ungrain_denoiser_destroy(this.picture.denoiser);
    this.picture.denoiser = 0;
  }

  // Settings: {method, preset, values: {name: text}, noise: {strength: number, ...}}. Makes the denoiser of the open picture, with what
  // is not given measured in it. `memory` in bytes is for the library's own buffers. Returns how far a pixel's neighbourhood goes, and
  // the parameters as they are used.
  prepare(settings, memory, device = "cpu") {
    this.drop_denoiser();
    return this.with_heap((heap) => {
      const params = this.params(heap, settings);
      let resolved = 0;
      try {
        resolved = this.resolved(heap, params);
        const options = heap.struct(options_struct, { threads: 1, device: heap.text(device), memory, images: 1, progress: this.progress });
        this.picture.denoiser = this.created(heap, "denoiser_create", resolved, this.picture.spec, options);
        const reach = heap.struct(reach_struct);
        this.call("denoiser_reach", this.picture.denoiser, reach);
        const { y, whole } = heap.fields(reach, reach_struct);
        return { reach: whole ? this.picture.height : y, used: this.texts(heap, resolved, settings.method) };
      } finally {
        this.module._ungrain_params_destroy(resolved);
        this.module._ungrain_params_destroy(params);
      }
    });
  }
  params(heap, { method, preset, values, noise }) {
    const params = this.created(heap, "params_create", heap.text(method));
    try {
      if (preset) this.call("params_apply_preset", params, heap.text(preset), 255);
      for (const [name, text] of Object.entries(values || {})) this.call("params_set_text", params, heap.text(name), heap.text(text));
      for (const name of noise_numbers) {
        if (noise?.[name] !== undefined) this.call("params_set_noise_number", params, heap.text(name), noise[name]);
      }
      return params;
    } catch (error) {
      this.module._ungrain_params_destroy(params);
      throw error;
    }
  }
  // The noise of a picture is measured once.
  resolved(heap, params) {
    const needed = heap.take(4);
    this.call("params_needs_image", params, needed);
    if (heap.pointer(needed) === 0) return this.created(heap, "params_resolve", params, this.picture.whole);
    if (this.picture.noise === 0) this.picture.noise = this.created(heap, "measured_noise_create", this.picture.whole);
    return this.created(heap, "measured_noise_resolve", this.picture.noise, params);
  }
  texts(heap, params, method) {
    const { parameters } = this.method(heap, this.described(heap, "method_named", method_info, heap.text(method)));
    const size = 256;
    const buffer = heap.take(size);
    return parameters.map(({ name }) => {
      this.call("params_get_text", params, heap.text(name), buffer, size, 0);
      return [name, heap.read_text(buffer)];
    });
  }

  // Rows [first, first + rows) of the result: the same bits as in a run over the whole picture.
  run(first, rows, on_progress = () => {}) {
    const { width, height, channels, alpha, type, whole, denoiser } = this.picture;
    this.on_progress = on_progress;
    return this.with_heap((heap) => {
      const bytes = width * rows * channels * sample_types[type].bytes;
      const data = heap.take(bytes);
      const spec = heap.struct(image_spec, {
        width, height: rows, channels, type: sample_types[type].number, colour: channels < 3 ? 0 : 1, alpha: alpha ? 1 : 0,
        range: type === "f32" ? 255 : 0,
      });
      const part = heap.struct(image, { spec, data, x: 0, y: first, image_width: width, image_height: height });
      this.call("denoiser_run", denoiser, whole, part, 0);
      const result = heap.bytes.slice(data, data + bytes);
      return type === "f32" ? new Float32Array(result.buffer) : result;
    });
  }
}
