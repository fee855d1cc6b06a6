import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { cases, taskNames } from "../generator/index.js";
import { ChatClient } from "./client.js";
import { formatTable, placeFigures } from "./report.js";
import { score } from "./score.js";

test("every gold answer scores full marks, and an empty one scores none", () => {
  for (const task of taskNames) {
    const stream = cases({ task, split: "heldout", seed: "score" });
    for (let i = 0; i < 60; i++) {
      const one = stream.next().value;
      const full = score(one, { content: one.gold, calls: one.expectedCalls ?? [], promptTokens: 0 });
      assert.ok(Object.values(full).every(Boolean), `${one.id} ${JSON.stringify(full)}`);
      const none = score(one, { content: "", calls: undefined, promptTokens: 0 });
      assert.ok(!Object.values(none).includes(true), one.id);
    }
  }
});

test("calls are read from the text and from the parsed field alike", async () => {
  const call = { name: "get_time", arguments: { city: "Bern" } };
  const messages = [
    { content: `<tool_call>\n${JSON.stringify(call)}\n</tool_call>` },
    {
      content: null,
      tool_calls: [
        {
          id: "a",
          type: "function",
          function: { name: call.name, arguments: JSON.stringify(call.arguments) },
        },
      ],
    },
    { content: "<tool_call>\n{broken\n</tool_call>" },
  ];
  const bodies: { messages: { tool_call_id?: string; tool_calls?: { id: string }[] }[] }[] = [];
  await using server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()) as (typeof bodies)[number]);
      response.end(
        JSON.stringify({ choices: [{ message: messages[bodies.length - 1] }], usage: { prompt_tokens: 5 } }),
      );
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = new ChatClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, "mini");
  const past = [
    { role: "user", content: "?" },
    { role: "assistant", content: "", tool_calls: [{ type: "function", function: call }] },
    { role: "tool", content: "{}" },
  ] as const;
  assert.deepEqual((await client.ask(past, undefined, 9)).calls, [call]);
  assert.deepEqual((await client.ask(past, undefined, 9)).calls, [call]);
  assert.equal((await client.ask(past, undefined, 9)).calls, undefined);
  assert.equal(bodies[0]?.messages[2]?.tool_call_id, bodies[0]?.messages[1]?.tool_calls?.[0]?.id);
});

test("the table replaces what stood between the markers", () => {
  const table = formatTable([{ measure: "chat: exact reply", right: 1, of: 2 }]);
  const card = placeFigures("a\n<!-- figures -->\nold\n<!-- /figures -->\nb", table);
  assert.ok(
    card.includes("50.0 %") && !card.includes("old") && card.startsWith("a\n") && card.endsWith("\nb"),
  );
  assert.throws(() => placeFigures("no markers", table));
});
