import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileChatTemplate } from "./compile-chat-template.js";
import { TemplateWorkError } from "./template-work.js";

/** Each takes little to say and much to do, in a different part of the language. */
const hostile: Readonly<Record<string, string>> = {
  "nested loops": "{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}",
  "copied lists":
    "{% set x = range(99999) | list %}{% for i in range(99999) %}{% set y = x | reverse %}{% endfor %}",
  "joined lists":
    "{% set x = range(99999) | list %}{% for i in range(99999) %}{% set y = x + x %}{% endfor %}",
  slices: "{% set x = range(99999) | list %}{% for i in range(99999) %}{% set y = x[1:] %}{% endfor %}",
  "searched lists": "{% set x = range(99999) | list %}{% for i in range(99999) %}{{ -1 in x }}{% endfor %}",
  "searched texts": "{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{{ 'b' in x }}{% endfor %}",
  "compared texts":
    "{% set x = 'a' * 1000000 %}{% set y = 'a' * 1000000 %}{% for i in range(99999) %}{% set z = x == y %}{% endfor %}",
  "filtered texts":
    "{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{% set y = x | upper %}{% endfor %}",
  "methods of texts":
    "{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{% set y = x.strip() %}{% endfor %}",
  unique: "{{ range(99999) | unique | list | length }}",
  "shared values, compared":
    "{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
  "shared values, written":
    "{% set n = namespace(a=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a | tojson }}",
  "shared values, printed":
    "{% set n = namespace(a=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}",
};

describe("the work of a template", () => {
  for (const [name, source] of Object.entries(hostile)) {
    it(`is bounded: ${name}`, () => {
      const template = compileChatTemplate(source);
      assert.throws(
        () => template.render({ messages: [] }, 500_000),
        (error) => error instanceof TemplateWorkError && error.code === "template_error",
      );
    });
  }

  it("grows with the conversation and is counted alike every time", () => {
    const template = compileChatTemplate(
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% if loop.last %}!{% endif %}{% endfor %}",
    );
    const fits = (length: number, work: number): boolean => {
      const messages = Array.from({ length }, () => ({ role: "user", content: "hello there" }));
      try {
        return template.render({ messages }, work).endsWith("!");
      } catch (error) {
        assert.ok(error instanceof TemplateWorkError);
        return false;
      }
    };
    const needed = (length: number): number => {
      let [low, high] = [0, 1_000_000];
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (fits(length, middle)) high = middle;
        else low = middle;
      }
      return high;
    };
    const [few, many] = [needed(100), needed(1000)];
    assert.ok(many < few * 11, `${few} for 100 messages, ${many} for 1000`);
    assert.equal(needed(100), few);
  });
});
