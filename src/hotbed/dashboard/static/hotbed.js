// Plots, and updates that can be paused. Everything else works without a script.
"use strict";

(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let paused = false;

  // --- Updates: paused by the button, in a tab that nobody sees, and while somebody is inside what would be replaced.
  const button = document.getElementById("pause");
  const live = document.querySelectorAll("[data-live], [data-plots]");
  if (button && live.length) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.setAttribute("aria-pressed", String(paused));
    });
  }
  const busy = (element) =>
    element.contains(document.activeElement) || element.querySelector("details[open]") || !getSelection().isCollapsed;
  document.addEventListener("htmx:beforeRequest", (event) => {
    const element = event.target;
    if (element.hasAttribute("data-live") && (paused || document.hidden || busy(element))) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    // What went wrong with a replay is shown where its result would have been.
    if (event.detail.xhr.status >= 400 && !event.target.hasAttribute("data-live")) event.detail.shouldSwap = true;
  });

  // --- Plots.
  const board = document.querySelector("[data-plots]");
  if (!board) return;
  const plots = new Map();
  let last = null; // what was drawn, to be drawn again in another size or light

  // A line needs two values beside each other; one that has none beside it is a point.
  const alone = ({ data }, number) =>
    data[number].flatMap((value, at, all) => (value != null && all[at - 1] == null && all[at + 1] == null ? [at] : []));

  const options = (element, series) => ({
    width: Math.max(240, element.clientWidth),
    height: 140,
    legend: { show: true, live: true },
    cursor: { drag: { setScale: false } },
    scales: { y: { range: (_, __, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [
      { stroke: css("--dim"), grid: { show: false }, ticks: { stroke: css("--line"), size: 4 }, font: "11px system-ui", space: 70, size: 26,
        values: (_, ticks, __, ___, step) => ticks.map((t) => new Date(t * 1e3).toTimeString().slice(0, step < 60 ? 8 : 5)) },
      { stroke: css("--dim"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 44 },
    ],
    series: [
      { value: (_, t) => (t == null ? "–" : new Date(t * 1e3).toTimeString().slice(0, 8)) },
      ...series.map(([, label], number) => ({
        label, width: number ? 1 : 1.5, stroke: css(number ? "--dim" : "--accent"), dash: number ? [4, 3] : undefined,
        fill: number ? undefined : css("--accent-soft"), points: { size: 5, fill: css(number ? "--dim" : "--accent"), filter: alone }, spanGaps: false,
      })),
    ],
  });

  const seriesOf = (element) =>
    element.dataset.series.split(/ (?=\w+:)/).map((pair) => [pair.slice(0, pair.indexOf(":")), pair.slice(pair.indexOf(":") + 1)]);

  const tell = (element, series, columns) => {
    const words = series.map(([name, label]) => {
      const values = columns[name].filter((value) => value != null);
      return values.length ? `${label} ${values[values.length - 1]} now, ${Math.max(...values)} at most` : `${label} none`;
    });
    element.setAttribute("aria-label", `${element.dataset.title}: ${words.join("; ")}`);
  };

  const draw = (columns) => {
    for (const element of board.querySelectorAll(".plot")) {
      const series = seriesOf(element);
      const data = [columns.t, ...series.map(([name]) => columns[name])];
      tell(element, series, columns);
      const known = plots.get(element);
      if (known) known.setData(data);
      else plots.set(element, new uPlot(options(element, series), data, element));
    }
  };

  const refresh = async (always) => {
    if (!always && (paused || document.hidden)) return;
    const answer = await fetch(board.dataset.plots, { credentials: "same-origin" }).catch(() => null);
    if (answer && answer.ok) draw((last = await answer.json()));
  };

  const again = () => {
    for (const plot of plots.values()) plot.destroy();
    plots.clear();
    if (last) draw(last);
  };
  let wide = board.clientWidth;
  new ResizeObserver(() => {
    if (board.clientWidth === wide) return;
    wide = board.clientWidth;
    again();
  }).observe(board);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  refresh(true);
  setInterval(refresh, 4000);
})();
