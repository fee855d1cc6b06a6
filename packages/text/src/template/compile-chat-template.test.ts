import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { TemplateInput, TemplateMessage } from "./chat-template.js";
import { compileChatTemplate } from "./compile-chat-template.js";

interface Outcome {
  readonly text?: string;
  readonly error?: string;
}

interface ChatFixtures {
  readonly templates: Readonly<Record<string, string>>;
  readonly chats: Readonly<Record<string, readonly TemplateMessage[]>>;
  readonly tools: readonly unknown[];
  readonly cases: readonly (Outcome & {
    readonly template: string;
    readonly chat: string;
    readonly options: Readonly<Record<string, unknown>>;
    readonly tools: boolean;
  })[];
}

interface SnippetFixtures {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly cases: readonly (Outcome & { readonly source: string })[];
}

/** Written by tools/oracle/templates/make_fixtures.py from transformers' own rendering. */
function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../fixtures/templates/${name}.json`, import.meta.url), "utf8"));
}

const chats = readFixture("chats") as ChatFixtures;
const snippets = readFixture("snippets") as SnippetFixtures;

function assertTemplateError(run: () => unknown, message: RegExp | undefined, what: string): void {
  assert.throws(
    run,
    (error) => {
      assert.ok(error instanceof OctavoError, `${what}: ${String(error)}`);
      assert.equal(error.code, "template_error");
      if (message !== undefined) assert.match(error.message, message);
      return true;
    },
    what,
  );
}

/** Python says `X: message`; ours must fail too, with the author's own words where the template raises. */
function assertOutcome(run: () => string, expected: Outcome, what: string): void {
  if (expected.error === undefined) {
    assert.equal(run(), expected.text, what);
    return;
  }
  const raised = /^TemplateError: (.*)$/s.exec(expected.error)?.[1];
  assertTemplateError(
    run,
    raised === undefined ? undefined : new RegExp(raised.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")),
    what,
  );
}

describe("chat templates, against transformers", () => {
  for (const { template, chat, options, tools, ...expected } of chats.cases) {
    const compiled = compileChatTemplate(chats.templates[template]!, { bosToken: "<s>", eosToken: "</s>" });
    it(`renders ${template} over ${chat} with ${JSON.stringify(options)}${tools ? " and tools" : ""}`, () => {
      const { add_generation_prompt: prompt, continue_final_message: continues, ...variables } = options;
      const input: TemplateInput = {
        messages: chats.chats[chat]!,
        addGenerationPrompt: prompt === true,
        continueFinalMessage: continues === true,
        variables,
        ...(tools && { tools: chats.tools }),
      };
      assertOutcome(() => compiled.render(input), expected, template);
    });
  }
});

describe("template snippets, against jinja2 as transformers sets it up", () => {
  for (const { source, ...expected } of snippets.cases) {
    it(`renders ${JSON.stringify(source)}`, () => {
      assertOutcome(
        () => compileChatTemplate(source).render({ messages: [], variables: snippets.variables }),
        expected,
        source,
      );
    });
  }
});

describe("compileChatTemplate", () => {
  it("names the line of a failure", () => {
    const template = compileChatTemplate("one\n{{ 1 }}\n{{ nothing.more }}\n");
    assertTemplateError(
      () => template.render({ messages: [] }),
      /'nothing' is undefined \(template line 3\)$/,
      "undefined",
    );
    assertTemplateError(
      () => compileChatTemplate("a\n\n{% if x %}"),
      /endif.*\(template line 3\)$/,
      "unclosed",
    );
  });

  it("refuses to go on with a message and to start a new one at once", () => {
    const template = compileChatTemplate("{{ messages[0].content }}");
    const messages = [{ role: "assistant", content: "x" }];
    const both = { messages, continueFinalMessage: true, addGenerationPrompt: true };
    assertTemplateError(() => template.render(both), /exclude each other/, "both");
    assert.equal(template.render({ messages, continueFinalMessage: true }), "x");
    assertTemplateError(
      () => template.render({ messages: [], continueFinalMessage: true }),
      /no messages/,
      "empty",
    );
    assertTemplateError(
      () => template.render({ messages: [{ role: "assistant", content: null }], continueFinalMessage: true }),
      /no text/,
      "no content",
    );
    assertTemplateError(
      () => compileChatTemplate("nothing of it").render({ messages, continueFinalMessage: true }),
      /does not write/,
      "dropped",
    );
  });

  it("ends hostile templates with an error, within bounds", () => {
    const hostile: readonly [string, RegExp][] = [
      [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        /does not end within/,
      ],
      ["{{ range(100000000) | length }}", /Range too big/],
      ["{{ 'x' * 10000000000 }}", /too often/],
      [
        "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        /more than/,
      ],
      [
        "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        /too long a list/,
      ],
      ["{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", /too deeply/],
      ["{% for n in [[]] recursive %}{{ loop([n]) }}{% endfor %}", /too deep/],
      ["{{ 10 ** 400 }}", /too large/],
      ["{{ '%999999999d' % 1 }}", /too large/],
      ["{{ '{:999999999}'.format(1) }}", /too large/],
      ["{{ 'a'.ljust(9999999999) }}", /too often/],
      ["{{ ".concat("(".repeat(5000), "1", ")".repeat(5000), " }}"), /nested too deeply/],
      ["{{ ".concat("not ".repeat(50_000), "1 }}"), /nested too deeply/],
      ["{{ messages.constructor.constructor('return process')() }}", /no attribute|undefined/],
      ["{{ messages['__proto__']['constructor'] }}", /unsafe/],
      ["{{ ''.join.constructor('x')() }}", /no attribute|undefined/],
      ["{{ range.call.constructor }}{{ range.call() }}", /no attribute/],
      ["{% set ns = namespace(__proto__=1) %}", /underscore-prefixed/],
      ["{{ '{0.__class__}'.format(messages) }}", /unsafe/],
    ];
    for (const [source, message] of hostile) {
      assertTemplateError(
        () => compileChatTemplate(source).render({ messages: [] }),
        message,
        source.slice(0, 80),
      );
    }
  });

  it("keeps own keys of the input apart from JavaScript's", () => {
    const template = compileChatTemplate(
      "{{ m.constructor }}|{{ m.__proto__ }}|{{ m.toString }}|{{ m['hasOwnProperty'] }}|{{ toString }}|",
    );
    assert.equal(template.render({ messages: [], variables: { m: {} } }), "|||||");
    const own = JSON.parse('{"m": {"__proto__": 1, "constructor": 2}}') as Record<string, unknown>;
    assert.equal(
      compileChatTemplate("{{ m.constructor }} {{ m | tojson }}").render({ messages: [], variables: own }),
      '2 {"__proto__": 1, "constructor": 2}',
    );
  });

  it("prints the time as Python's strftime", () => {
    const text = compileChatTemplate("{{ strftime_now('%Y-%m-%d|%-d %B %Y|%%') }}").render({ messages: [] });
    assert.match(text, /^\d{4}-\d\d-\d\d\|[1-9]\d? [A-Z][a-z]+ \d{4}\|%$/);
  });
});
