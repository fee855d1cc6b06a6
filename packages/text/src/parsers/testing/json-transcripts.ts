import { type Transcript, weather } from "./transcript.js";

/** Formats that write calls as JSON objects, in tags or alone. */
export const jsonTranscripts: readonly Transcript[] = [
  // hermes
  {
    title: "one call",
    format: "hermes",
    output: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    expected: { calls: [weather("Oslo")] },
  },
  {
    title: "text, two calls, text",
    format: "hermes",
    output:
      'I will look.\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n' +
      '<tool_call>\n{"arguments": {"city": "Tromsø 🏔️"}, "name": "get_weather"}\n</tool_call>\nDone.',
    expected: { content: "I will look.\nDone.", calls: [weather("Oslo"), weather("Tromsø 🏔️")] },
  },
  {
    title: "a tag inside a string is text",
    format: "hermes",
    output:
      '<tool_call>{"name": "write_file", "arguments": {"text": "a </tool_call> \\" <tool_call>\\n}"}}</tool_call>',
    expected: {
      calls: [{ name: "write_file", arguments: '{"text": "a </tool_call> \\" <tool_call>\\n}"}' }],
    },
  },
  {
    title: "arguments that are not JSON",
    format: "hermes",
    output: '<tool_call>\n{"name": "get_weather", "arguments": {"city": Oslo}}\n</tool_call>',
    expected: {
      calls: [
        {
          name: "get_weather",
          arguments: '{"city": Oslo}',
          problem: 'the arguments are not valid JSON: "Oslo" is not a value',
        },
      ],
    },
  },
  {
    title: "an unclosed string ends with the call, once it holds a raw line break",
    format: "hermes",
    output:
      '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bergen"}}\n</tool_call>',
    expected: {
      calls: [
        {
          name: "get_weather",
          arguments: '{"city": "Oslo}}\n',
          problem: "the arguments are not valid JSON: a string holds a raw control character",
        },
        weather("Bergen"),
      ],
    },
  },
  {
    title: "cut off in the arguments",
    format: "hermes",
    output: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os',
    expected: {
      calls: [
        {
          name: "get_weather",
          arguments: '{"city": "Os',
          problem: "the arguments are not valid JSON: it ends before it is complete",
        },
      ],
    },
  },
  {
    title: "cut off in the name",
    format: "hermes",
    output: '<tool_call>\n{"name": "get_we',
    expected: { content: '<tool_call>\n{"name": "get_we' },
  },
  {
    title: "markup without a call is content",
    format: "hermes",
    output: 'Write <tool_call>your call</tool_call> or <tool_cal {"name": 1}.',
    expected: { content: 'Write <tool_call>your call</tool_call> or <tool_cal {"name": 1}.' },
  },
  {
    title: "one brace too many, no end tag",
    format: "hermes",
    output: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}}\n',
    expected: { calls: [weather("Oslo")] },
  },
  {
    title: "no arguments",
    format: "hermes",
    output: '<tool_call>{"name": "get_weather"}</tool_call>',
    expected: { calls: [{ name: "get_weather", arguments: "{}" }] },
  },
  {
    title: "arguments that are no object",
    format: "hermes",
    output: '<tool_call>{"name": "get_weather", "arguments": [1, 2]}</tool_call>',
    expected: {
      calls: [{ name: "get_weather", arguments: "[1, 2]", problem: "the arguments are not a JSON object" }],
    },
  },
  {
    title: "plain text keeps its white space",
    format: "hermes",
    output: "  Hello,\n\n world < 3 \n",
    expected: { content: "  Hello,\n\n world < 3 \n" },
  },
  // llama3_json
  {
    title: "an object as the answer",
    format: "llama3_json",
    output: '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
    expected: { calls: [weather("Oslo")] },
  },
  {
    title: "behind the tag, two calls",
    format: "llama3_json",
    output:
      '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo"}}; {"type": "function", "name": "get_weather", "parameters": {"city": "Bergen"}}',
    expected: { calls: [weather("Oslo"), weather("Bergen")] },
  },
  {
    title: "calls in the middle of text",
    format: "llama3_json",
    output:
      'Let me see: {"name": "get_weather", "parameters": {"city": "Oslo"}}; {"name": "get_weather", "parameters": {"city": "Bergen"}} Looking {there}.',
    expected: { content: "Let me see: Looking {there}.", calls: [weather("Oslo"), weather("Bergen")] },
  },
  {
    title: "what looks like a call inside other JSON is content",
    format: "llama3_json",
    output: 'As in {"steps": [{"name": "get_weather", "parameters": {"city": "Oslo"}}]}.',
    expected: { content: 'As in {"steps": [{"name": "get_weather", "parameters": {"city": "Oslo"}}]}.' },
  },
  {
    title: "other JSON is content",
    format: "llama3_json",
    output: ' {"name": "Ada", "age": 36}\n',
    expected: { content: ' {"name": "Ada", "age": 36}\n' },
  },
  {
    title: "code behind the tag is content",
    format: "llama3_json",
    output: '<|python_tag|>print({"a": 1})',
    expected: { content: '<|python_tag|>print({"a": 1})' },
  },
];
