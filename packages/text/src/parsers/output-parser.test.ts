import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import {
  transcripts,
  transcriptTools,
  type TranscriptResult,
  type Transcript,
} from "./testing/transcripts.js";
import { callWriters } from "./testing/agreement-writers.js";
import type { OutputEvent } from "./output-events.js";
import { OutputParser } from "./output-parser.js";
import type { ReasoningFormat } from "./machine.js";
import { reasoningFormats } from "./reasoning/reasoning-format.js";
import { callStarts, toolFormats } from "./registry.js";
import { toolSchemas } from "./shared/tool-schemas.js";

const schemas = toolSchemas(transcriptTools);

function parse(
  pieces: readonly string[],
  format: string,
  reasoning?: ReasoningFormat,
  promptReasoning: "open" | "closed" | "unknown" = "unknown",
): readonly OutputEvent[] {
  const machine = toolFormats.find(({ name }) => name === format)?.machine;
  assert.ok(machine !== undefined || format === "", format);
  const parser = new OutputParser({ machine, reasoning, promptReasoning, schemas });
  return joined([...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]);
}

/** Neighbouring texts of one kind as one event. */
function joined(events: readonly OutputEvent[]): readonly OutputEvent[] {
  const result: OutputEvent[] = [];
  for (const event of events) {
    const last = result.at(-1);
    if (last !== undefined && "text" in last && "text" in event && last.kind === event.kind)
      result[result.length - 1] = { ...last, text: last.text + event.text };
    else result.push(event);
  }
  return result;
}

function outcome(events: readonly OutputEvent[]): Required<TranscriptResult> {
  const calls: { name: string; arguments: string; id?: string; problem?: string }[] = [];
  let content = "";
  let reasoning = "";
  for (const event of events) {
    if (event.kind === "content") content += event.text;
    else if (event.kind === "reasoning") reasoning += event.text;
    else if (event.kind === "call-start")
      calls[event.index] = {
        name: event.name,
        arguments: "",
        ...(event.id === undefined ? {} : { id: event.id }),
      };
    else if (event.kind === "arguments") calls[event.index]!.arguments += event.text;
    else if (event.kind === "call-end" && event.problem !== undefined)
      calls[event.index]!.problem = event.problem;
  }
  return { content, reasoning, calls };
}

function cutAt(text: string, cuts: readonly number[]): readonly string[] {
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((a, b) => a - b);
  return [...ends, text.length].map((end, index) => text.slice(index === 0 ? 0 : ends[index - 1], end));
}

/** Transcripts and, for every parser, what its models write. */
const outputs = [
  ...transcripts,
  ...Object.entries(callWriters).map(([format, write]) => {
    const calls = ["Oslo", "Bergen"].map((city) => ["get_weather", { city }] as const);
    return { format, output: `Looking.\n${write(calls)}\nOne moment.` };
  }),
];

/** Mutations of an output: a piece cut out, doubled, or another output's put in. */
const mutated = fc
  .tuple(fc.constantFrom(...outputs), fc.constantFrom(...outputs), fc.nat(600), fc.nat(40), fc.nat(3))
  .map(([transcript, other, at, length, way]) => {
    const { output } = transcript;
    const from = at % (output.length + 1);
    const piece =
      way === 0
        ? ""
        : way === 1
          ? output.slice(from, from + length).repeat(2)
          : other.output.slice(at % other.output.length, (at % other.output.length) + length);
    return {
      format: transcript.format,
      text: output.slice(0, from) + piece + output.slice(from + length * (way % 2)),
    };
  });

const title = ({ format, title: what }: Transcript): string => `${format}: ${what}`;

describe("transcripts", () => {
  for (const transcript of transcripts) {
    it(title(transcript), () => {
      const { output, format, expected } = transcript;
      const whole = parse([output], format);
      assert.deepEqual(outcome(whole), { content: "", reasoning: "", calls: [], ...expected });
      for (const call of outcome(whole).calls)
        if (call.problem === undefined) assert.doesNotThrow(() => JSON.parse(call.arguments) as unknown);
      assert.deepEqual(parse(output.split(""), format), whole, "one unit at a time");
      for (let cut = 1; cut < output.length; cut++)
        assert.deepEqual(parse([output.slice(0, cut), output.slice(cut)], format), whole, `cut at ${cut}`);
    });
  }

  it("give the same events under random splits", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...transcripts),
        fc.array(fc.nat(800), { maxLength: 12 }),
        (transcript, cuts) => {
          const { output, format } = transcript;
          assert.deepEqual(parse(cutAt(output, cuts), format), parse([output], format));
        },
      ),
      { numRuns: 400, seed: 5 },
    );
  });

  it("cover every format", () => {
    const covered = new Set(
      outputs.map(({ format }) => toolFormats.find(({ name }) => name === format)?.machine),
    );
    for (const { name, machine } of toolFormats) assert.ok(covered.has(machine), name);
  });
});

describe("any output", () => {
  it("splits anywhere without a difference, mutated transcripts too", () => {
    fc.assert(
      fc.property(mutated, fc.array(fc.nat(800), { maxLength: 8 }), ({ format, text }, cuts) => {
        assert.deepEqual(parse(cutAt(text, cuts), format), parse([text], format));
      }),
      { numRuns: 1500, seed: 7 },
    );
  });

  it("numbers its calls, and opens and closes each once", () => {
    fc.assert(
      fc.property(mutated, ({ format, text }) => {
        let open: number | undefined;
        let next = 0;
        for (const event of parse([text], format)) {
          if (event.kind === "call-start") {
            assert.equal(open, undefined);
            assert.equal(event.index, next++);
            assert.notEqual(event.name, "");
            open = event.index;
          } else if (event.kind === "arguments" || event.kind === "call-end") {
            assert.equal(event.index, open);
            if (event.kind === "call-end") open = undefined;
          }
        }
        assert.equal(open, undefined);
      }),
      { numRuns: 1000, seed: 11 },
    );
  });

  it("reports every call whose arguments are not a JSON object", () => {
    fc.assert(
      fc.property(mutated, ({ format, text }) => {
        for (const call of outcome(parse([text], format)).calls) {
          if (call.problem !== undefined) continue;
          const value: unknown = JSON.parse(call.arguments);
          assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), call.arguments);
        }
      }),
      { numRuns: 1500, seed: 13 },
    );
  });

  it("is content, unit for unit, where there is no markup", () => {
    const word = fc.constantFrom("a", " ", "\n", "<", ">", "x = 1", "é", "🦊", '"', ",", ".", "tool", "()");
    fc.assert(
      fc.property(fc.array(word, { maxLength: 40 }), fc.constantFrom(...toolFormats), (words, { name }) => {
        const text = words.join("");
        assert.deepEqual(outcome(parse([text], name)), { content: text, reasoning: "", calls: [] });
      }),
      { numRuns: 600, seed: 17 },
    );
  });

  it("loses no word of a mutated transcript", () => {
    const numbered = mutated.map(({ format, text }) => {
      let count = 0;
      return {
        format,
        text: text.replaceAll(/Oslo|Bergen|Looking|moment/g, () => `W${count++}W`),
        count: () => count,
      };
    });
    fc.assert(
      fc.property(numbered, ({ format, text, count }) => {
        const events = parse([text], format);
        const { content, reasoning, calls } = outcome(events);
        const ignored = events.flatMap((event) => (event.kind === "ignored" ? [event.text] : []));
        const all = [
          content,
          reasoning,
          ...ignored,
          ...calls.flatMap((call) => [call.name, call.arguments, call.id, call.problem]),
        ].join("\n");
        for (let i = 0; i < count(); i++) assert.ok(all.includes(`W${i}W`), `W${i}W of ${text}`);
      }),
      { numRuns: 1500, seed: 19 },
    );
  });

  it("is bounded: deep nesting and long names end in a report", () => {
    const deepJson = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    const [call] = outcome(
      parse([`<tool_call>{"name":"f","arguments":${deepJson}}</tool_call>`], "hermes"),
    ).calls;
    assert.equal(call?.arguments, deepJson);
    assert.match(call?.problem ?? "", /nested deeper than 256 levels/);
    const deepPython = `[f(a=${"[".repeat(50_000)}`;
    assert.match(outcome(parse([deepPython], "pythonic")).calls[0]?.problem ?? "", /nested deeper/);
    const longName = `<tool_call><function=${"n".repeat(100_000)}`;
    assert.equal(outcome(parse([longName], "qwen3_coder")).content, longName);
  });
});

describe("reasoning", () => {
  const format = (name: string): ReasoningFormat => {
    const found = reasoningFormats.find((candidate) => candidate.name === name);
    assert.ok(found !== undefined);
    return found;
  };
  const call = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>';
  const cases = [
    ["qwen3", "unknown", `<think>\nHm </thin\n</think>\n\nHello `, "Hm </thin", "Hello "],
    ["qwen3", "open", `Hm\n</think>\n\nHello`, "Hm", "Hello"],
    ["qwen3", "closed", `Hello <think>`, "", "Hello <think>"],
    ["qwen3", "unknown", `\n Hello`, "", "\n Hello"],
    ["deepseek_r1", "unknown", `Hm</think>Hello`, "Hm", "Hello"],
    ["deepseek_r1", "unknown", `<think>\ncut off`, "cut off", ""],
    ["mistral", "unknown", `[THINK]Hm[/THINK]Hello`, "Hm", "Hello"],
    ["granite", "unknown", `Here is my thought process: Hm.\nHere is my response: Hello`, "Hm.", "Hello"],
    ["gemma4", "unknown", `<|channel>thought\nHm<channel|>Hello`, "Hm", "Hello"],
    [
      "hunyuan_a13b",
      "unknown",
      `<think>\nHm\n</think>\n<answer>\nHi <b>, </answer\n</answer>`,
      "Hm",
      "Hi <b>, </answer",
    ],
    ["minimax_m2", "open", `Hm</think>\n\nHello</think>`, "Hm", "Hello"],
  ] as const;
  for (const [name, prompt, output, reasoning, content] of cases) {
    it(`${name}, prompt ${prompt}: ${JSON.stringify(output)}`, () => {
      const whole = parse([output], "hermes", format(name), prompt);
      assert.deepEqual(outcome(whole), { content, reasoning, calls: [] });
      for (let cut = 1; cut < output.length; cut++)
        assert.deepEqual(
          parse([output.slice(0, cut), output.slice(cut)], "hermes", format(name), prompt),
          whole,
        );
      const called = outcome(parse([`${output}${call}`], "hermes", format(name), prompt));
      assert.equal(called.calls.length, content === "" ? 0 : 1);
    });
  }

  it("ends where a call begins, in every format with markup of its own", () => {
    for (const { name, machine } of toolFormats) {
      const write = callWriters[name];
      const tool = toolFormats.find((candidate) => candidate.name === name);
      const starts = tool === undefined ? [] : callStarts(tool);
      if (write === undefined || starts.length === 0) continue;
      const lead = name === "llama3_json" || name === "xlam" ? starts[0] : "";
      const output = `<think>It asks for Oslo.\n${lead}${write([["get_weather", { city: "Oslo" }]])}`;
      const results = [[output], output.split("")].map((pieces) => {
        const options = { machine, promptReasoning: "unknown", callStarts: starts, schemas } as const;
        const parser = new OutputParser({ ...options, reasoning: format("qwen3") });
        return outcome(joined([...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()]));
      });
      assert.deepEqual(results[1], results[0], name);
      assert.equal(results[0]?.reasoning, "It asks for Oslo.", name);
      assert.equal(results[0]?.content, "", name);
      assert.deepEqual(
        results[0]?.calls.map((made) => [made.name, JSON.parse(made.arguments) as unknown]),
        [["get_weather", { city: "Oslo" }]],
      );
    }
  });
});
