"use strict";
// `ungrain compare --html`: pictures of one size against a clean one.
show(
  html`<h1>${data.title}</h1><p class="lead">${data.about}.</p>${data.notes.map((note) => html`<p class="note">${note}</p>`)}`,
  viewer(images.length > 2 ? 1 : 0, images.length - 1),
  html`<h2>In numbers</h2>${metrics_table(data.pictures)}<p class="small">Against the clean picture. The difference is that
of the left picture from the right one, enlarged around gray: what a denoiser took away, where the noisy picture is on the left
and its result on the right. Pictures are shown with 8 bits; numbers are of the files' own samples.</p>`);
