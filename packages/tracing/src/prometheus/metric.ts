import { OctavoError } from "@octavo/protocol/errors";

export type Labels = Readonly<Record<string, string>>;
/** The labels of families without labels; compared by identity, as this runs for every token. */
export const noLabels: Labels = {};

export type MetricKind = "counter" | "gauge" | "histogram";

/** A metric family: its header and label rules; subclasses add the samples. Source: Prometheus' exposition formats page. */
export abstract class Family {
  readonly name: string;
  readonly #help: string;
  readonly #kind: MetricKind;
  readonly #labelNames: readonly string[];
  readonly #constantLabels: string;
  readonly #frozen = new WeakMap<Labels, string>();

  constructor(
    kind: MetricKind,
    name: string,
    help: string,
    labelNames: readonly string[],
    constantLabels: Labels,
  ) {
    if (!/^[a-zA-Z_:][\w:]*$/.test(name))
      throw new OctavoError("internal_error", `invalid metric name ${name}`);
    this.name = name;
    this.#help = help;
    this.#kind = kind;
    this.#labelNames = labelNames;
    this.#constantLabels = formatLabels(constantLabels);
  }

  expose(): string {
    const help = this.#help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
    return `# HELP ${this.name} ${help}\n# TYPE ${this.name} ${this.#kind}\n${this.exposeSamples()}`;
  }

  /** Without the header. */
  abstract exposeSamples(): string;

  /** The text between the braces: constant labels, then the others in declared order. It is the key of a series. */
  protected series(labels: Labels): string {
    if (labels === noLabels && this.#labelNames.length === 0) return this.#constantLabels;
    // a frozen set is used again and again, and formatted once
    if (!Object.isFrozen(labels)) return this.#format(labels);
    let series = this.#frozen.get(labels);
    if (series === undefined) this.#frozen.set(labels, (series = this.#format(labels)));
    return series;
  }

  #format(labels: Labels): string {
    const given = Object.keys(labels);
    if (
      given.length !== this.#labelNames.length ||
      !this.#labelNames.every((name) => Object.hasOwn(labels, name))
    ) {
      throw new OctavoError(
        "internal_error",
        `metric ${this.name} takes the labels ${this.#labelNames.join(", ")}`,
      );
    }
    const own = formatLabels(Object.fromEntries(this.#labelNames.map((name) => [name, labels[name] ?? ""])));
    return [this.#constantLabels, own].filter((part) => part !== "").join(",");
  }

  protected get hasLabels(): boolean {
    return this.#labelNames.length > 0;
  }

  protected sample(suffix: string, series: string, value: number): string {
    return `${this.name}${suffix}${series === "" ? "" : `{${series}}`} ${formatNumber(value)}\n`;
  }
}

/** Values per label set. Families without labels start at 0, so that rates have a first point. */
abstract class ValueFamily extends Family {
  protected readonly values = new Map<string, number>();

  constructor(
    kind: MetricKind,
    name: string,
    help: string,
    labelNames: readonly string[],
    constantLabels: Labels,
  ) {
    super(kind, name, help, labelNames, constantLabels);
    if (!this.hasLabels) this.values.set(this.series(noLabels), 0);
  }

  value(labels: Labels = noLabels): number {
    return this.values.get(this.series(labels)) ?? 0;
  }

  override exposeSamples(): string {
    let text = "";
    for (const [series, value] of this.values) text += this.sample("", series, value);
    return text;
  }
}

/** Only grows. The name carries `_total`, as the text format wants it. */
export class Counter extends ValueFamily {
  constructor(name: string, help: string, labelNames: readonly string[], constantLabels: Labels) {
    super("counter", name, help, labelNames, constantLabels);
    if (!name.endsWith("_total"))
      throw new OctavoError("internal_error", `counter ${name} must end in _total`);
  }

  add(amount: number, labels: Labels = noLabels): void {
    if (!(amount >= 0)) return;
    const series = this.series(labels);
    this.values.set(series, (this.values.get(series) ?? 0) + amount);
  }

  /** For values counted elsewhere, such as CPU seconds; never lets the counter fall. */
  raiseTo(total: number, labels: Labels = noLabels): void {
    const series = this.series(labels);
    this.values.set(series, Math.max(total, this.values.get(series) ?? 0));
  }
}

export class Gauge extends ValueFamily {
  constructor(name: string, help: string, labelNames: readonly string[], constantLabels: Labels) {
    super("gauge", name, help, labelNames, constantLabels);
  }

  set(value: number, labels: Labels = noLabels): void {
    this.values.set(this.series(labels), value);
  }

  add(amount: number, labels: Labels = noLabels): void {
    const series = this.series(labels);
    this.values.set(series, (this.values.get(series) ?? 0) + amount);
  }

  /** Drops every series, for a family whose labels carry the information. */
  clear(): void {
    this.values.clear();
  }
}

export function formatNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return Number.isNaN(value) ? "NaN" : String(value);
}

function formatLabels(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabelValue(value)}"`)
    .join(",");
}

function escapeLabelValue(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
