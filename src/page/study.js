"use strict";
// The study: the papers' tables beside ours, plots like their figures, pictures, and what follows from the measurements.
{
  const { ladders, papers, gallery, findings } = data;
  const first = ladders[0];
  const on_gpu = "gpu" in first;
  const device = on_gpu ? first.gpu : first.processor;
  const any_radius = 0;  // a table has none
  const car = { width: 570, height: 426 };  // the one picture of [000] whose size it gives

  // ---- Measurements

  const key_of = (...parts) => parts.join("|");
  const times = new Map();
  for (const { ladder, rungs } of ladders) {
    for (const { name, results } of rungs) {
      for (const { width, height, radius, best } of results) {
        for (const key of [radius, any_radius].map((one) => key_of(ladder, name, one, width, height)))
          if (!times.has(key)) times.set(key, { ms: best.ms, share: best.share ?? 1 });
      }
    }
  }
  // Only on that picture.
  const time_of = (ladder, rung, radius, { width, height }) => times.get(key_of(ladder, rung, radius, width, height));
  const ladder_named = (name) => ladders.find((one) => one.ladder === name);
  const naive_of = (ladder) => ladder.naive ?? "naive";
  const result_at = (rung, { width, height, radius }) =>
    rung.results.find((one) => one.width === width && one.height === height && one.radius === radius);

  const sorted = (numbers) => [...new Set(numbers)].sort((a, b) => a - b);
  const different = (items, name_of) => new Set(items.map(name_of)).size > 1;
  // A star where it was measured on a part of the picture and scaled.
  const ms_text = ({ ms, share = 1 }) => short_number(ms) + (share < 1 ? "*" : "");
  const ours = (content) => cell(content, "ours");
  const times_text = (factor) => `${short_number(factor)}×`;
  const factor_cell = (factor) => factor === undefined ? "–" : cell(factor.toFixed(2), verdict(factor));
  const folded = (summary, content) => html`<details><summary>${summary}</summary>${content}</details>`;
  // The plot lies right of the table where there is room, else below.
  const beside = (left, right) => html`<div class="beside"><div>${left}</div>${right}</div>`;

  // ---- A table of a paper with times

  // [002] compares its kernels with other programs: these are shown beside our threads, or alone.
  const beside_002 = (program) => ({
    ladder: "bm3d", naive: "1 own distances",
    ...({ CUDA: { rung: "2 batches", name: "CUDA; ours: 2 batches" },
      OpenMP: { rung: "threads", name: "OpenMP, another program; ours: threads" } }[program]
      ?? { rung: program, name: `${program}, another program` }) });

  // Versions {ladder, rung, naive, name} of kernels, and what they were measured on: {image, width, height, radius}.
  const times_part = (paper_table) => {
    const version_map = new Map();
    const place_map = new Map();
    const theirs = new Map();
    const their_key = (version, place) => key_of(version.ladder, version.rung, place.image, place.width, place.radius);
    const add = (version, place, ms) => {
      version_map.set(key_of(...Object.values(version)), version);
      place_map.set(key_of(...Object.values(place)), place);
      theirs.set(their_key(version, place), ms);
    };
    for (const { image, width = 0, height = 0, ladder, naive, radii, ms } of paper_table.times ?? []) {
      radii.forEach((radius, i) => {
        for (const [rung, ...values] of ms)
          if (values[i] !== null) add({ ladder, rung, naive }, { image, width, height, radius }, values[i]);
      });
    }
    for (const [image, width, height, program, seconds] of paper_table.programs?.seconds_and_deviation ?? [])
      add(beside_002(program), { image, width, height, radius: any_radius }, 1000 * seconds);
    const versions = [...version_map.values()];
    const places = [...place_map.values()];
    if (versions.length === 0) return "";

    const their_time = (version, place) => theirs.get(their_key(version, place));
    // On a picture of the same size; if the paper does not give the size, that of its one picture with a known size.
    const our_time = ({ ladder, rung }, place) => time_of(ladder, rung, place.radius, place.width > 0 ? place : car);
    const measured = versions.some((version) => places.some((place) => our_time(version, place)));
    const products = [...new Set(versions.map((version) => version.ladder))].sort().filter(ladder_named)
      .map((ladder) => ({ ladder, rung: "ungrain", naive: naive_of(ladder_named(ladder)) }));
    const several_ladders = different(versions, (version) => version.ladder);
    const several_images = different(places, (place) => place.image);

    const version_name = ({ ladder, rung, name = rung }) => several_ladders ? `${ladder}: ${name}` : name;
    const place_name = (place) => {
      const radius = place.radius !== any_radius ? `r ${place.radius}` : "";
      if (!several_images && radius) return radius;
      return [place.image, place.width > 0 && size_text(place), radius].filter(Boolean).join(", ");
    };
    const their_factor = (version, place) => {
      const naive = their_time({ ...version, rung: version.naive }, place);
      const time = their_time(version, place);
      return naive && time ? naive / time : undefined;
    };
    const our_factor = (version, place) => {
      const naive = our_time({ ...version, rung: version.naive }, place);
      const time = our_time(version, place);
      return naive && time ? naive.ms / time.ms : undefined;
    };
    const their_cell = (version, place) => short_number(their_time(version, place));
    const our_cell = (version, place) => {
      const time = our_time(version, place);
      if (!time) return "–";
      const their = place.width > 0 && their_time(version, place);
      return ours(html`${ms_text(time)}${their && html` <small>${times_text(their / time.ms)}</small>`}`);
    };
    const both = (version, place) => [their_cell(version, place), ...(measured ? [our_cell(version, place)] : [])];

    const by_place = () => {
      const shown_products = measured ? products : [];
      return table(["ms", ...versions.flatMap(() => measured ? ["paper", "ours"] : ["paper"]), ...shown_products.map(() => "ours")],
        places.map((place) => [place_name(place), ...versions.flatMap((version) => both(version, place)),
          ...shown_products.map((product) => {
            const time = our_time(product, place);
            return ours(time ? ms_text(time) : "–");
          })]),
        { groups: [...versions.map((version) => [version_name(version), measured ? 2 : 1]),
          ...shown_products.map((product) => [version_name(product), 1])] });
    };
    const by_version = () => table(
      ["ms", ...places.flatMap(() => measured ? ["paper", "ours", "over naive, paper", "ours"] : ["paper"])],
      [...versions, ...(measured ? products : [])].map((version) => [version_name(version), ...places.flatMap((place) => [
        ...both(version, place),
        ...(measured ? [factor_cell(their_factor(version, place)), factor_cell(our_factor(version, place))] : [])])]),
      { groups: places.map((place) => [place_name(place), measured ? 4 : 1]) });

    // Over the radius, or over the size at the largest radius.
    const times_plot = (by_size) => {
      const largest = Math.max(...places.map((place) => place.radius));
      const series_of = (version, colour, who, ms_of) => {
        const by_x = new Map();
        for (const place of places.filter((one) => !by_size || one.radius === largest)) {
          const x = by_size ? Math.sqrt(place.width * place.height) : place.radius;
          const ms = ms_of(version, place);
          if (ms !== undefined && !by_x.has(x)) by_x.set(x, ms);
        }
        return { name: `${version_name(version)}, ${who}`, points: [...by_x], colour, dashed: who === "paper" };
      };
      const our_ms = (version, place) => our_time(version, place)?.ms;
      return line_plot({
        title: `Table ${paper_table.table}: theirs dashed, ours whole${by_size && largest !== any_radius ? `; r ${largest}` : ""}`,
        x_label: by_size ? "side of the picture (root of its pixels)" : "radius", y_label: "ms", log_x: by_size,
        series: [
          ...versions.flatMap((version, i) =>
            [series_of(version, i, "paper", their_time), series_of(version, i, "ours", our_ms)]),
          ...products.map((product, i) => series_of(product, versions.length + i, "ours", our_ms))] });
    };
    const factors_plot = () => {
      const points = (place, factor_of) =>
        versions.map((version, i) => [i + 1, factor_of(version, place)]).filter(([, factor]) => factor !== undefined);
      return line_plot({
        title: `Table ${paper_table.table}: times as fast as the naive kernel; theirs dashed, ours whole`,
        x_label: "version", y_label: "over naive", log_y: false, from_zero: false,
        series: places.flatMap((place, colour) => [
          { name: `${place_name(place)}, paper`, points: points(place, their_factor), colour, dashed: true },
          { name: `${place_name(place)}, ours`, points: points(place, our_factor), colour }]) });
    };
    const several_sizes = different(places, size_text);
    const several_radii = different(places, (place) => place.radius);
    const note = !measured && html`<p class="small">Not measured in this run; the paper's figures alone.</p>`;
    // More versions than pictures and radii: the versions are the rows.
    if (versions.length > 4 && versions.length > places.length) return html`${note}${beside(by_version(), factors_plot())}`;
    return html`${note}${beside(by_place(), (several_sizes || several_radii) && times_plot(several_sizes))}`;
  };

  // ---- [004]'s cumulative average times

  const average_times = ladder_named("nlm")?.cumulative_average_time ?? [];
  const average_time = (rung, { width, height }) =>
    average_times.find((one) => one.rung === rung && one.width === width && one.height === height);

  const average_times_part = (paper_table) => {
    const rungs = [...new Set(average_times.map((one) => one.rung))];
    const kinds = ["natural", "medical"];
    const sides = sorted(paper_table.times.map((one) => one.width));
    const seconds = (kind, side, rung) => {
      const block = paper_table.times.find((one) => one.image === `${kind} images` && one.width === side);
      return block.ms.find(([name]) => (name === "sequential") === (rung === "sequential"))[1] / 1000;
    };
    const name = (side) => `${side} x ${side}`;
    const at = (rung, side) => average_time(rung, { width: side, height: side });
    const colours = { "sequential": 0, "one block a pixel": 1 };
    const measured = average_times.at(-1);
    return html`<p>As the paper defines it: CAT = 1/(m n) Σ Σ T<sub>ij</sub>, the mean of the elapsed times of n executions on
each of m pictures, copies to the GPU and back included; the speed-up factor is the CAT of basic NLM over that of a version. ${
      measured ? `Ours: m = ${measured.pictures} draws of noise on one picture (times do not depend on pixels), n = ${
        measured.executions}; theirs: m = 30, n = 5.` : "Not measured in this run; the paper's figures alone."}</p>${
      beside(
        table(["CAT in s", ...kinds.flatMap((kind) => [`NLM, ${kind}, paper`, `parallelized, ${kind}, paper`]),
          ...rungs.map((rung) => `${rung}, ours`)],
        sides.map((side) => [name(side),
          ...kinds.flatMap((kind) => ["sequential", "parallelized"].map((rung) => short_number(seconds(kind, side, rung)))),
          ...rungs.map((rung) => at(rung, side)
            ? ours(ms_text({ ms: at(rung, side).ms / 1000, share: at(rung, side).share })) : "–")])),
        line_plot({ title: "Cumulative average times: theirs dashed, ours whole", x_label: "side of the picture", y_label: "s",
          log_x: true, series: [
            ...["NLM", "parallelized"].map((rung, colour) => ({ name: `${rung}, paper`, colour, dashed: true,
              points: sides.map((side) => [side, seconds("natural", side, colour === 0 ? "sequential" : rung)]) })),
            ...rungs.map((rung, i) => ({ name: `${rung}, ours`, colour: colours[rung] ?? i + 2,
              points: sides.filter((side) => at(rung, side)).map((side) => [side, at(rung, side).ms / 1000]) }))] }))}${
      table(["speed-up factor", ...kinds.map((kind) => `${kind}, paper`), ...rungs.map((rung) => `${rung}, ours`)],
        sides.map((side) => [name(side),
          ...kinds.map((kind) => (seconds(kind, side, "sequential") / seconds(kind, side, "parallelized")).toFixed(2)),
          ...rungs.map((rung) => at(rung, side)
            ? ours(at("sequential", side) ? short_number(at("sequential", side).ms / at(rung, side).ms) : "–") : "–")]))}`;
  };

  // ---- Tables with speed-ups and with what a filter reaches

  const speed_ups_part = ({ speed_ups }) => {
    if (!speed_ups) return "";
    const { ladder, over, factors } = speed_ups;
    const rows = factors.map(([, width, height, rung, radius, factor]) => ({ width, height, rung, radius, factor }));
    const several_rungs = different(rows, (row) => row.rung);
    const several_radii = different(rows, (row) => row.radius);
    const averaged = ladder === "nlm" && rows.some((row) => average_time(row.rung, row));
    const ratio = (slow, fast) => ours(slow && fast ? short_number(slow.ms / fast.ms) : "–");
    return table(["over sequential", "paper", "ours, kernels", ...(averaged ? ["ours, CAT"] : [])], rows.map((row) => [
      [size_text(row), several_rungs && row.rung, several_radii && `r ${row.radius}`].filter(Boolean).join(", "),
      row.factor.toFixed(2), ratio(time_of(ladder, over, row.radius, row), time_of(ladder, row.rung, row.radius, row)),
      ...(averaged ? [ratio(average_time(over, row), average_time(row.rung, row))] : [])]));
  };

  const our_quality = (paper, how) => {
    const rows = (gallery?.quality ?? []).filter((one) => one.paper === paper && "psnr" in one);
    return rows.length > 0 && html`<p>Picture: ${gallery.picture}, ${how}. Figures of different pictures cannot be compared one
by one.</p>${table(["ours", "size", "noise", "noisy dB", "PSNR dB", "SSIM", "FSIM"], rows.map((one) => [one.filter,
      size_text(one), short_number(one.sigma), one.noisy_psnr.toFixed(2), ours(fixed(one.psnr ?? "inf", 2)),
      ours(fixed(one.ssim, 4)), ours(fixed(one.fsim, 4))]))}`;
  };

  const quality_part = (paper, { qualities, programs }) => html`${
    qualities && html`${our_quality(paper, "with noise of 10, our picture in place of theirs")}${
      folded("The paper's figures, picture by picture", table(["picture", "size", "PSNR dB", "SSIM", "FSIM"],
        qualities.psnr_ssim_fsim.map(([image, side, psnr, ssim, fsim]) =>
          [image, `${side} x ${side}`, psnr.toFixed(1), ssim.toFixed(3), fsim.toFixed(3)])))}`}${
    programs?.psnr && html`${our_quality(paper, "our picture in place of theirs")}${
      table(["PSNR dB", "noise", "version", "paper"],
        programs.psnr.map(([image, sigma, program, psnr]) => [image, sigma, program, psnr.toFixed(2)]))}`}`;

  // ---- Figures of the papers

  const points_of = (by_x) => [...by_x].sort(([a], [b]) => a - b);

  // [001]'s figures 6.1 and 6.2: block sides and tiling factors, smallest picture and radius; and again for the largest
  // radius.
  const shape_figures = (ladder) => {
    const results = (ladder?.rungs ?? []).flatMap((rung) => rung.results);
    if (results.length === 0) return "";
    const radii = sorted(results.map((result) => result.radius));
    const width = Math.min(...results.filter((result) => result.radius === radii[0]).map((result) => result.width));
    const plots = sorted([radii[0], radii.at(-1)]).flatMap((radius) => {
      const sides = [];
      const tilings = [];
      for (const { name, paper, results } of ladder.rungs.filter((rung) => (rung.paper ?? "").includes("[001] version"))) {
        for (const { all } of results.filter((one) => one.radius === radius && one.width === width)) {
          const shapes = all.filter((shape) => shape.side);
          const by_side = new Map();
          for (const { side, ms } of shapes) by_side.set(side, Math.min(ms, by_side.get(side) ?? Infinity));
          const by_tiling = new Map(shapes.filter((shape) => shape.side === 16).map(({ tiling = 1, ms }) => [tiling, ms]));
          if (by_side.size > 0) sides.push({ name, points: points_of(by_side), colour: sides.length });
          if (by_tiling.size > 0 && shapes.some((shape) => shape.tiling > 1))
            tilings.push({ name, points: points_of(by_tiling), colour: tilings.length });
        }
      }
      return [
        line_plot({ title: `Like figure 6.1: side of the block; r ${radius}, ${width} pixels wide`, x_label: "side of the block",
          y_label: "ms", series: sides, log_x: true }),
        line_plot({ title: `Like figure 6.2: tiling factor, blocks of 16; r ${radius}, ${width} pixels wide`,
          x_label: "tiling factor", y_label: "ms", series: tilings, log_y: false })];
    });
    return plots.some(Boolean) && html`<div class="plots">${plots}</div>`;
  };

  // [003]'s figures 3 to 8: threads and blocks.
  const grid_figures = () => {
    const plots = [];
    const tables = [];
    for (const rung of ladders.flatMap((ladder) => ladder.rungs)) {
      const largest_paper_width = Math.max(...rung.results.map((result) => result.width).filter((width) => width <= 256));
      for (const result of rung.results) {
        const shapes = result.all.filter((shape) => "grid" in shape);
        if (shapes.length === 0) continue;
        const grids = sorted(shapes.map((shape) => shape.grid));
        const title = `${rung.name}, ${size_text(result)}, patches of ${2 * result.radius + 1}`;
        if (result.width === largest_paper_width && (rung.paper ?? "").startsWith("[003] v")) {
          plots.push(line_plot({ title, x_label: "threads a block", y_label: "ms", log_x: true,
            series: grids.map((grid, colour) => ({ name: `${grid} blocks`, colour, points: points_of(
              shapes.filter((shape) => shape.grid === grid).map(({ threads, ms }) => [threads, ms])) })) }));
        }
        tables.push(html`<h4>${title}</h4>${table(["threads", ...grids.map((grid) => `${grid} blocks`)],
          sorted(shapes.map((shape) => shape.threads)).map((threads) => [threads, ...grids.map((grid) => {
            const shape = shapes.find((one) => one.grid === grid && one.threads === threads);
            return shape ? cell(ms_text({ ms: shape.ms }), shape.ms <= result.best.ms && "best") : "–";
          })]))}`);
      }
    }
    return html`${plots.length > 0 && html`<h3>Like figures 3 to 8: threads a block and blocks a grid</h3><div
class="plots">${plots}</div>`}${
      tables.length > 0 && folded("ms by threads a block and blocks, every picture and patch", tables)}`;
  };

  const paper_part = ({ paper, title, machine, tables }) => html`<h2 id="${anchor(paper)}">${paper} ${title}</h2>
<p>Its machine: ${machine} Ours: ${device}.</p>${tables.map((one) => html`<section class="table"
data-table="${paper} ${one.table}"><h3>Table ${one.table}: ${one.caption}</h3>${
    one.note && html`<p class="note">${one.note}</p>`}${
    paper === "[004]" && one.times ? average_times_part(one) : times_part(one)}${
    speed_ups_part(one)}${quality_part(paper, one)}</section>`)}${
    paper === "[001]" && shape_figures(ladder_named("bilateral"))}${paper === "[003]" && grid_figures()}`;
  const anchor = (paper) => `paper-${paper.slice(1, 4)}`;

  // ---- Ladders

  // Where rungs are shown side by side: 1080p where that was measured, else the largest picture; the radius in the middle.
  const shown_place = (ladder) => {
    const results = ladder.rungs.flatMap((rung) => rung.results);
    if (results.length === 0) return undefined;
    const weight = ({ width, height }) => width === 1920 && height === 1080 ? 1e12 : width * height;
    const { width, height } = results.reduce((best, one) => weight(one) > weight(best) ? one : best);
    const radii = sorted(results.map((result) => result.radius));
    return { width, height, radius: radii[radii.length >> 1] };
  };
  // The rungs measured there, with their measurements.
  const rungs_at = (ladder, place) =>
    ladder.rungs.map((rung) => ({ rung, result: result_at(rung, place) })).filter(({ result }) => result);

  const bars_part = (ladder, place) => {
    const at = (rung) => time_of(ladder.ladder, rung, place.radius, place);
    const base = at(naive_of(ladder)) ? naive_of(ladder) : ladder.sequential ?? "sequential";
    if (!at(base)) return "";
    return bar_plot({
      title: `Times as fast as “${base}”, ${size_text(place)}, r ${place.radius}`, unit: "×",
      // Beside kernels the processor's bars would be too short to see.
      bars: rungs_at(ladder, place).filter(({ rung }) => !on_gpu || (rung.gpu ?? true)).map(({ rung, result }) => ({
        name: rung.name, value: at(base).ms / result.best.ms, ours: rung.paper === "ours" && rung.name.startsWith("ungrain"),
        note: `${short_number(result.best.ms)} ms; ${rung.idea ?? ""}` })) });
  };

  const occupancy_part = (ladder, place) => {
    const rows = rungs_at(ladder, place);
    if (rows.length === 0) return "";
    const kernels = rows.some(({ result }) => "occupancy" in result.best);
    return html`<h3>Best shapes and occupancy</h3>${table([`${size_text(place)}, r ${place.radius}`, "from", "ms", "block", "N",
      "registers", "spilled bytes", "shared bytes", "blocks a multiprocessor", "occupancy", "largest error"],
    rows.map(({ rung, result: { best, largest_error } }) => [rung.name, rung.paper, ours(ms_text(best)),
      best.batch ?? best.side ?? best.threads ?? "–", best.tiling ?? best.grid ?? "–", best.registers ?? "–",
      best.spilled_bytes ?? "–", best.shared_bytes ?? "–", best.blocks ?? "–",
      "occupancy" in best ? `${(100 * best.occupancy).toFixed(0)} %` : "–",
      largest_error === null ? "not written" : largest_error.toExponential(1)]))}${
      kernels && html`<p class="small">Occupancy is the share of a multiprocessor's threads that a kernel's registers and shared
memory leave room for, as CUDA tells it. The error is of 255, against the library's reference.</p>`}`;
  };

  // Where a run's time goes, for rungs that say so; a plot of the first, which is the nearest to the paper's.
  const parts_part = (ladder, place) => {
    const rows = rungs_at(ladder, place).map(({ rung, result }) => ({ name: rung.name, parts: result.best.parts_ms }))
      .filter(({ parts }) => parts);
    if (rows.length === 0) return "";
    const names = [...new Set(rows.flatMap(({ parts }) => Object.keys(parts)))];
    return html`<h3>Where the time goes</h3>${table(["ms by part", ...names],
      rows.map(({ name, parts }) => [name, ...names.map((part) => short_number(parts[part]))]))}${
      bar_plot({ title: `Parts of “${rows[0].name}”, ${size_text(place)}`, unit: " ms", mark: 0,
        bars: Object.entries(rows[0].parts).map(([name, value]) => ({ name, value })) })}`;
  };

  const all_times_part = (ladder) => {
    const results = ladder.rungs.flatMap((rung) => rung.results);
    const radii = sorted(results.map((result) => result.radius));
    const sizes = [...new Map(results.map((result) => [size_text(result), result])).values()];
    return folded("Every picture and radius", sizes.map(({ width, height }) => {
      const here = (rung, radius) => result_at(rung, { width, height, radius });
      const fastest = new Map(radii.map((radius) =>
        [radius, Math.min(...ladder.rungs.map((rung) => here(rung, radius)?.best.ms ?? Infinity))]));
      return html`<h4>${size_text({ width, height })}</h4>${table(["ms", ...radii.map((radius) => `r ${radius}`)],
        ladder.rungs.filter((rung) => radii.some((radius) => here(rung, radius))).map((rung) => [rung.name,
          ...radii.map((radius) => {
            const result = here(rung, radius);
            return result ? cell(html`${ms_text(result.best)}${"psnr" in result && html` <small>${
              fixed(result.psnr, 2)} dB</small>`}`, result.best.ms <= fastest.get(radius) && "best") : "–";
          })]))}`;
    }));
  };

  const ladder_part = (ladder) => {
    const place = shown_place(ladder);
    return html`<h2 id="ladder-${ladder.ladder}">Ladder ${ladder.ladder}</h2><p>${ladder.summary}; ${ladder.strengths}. Picture: ${
      ladder.picture}.</p>${ladder.not_built && html`<p class="note">Left out: ${ladder.not_built}.</p>`}${
      place && [bars_part, occupancy_part, parts_part, all_times_part].map((part) => part(ladder, place))}`;
  };

  // ---- Head, findings, pictures

  const cuda_version = (number) => `${Math.floor(number / 1000)}.${Math.floor(number % 1000 / 10)}`;
  const head = () => {
    const { version, date, compiler, toolkit_cuda_version: toolkit, driver_cuda_version: driver } = first;
    const left_out = ladders.filter((one) => one.left_out).map((one) => `${one.ladder}: ${one.left_out.join("; ")}`).join(". ");
    const link = (to, text) => html`<li><a href="#${to}">${text}</a></li>`;
    return html`<h1>${data.title}</h1><p class="lead">Five papers asked what makes a denoiser fast on a GPU. Their kernel
versions, rerun on one machine beside a product that went on from there, answer it again.</p><p><strong>${device}</strong>${
      on_gpu && `; processor: ${first.processor}`}. ungrain ${version}${data.commit && `, commit ${data.commit}`}, ${date}${
      toolkit > 0 && `, CUDA ${cuda_version(toolkit)}`}${driver > 0 && ` (driver: up to ${cuda_version(driver)})`}, compiler ${
      compiler}.</p>${!on_gpu && html`<p class="note" id="no-gpu">Without a GPU (${first.no_gpu}): only the versions that run on
the processor were measured. Left out: ${left_out}.</p>`}<nav><ul>${link("findings", "Findings")}${
      gallery && link("pictures", "Pictures")}${papers.map(({ paper, title }) => link(anchor(paper), `${paper} ${title}`))}${
      ladders.map(({ ladder }) => link(`ladder-${ladder}`, `Ladder ${ladder}`))}${link("about", "How it was measured")}</ul></nav>`;
  };

  const findings_part = () => {
    const item = ({ idea, ladder, rung, without, factor, smallest, largest, cells, paper, paper_name }) => html`<li
class="${verdict(factor)}"><b>${times_text(factor)}</b>${idea}<br><span class="small">${ladder}: “${rung}” over “${without}”, ${
      cells > 1 ? `${times_text(smallest)} to ${times_text(largest)}` : times_text(factor)} in ${cells} cell${cells !== 1 && "s"}${
      paper !== null && `; ${paper_name} measured ${times_text(paper)}`}</span></li>`;
    const group = (title, kind, judged) => {
      const items = findings.filter((one) => one.kind === kind && (!judged || verdict(one.factor) === judged));
      return items.length > 0 && html`<h3>${title}</h3><ul class="findings">${items.map(item)}</ul>`;
    };
    return html`<h2 id="findings">What the measurements say</h2><p>Each line is a rung of a ladder beside the one that differs
from it by one idea: times as fast, the geometric mean over all pictures and radii measured, and the span. What differs by less
than 5 % makes no difference.</p>${group("Pays", "idea", "good")}${group("Makes no difference", "idea", "even")}${
      group("Costs", "idea", "bad")}${group("All ideas together", "together")}${
      group("One thread, all cores, the GPU", "machine")}`;
  };

  const pictures_part = () => {
    const shown = gallery.images.map((one) => ({
      ...one, metrics: "psnr" in one && { ...one, psnr: one.psnr ?? "inf" } }));
    return html`<h2 id="pictures">What the filters make of a picture</h2><p>Picture: ${gallery.picture}, gray, with Gaussian noise
of ${gallery.noise} of 255. Drag the line; “difference” shows what a filter took away, enlarged around gray: the less of the
picture is seen in it, the better.</p>${viewer(Math.max(0, shown.findIndex((one) => one.name === "noisy")), shown.length - 1)}${
      metrics_table(shown)}${folded("Settings", table(["filter", "setting"],
      shown.filter((one) => one.setting).map((one) => [one.name, one.setting])))}${
      gallery.left_out?.length > 0 && html`<p class="small">Left out: ${gallery.left_out.join("; ")}.</p>`}`;
  };

  const about = html`<h2 id="about">How it was measured</h2><ul>
<li>Every rung is first held against the library's reference (double precision) with every block side and tiling factor, on a
picture that no block divides; what is timed is held against the product's result on its first, middle and last rows.</li>
<li>A kernel is timed by events around it, pictures in GPU memory: the median of three runs, or one run where the first takes more
than 20 ms. The best block and tiling factor counts.</li>
<li>A star marks a time that was measured on a part of the picture and scaled: sequential versions that would take more than two
seconds, kernels of [004] beyond 64 launches, and searches of the whole image.</li>
<li>The papers' pictures may not be shipped: the demo scene stands in at the same sizes, gray, with noise. [001] filters three
channels, ours one. Pictures are held with mirrored pixels around them, so that no rung tests for borders.</li>
<li>Only [004]'s times contain copies to the GPU and back; its cumulative average times are compared with ours that contain them
too.</li></ul>
<p>Again, on your own card: <code>ungrain-study all --json results</code>, then <code>ungrain-study report results --html
study.html</code>; with <code>--image FILE</code> on your own picture.</p>`;

  show(head(), findings_part(), gallery && pictures_part(), papers.map(paper_part), ladders.map(ladder_part), about);
}
