import { type AgreementRow, city, cutOff, keepsBroken, keepsText, weatherJson } from "./agreement-case.js";
import type { NamedCall } from "./agreement-writers.js";

const search = (text: string): string => `{"name": "search", "parameters": {"query": "${text}"}}`;
const searched = (text: string): NamedCall => ["search", { query: text }];
const llama: readonly AgreementRow[] = [
  [
    "in text",
    `So: {"name": "list", "parameters": {}} Shall I go on?`,
    [["list", {}]],
    "So: Shall I go on?",
    keepsText,
  ],
  [
    "with arguments",
    '{"name": "search", "arguments": {"query": "x", "limit": 10}}',
    [["search", { query: "x", limit: 10 }]],
  ],
  ["invalid JSON", '{"name": "search", "parameters": {not json}', [["search", "broken"]], "", keepsBroken],
  [
    "three, with white space before the separator",
    `${search("a")} ; ${search("b")} ; ${search("c")}`,
    ["a", "b", "c"].map(searched),
  ],
  ["separated without white space", `${search("a")};${search("b")}`, ["a", "b"].map(searched)],
  ["on lines", `${search("a")}\n${search("b")}`, ["a", "b"].map(searched)],
  [
    "deeply nested",
    '{"name": "f", "parameters": {"a": {"b": {"c": {"d": {"e": "deep"}}}}}}',
    [["f", { a: { b: { c: { d: { e: "deep" } } } } }]],
  ],
  [
    "brackets in strings",
    '{"name": "search", "parameters": {"query": "a {b} [c] \\"d\\""}}',
    [searched('a {b} [c] "d"')],
  ],
  ["no name", '{"parameters": {}}', [], '{"parameters": {}}'],
  ["no arguments", '{"name": "list"}', [], '{"name": "list"}'],
  ["braces in text behind", `${search("a")} by {search}.`, [searched("a")], " by {search}.", keepsText],
  [
    "other JSON in text behind",
    `${search("a")} with {"query": "a"}`,
    [searched("a")],
    ' with {"query": "a"}',
    keepsText,
  ],
];

const hermes: readonly AgreementRow[] = [
  ["until the end", `<tool_call>\n${weatherJson("Oslo")}`, [city("Oslo")]],
  [
    "cut off",
    '<tool_call>\n{"name": "finish", "arguments": {"done": true}',
    [["finish", { done: true }]],
    "",
    cutOff,
  ],
  [
    "written twice as JSON",
    '<tool_call>\n{"name": "config", "arguments": "{\\"key\\": \\"limit\\"}"}\n</tool_call>',
    [["config", { key: "limit" }]],
  ],
  [
    "a string for arguments",
    '<tool_call>{"name": "config", "arguments": "hello"}</tool_call>',
    [["config", "broken"]],
  ],
  [
    "without a line break",
    `Sure.<tool_call>${weatherJson("Oslo")}</tool_call><tool_call>${weatherJson("Rome")}</tool_call>`,
    [city("Oslo"), city("Rome")],
    "Sure.",
  ],
];

const granite4: readonly AgreementRow[] = [
  [
    "text between",
    `A \n<tool_call> ${weatherJson("Oslo")} </tool_call> B <tool_call> ${weatherJson("Rome")} </tool_call> C`,
    [city("Oslo"), city("Rome")],
    "A B C",
    "white space next to calls is dropped",
  ],
];

const granite: readonly AgreementRow[] = [
  [
    "arguments first",
    '<|tool_call|> [{"arguments": {"city": "Oslo"}, "name": "get_weather"}, {"arguments": {"city": "Rome"}, "name": "get_weather"}]',
    [city("Oslo"), city("Rome")],
  ],
  ["the older tag", `<tool_call> [${weatherJson("Oslo")}]`, [city("Oslo")]],
  ["cut off", '<|tool_call|> [{"name": "f", "arguments": {', [["f", "broken"]], "", cutOff],
  [
    "no array",
    `<|tool_call|> ${weatherJson("Oslo")}`,
    [city("Oslo")],
    "",
    "one object is a call too; vLLM wants an array",
  ],
  ["no tag", 'See [{"name": "f"}]', [], 'See [{"name": "f"}]'],
];

const phi4: readonly AgreementRow[] = [
  [
    "white space after the bracket",
    `functools[\n  ${weatherJson("Oslo")},\n  ${weatherJson("Rome")}\n]`,
    [city("Oslo"), city("Rome")],
  ],
  ["empty", "functools[] and text", [], "functools[] and text"],
  ["prose", "functools[ some text ]", [], "functools[ some text ]"],
  [
    "no brackets",
    'functools{"name": "f"}',
    [["f", {}]],
    "",
    "a name alone is a call without arguments between tags",
  ],
];

const mistral: readonly AgreementRow[] = [
  [
    "arguments first",
    '[TOOL_CALLS] [{"arguments":{"name": "Ann"}, "name": "age"}]',
    [["age", { name: "Ann" }]],
  ],
  ["text behind", `[TOOL_CALLS] [${weatherJson("Oslo")}]\nmore`, [city("Oslo")], "\nmore", keepsText],
  [
    "two tags",
    `[TOOL_CALLS] [${weatherJson("Oslo")}][TOOL_CALLS] [${weatherJson("Rome")}]`,
    [city("Oslo"), city("Rome")],
    "",
    "a second tag begins further calls; vLLM refuses it",
  ],
  [
    "text before the array",
    `[TOOL_CALLS] so [${weatherJson("Oslo")}]`,
    [],
    `[TOOL_CALLS] so [${weatherJson("Oslo")}]`,
    "an array is looked for where the tag ends",
  ],
  [
    "no JSON",
    "[TOOL_CALLS] none at all",
    [],
    "[TOOL_CALLS] none at all",
    "markup that is no call is content, the tag included",
  ],
  [
    "a name and an object",
    '[TOOL_CALLS]add_two{"a": 3.5, "b": 4}[TOOL_CALLS]mul{"a": 3}',
    [
      ["add_two", { a: 3.5, b: 4 }],
      ["mul", { a: 3 }],
    ],
  ],
];

const xlam: readonly AgreementRow[] = [
  ["a fence", `I'll look.\n\`\`\`json\n[${weatherJson("Oslo")}]\n\`\`\``, [city("Oslo")], "I'll look."],
  ["Mistral's tag", `I'll look.[TOOL_CALLS][${weatherJson("Oslo")}]`, [city("Oslo")], "I'll look."],
  [
    "Hermes's tags",
    `I'll look.<tool_call>[${weatherJson("Oslo")}]</tool_call>`,
    [city("Oslo")],
    "I'll look.",
  ],
];

const toolCalls: readonly AgreementRow[] = [
  [
    "text behind",
    `<tool_calls>[${weatherJson("Oslo")}]</tool_calls>\nThanks!`,
    [city("Oslo")],
    "\nThanks!",
    keepsText,
  ],
  ["a missing end", `<tool_calls>\n${weatherJson("Oslo")}`, [city("Oslo")]],
  [
    "no arguments, then some",
    `<tool_calls>[{"name": "a", "arguments": {}}, ${weatherJson("Oslo")}]</tool_calls>`,
    [["a", {}], city("Oslo")],
  ],
  ["white space before", ` <tool_calls>[\n    ${weatherJson("Oslo")}\n]</tool_calls>`, [city("Oslo")]],
];

const apertus: readonly AgreementRow[] = [
  ["a missing end", '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}', [city("Oslo")]],
  [
    "nested",
    '<|tools_prefix|>[{"f": {"a": {"b": "c"}, "d": [1]}}, {"g": {}}]<|tools_suffix|>',
    [
      ["f", { a: { b: "c" }, d: [1] }],
      ["g", {}],
    ],
  ],
];

const gigachat3: readonly AgreementRow[] = [
  [
    "as a message",
    `Wait.<|message_sep|>\n\nfunction call<|role_sep|>\n${weatherJson("Oslo")}`,
    [city("Oslo")],
    "Wait.",
  ],
  ["the end of the text", `Wait.<|function_call|>${weatherJson("Oslo")}</s>`, [city("Oslo")], "Wait."],
];

/** Formats that write calls as JSON objects, by parser. */
export const jsonAgreement: Readonly<Record<string, readonly AgreementRow[]>> = {
  llama3_json: llama,
  hermes,
  granite4,
  granite,
  phi4_mini_json: phi4,
  mistral,
  xlam,
  hunyuan_a13b: toolCalls,
  apertus,
  gigachat3,
};
