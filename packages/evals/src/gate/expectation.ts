import { OctavoError } from "@octavo/protocol";
import type { GateItem, HealthDimension } from "./gate-result.js";

/** Measured facts of a request besides its scores; each is a column of the measurements. */
export const requestMetrics = {
  ttft_ms: { dimension: "latency", unit: "ms" },
  duration_ms: { dimension: "latency", unit: "ms" },
  tpot_ms: { dimension: "latency", unit: "ms" },
  max_gap_ms: { dimension: "latency", unit: "ms" },
  queue_ms: { dimension: "latency", unit: "ms" },
  prompt_tokens: { dimension: "cost", unit: "tokens" },
  completion_tokens: { dimension: "cost", unit: "tokens" },
  cost_usd: { dimension: "cost", unit: "usd" },
} as const satisfies Record<string, { readonly dimension: HealthDimension; readonly unit: GateItem["unit"] }>;
export type RequestMetric = keyof typeof requestMetrics;

/** A figure of one target's answers. */
export type Measure =
  | { readonly kind: "pass_rate"; readonly evaluator: string }
  | { readonly kind: "mean"; readonly of: MeasuredColumn }
  | { readonly kind: "percentile"; readonly level: number; readonly of: MeasuredColumn }
  /** Rate of failures with one code, or with any. */
  | { readonly kind: "error_rate"; readonly code: string | undefined }
  /** Output tokens per second. */
  | { readonly kind: "throughput" };

export type MeasuredColumn =
  | { readonly kind: "request"; readonly metric: RequestMetric }
  | { readonly kind: "score"; readonly evaluator: string };

/** How an interval is made where there is a choice: `paired` case by case, `welch` between independent means. */
const methodNames = ["paired", "welch", "bootstrap"] as const;
type MethodName = (typeof methodNames)[number];

/** What is asserted, as `pass_rate(json_schema) >= 0.97 with 95% confidence` says it. */
export interface HealthExpectation {
  readonly text: string;
  /** `delta`: candidate less baseline; `ratio`: candidate over baseline. */
  readonly compare: "none" | "delta" | "ratio";
  readonly measure: Measure;
  readonly comparator: "<=" | ">=";
  readonly bound: number;
  /** The target that is measured where nothing is compared. */
  readonly target: string | undefined;
  /** Undefined: the configuration's. */
  readonly confidence: number | undefined;
  /** The estimate alone decides, by its value: two outcomes, and no say about chance. */
  readonly byEstimate: boolean;
  readonly method: MethodName | undefined;
}

/** Where an expectation's figure belongs; scores are quality. */
export function dimensionOf({ measure }: HealthExpectation): HealthDimension {
  switch (measure.kind) {
    case "pass_rate":
      return "quality";
    case "error_rate":
      return "error_rate";
    case "throughput":
      return "throughput";
    case "mean":
    case "percentile":
      return measure.of.kind === "score" ? "quality" : requestMetrics[measure.of.metric].dimension;
  }
}

export function unitOfMeasure({ measure, compare }: HealthExpectation): GateItem["unit"] {
  if (compare === "ratio") return "ratio";
  switch (measure.kind) {
    case "pass_rate":
    case "error_rate":
      return "share";
    case "throughput":
      return "tokens_per_second";
    case "mean":
    case "percentile":
      return measure.of.kind === "score" ? "score" : requestMetrics[measure.of.metric].unit;
  }
}

const tokenPattern =
  /\s*(?:(<=|>=|<|>|==|!=|=)|([()%])|(-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(ms|s)?(?![\w.])|([\p{L}_][\w.:/-]*))/uy;
const longest = 300;

type Token =
  | { readonly kind: "comparator" | "sign" | "word"; readonly text: string; readonly at: number }
  | {
      readonly kind: "number";
      readonly value: number;
      readonly suffix: string | undefined;
      readonly text: string;
      readonly at: number;
    };

/**
 * Reads
 * `[delta|ratio] MEASURE (<=|>=) NUMBER[%|ms|s] [on TARGET] [with N% confidence | by estimate] [using paired|welch|bootstrap]`,
 * where a measure is `pass_rate(EVALUATOR)`, `mean(COLUMN)`, `p95(COLUMN)`, `error_rate`, `error_rate(CODE)` or `throughput`.
 * @throws OctavoError `invalid_option` that quotes the position
 */
export function parseExpectation(text: string): HealthExpectation {
  return new Parser(text).parse();
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = this.#split();
  }

  parse(): HealthExpectation {
    const compare = this.#oneOf(["delta", "ratio"]) ?? "none";
    const measure = this.#measure();
    const comparator = this.#comparator();
    const bound = this.#bound(measure, compare);
    let target: string | undefined;
    let confidence: number | undefined;
    let byEstimate = false;
    let method: MethodName | undefined;
    for (let clause = this.#peek(); clause !== undefined; clause = this.#peek()) {
      const word = this.#oneOf(["on", "with", "by", "using"]);
      if (word === undefined)
        throw this.#wrong("expected `on`, `with`, `by` or `using`, or nothing more", clause);
      if (word === "on") target = this.#word("the name of a target");
      if (word === "with") confidence = this.#confidence();
      if (word === "by") {
        this.#expectWord("estimate");
        byEstimate = true;
      }
      if (word === "using") {
        method = this.#oneOf(methodNames);
        if (method === undefined) throw this.#wrong(`expected one of ${methodNames.join(", ")}`);
      }
    }
    if (compare !== "none" && target !== undefined)
      throw this.#wrong(`a ${compare} is always of the candidate: leave out \`on ${target}\``);
    if (byEstimate && confidence !== undefined)
      throw this.#wrong("say either `with N% confidence` or `by estimate`");
    return {
      text: this.#text.trim(),
      compare,
      measure,
      comparator,
      bound,
      target,
      confidence,
      byEstimate,
      method,
    };
  }

  #split(): readonly Token[] {
    if (this.#text.length > longest)
      throw new OctavoError("invalid_option", `an expectation of more than ${longest} characters`);
    const tokens: Token[] = [];
    const pattern = new RegExp(tokenPattern);
    let at = 0;
    while (this.#text.slice(at).trim() !== "") {
      pattern.lastIndex = at;
      const match = pattern.exec(this.#text);
      const start = at + (/^\s*/.exec(this.#text.slice(at))?.[0].length ?? 0);
      if (match === null)
        throw new OctavoError(
          "invalid_option",
          `cannot read ${JSON.stringify(this.#text.slice(start, start + 20))} in \`${this.#text}\``,
        );
      const [, comparator, sign, number, suffix, word] = match;
      if (comparator !== undefined) tokens.push({ kind: "comparator", text: comparator, at: start });
      else if (sign !== undefined) tokens.push({ kind: "sign", text: sign, at: start });
      else if (number !== undefined)
        tokens.push({ kind: "number", value: Number(number), suffix, text: number, at: start });
      else tokens.push({ kind: "word", text: word ?? "", at: start });
      at = pattern.lastIndex;
    }
    return tokens;
  }

  #measure(): Measure {
    const token = this.#peek();
    const name = this.#word("a measure, such as pass_rate(json_schema) or p95(ttft_ms)");
    if (name === "throughput") return { kind: "throughput" };
    if (name === "error_rate")
      return { kind: "error_rate", code: this.#isSign("(") ? this.#argument("a failure's code") : undefined };
    if (name === "pass_rate") return { kind: "pass_rate", evaluator: this.#argument("an evaluator") };
    if (name === "mean") return { kind: "mean", of: columnOf(this.#argument("a column")) };
    const percent = /^p(\d{1,2}(?:\.\d{1,2})?)$/.exec(name)?.[1];
    const level = name === "median" ? 50 : Number(percent ?? Number.NaN);
    if (level > 0 && level < 100)
      return { kind: "percentile", level: level / 100, of: columnOf(this.#argument("a column")) };
    throw this.#wrong(
      `there is no measure ${name}; there are pass_rate(EVALUATOR), mean(COLUMN), p50(COLUMN) to p99.9(COLUMN), error_rate and throughput`,
      token,
    );
  }

  #comparator(): HealthExpectation["comparator"] {
    const token = this.#peek();
    if (token?.kind !== "comparator") throw this.#wrong("expected <= or >=", token);
    this.#next += 1;
    if (token.text === "<=" || token.text === "<") return "<=";
    if (token.text === ">=" || token.text === ">") return ">=";
    throw this.#wrong(`${token.text} decides nothing about a figure with an interval: use <= or >=`, token);
  }

  #bound(measure: Measure, compare: HealthExpectation["compare"]): number {
    const token = this.#peek();
    if (token?.kind !== "number") throw this.#wrong("expected a number", token);
    this.#next += 1;
    const isShare = measure.kind === "pass_rate" || measure.kind === "error_rate";
    if (this.#isSign("%")) {
      this.#next += 1;
      if (!isShare && compare !== "ratio") throw this.#wrong("a percentage of what?", token);
      return token.value / 100;
    }
    const isTime =
      (measure.kind === "mean" || measure.kind === "percentile") &&
      measure.of.kind === "request" &&
      requestMetrics[measure.of.metric].unit === "ms" &&
      compare !== "ratio";
    if (token.suffix !== undefined && !isTime) throw this.#wrong("this figure is not a time", token);
    if (isShare && compare === "none" && (token.value < 0 || token.value > 1))
      throw this.#wrong(`a rate lies between 0 and 1: did you mean ${token.value}%?`, token);
    if (isShare && compare === "delta" && Math.abs(token.value) > 1)
      throw this.#wrong(`rates differ by at most 1: did you mean ${token.value}%?`, token);
    return token.suffix === "s" ? token.value * 1000 : token.value;
  }

  #confidence(): number {
    const token = this.#peek();
    if (token?.kind !== "number") throw this.#wrong("expected a confidence, such as 95%", token);
    this.#next += 1;
    let share = token.value;
    if (this.#isSign("%")) {
      this.#next += 1;
      share /= 100;
    }
    if (!(share >= 0.5 && share < 1)) throw this.#wrong("a confidence lies between 50% and 100%", token);
    this.#expectWord("confidence");
    return share;
  }

  #argument(what: string): string {
    if (!this.#isSign("(")) throw this.#wrong(`expected (${what})`);
    this.#next += 1;
    const name = this.#word(what);
    if (!this.#isSign(")")) throw this.#wrong("expected )");
    this.#next += 1;
    return name;
  }

  #word(what: string): string {
    const token = this.#peek();
    if (token?.kind !== "word") throw this.#wrong(`expected ${what}`, token);
    this.#next += 1;
    return token.text;
  }

  #expectWord(word: string): void {
    const token = this.#peek();
    if (this.#word(`\`${word}\``) !== word) throw this.#wrong(`expected \`${word}\``, token);
  }

  #oneOf<Name extends string>(names: readonly Name[]): Name | undefined {
    const token = this.#peek();
    const name = names.find((candidate) => token?.kind === "word" && token.text === candidate);
    if (name !== undefined) this.#next += 1;
    return name;
  }

  #isSign(sign: string): boolean {
    const token = this.#peek();
    return token?.kind === "sign" && token.text === sign;
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  #wrong(problem: string, token: Token | undefined = this.#peek()): OctavoError {
    const where = token === undefined ? "at its end" : `at "${this.#text.slice(token.at, token.at + 24)}"`;
    return new OctavoError("invalid_option", `\`${this.#text.trim()}\`, ${where}: ${problem}`);
  }
}

/** A name that is no request metric is an evaluator's; whether there is one, the configuration knows. */
function columnOf(name: string): MeasuredColumn {
  return Object.hasOwn(requestMetrics, name)
    ? { kind: "request", metric: name as RequestMetric }
    : { kind: "score", evaluator: name };
}
