import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContentFormat } from "./chat-template.js";
import { detectContentFormat } from "./detect-content-format.js";

const inMessages = (body: string): string => `{% for m in messages %}${body}{% endfor %}`;

/** Each as vLLM 0.33 decides, which looks at what a template iterates over. */
const loop = inMessages("{% for p in m.content %}{{ p.text }}{% endfor %}");
const templates: Readonly<Record<ContentFormat, readonly string[]>> = {
  text_then_parts: [
    `{{ messages[0]['content'] | trim }}${loop}`,
    `{{ 'system: ' + messages[0].content }}${loop}`,
  ],
  parts: [
    `{{ messages[0].content[0].text | trim }}${loop}`,
    `{% if messages[0].content is string %}{{ messages[0].content | trim }}{% endif %}${loop}`,
    `{% for p in messages[0].content %}{{ p.text + messages[0].content }}{% endfor %}${loop}`,
    `{{ messages[1].content | trim }}${loop}`,
    inMessages("{% for p in m.content %}{{ p.text }}{% endfor %}"),
    inMessages("{% for p in m['content'] if p.type == 'text' %}{% endfor %}"),
    inMessages("{% set content = m['content'] %}{% if true %}{% for p in content %}{% endfor %}{% endif %}"),
    "{% set all = messages[1:] %}{% for m in all %}{% for p in m.content | list %}{% endfor %}{% endfor %}",
    "{% set ns = namespace(rest=messages) %}{% for m in ns.rest %}{% for p in m.content %}{% endfor %}{% endfor %}",
    "{% set ns.rest = messages %}{% for m in ns.rest[1:] %}{% for p in m.content %}{% endfor %}{% endfor %}",
    `{% macro show(body) %}{% for p in body %}{% endfor %}{% endmacro %}${inMessages("{{ show(m.content) }}")}`,
    `{% macro show(n, body) %}{% for p in body %}{% endfor %}{% endmacro %}${inMessages("{{ show(1, body=m['content']) }}")}`,
  ],
  string: [
    inMessages("{{ m.content }}"),
    inMessages("{% for call in m.tool_calls %}{{ call }}{% endfor %}"),
    // Mistral's: older clients put tool calls into the content
    inMessages("{% set calls = m.content %}{% for call in calls %}{{ call }}{% endfor %}"),
    inMessages("{% for p in m[content] %}{% endfor %}"),
    "{% for p in messages[0].content %}{% endfor %}",
    "{% for d in documents %}{% for p in d.content %}{% endfor %}{% endfor %}",
    `{% macro show(content) %}{% for p in content %}{% endfor %}{% endmacro %}${inMessages("{{ show(m.get('content')) }}")}`,
    `{% macro show(content) %}{% for p in content %}{% endfor %}{% endmacro %}${inMessages("{{ other(m.content) }}")}`,
  ],
};

for (const [format, sources] of Object.entries(templates)) {
  for (const source of sources) {
    test(`${source} takes content as ${format}`, () => assert.equal(detectContentFormat(source), format));
  }
}
