// Draws the charts of the health page. The page has the same numbers as tables, so it is complete without scripts.

const HEIGHT = 220;
const HOUR = 3600;
const DAY = 24 * HOUR;
const moments = JSON.parse(document.getElementById("moments")?.textContent ?? "null");

const formatter = (options) => new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
const dayFormat = formatter({ day: "numeric", month: "short" });
const hourFormat = formatter({ hour: "2-digit", minute: "2-digit" });

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
    scales: { x: { range: timeRange }, y: { range: fromZero(countable ? 4 : 1) } },
    axes: [timeAxis(getComputedStyle(plot)), valueAxis(getComputedStyle(plot), countable)],
    series: [{}, ...FORMS[chart.form].series(tones)],
    hooks: { setCursor: [(plotted) => showReadout(figure, chart, legend, plotted.cursor.idx)] },
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
    series: (tones) => tones.map((tone, at) => bar(tone, 0.4, tones.length < 2 ? 0 : at ? 1 : -1)),
  },
  // Stacked bars: each series is drawn as a bar from zero to the sum so far, and later bars cover its lower part.
  stack: {
    values: (values) => values.map((_, at) => sums(values.slice(0, at + 1))).reverse(),
    series: (tones) => tones.map((tone) => bar(tone, 0.7, 0)).reverse(),
  },
};

// The second line is dashed, so that the lines do not differ by color alone.
const line = (stroke, at) => ({ stroke, width: 2, dash: at ? [6, 3] : [], points: { show: true, size: 5, fill: stroke } });
const bars = (size, align) => uPlot.paths.bars({ size: [size, 48], align });
const bar = (fill, size, align) => ({ fill, width: 0, points: { show: false }, paths: bars(size, align) });
const sums = (rows) => rows[0].map((_, at) => rows.reduce((sum, row) => sum + row[at], 0));

const timeRange = () => [moments.starts[0] - moments.step / 2, moments.starts.at(-1) + moments.step / 2];
const fromZero = (least) => (_, low, high) => [Math.min(0, low ?? 0) * 1.05, Math.max(least, high ?? 0) * 1.05];
const axisStyle = (style) => ({ stroke: style.color, font: `12px ${style.fontFamily}`, ticks: { show: false } });

function timeAxis(style) {
  const hours = moments.step === HOUR ? [1, 3, 6, 12] : [];
  const steps = [...hours.map((count) => count * HOUR), ...[1, 2, 7, 14, 28].map((count) => count * DAY)];
  const label = (at) => (at % DAY ? hourFormat : dayFormat).format(at * 1000);
  return { ...axisStyle(style), grid: { show: false }, size: 30, space: 64, incrs: steps, values: (_, at) => at.map(label) };
}

function valueAxis(style, countable) {
  const grid = { stroke: style.borderTopColor, width: 1 };
  const steps = countable && { incrs: [1, 10, 100, 1000, 10000].flatMap((size) => [size, 2 * size, 5 * size]) };
  return { ...axisStyle(style), ...steps, grid, size: 52, values: (_, at) => at.map((value) => value.toLocaleString("en")) };
}

function showReadout(figure, chart, legend, at) {
  const describe = (item, which) => `${item.textContent.trim()} ${chart.cells[which][at]}`;
  figure.querySelector(".readout").textContent = at == null ? "" : `${moments.names[at]}: ${legend.map(describe).join(", ")}`;
}

// Computing a long period takes seconds: show a message until the next page is loaded.
const showMessage = (message) => { document.getElementById("said").textContent = message; };
for (const choice of document.querySelectorAll(".choices a")) choice.addEventListener("click", () => showMessage("Computing…"));
addEventListener("pageshow", (event) => { if (event.persisted) showMessage(""); });

if (moments) {
  const drawAll = () => [...document.querySelectorAll("[data-chart]")].map(draw);
  let plots = drawAll();
  const redraw = () => {
    plots.forEach((each) => each.destroy());
    plots = drawAll();
  };
  const fit = () => plots.forEach((each) => each.setSize({ width: each.root.parentNode.clientWidth, height: HEIGHT }));
  new ResizeObserver(fit).observe(document.querySelector(".charts"));
  new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
