import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatMessage } from "@octavo/protocol";
import { RequestAccount } from "../account/request-account.js";
import { TenantResolver } from "../tenants/tenant-resolver.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { chatPrompt } from "./chat-prompt.js";

const asText = "{% for m in messages %}{{ m.content }}{% endfor %}";
const asParts = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}";
const knowingDeveloper = `${asText}{{ 'developer' }}`;
const call = { id: "c1", type: "function", function: { name: "add", arguments: "{}" } } as const;
const parts = [
  { type: "text", text: "a" },
  { type: "text", text: "b" },
] as const;
const user = { role: "user", content: "u" } as const;
const asked: ChatMessage = { role: "assistant", content: null, tool_calls: [call] };

async function given(source: string, messages: readonly ChatMessage[]): Promise<unknown> {
  await using model = new FakeLanguageModel({ templateSource: source });
  const options = {
    trustRequestChatTemplate: false,
    chatTemplateContentFormat: "auto",
    excludeToolsWhenToolChoiceNone: false,
    allowedMediaDomains: [],
  } as const;
  await chatPrompt(model, { messages: [...messages] }, options, {
    account: new RequestAccount({}, new TenantResolver(defaultTenantSettings)),
    signal: new AbortController().signal,
    hold: () => {},
  });
  return model.rendered[0]?.messages.map(({ role, content }) => [role, content]);
}

/** What a template is handed for messages, by whether it takes content as a text or in parts. */
const cases: readonly [name: string, ChatMessage[], asText: unknown, asParts: unknown][] = [
  [
    "null beside tool calls",
    [user, asked, { role: "tool", tool_call_id: "c1", content: "2" }],
    ["", "2"],
    [[], "2"],
  ],
  ["null", [user, { role: "assistant", content: null }], [""], [[]]],
  ["absent", [user, { role: "assistant", tool_calls: [call] }], [""], [[]]],
  ["an empty text", [user, { role: "assistant", content: "" }], [""], [[{ type: "text", text: "" }]]],
  ["parts", [user, { role: "user", content: [...parts] }], ["a\nb"], [parts]],
  [
    "parts of a tool",
    [user, asked, { role: "tool", tool_call_id: "c1", content: [...parts] }],
    ["", "a\nb"],
    [[], "a\nb"],
  ],
];
for (const [name, messages, text, list] of cases) {
  test(`content that is ${name} reaches a template as vLLM hands it over`, async () => {
    const contents = async (source: string): Promise<unknown[]> =>
      ((await given(source, messages)) as [string, unknown][]).slice(1).map(([, content]) => content);
    assert.deepEqual(await contents(asText), text);
    assert.deepEqual(await contents(asParts), list);
  });
}

test("a system message in front stays a text where the template trims it as one, as Gemma 4's does", async () => {
  const source = `{{ messages[0]['content'] | trim }}${asParts}`;
  const [system, developer] = ["system", "developer"].map(
    (role) => ({ role, content: " s " }) as ChatMessage,
  );
  const text = [{ type: "text", text: "u" }];
  assert.deepEqual(await given(source, [system!, user]), [
    ["system", " s "],
    ["user", text],
  ]);
  const knowing = `${source}{{ 'developer' }}`;
  assert.deepEqual(await given(knowing, [developer!, user]), [
    ["developer", " s "],
    ["user", text],
  ]);
  assert.deepEqual(await given(source, [user, { role: "system", content: [...parts] }]), [
    ["user", text],
    ["system", parts],
  ]);
});

test("developer messages become one system message in front for templates that do not know them", async () => {
  const messages: ChatMessage[] = [
    { role: "system", content: "s" },
    user,
    { role: "developer", content: [...parts] },
    { role: "developer", content: "" },
  ];
  const merged = [
    ["system", "s\n\na\nb"],
    ["user", "u"],
  ];
  assert.deepEqual(await given(asText, messages), merged);
  assert.deepEqual(await given(`${asText}{# developer #}`, messages), merged);
  assert.deepEqual(await given(asText, [{ role: "developer", content: "d" }, user]), [
    ["system", "d"],
    ["user", "u"],
  ]);
  assert.deepEqual(
    ((await given(knowingDeveloper, messages)) as [string, unknown][]).map(([role]) => role),
    ["system", "user", "developer", "developer"],
  );
  const late = [user, { role: "system", content: "later" }] as const;
  assert.deepEqual(await given(asText, late), [
    ["user", "u"],
    ["system", "later"],
  ]);
});
