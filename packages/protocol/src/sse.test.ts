import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { createSseDecoder, encodeSseJson, sseDone, type SseEvent } from "./sse.js";

function decodeAll(chunks: readonly (Uint8Array | string)[]): readonly SseEvent[] {
  const decoder = createSseDecoder();
  return chunks.flatMap((chunk) => decoder.push(chunk));
}

function cut(bytes: Uint8Array, lengths: readonly number[]): readonly Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let start = 0;
  for (const length of lengths) {
    chunks.push(bytes.subarray(start, start + length));
    start += length;
  }
  return [...chunks, bytes.subarray(start)];
}

/** Lines as a stream may hold them, with every line end that the standard allows. */
const streamText = fc
  .array(
    fc.tuple(
      fc.constantFrom(
        "",
        "data: a",
        "data:b",
        "data:  c",
        "data",
        ": comment",
        "event: x",
        "id: 7",
        "id: a\0b",
        "retry: 5",
        "odd",
        "data: é😀",
      ),
      fc.constantFrom("\n", "\r", "\r\n"),
    ),
    { maxLength: 20 },
  )
  .map((lines) => lines.map(([line, end]) => line + end).join(""));

/** The standard's rules applied to the whole text at once. */
function reference(text: string): readonly SseEvent[] {
  const events: SseEvent[] = [];
  let data: string[] = [];
  let event = "";
  let lastEventId = "";
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
  for (const line of lines.slice(0, -1)) {
    if (line === "") {
      if (data.length > 0) events.push({ event: event || "message", data: data.join("\n"), lastEventId });
      data = [];
      event = "";
      continue;
    }
    const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "data") data.push(value);
    if (name === "event") event = value;
    if (name === "id" && !value.includes("\0")) lastEventId = value;
  }
  return events;
}

describe("server-sent events", () => {
  it("decode what was encoded", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.array(fc.nat({ max: 9 })), (values, lengths) => {
        const bytes = Buffer.from(values.map((value) => encodeSseJson(value)).join("") + sseDone);
        const data = decodeAll(cut(bytes, lengths)).map((event) => event.data);
        assert.equal(data.pop(), "[DONE]");
        assert.deepEqual(
          data,
          values.map((value) => JSON.stringify(value)),
        );
      }),
      { seed: 7 },
    );
  });

  it("are the same wherever chunks are cut, in bytes or characters", () => {
    fc.assert(
      fc.property(streamText, fc.array(fc.nat({ max: 7 })), fc.boolean(), (text, lengths, marked) => {
        const whole = (marked ? "\ufeff" : "") + text;
        const expected = reference(whole);
        assert.deepEqual(decodeAll(cut(Buffer.from(whole), lengths)), expected);
        assert.deepEqual(decodeAll(whole.split("")), expected);
      }),
      { numRuns: 500, seed: 7 },
    );
  });

  it("know when a stream stopped inside an event", () => {
    const decoder = createSseDecoder();
    assert.equal(decoder.hasPartialEvent, false);
    decoder.push("data: a\n");
    assert.equal(decoder.hasPartialEvent, true);
    decoder.push("\n");
    assert.equal(decoder.hasPartialEvent, false);
    decoder.push("da");
    assert.equal(decoder.hasPartialEvent, true);
  });

  it("are bounded in length, by line and by event", () => {
    const byLine = createSseDecoder({ maxEventLength: 100 });
    assert.throws(() => {
      for (;;) byLine.push("data: xxxxxxxxx");
    }, /longer than 100 characters/);
    const byEvent = createSseDecoder({ maxEventLength: 100 });
    assert.throws(() => {
      for (;;) byEvent.push("data: xxxxxxxxx\n");
    }, /longer than 100 characters/);
    const fine = createSseDecoder({ maxEventLength: 100 });
    for (let i = 0; i < 1000; i++) assert.equal(fine.push("data: xxxxxxxxx\n\n").length, 1);
  });
});
