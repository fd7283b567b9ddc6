// A model in training, and its results so far.

/** Number of steps after which step() evaluates on the test images. */
const testEvery = 25;

export class Session {
  #engine;
  #set;
  steps = [];
  tests = [];
  /** Images per second of wall time in the last call of step(). */
  rate = 0;

  /** Starts a session that trains the model of `plan`, {config, sets}, on the images of `set`. */
  static async begin(engine, plan, set) {
    const model = await engine.ask("begin", { ...plan, train: set.trained, test: set.tested }, set.bytes);
    return new Session(engine, model, set);
  }

  constructor(engine, model, set) {
    this.#engine = engine;
    this.#set = set;
    this.model = model;
  }

  get data() {
    return this.#set.name;
  }

  /** Runs `count` steps, and evaluates on the test images when due. */
  async step(count, batch) {
    const before = performance.now();
    const { steps, failed } = await this.#engine.ask("step", { model: this.model.model, steps: count });
    this.rate = (1000 * steps.length * batch) / (performance.now() - before);
    this.steps.push(...steps);
    if (failed) throw new Error(failed);
    if (this.tests.length === 0 || this.steps.length - this.tests.at(-1).step >= testEvery) await this.test();
  }

  /** Evaluates on the test images, unless this has been done since the last step. */
  async test() {
    const step = this.steps.length;
    if (this.tests.at(-1)?.step === step) return;
    this.tests.push({ step, ...(await this.#engine.ask("evaluate", { model: this.model.model })) });
  }

  /** Returns the attention pictures for a test image. */
  look(image) {
    const { bytes, ...size } = this.#set.test(image);
    return this.#engine.ask("look", { model: this.model.model, ...size }, bytes);
  }

  /** Returns the weights as a safetensors file. @returns {Promise<Uint8Array>} */
  async weights() {
    const path = "/saved.safetensors";
    await this.#engine.ask("save", { model: this.model.model, path });
    return this.#engine.read(path);
  }

  /** Returns the results in the format of a run's metrics.csv. */
  metrics() {
    const row = (kind, { epoch = "", step, loss, accuracy, lr = "" }) =>
      [kind, epoch, step, loss, accuracy, lr, ""].join(",");
    const rows = [...this.steps.map((step) => row("step", step)), ...this.tests.map((test) => row("test", test))];
    return `${["kind,epoch,step,loss,accuracy,lr,images_per_s", ...rows].join("\n")}\n`;
  }

  close() {
    return this.#engine.ask("close", { model: this.model.model });
  }
}
