"use strict";
// Viewers: two pictures on one canvas, the left one up to the split; or their difference, enlarged around gray.
for (const viewer of document.querySelectorAll(".viewer")) {
  const images = [...viewer.querySelectorAll(".pictures img")];
  const canvas = viewer.querySelector("canvas");
  const stage = viewer.querySelector(".stage");
  const split = viewer.querySelector(".split");
  const choose = (name) => viewer.querySelector(`[data-choose="${name}"]`);
  const state = { x: 0, y: 0 };  // the picture's point in the canvas's upper left corner, where it is zoomed
  let difference = { key: "", canvas: null };

  const pixels = (image) => {
    const sheet = document.createElement("canvas");
    sheet.width = image.naturalWidth;
    sheet.height = image.naturalHeight;
    const context = sheet.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, sheet.width, sheet.height);
  };

  const difference_of = (left, right, gain) => {
    const key = [images.indexOf(left), images.indexOf(right), gain].join();
    if (difference.key !== key) {
      const result = pixels(left);
      const other = pixels(right).data;
      for (let i = 0; i < result.data.length; ++i) {
        if (i % 4 !== 3) result.data[i] = 128 + gain * (result.data[i] - other[i]);  // clamped by the array
      }
      const sheet = document.createElement("canvas");
      sheet.width = result.width;
      sheet.height = result.height;
      sheet.getContext("2d").putImageData(result, 0, 0);
      difference = { key, canvas: sheet };
    }
    return difference.canvas;
  };

  const draw = () => {
    const left = images[choose("left").value];
    const right = images[choose("right").value];
    const shows_difference = choose("mode").value === "difference";
    viewer.classList.toggle("difference", shows_difference);
    for (const [name, image] of [["left", left], ["right", right]]) {
      const label = viewer.querySelector(`[data-name="${name}"]`);
      label.textContent = [image.alt, image.dataset.numbers].filter(Boolean).join(": ");
    }
    const width = right.naturalWidth;
    const height = right.naturalHeight;
    const zoom = Number(choose("zoom").value);
    stage.classList.toggle("zoomed", zoom > 0);
    const room = stage.clientWidth;
    const sharpness = window.devicePixelRatio || 1;
    const scale = zoom > 0 ? zoom : room / width;
    const shown_height = Math.max(1, Math.min(height * scale, Math.max(320, room * 0.75)));
    const fitted = zoom > 0 ? shown_height : height * scale;
    canvas.width = Math.round(room * sharpness);
    canvas.height = Math.round(fitted * sharpness);
    canvas.style.height = fitted + "px";
    const most_x = Math.max(0, width - room / scale);
    const most_y = Math.max(0, height - fitted / scale);
    state.x = zoom > 0 ? Math.min(Math.max(state.x, 0), most_x) : 0;
    state.y = zoom > 0 ? Math.min(Math.max(state.y, 0), most_y) : 0;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = scale * sharpness < 1;
    context.setTransform(scale * sharpness, 0, 0, scale * sharpness, -state.x * scale * sharpness, -state.y * scale * sharpness);
    if (shows_difference) {
      context.drawImage(difference_of(left, right, Number(choose("gain").value)), 0, 0);
    } else {
      const edge = state.x + (split.value / 1000) * (room / scale);
      context.drawImage(right, 0, 0);
      context.save();
      context.beginPath();
      context.rect(state.x, state.y, edge - state.x, fitted / scale);
      context.clip();
      context.drawImage(left, 0, 0);
      context.restore();
      context.setTransform(1, 0, 0, 1, 0, 0);
      const at = (split.value / 1000) * canvas.width;
      context.fillStyle = "#fff";
      context.fillRect(at - sharpness, 0, 2 * sharpness, canvas.height);
      context.fillStyle = "#000";
      context.fillRect(at + sharpness, 0, sharpness, canvas.height);
    }
    viewer.dataset.drawn = Number(viewer.dataset.drawn || 0) + 1;
  };

  // Fitted: the pointer moves the split. Zoomed: it moves the picture, and the split has its own control.
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY };
    canvas.setPointerCapture(event.pointerId);
    follow(event);
  });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointercancel", () => { held = null; });
  canvas.addEventListener("pointermove", (event) => { if (held) follow(event); });
  const follow = (event) => {
    const zoom = Number(choose("zoom").value);
    if (zoom > 0) {
      state.x -= (event.clientX - held.x) / zoom;
      state.y -= (event.clientY - held.y) / zoom;
      held = { x: event.clientX, y: event.clientY };
    } else {
      const box = canvas.getBoundingClientRect();
      split.value = 1000 * (event.clientX - box.left) / box.width;
    }
    draw();
  };

  split.addEventListener("input", draw);
  for (const select of viewer.querySelectorAll("select")) {
    select.addEventListener("change", () => {
      if (select.dataset.choose === "zoom") {
        const zoom = Number(select.value);
        const image = images[0];
        state.x = image.naturalWidth / 2 - stage.clientWidth / Math.max(1, zoom) / 2;
        state.y = image.naturalHeight / 2 - stage.clientWidth * 0.375 / Math.max(1, zoom);
      }
      draw();
    });
  }
  Promise.all(images.map((image) => image.decode())).then(() => {
    viewer.classList.add("live");
    draw();
    window.addEventListener("resize", draw);
  });
}
