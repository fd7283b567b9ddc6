// Results of runs: final figures, settings that differ, and curves.

/** Formats, for example, "98.47 % ± 0.12". A count has a decimal and a deviation if it differs between seeds. */
function meanText(figure, {mean, sd}) {
  if (mean === null) return "-";
  const decimals = figure.decimals === 0 && sd > 0 ? 1 : figure.decimals;
  const text = shown(mean, figure.share, decimals);
  if (sd === null || decimals === 0) return text;
  return `${text} ± ${((figure.share ? 100 : 1) * sd).toFixed(decimals)}`;
}

function figuresSection() {
  const figures = report.figure_names.filter((figure) =>
    figure.title && report.arms.some((arm) => arm[figure.key].mean !== null));
  const finished = (arm) => arm.runs.filter((run) => run.state === "finished").length;
  const seeds = (arm) => (finished(arm) === arm.runs.length ? `${arm.runs.length}` : `${finished(arm)} of ${arm.runs.length}`);
  const several = report.arms.some((arm) => arm.runs.length > 1);
  const rows = report.arms.map((arm, i) => [
    make("span", {}, swatch(i), " ", arm.arm), seeds(arm), ...figures.map((figure) => meanText(figure, arm[figure.key]))]);
  const notes = report.arms.flatMap((arm) => arm.runs.filter((run) => run.state !== "finished").map((run) =>
    make("p", {class: "note"}, `${arm.arm}, seed ${run.seed}: ${run.state}; the run has no figures yet; its curves are shown below.`)));
  return section("Figures", table(["", "seeds finished", ...figures.map((figure) => figure.title)], rows),
    several ? make("p", {class: "note"}, "Mean over seeds ± standard deviation.") : null, notes);
}

function swatch(i) {
  return makeSvg("svg", {class: "swatch", width: 26, height: 10, "aria-hidden": "true"},
    makeSvg("line", {x1: 1, x2: 25, y1: 5, y2: 5, "stroke-width": 2, ...lineStyle(i)}), markerAt(i, 13, 5));
}

/** Creates the table of settings that differ between arms; null for a single arm. */
function settingsSection() {
  const keys = Object.keys(report.settings);
  if (report.arms.length < 2) return null;
  if (keys.length === 0) return section("Settings that differ", make("p", {}, "The runs differ only in their seeds."));
  return section("Settings that differ", table(["", ...keys], report.arms.map((arm, i) => [
    make("span", {}, swatch(i), " ", arm.arm), ...keys.map((key) => report.settings[key][i])])));
}

function curvesSection() {
  if (report.curves.length === 0) return section("Curves", make("p", {}, "No epoch is complete yet."));
  const charts = report.curves.map((curve) => new Chart(curve));
  const legend = make("div", {class: "bar legend", role: "group", "aria-label": "Arms that are drawn"},
    report.arms.map((arm, i) => make("button", {"aria-pressed": "true", onclick: (event) => {
      const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
      event.currentTarget.setAttribute("aria-pressed", String(on));
      for (const chart of charts) {
        if (on) chart.hidden.delete(i);
        else chart.hidden.add(i);
        chart.show(null);
        chart.draw();
      }
    }}, swatch(i), arm.arm)));
  const seeds = report.arms.some((arm) => arm.runs.length > 1);
  const means = report.runs.filter((run) => run.steps).map((run) => run.steps.mean_of);
  const most = Math.max(...means);
  return section("Curves", report.arms.length > 1 ? legend : null,
    make("div", {class: "charts"}, charts.map((chart) => chart.element)),
    make("p", {class: "note"}, [
      "Point at a chart, or select it with Tab and use the arrow keys, to see the values of an epoch.",
      "The learning rate of an epoch is that of its last step; the gradient norm is the mean over its steps, before clipping.",
      seeds ? "Thick lines are means over seeds, thin lines single seeds." : "",
      means.length === 0 ? "" : most === 1 ? "Thin lines also show single steps."
        : `Thin lines also show the steps, each point the mean of up to ${most} steps.`]
      .filter((text) => text).join(" ")));
}
