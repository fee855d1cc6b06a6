import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agreementCases, type AgreementCase } from "./testing/agreement-cases.js";
import { agreementTools } from "./testing/agreement-tools.js";
import { type CallWriter, callWriters, type NamedCall } from "./testing/agreement-writers.js";
import { OutputParser } from "./output-parser.js";
import { reasoningFormats } from "./reasoning/reasoning-format.js";
import { callStarts, toolFormats } from "./registry.js";
import { toolSchemas } from "./shared/tool-schemas.js";

const schemas = toolSchemas(agreementTools);

interface Outcome {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string; readonly problem?: string }[];
}

function parse(
  pieces: readonly string[],
  { parser: name, reasoning: reader, prompt }: AgreementCase,
): Outcome {
  const format = toolFormats.find((candidate) => candidate.name === name);
  assert.ok(format !== undefined || name === "", name);
  const reasoning = reasoningFormats.find((candidate) => candidate.name === reader);
  assert.equal(reasoning === undefined, reader === undefined, reader);
  const parser = new OutputParser({
    machine: format?.machine,
    reasoning,
    promptReasoning: prompt ?? "unknown",
    callStarts: format === undefined ? [] : callStarts(format),
    schemas,
  });
  const result = {
    content: "",
    reasoning: "",
    calls: [] as { name: string; arguments: string; problem?: string }[],
  };
  for (const event of [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]) {
    if (event.kind === "content" || event.kind === "reasoning") result[event.kind] += event.text;
    else if (event.kind === "call-start") result.calls[event.index] = { name: event.name, arguments: "" };
    else if (event.kind === "arguments") result.calls[event.index]!.arguments += event.text;
    else if (event.kind === "call-end" && event.problem !== undefined)
      result.calls[event.index]!.problem = event.problem;
  }
  return result;
}

function check(example: AgreementCase): void {
  const { output } = example;
  const whole = parse([output], example);
  const values = whole.calls.map(({ name, arguments: text, problem }) =>
    problem === undefined ? [name, JSON.parse(text) as unknown] : [name, "broken"],
  );
  assert.deepEqual(
    { content: whole.content, thought: whole.reasoning, calls: values },
    { content: example.content ?? "", thought: example.thought ?? "", calls: example.calls ?? [] },
  );
  assert.deepEqual(parse(output.split(""), example), whole, "one unit at a time");
  for (let cut = 1; cut < output.length; cut++)
    assert.deepEqual(parse([output.slice(0, cut), output.slice(cut)], example), whole, `cut at ${cut}`);
}

const oneCall: NamedCall = ["get_weather", { city: "Kyoto" }];
const convert: NamedCall = [
  "convert",
  { text: "hi", count: 42, ratio: 3.25, flag: true, nothing: null, list: ["a", "b"], map: { key: "value" } },
];
const edit: NamedCall = [
  "edit",
  { quoted: 'She said "hi"', path: "C:\\dir\\file", text: "one\ntwo", symbol: "🎉" },
];
/** Calls must begin the answer: behind other text they are content. */
const beginAnswers = new Set(["pythonic", "llama4_pythonic", "xlam"]);

/** What vLLM's suite tries with every parser. */
const sharedCases: readonly [
  title: string,
  make: (write: CallWriter) => Omit<AgreementCase, "title" | "parser">,
][] = [
  ["no call", () => ({ output: "An answer without calls.", content: "An answer without calls." })],
  ["one call", (write) => ({ output: write([oneCall]), calls: [oneCall] })],
  ["values of every type", (write) => ({ output: write([convert]), calls: [convert] })],
  ["no arguments", (write) => ({ output: write([["refresh", {}]]), calls: [["refresh", {}]] })],
  ["quotes, backslashes, line breaks", (write) => ({ output: write([edit]), calls: [edit] })],
  [
    "several calls",
    (write) => {
      const calls: NamedCall[] = [oneCall, ["refresh", {}], ["get_time", { zone: "Asia/Tokyo" }]];
      return { output: write(calls), calls };
    },
  ],
];

describe("vLLM's shared cases", () => {
  for (const [parser, write] of Object.entries(callWriters)) {
    for (const [title, make] of sharedCases)
      it(`${parser}: ${title}`, () => check({ title, parser, ...make(write) }));
    it(`${parser}: text around`, () => {
      const lead = beginAnswers.has(parser) ? "" : "Let me see.\n";
      const output = `${lead}${write([oneCall])}\nDone.`;
      check({ title: "", parser, output, content: `${lead.trim()}\nDone.`, calls: [oneCall] });
    });
  }

  it("are tried with every parser except those that only gpt-oss writes", () => {
    const names = toolFormats.map(({ name }) => name);
    const aliases = ["openai", "llama4_json", "cohere_command4", "internlm2"];
    assert.deepEqual(names.filter((name) => !(name in callWriters)).toSorted(), aliases.toSorted());
  });
});

describe("vLLM's cases by parser", () => {
  for (const example of agreementCases)
    it(`${example.parser || example.reasoning}: ${example.title}`, () => check(example));
});
