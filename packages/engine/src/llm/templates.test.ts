import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TokenizerFileConfig } from "@octavo/text/tokenizer/source";
import { compileTemplates } from "./templates.js";

const config: TokenizerFileConfig = {
  bosToken: "<s>",
  eosToken: "</s>",
  unkToken: undefined,
  padToken: undefined,
  chatTemplate: "{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}",
  namedChatTemplates: new Map([["tool_use", "tools: {{ tools | length }}"]]),
};
const input = { messages: [{ role: "user", content: "hello" }] };

describe("compileTemplates", () => {
  test("compiles the default and named templates with the checkpoint's tokens", () => {
    const { chatTemplate, namedChatTemplates } = compileTemplates(config, undefined, undefined);
    assert.equal(chatTemplate?.render(input), "<s>hello</s>");
    assert.equal(namedChatTemplates.get("tool_use")?.render({ ...input, tools: [{}, {}] }), "tools: 2");
  });

  test("a template given replaces all of the checkpoint's", () => {
    const { chatTemplate, namedChatTemplates } = compileTemplates(
      config,
      "mine: {{ messages | length }}",
      undefined,
    );
    assert.equal(chatTemplate?.render(input), "mine: 1");
    assert.equal(namedChatTemplates.size, 0);
  });

  test("a broken one of the checkpoint is a warning, a broken one asked for an error", () => {
    const warnings: string[] = [];
    const broken = { ...config, chatTemplate: "{% if %}", namedChatTemplates: new Map([["rag", "{{"]]) };
    const templates = compileTemplates(broken, undefined, (message) => warnings.push(message));
    const refused = /checkpoint's default chat template cannot be used: .*template line 1/;
    assert.throws(() => templates.chatTemplate?.render(input), { code: "template_error", message: refused });
    assert.equal(templates.namedChatTemplates.size, 0);
    assert.deepEqual(
      warnings.map((message) => /checkpoint's (\w+) chat template/.exec(message)?.[1]),
      ["rag", "default"],
    );
    assert.throws(() => compileTemplates(config, "{% if %}", undefined), { code: "template_error" });
  });

  test("a checkpoint may have none", () => {
    const { chatTemplate } = compileTemplates({ ...config, chatTemplate: undefined }, undefined, undefined);
    assert.equal(chatTemplate, undefined);
  });
});
