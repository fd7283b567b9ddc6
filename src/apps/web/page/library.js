// The models of the page: bundled trained models, untrained models with every other mechanism of the engine, and the
// user's own models.
import { asset, textAsset } from "./assets.js";
import { make } from "./make.js";

/** An arm of the page's experiments. @typedef {{name: string, accuracy: number, config: string}} Arm */

/** Returns the value of `[attention] mechanism = "..."` in a configuration. */
const mechanismIn = (config) => /^\[attention\]\s*\nmechanism = "([^"]*)"/m.exec(config)?.[1] ?? "";

/** Returns the name of a user's model, distinct from any arm's. */
const ownName = (name) => `own/${name}`;

export class Library {
  #engine;
  #open = new Map();
  #written = 0;

  /** `about` is the engine's answer to "mechanisms". */
  constructor(engine, about, trained) {
    this.#engine = engine;
    this.about = about;
    this.trained = trained;
    this.own = [];
  }

  static async load(engine, about) {
    const index = JSON.parse(await textAsset("trained/index.json"));
    const trained = {};
    for (const [data, arms] of Object.entries(index))
      trained[data] = await Promise.all(
        arms.map(async (arm) => ({ ...arm, config: await textAsset(`trained/${data}/${arm.name}/config.toml`) })),
      );
    const library = new Library(engine, about, trained);
    for (const [data, arms] of Object.entries(trained))
      for (const arm of arms)
        await engine.write(`/trained/${data}/${arm.name}/config.toml`, new TextEncoder().encode(arm.config));
    return library;
  }

  /**
   * Returns the configuration, the changes to it, and the trained arm of this name, for a data set. A mechanism without
   * a trained arm uses softmax's configuration with the mechanism's first setting; its arm is null.
   */
  plan(data, name) {
    const arms = this.trained[data],
      arm = arms.find((one) => one.name === name);
    if (arm) return { config: `/trained/${data}/${name}/config.toml`, sets: [], arm };
    const mechanism = this.about.mechanisms.find((one) => one.name === name);
    const options = Object.entries(mechanism?.settings[0]?.options ?? {}).map(
      ([key, value]) => `attention.${key}=${value}`,
    );
    return {
      config: `/trained/${data}/softmax/config.toml`,
      sets: [`attention.mechanism=${name}`, ...options],
      arm: null,
    };
  }

  /** Opens a model of a data set by name. Returns the engine's description, with the model's number. */
  async model(data, name) {
    const key = `${data}/${name}`;
    if (!this.#open.has(key)) this.#open.set(key, this.#load(data, name));
    try {
      return await this.#open.get(key);
    } catch (error) {
      this.#open.delete(key);
      throw error;
    }
  }

  async #load(data, name) {
    const own = this.own.find((one) => ownName(one.name) === name && one.data === data);
    if (own) {
      const path = `/own/${++this.#written}`;
      await this.#engine.write(`${path}.toml`, new TextEncoder().encode(own.config));
      await this.#engine.write(`${path}.safetensors`, own.weights);
      return this.#engine.ask("open", { config: `${path}.toml`, sets: [], weights: `${path}.safetensors` });
    }
    const { config, sets, arm } = this.plan(data, name);
    const weights = arm ? `/trained/${data}/${name}/best.safetensors` : "";
    if (arm) await this.#engine.write(weights, await asset(weights.slice(1)));
    return this.#engine.ask("open", { config, sets, weights });
  }

  /** Closes a user's model whose weights have changed or been deleted. */
  async forget(data, name) {
    const key = `${data}/${ownName(name)}`,
      open = this.#open.get(key);
    this.#open.delete(key);
    const model = await open?.catch(() => null);
    if (model) await this.#engine.ask("close", { model: model.model });
  }

  /** Returns the models of a data set by mechanism: its trained arms or, if it has none, the mechanism itself. */
  groups(data) {
    return this.about.mechanisms.map(({ name, summary }) => {
      const arms = (this.trained[data] ?? []).filter((arm) => mechanismIn(arm.config) === name);
      return { name, summary, arms: arms.length > 0 ? arms : [{ name, accuracy: null }] };
    });
  }

  /** Returns the models of a data set as the options of a <select>. */
  options(data, { own = true, accuracy = true } = {}) {
    const right = (share) => (share === null ? "not trained" : `${(100 * share).toFixed(1)} % right`);
    const text = (arm) => (accuracy ? `${arm.name} (${right(arm.accuracy)})` : arm.name);
    const groups = this.groups(data).map(({ name, arms }) =>
      make(
        "optgroup",
        { label: name },
        arms.map((arm) => make("option", { value: arm.name }, text(arm))),
      ),
    );
    const mine = this.own.filter((one) => one.data === data);
    if (own && mine.length > 0)
      groups.push(
        make(
          "optgroup",
          { label: "your own" },
          mine.map((one) => make("option", { value: ownName(one.name) }, one.name)),
        ),
      );
    return groups;
  }

  /** Returns the engine's summary of a model's mechanism. */
  summary(mechanism) {
    return this.about.mechanisms.find((one) => one.name === mechanism)?.summary ?? "";
  }
}
