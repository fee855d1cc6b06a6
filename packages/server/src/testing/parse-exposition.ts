import assert from "node:assert/strict";

export interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedFamily {
  readonly type: string;
  readonly help: string;
  readonly samples: ParsedSample[];
}

const labelPattern = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;

/** A strict reader of Prometheus' text format 0.0.4; fails where the text leaves the format. */
export function parseExposition(text: string): ReadonlyMap<string, ParsedFamily> {
  assert.ok(text.endsWith("\n"), "the last line ends");
  const families = new Map<string, ParsedFamily>();
  let help: readonly [string, string] | undefined;
  let current: readonly [string, ParsedFamily] | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    const helpLine = /^# HELP ([a-zA-Z_:][\w:]*) (.*)$/.exec(line);
    const typeLine = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram)$/.exec(line);
    if (helpLine !== null) {
      help = [helpLine[1] ?? "", helpLine[2] ?? ""];
    } else if (typeLine !== null) {
      const [, name = "", type = ""] = typeLine;
      assert.equal(help?.[0], name, "HELP comes right before TYPE");
      assert.ok(!families.has(name), `${name} is declared once`);
      current = [name, { type, help: help[1], samples: [] }];
      families.set(...current);
    } else {
      assert.ok(current !== undefined, `a sample before any family: ${line}`);
      current[1].samples.push(parseSample(line, current[0], current[1].type));
    }
  }
  for (const [name, family] of families)
    if (family.type === "histogram") checkHistogram(name, family.samples);
  return families;
}

function parseSample(line: string, family: string, type: string): ParsedSample {
  const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  assert.ok(match !== null, `not a sample: ${line}`);
  const [, name = "", labelText = "", valueText = ""] = match;
  const suffixes = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  assert.ok(
    suffixes.some((suffix) => name === family + suffix),
    `${name} is not of ${family}`,
  );
  const value = valueText === "+Inf" ? Number.POSITIVE_INFINITY : Number(valueText);
  assert.ok(valueText === "NaN" || !Number.isNaN(value), `not a number: ${line}`);
  return { name, labels: parseLabels(labelText), value };
}

function parseLabels(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  let offset = 0;
  while (offset < text.length) {
    labelPattern.lastIndex = offset;
    const match = labelPattern.exec(text);
    assert.ok(match !== null, `bad labels: ${text}`);
    const [whole, name = "", value = ""] = match;
    assert.ok(!Object.hasOwn(labels, name), `${name} is given once`);
    labels[name] = value.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped));
    offset += whole.length;
  }
  return labels;
}

/** Per series: bounds rise to +Inf, counts never fall, and the last one is the count. */
function checkHistogram(family: string, samples: readonly ParsedSample[]): void {
  const bySeries = new Map<string, ParsedSample[]>();
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels;
    const key = JSON.stringify(labels);
    const series = bySeries.get(key) ?? [];
    series.push(sample);
    bySeries.set(key, series);
  }
  for (const series of bySeries.values()) {
    const buckets = series.filter(({ name }) => name === `${family}_bucket`);
    const bounds = buckets.map(({ labels }) =>
      labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le),
    );
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, `${family} ends in +Inf`);
    assert.ok(
      bounds.every((bound, index) => index === 0 || bound > (bounds[index - 1] ?? 0)),
      `${family}: bounds rise`,
    );
    const counts = buckets.map(({ value }) => value);
    assert.ok(
      counts.every((count, index) => index === 0 || count >= (counts[index - 1] ?? 0)),
      `${family}: buckets are cumulative`,
    );
    assert.equal(
      series.find(({ name }) => name === `${family}_count`)?.value,
      counts.at(-1),
      `${family}: count`,
    );
    assert.ok(
      series.some(({ name }) => name === `${family}_sum`),
      `${family}: sum`,
    );
  }
}
