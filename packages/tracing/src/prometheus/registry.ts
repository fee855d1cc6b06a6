import { OctavoError } from "@octavo/protocol/errors";
import { Histogram } from "./histogram.js";
import { Counter, Gauge, type Family, type Labels } from "./metric.js";

export const prometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

type Row = readonly [name: string, help: string, ...labels: string[]];
type Rows<Key extends string> = Readonly<Record<Key, Row>>;

/** All metric families of a server, exposed in Prometheus' text format 0.0.4. */
export class Registry {
  readonly #families: Map<string, Family>;
  readonly #collectors: (() => void)[];
  readonly #constantLabels: Labels;

  private constructor(constantLabels: Labels, families: Map<string, Family>, collectors: (() => void)[]) {
    this.#constantLabels = constantLabels;
    this.#families = families;
    this.#collectors = collectors;
  }

  static create(): Registry {
    return new Registry({}, new Map(), []);
  }

  /** The same registry; families made through it carry these labels in every sample. */
  withLabels(constantLabels: Labels): Registry {
    return new Registry({ ...this.#constantLabels, ...constantLabels }, this.#families, this.#collectors);
  }

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return this.#add(new Counter(name, help, labelNames, this.#constantLabels));
  }

  gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge {
    return this.#add(new Gauge(name, help, labelNames, this.#constantLabels));
  }

  histogram(
    name: string,
    help: string,
    bounds: readonly number[],
    labelNames: readonly string[] = [],
  ): Histogram {
    return this.#add(new Histogram(name, help, bounds, labelNames, this.#constantLabels));
  }

  /** Counters by key, each from its name, its help and its labels. */
  counters<Key extends string>(rows: Rows<Key>): Readonly<Record<Key, Counter>> {
    return mapRows(rows, ([name, help, ...labels]) => this.counter(name, help, labels));
  }

  gauges<Key extends string>(rows: Rows<Key>): Readonly<Record<Key, Gauge>> {
    return mapRows(rows, ([name, help, ...labels]) => this.gauge(name, help, labels));
  }

  histograms<Key extends string>(
    bounds: readonly number[],
    rows: Rows<Key>,
  ): Readonly<Record<Key, Histogram>> {
    return mapRows(rows, ([name, help, ...labels]) => this.histogram(name, help, bounds, labels));
  }

  /** Runs before every exposition, for values that are read on demand. */
  onCollect(collector: () => void): void {
    this.#collectors.push(collector);
  }

  expose(): string {
    return Registry.exposeAll([this]);
  }

  /** Families that several registries have, each with labels of its own, come under one header. */
  static exposeAll(registries: readonly Registry[]): string {
    const texts = new Map<string, string>();
    for (const registry of registries) {
      for (const collect of registry.#collectors) collect();
      for (const [name, family] of registry.#families) {
        const text = texts.get(name);
        texts.set(name, text === undefined ? family.expose() : text + family.exposeSamples());
      }
    }
    return [...texts.values()].join("");
  }

  #add<T extends Family>(family: T): T {
    if (this.#families.has(family.name))
      throw new OctavoError("internal_error", `metric ${family.name} is registered twice`);
    this.#families.set(family.name, family);
    return family;
  }
}

function mapRows<Key extends string, T>(rows: Rows<Key>, make: (row: Row) => T): Readonly<Record<Key, T>> {
  const made = Object.entries<Row>(rows).map(([key, row]) => [key, make(row)]);
  return Object.fromEntries(made) as Record<Key, T>;
}
