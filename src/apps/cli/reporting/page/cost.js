// Cost of a model by layer: operations, memory and energy of a training step, per example.

const conventions = {contractions: "products and weighted sums, as papers count", all: "every operation"};

function sumOf(rows, name) {
  const sum = {name};
  for (const row of rows)
    for (const [key, value] of Object.entries(row)) if (typeof value === "number" && key !== "block") sum[key] = (sum[key] ?? 0) + value;
  return sum;
}

/** Returns rows for layers and blocks in order; a block's row is the sum of its layers, which are its `parts`. */
function costRows(layers) {
  const rows = [];
  for (const layer of layers) {
    const stem = layer.block < 0 ? layer.name : layer.name.slice(0, layer.name.search(new RegExp(`\\.${layer.block}(\\.|$)`)) + 1) + layer.block;
    const last = rows[rows.length - 1];
    if (layer.block >= 0 && last && last.stem === stem) last.parts.push(layer);
    else rows.push({stem, parts: [layer]});
  }
  return rows.map((row) => ({...sumOf(row.parts, row.stem), parts: row.parts.length > 1 ? row.parts : []}));
}

function costTable(cost) {
  const kinds = Object.keys(cost.total).filter((key) =>
    typeof cost.total[key] === "number" && !["energy_pj", "bytes", "params"].includes(key) && cost.total[key] > 0);
  const whole = cost.total.energy_pj || 1;
  const cells = (row) => [
    make("td", {class: "bars"}, make("div", {class: "fill", style: `width: ${(100 * row.energy_pj / whole).toFixed(2)}%`})),
    ...[joules(row.energy_pj), `${(100 * row.energy_pj / whole).toFixed(1)} %`, ...kinds.map((kind) => si(row[kind])),
      si(row.bytes, "B"), si(row.params)].map((text) => make("td", {}, text))];
  const body = make("tbody");
  for (const row of costRows(cost.layers)) {
    const parts = row.parts.map((part) =>
      make("tr", {class: "part", hidden: ""}, make("th", {scope: "row"}, part.name), cells(part)));
    const opener = make("button", {"aria-expanded": "false", onclick: () => {
      const open = opener.getAttribute("aria-expanded") !== "true";
      opener.setAttribute("aria-expanded", String(open));
      opener.textContent = `${row.name} ${open ? "▾" : "▸"}`;
      for (const part of parts) part.hidden = !open;
    }}, `${row.name} ▸`);
    body.append(make("tr", {}, make("th", {scope: "row"}, row.parts.length > 0 ? opener : row.name), cells(row)), ...parts);
  }
  return make("div", {class: "wide"}, make("table", {class: "cost"},
    make("thead", {}, make("tr", {}, ["layer", "", "energy", "share", ...kinds, "moved", "parameters"].map((title) =>
      make("th", {scope: "col"}, title)))), body,
    make("tfoot", {}, make("tr", {}, make("th", {scope: "row"}, "total"), cells(cost.total)))));
}

function costSection(cost) {
  if (!cost) return section("What it costs", make("p", {}, "The run directory has no cost.json."));
  const place = make("div"), note = make("p", {class: "note"});
  const show = (convention) => {
    const {counted, pass, batch, energy_table: prices} = cost[convention];
    place.replaceChildren(costTable(cost[convention]));
    note.textContent = `Counted: ${counted}. ${pass === "step" ? "A training step" : `A ${pass} pass`} per example, in batches of ${batch}; priced by ${prices}.`;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === convention));
  };
  const buttons = Object.entries(conventions).map(([convention, words]) =>
    make("button", {value: convention, onclick: () => show(convention)}, words));
  show("contractions");
  return section("What it costs", make("div", {class: "bar", role: "group", "aria-label": "What is counted"}, buttons), place, note);
}
