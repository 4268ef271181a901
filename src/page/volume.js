"use strict";
// `ungrain compare --html` of volumes: three planes through two of them, or through their difference. A volume's picture is
// an atlas: its slices (x across, y down) beside each other, `columns` in a row.
{
  const { whole, size, step, spacing, columns, low, high, upwards } = data.volume;
  const strides = [1, size[0], size[0] * size[1]];
  const planes = [
    { name: "axial", across: 0, down: 1, along: 2 },
    { name: "coronal", across: 0, down: 2, along: 1 },
    { name: "sagittal", across: 1, down: 2, along: 0 }];
  const letters = "xyz";

  const slider = (label, what, attributes) => html`<label>${label} <input type="range" data-choose="${what}" ${attributes}>
<output data-value="${what}"></output></label>`;

  const volume_viewer = (left, right) => {
    const names = images.map((image, i) => [i, image.alt]);
    return html`<figure class="viewer"><div class="controls">${select("left", "left", names, left)}${
      select("right", "right", names, right)}${
      select("show", "mode", [["slider", "slider"], ["difference", "difference"]], "slider")}<span class="only-difference">${
      select("times", "gain", [1, 2, 4, 8].map((times) => [times, times]), 4)}</span>${
      slider("level", "level", html`min="0" max="255" step="0.5" value="127.5"`)}${
      slider("window", "window", html`min="1" max="255" step="1" value="255"`)}<button type="button"
data-choose="reset">whole range</button><label><input type="checkbox" data-choose="cross" checked> cross</label></div>
<div class="planes">${planes.map(({ name, across, down, along }) => html`<div class="plane" data-plane="${name}"><p><span>${
        name} (${letters[across]}, ${letters[down]})</span><span data-slice></span></p><canvas tabindex="0" role="application"
aria-label="${name} plane: arrow keys move the point, Page Up and Page Down the slice"></canvas><input type="range" min="0"
max="${size[along] - 1}" value="${Math.floor(size[along] / 2)}" aria-label="${name} slice, along ${letters[along]}"></div>`)}</div>
<input type="range" class="split" min="0" max="1000" value="500" aria-label="where the left volume ends"><p class="names"><span
data-name="left"></span><span data-name="right"></span></p></figure>`;
  };

  // The voxels of a volume, x fastest, then y. Atlases are read a row of slices at a time, and once.
  const known = new Map();
  const voxels_of = (image) => {
    if (known.has(image)) return known.get(image);
    const [width, height, depth] = size;
    const voxels = new Uint8Array(width * height * depth);
    const sheet = document.createElement("canvas");
    sheet.width = columns * width;
    sheet.height = height;
    const context = sheet.getContext("2d", { willReadFrequently: true });
    for (let first = 0; first < depth; first += columns) {
      context.drawImage(image, 0, -first / columns * height);
      const { data: pixels } = context.getImageData(0, 0, sheet.width, height);
      for (let z = first; z < Math.min(depth, first + columns); ++z) {
        for (let y = 0; y < height; ++y) {
          let from = 4 * (y * sheet.width + (z - first) * width);
          const to = z * strides[2] + y * strides[1];
          for (let x = 0; x < width; ++x, from += 4) voxels[to + x] = pixels[from];
        }
      }
    }
    known.set(image, voxels);
    return voxels;
  };

  const start = (viewer) => {
    const choose = (name) => viewer.querySelector(`[data-choose="${name}"]`);
    const split = viewer.querySelector(".split");
    const at = size.map((count) => Math.floor(count / 2));  // the point in which the planes meet
    const views = planes.map((plane) => {
      const part = viewer.querySelector(`[data-plane="${plane.name}"]`);
      return { ...plane, canvas: part.querySelector("canvas"), slice: part.querySelector("input"),
        label: part.querySelector("[data-slice]"), sheets: [0, 1].map(() => document.createElement("canvas")) };
    });

    // Calls use(place in the picture, place among the voxels) for each voxel of a plane.
    const each_voxel = ({ across, down, along }, use) => {
      const [width, height] = [size[across], size[down]];
      for (let j = 0; j < height; ++j) {
        let from = at[along] * strides[along] + (upwards ? height - 1 - j : j) * strides[down];
        for (let i = 0; i < width; ++i, from += strides[across]) use(j * width + i, from);
      }
    };

    // A plane on a canvas, one pixel a voxel; brightness(place among the voxels).
    const paint = (view, sheet, brightness) => {
      sheet.width = size[view.across];
      sheet.height = size[view.down];
      const context = sheet.getContext("2d");
      const picture = context.createImageData(sheet.width, sheet.height);
      each_voxel(view, (to, from) => {
        const value = brightness(from);
        for (let c = 0; c < 3; ++c) picture.data[4 * to + c] = value;  // clamped by the array
        picture.data[4 * to + 3] = 255;
      });
      context.putImageData(picture, 0, 0);
      return sheet;
    };

    // Screen pixels for a unit of length, the same in all planes: the widest one fits into its column, the highest into 40 rem.
    const scale_of_planes = () => {
      const lengths = size.map((count, axis) => count * spacing[axis]);
      const room = views[0].canvas.parentElement.clientWidth;
      return Math.min(room / Math.max(lengths[0], lengths[1]), 640 / Math.max(lengths[1], lengths[2]));
    };

    const draw_cross = (context, { across, down, canvas }, sharpness) => {
      if (!choose("cross").checked) return;
      const place = (axis, length, turned) =>
        Math.round(((turned ? size[axis] - 1 - at[axis] : at[axis]) + 0.5) / size[axis] * length - sharpness / 2);
      context.fillStyle = "rgba(64, 160, 255, 0.6)";
      context.fillRect(place(across, canvas.width, false), 0, sharpness, canvas.height);
      context.fillRect(0, place(down, canvas.height, upwards), canvas.width, sharpness);
    };

    const draw = () => {
      const shown = ["left", "right"].map((side) => images[choose(side).value]);
      const [left, right] = shown.map(voxels_of);
      const shows_difference = choose("mode").value === "difference";
      viewer.classList.toggle("difference", shows_difference);
      ["left", "right"].forEach((side, i) => {
        viewer.querySelector(`[data-name="${side}"]`).textContent =
          [shown[i].alt, shown[i].dataset.numbers].filter(Boolean).join(": ");
      });
      const level = Number(choose("level").value);
      const window_width = Number(choose("window").value);
      const gain = Number(choose("gain").value);
      const unit = (high - low) / 255;
      viewer.querySelector('[data-value="level"]').textContent = short_number(low + level * unit);
      viewer.querySelector('[data-value="window"]').textContent = short_number(window_width * unit);
      const brightness = Uint8ClampedArray.from({ length: 256 },
        (_, value) => (value - level + window_width / 2) / window_width * 255);
      const scale = scale_of_planes();
      const sharpness = Math.max(1, Math.round(window.devicePixelRatio || 1));
      for (const view of views) {
        const { canvas, across, down, along } = view;
        const width = Math.max(1, size[across] * spacing[across] * scale);
        const height = Math.max(1, size[down] * spacing[down] * scale);
        canvas.width = Math.round(width * sharpness);
        canvas.height = Math.round(height * sharpness);
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
        view.slice.value = at[along];
        view.label.textContent = `slice ${at[along] * step[along] + 1} of ${whole[along]}`;
        const context = canvas.getContext("2d");
        context.imageSmoothingEnabled = canvas.width < size[across];
        if (shows_difference) {
          const difference = paint(view, view.sheets[0], (i) => 128 + gain * (left[i] - right[i]));
          context.drawImage(difference, 0, 0, canvas.width, canvas.height);
        } else {
          const edge = split.value / 1000 * canvas.width;
          context.drawImage(paint(view, view.sheets[1], (i) => brightness[right[i]]), 0, 0, canvas.width, canvas.height);
          context.save();
          context.beginPath();
          context.rect(0, 0, edge, canvas.height);
          context.clip();
          context.drawImage(paint(view, view.sheets[0], (i) => brightness[left[i]]), 0, 0, canvas.width, canvas.height);
          context.restore();
          context.fillStyle = "#fff";
          context.fillRect(edge - sharpness, 0, 2 * sharpness, canvas.height);
          context.fillStyle = "#000";
          context.fillRect(edge + sharpness, 0, sharpness, canvas.height);
        }
        draw_cross(context, view, sharpness);
      }
      viewer.dataset.drawn = Number(viewer.dataset.drawn || 0) + 1;
    };

    const move = (axis, to) => {
      at[axis] = Math.min(size[axis] - 1, Math.max(0, to));
    };

    // The pointer sets the point in which the planes meet.
    const follow = (view, event) => {
      const box = view.canvas.getBoundingClientRect();
      const down = Math.floor((event.clientY - box.top) / box.height * size[view.down]);
      move(view.across, Math.floor((event.clientX - box.left) / box.width * size[view.across]));
      move(view.down, upwards ? size[view.down] - 1 - down : down);
      draw();
    };

    const keys_of_plane = ({ across, down, along }) => ({
      ArrowLeft: () => move(across, at[across] - 1),
      ArrowRight: () => move(across, at[across] + 1),
      ArrowUp: () => move(down, at[down] + (upwards ? 1 : -1)),
      ArrowDown: () => move(down, at[down] - (upwards ? 1 : -1)),
      PageUp: () => move(along, at[along] + 1),
      PageDown: () => move(along, at[along] - 1),
      Home: () => move(along, 0),
      End: () => move(along, size[along] - 1),
    });
    const keys_of_viewer = {
      d: () => { choose("mode").value = choose("mode").value === "slider" ? "difference" : "slider"; },
      x: () => { [choose("left").value, choose("right").value] = [choose("right").value, choose("left").value]; },
    };
    images.slice(0, 9).forEach((_, i) => { keys_of_viewer[i + 1] = () => { choose("right").value = i; }; });

    const on_keys = (keys) => (event) => {
      const action = Object.hasOwn(keys, event.key) && keys[event.key];
      if (!action || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      action();
      draw();
    };

    const listen = () => {
      for (const view of views) {
        view.slice.addEventListener("input", () => { move(view.along, Number(view.slice.value)); draw(); });
        view.canvas.addEventListener("keydown", on_keys(keys_of_plane(view)));
        view.canvas.addEventListener("pointerdown", (event) => {
          view.canvas.setPointerCapture(event.pointerId);
          follow(view, event);
        });
        view.canvas.addEventListener("pointermove", (event) => {
          if (view.canvas.hasPointerCapture(event.pointerId)) follow(view, event);
        });
      }
      const act = on_keys(keys_of_viewer);
      document.addEventListener("keydown", (event) => { if (!event.target.matches("select")) act(event); });
      for (const control of viewer.querySelectorAll("select, [data-choose=cross]")) control.addEventListener("change", draw);
      for (const control of [split, choose("level"), choose("window")]) control.addEventListener("input", draw);
      choose("reset").addEventListener("click", () => {
        choose("level").value = 127.5;
        choose("window").value = 255;
        draw();
      });
      window.addEventListener("resize", draw);
    };

    Promise.all(images.map((image) => image.decode())).then(() => {
      viewer.classList.add("live");
      listen();
      draw();
    });
  };

  show_with(start,
    html`<h1>${data.title}</h1><p class="lead">${data.about}.</p>${data.notes.map((note) => html`<p class="note">${note}</p>`)}`,
    volume_viewer(images.length > 2 ? 1 : 0, images.length - 1),
    html`<p class="small">Click into a plane, or use the arrow keys there, to move the point in which the planes meet; Page Up and
Page Down go through the slices. D: difference, X: exchange left and right, 1 to 9: the right volume. Planes follow the axes of the
file${upwards ? ", y and z upwards" : ""}; an orientation in its header is not applied. The difference is that of the left volume from
the right one, enlarged around gray. Voxels are shown with 8 bits from ${short_number(low)} to ${short_number(high)}, the range of
the clean volume.</p><h2>In numbers</h2>${metrics_table(data.pictures)}<p class="small">Against the clean volume, of the files' own
samples. The window of SSIM has 11 voxels along each axis.</p>`);
}
