"use strict";
// `ungrain estimate --plot`: an image's noise over levels and frequencies, and where it was measured.
{
  const plot = (title, x_label, points) => line_plot({ title, x_label, y_label: "deviation, of 255", log_y: false,
    series: data.channels.map((channel, colour) => ({ name: channel.name, points: channel[points], colour })) });

  // A row for each vertical frequency; stronger noise is darker.
  const spectrum = ({ name, spectrum }) => {
    const most = Math.max(...spectrum.flat());
    return html`<div><h3>${name}</h3><div class="scroll"><table><tbody>${spectrum.map((row) => html`<tr>${row.map((value) =>
      html`<td style="background:color-mix(in srgb, var(--accent) ${most > 0 ? (60 * value / most).toFixed(0) : 0}%, transparent)">${
        value.toFixed(1)}</td>`)}</tr>`)}</tbody></table></div></div>`;
  };

  // Blocks of a large picture would be too small to see: they are drawn at a visible minimum size.
  const picture = ({ width, height, blocks, block_side }) => {
    const drawn = Math.max(block_side, Math.floor(Math.max(width, height) / 160));
    const shift = block_side / 2 - Math.floor(drawn / 2);
    return html`<h2>Where it was measured</h2><p class="small">The flattest blocks of every level, ${blocks.length} of them.</p>
<svg viewBox="0 0 ${width} ${height}" width="100%" role="img" aria-label="the picture with the blocks that were measured"><image
href="${images[0].src}" width="${width}" height="${height}" preserveAspectRatio="none"/>${blocks.map(([x, y]) =>
      html`<rect class="block" x="${x + shift}" y="${y + shift}" width="${drawn}" height="${drawn}"/>`)}</svg>`;
  };

  show(
    html`<h1>${data.title}</h1><p class="lead">${data.about}.</p><div class="plots">${
      plot("Deviation by level", "level, of 255", "by_level")}${
      plot("Deviation by frequency, at the middle level", "i + j of the 8 x 8 cosine transform: coarse to fine", "by_frequency")
    }</div><h2>Each frequency</h2><p class="small">Deviation of the coefficients of the 8 x 8 cosine transform at the middle
level, of 255: from left to right ever finer across, from top to bottom ever finer down. White noise has one number
everywhere.</p><div class="beside">${data.channels.map(spectrum)}</div>`,
    images.length > 0 && picture(data));
}
