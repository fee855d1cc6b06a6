import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Template } from "@huggingface/jinja";
import { cases } from "./families.js";
import type { Message } from "./task.js";

interface Rendered {
  readonly conversation: { readonly messages: unknown[]; readonly tools?: unknown[] };
  readonly addGenerationPrompt: boolean;
  readonly text: string;
}

const folder = new URL("../../", import.meta.url);
const source = await readFile(new URL("chat_template.jinja", folder), "utf8");
const template = new Template(source);

test("the template renders as Python's jinja2 renders it", async () => {
  const fixture = JSON.parse(
    await readFile(new URL("generator/fixtures/rendered.json", folder), "utf8"),
  ) as Rendered[];
  for (const { conversation, addGenerationPrompt, text } of fixture) {
    const { messages, tools } = conversation;
    assert.equal(template.render({ messages, tools, add_generation_prompt: addGenerationPrompt }), text);
  }
});

test("the tokenizer's configuration carries the same template", async () => {
  const config = JSON.parse(await readFile(new URL("tokenizer_config.json", folder), "utf8")) as {
    chat_template: string;
  };
  assert.equal(config.chat_template, source);
});

test("a gold tool call is spelled as the template spells a past one", () => {
  const stream = cases({ task: "tools", split: "heldout", seed: "template" });
  for (let i = 0; i < 200; i++) {
    const { gold, expectedCalls = [] } = stream.next().value;
    if (expectedCalls.length === 0) continue;
    const calls = expectedCalls.map((call) => ({ type: "function", function: call }) as const);
    const messages: Message[] = [
      { role: "user", content: "?" },
      { role: "assistant", content: "", tool_calls: calls },
    ];
    assert.equal(
      template.render({ messages }),
      `<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n${gold}<|im_end|>\n`,
    );
  }
});
