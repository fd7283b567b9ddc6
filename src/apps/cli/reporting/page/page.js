// The page: sections about all runs, then about one selected model.

/** Creates a section with an anchor for its title; null content is omitted. */
function section(title, ...content) {
  return make("section", {id: title.toLowerCase().replaceAll(" ", "-")}, make("h2", {}, title), ...content);
}

/** Creates a list of names and values; nulls are omitted. */
function facts(entries) {
  return make("dl", {}, entries.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([name, value]) =>
    [make("dt", {}, name), make("dd", {}, String(value))]));
}

function initFacts(init) {
  if (!init) return [["started from", "random weights"]];
  const tensors = Object.entries(init.tensors).map(([status, count]) => `${count} ${status}`).join(", ");
  return [["started from", init.file], ["its CRC-32", init.crc32], ["train.init", init.init], ["tensors", tensors]];
}

function originSection(run) {
  const {environment: e} = run;
  return section("What produced it", facts([
    ["run", run.directory], ["seed", run.seed], ["date", e?.date?.replace("T", " ").replace("Z", " UTC")],
    ["heed", e?.version], ["commit", e?.commit], ["machine", e && `${e.cpu}, ${e.threads} thread${e.threads === 1 ? "" : "s"}`],
    ["compiled", e && `${e.compiler}, for ${e.arch}`], ["products", e?.blas], ...initFacts(run.init)]),
  make("details", {class: "printed"}, make("summary", {}, "Configuration"), make("pre", {}, run.config)));
}

/** Creates the sections about one model. */
function modelSections(model) {
  const run = report.runs.find((one) => one.directory === model.run);
  if (model.obstacle)
    return [section("What it gets wrong", make("p", {}, `No test images were evaluated: ${model.obstacle}.`)),
      costSection(model.cost), originSection(run)];
  const maps = model.maps.some((image) => image.maps.blocks.some((block) => block.weights));
  const looking = maps ? new Looking(model) : null;
  const place = looking ? mapsSection(looking)
    : section("Where it looks", make("p", {}, "No block of this model has an attention map."));
  const look = (i) => {
    if (looking) looking.choose(i);
    place.scrollIntoView({behavior: "smooth"});
  };
  return [answersSection(model, look), place, costSection(model.cost), originSection(run)];
}

function start() {
  const names = report.arms.map((one) => one.arm);
  document.querySelector("h1").textContent = document.title.replace(/ - heed report$/, "");
  const runs = report.runs.length;
  document.getElementById("summary").textContent = `${runs} run${runs === 1 ? "" : "s"}${names.length > 1 ? ` in ${names.length} arms` : ""}; written by heed ${report.version}.`;
  const about = make("div");
  const show = (i) => about.replaceChildren(...modelSections(report.models[i]));
  const select = make("select", {id: "model", onchange: () => show(Number(select.value))},
    report.models.map((model, i) => make("option", {value: i}, `${names[i]} (${model.run})`)));
  document.querySelector("main").append(...[figuresSection(), settingsSection(), curvesSection(),
    names.length > 1 ? make("div", {class: "bar chooser", style: "margin-top: 3rem"}, make("label", {for: "model"}, "One model in detail:"), select) : null,
    about].filter((one) => one));
  show(0);
  document.querySelector("nav").append(...[...document.querySelectorAll("section")].map((one) =>
    make("a", {href: `#${one.id}`}, one.querySelector("h2").textContent)));
}

// Opens the configuration for printing.
addEventListener("beforeprint", () => document.querySelectorAll("details.printed").forEach((one) => (one.open = true)));
start();
