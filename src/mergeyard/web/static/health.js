// Draws the charts of the health page. The tables beside them hold the same numbers, so nothing is said only here.

const HEIGHT = 220;
const HOUR = 3600;
const DAY = 24 * HOUR;
const moments = JSON.parse(document.getElementById("moments")?.textContent ?? "null");

const written = (options) => new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
const asDay = written({ day: "numeric", month: "short" });
const asHour = written({ hour: "2-digit", minute: "2-digit" });

function draw(figure) {
  const chart = JSON.parse(figure.querySelector("script").textContent);
  const plot = figure.querySelector(".plot");
  const legend = [...figure.querySelectorAll(".legend li:not(.unit)")];
  const tones = legend.map((item) => getComputedStyle(item.querySelector(".swatch")).color);
  const countable = chart.values.flat().every((value) => Number.isInteger(value));
  const options = {
    width: plot.clientWidth,
    height: HEIGHT,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: chart.form === "lines" } },
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
    scales: { x: { range: wholeMoments }, y: { range: fromZero(countable ? 4 : 1) } },
    axes: [acrossTime(getComputedStyle(plot)), upFromZero(getComputedStyle(plot), countable)],
    series: [{}, ...FORMS[chart.form].series(tones)],
    hooks: { setCursor: [(drawn) => tell(figure, chart, legend, drawn.cursor.idx)] },
  };
  return new uPlot(options, [moments.starts, ...FORMS[chart.form].values(chart.values)], plot);
}

const FORMS = {
  lines: {
    values: (values) => values,
    series: (tones) => tones.map(line),
  },
  bars: {
    values: (values) => values,
    series: (tones) => tones.map((tone, at) => bar(tone, 0.4, at ? 1 : -1)),
  },
  // Each stands upon those before it: as a bar from zero, behind the bars that are drawn after it.
  stack: {
    values: (values) => values.map((_, at) => sums(values.slice(0, at + 1))).reverse(),
    series: (tones) => tones.map((tone) => bar(tone, 0.7, 0)).reverse(),
  },
};

// Not by colour alone: the second line is dashed.
const line = (stroke, at) => ({ stroke, width: 2, dash: at ? [6, 3] : [], points: { show: true, size: 5, fill: stroke } });
const bars = (size, align) => uPlot.paths.bars({ size: [size, 48], align });
const bar = (fill, size, align) => ({ fill, width: 0, points: { show: false }, paths: bars(size, align) });
const sums = (rows) => rows[0].map((_, at) => rows.reduce((sum, row) => sum + row[at], 0));

const wholeMoments = () => [moments.starts[0] - moments.step / 2, moments.starts.at(-1) + moments.step / 2];
const fromZero = (least) => (_, low, high) => [Math.min(0, low ?? 0) * 1.05, Math.max(least, high ?? 0) * 1.05];
const lettering = (style) => ({ stroke: style.color, font: `12px ${style.fontFamily}`, ticks: { show: false } });

function acrossTime(style) {
  const hours = moments.step === HOUR ? [1, 3, 6, 12] : [];
  const steps = [...hours.map((count) => count * HOUR), ...[1, 2, 7, 14, 28].map((count) => count * DAY)];
  const named = (at) => (at % DAY ? asHour : asDay).format(at * 1000);
  return { ...lettering(style), grid: { show: false }, size: 30, space: 64, incrs: steps, values: (_, at) => at.map(named) };
}

function upFromZero(style, countable) {
  const grid = { stroke: style.borderTopColor, width: 1 };
  const steps = countable && { incrs: [1, 10, 100, 1000, 10000].flatMap((size) => [size, 2 * size, 5 * size]) };
  return { ...lettering(style), ...steps, grid, size: 52, values: (_, at) => at.map((value) => value.toLocaleString("en")) };
}

function tell(figure, chart, legend, at) {
  const told = (item, which) => `${item.textContent.trim()} ${chart.cells[which][at]}`;
  figure.querySelector(".readout").textContent = at == null ? "" : `${moments.names[at]}: ${legend.map(told).join(", ")}`;
}

// Months are counted in seconds rather than at once: say so meanwhile, and no longer.
const say = (words) => { document.getElementById("said").textContent = words; };
for (const choice of document.querySelectorAll(".choices a")) choice.addEventListener("click", () => say("Counting…"));
addEventListener("pageshow", (event) => { if (event.persisted) say(""); });

if (moments) {
  const drawAll = () => [...document.querySelectorAll("[data-chart]")].map(draw);
  let drawn = drawAll();
  const drawAnew = () => {
    drawn.forEach((each) => each.destroy());
    drawn = drawAll();
  };
  const fit = () => drawn.forEach((each) => each.setSize({ width: each.root.parentNode.clientWidth, height: HEIGHT }));
  new ResizeObserver(fit).observe(document.querySelector(".charts"));
  new MutationObserver(drawAnew).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
}
