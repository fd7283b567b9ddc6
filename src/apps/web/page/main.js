// The page: its views, one of which is visible, and the engine.
import { readAddress, writeAddress } from "./address.js";
import { CheckView } from "./check.js";
import { Engine } from "./engine.js";
import { ImageSet, dataSets } from "./images.js";
import { keptModels } from "./keep.js";
import { Library } from "./library.js";
import { LookView } from "./look.js";
import { TrainView } from "./train.js";

const tabs = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('nav [role="tab"]'))];
const place = (name) => document.getElementById(`view-${name}`);
const status = document.getElementById("status");
const views = {},
  settings = {};
let current = "look";

/** Creates the view of this name. */
function view(name, parts) {
  const { engine, library, sets } = parts,
    given = settings[name] ?? {};
  const save = (values) => {
    settings[name] = values;
    if (name === current) writeAddress(name, values);
  };
  if (name === "look") return new LookView(engine, library, sets, given, save);
  if (name === "check") return new CheckView(engine, library, given, save);
  return new TrainView(engine, library, sets, given, save, () => views.look?.renew());
}

function show(name, parts) {
  current = name;
  for (const tab of tabs) {
    const chosen = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    place(tab.dataset.view).hidden = !chosen;
  }
  if (!views[name]) {
    views[name] = view(name, parts);
    place(name).replaceChildren(views[name].element);
  }
  writeAddress(name, settings[name] ?? {});
}

/** Adds the page's listeners: for clicks and arrow keys on tabs, for changes of the address, and for dropped files. */
function listen(parts) {
  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => show(tab.dataset.view, parts));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const to = tabs[(i + step + tabs.length) % tabs.length];
      to.focus();
      show(to.dataset.view, parts);
    });
  }
  addEventListener("hashchange", () => {
    const address = readAddress();
    if (!tabs.some((tab) => tab.dataset.view === address.view)) return;
    settings[address.view] = address.settings;
    views[address.view]?.leave?.();
    delete views[address.view];
    show(address.view, parts);
  });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (!file) return;
    show("look", parts);
    views.look.open(file);
  });
}

async function start() {
  const address = readAddress();
  if (tabs.some((tab) => tab.dataset.view === address.view)) {
    current = address.view;
    settings[current] = address.settings;
  }
  const names = Object.keys(dataSets);
  const [engine, ...loaded] = await Promise.all([
    Engine.start((count) => (document.body.dataset.waiting = String(count))),
    ...names.map((name) => ImageSet.load(name).catch(() => null)),
  ]);
  const about = await engine.ask("mechanisms"),
    library = await Library.load(engine, about);
  // A page may have been built without one of the data sets.
  const sets = Object.fromEntries(
    names.map((name, i) => [name, loaded[i]]).filter(([name, set]) => set && library.trained[name]),
  );
  if (Object.keys(sets).length === 0) throw new Error("its images, or the models trained on them, are missing");
  library.own = (await keptModels()).filter((one) => Object.hasOwn(sets, one.data));
  const parts = { engine, library, sets };
  listen(parts);
  show(current, parts);
  const threads = about.threads === 1 ? "one thread" : `${about.threads} threads`;
  const [floats, doubles] = about.products.split(", ");
  const products = `matrix products of floats by ${floats}, of doubles by ${doubles}`;
  status.textContent = `heed ${about.version}: ${about.mechanisms.length} mechanisms, ${threads}; ${products}.`;
  document.body.dataset.ready = "true";
}

start().catch((error) => {
  status.textContent = `The page could not start: ${error.message}`;
  status.className = "failed";
});
