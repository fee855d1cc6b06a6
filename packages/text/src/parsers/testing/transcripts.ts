import { jsonTranscripts } from "./json-transcripts.js";
import { type Transcript, type TranscriptResult, transcriptTools, weather } from "./transcript.js";

export { type Transcript, type TranscriptResult, transcriptTools };

const bar = "\uff5c";
const deep = (name: string): string => `<${bar}${name.replaceAll("_", "\u2581")}${bar}>`;

/** Outputs as the formats' definitions write them, and what goes wrong with them in practice. */
export const transcripts: readonly Transcript[] = [
  ...jsonTranscripts,
  // pythonic
  {
    title: "calls in a list",
    format: "pythonic",
    output:
      "[get_weather(city='Oslo', days=3, detailed=True, tags=['a', \"b\"]), get_weather(note=None, extra={'k': -1.5e3})]",
    expected: {
      calls: [
        {
          name: "get_weather",
          arguments: '{"city": "Oslo", "days": 3, "detailed": true, "tags": ["a", "b"]}',
        },
        { name: "get_weather", arguments: '{"note": null, "extra": {"k": -1.5e3}}' },
      ],
    },
  },
  {
    title: "escapes and tuples",
    format: "pythonic",
    output: "[write_file(text='it\\'s \"a\"\\n\\x41\\u00e9\\q', pair=(1, .5))]",
    expected: {
      calls: [{ name: "write_file", arguments: '{"text": "it\'s \\"a\\"\\nAé\\\\q", "pair": [1, 0.5]}' }],
    },
  },
  {
    title: "brackets that are no calls",
    format: "pythonic",
    output: "[see](https://example.org) and [f(x)]",
    expected: { content: "[see](https://example.org) and [f(x)]" },
  },
  {
    title: "a broken call keeps its text",
    format: "pythonic",
    output: "[get_weather(city=Oslo, days=3)]",
    expected: {
      calls: [
        {
          name: "get_weather",
          arguments: '{"city": Oslo, days=3)]',
          problem: 'the arguments are not valid: "Oslo" is not a value',
        },
      ],
    },
  },
  {
    title: "between its tags",
    format: "llama4_pythonic",
    output: '<|python_start|>[get_weather(city="Oslo")]<|python_end|>',
    expected: { calls: [weather("Oslo")] },
  },
  {
    title: "between tags, in a list",
    format: "lfm2",
    output:
      'Looking. <|tool_call_start|> [get_weather(city="Oslo"), get_weather(city=Bergen)]<|tool_call_end|>\nDone.',
    expected: {
      content: "Looking.\nDone.",
      calls: [
        weather("Oslo"),
        {
          name: "get_weather",
          arguments: '{"city": Bergen)]',
          problem: 'the arguments are not valid: "Bergen" is not a value',
        },
      ],
    },
  },
  {
    title: "a call per line",
    format: "olmo3",
    output: '<function_calls>get_weather(city="Oslo")\nget_weather(city="Bergen")</function_calls>',
    expected: { calls: [weather("Oslo"), weather("Bergen")] },
  },
  // mistral
  {
    title: "an array of calls",
    format: "mistral",
    output:
      'Sure.[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "get_weather", "arguments": {"city": "Bergen"}, "id": "abcdefghi"}]',
    expected: { content: "Sure.", calls: [weather("Oslo"), weather("Bergen")] },
  },
  {
    title: "names before the arguments",
    format: "mistral",
    output:
      '[TOOL_CALLS]get_weather{"city": "Oslo"}[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Bergen"}',
    expected: { calls: [weather("Oslo"), weather("Bergen", { id: "a1b2c3d4e" })] },
  },
  // qwen3_coder
  {
    title: "parameters typed by the schema",
    format: "qwen3_coder",
    output:
      "Let me see.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=detailed>\nTrue\n</parameter>\n<parameter=note>\nnull\n</parameter>\n</function>\n</tool_call>",
    expected: {
      content: "Let me see.",
      calls: [
        { name: "get_weather", arguments: '{"city": "Oslo", "days": 3, "detailed": true, "note": null}' },
      ],
    },
  },
  {
    title: "text over lines, quotes and tags in it, no outer tag",
    format: "qwen3_coder",
    output:
      '<function=write_file>\n<parameter=text>\n\nif (a < b) {\n  "x\\y"\n}\n\n</parameter>\n</function>\n<tool_call>\n<function=get_weather>\n</function>\n</tool_call>',
    expected: {
      calls: [
        { name: "write_file", arguments: '{"text": "\\nif (a < b) {\\n  \\"x\\\\y\\"\\n}\\n"}' },
        { name: "get_weather", arguments: "{}" },
      ],
    },
  },
  {
    title: "cut off in a value",
    format: "qwen3_xml",
    output: "<tool_call>\n<function=write_file>\n<parameter=text>\nhalf",
    expected: {
      calls: [
        { name: "write_file", arguments: '{"text": "half"}', problem: 'the parameter "text" is not closed' },
      ],
    },
  },
  // granite, phi
  {
    title: "an array behind the token",
    format: "granite",
    output:
      '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "get_weather", "arguments": {"city": "Bergen"}}]',
    expected: { calls: [weather("Oslo"), weather("Bergen")] },
  },
  {
    title: "an object between tags",
    format: "granite",
    output: '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    expected: { calls: [weather("Oslo")] },
  },
  {
    title: "functools",
    format: "phi4_mini_json",
    output: 'functools[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    expected: { calls: [weather("Oslo")] },
  },
  {
    title: "the module of that name",
    format: "phi4_mini_json",
    output: "import functools  # [a]",
    expected: { content: "import functools  # [a]" },
  },
  // deepseek
  {
    title: "fenced arguments",
    format: "deepseek_v3",
    output: `Looking.${deep("tool_calls_begin")}${deep("tool_call_begin")}function${deep("tool_sep")}get_weather\n\`\`\`json\n{"city": "Oslo"}\n\`\`\`${deep("tool_call_end")}\n${deep("tool_call_begin")}function${deep("tool_sep")}get_weather\n\`\`\`json\n{"city": "Bergen"}\n\`\`\`${deep("tool_call_end")}${deep("tool_calls_end")}`,
    expected: { content: "Looking.", calls: [weather("Oslo"), weather("Bergen")] },
  },
  {
    title: "names before the separator",
    format: "deepseek_v31",
    output: `${deep("tool_calls_begin")}${deep("tool_call_begin")}get_weather${deep("tool_sep")}{"city": "Oslo"}${deep("tool_call_end")}${deep("tool_calls_end")}`,
    expected: { calls: [weather("Oslo")] },
  },
  // kimi
  {
    title: "ids of its own",
    format: "kimi_k2",
    output:
      'Ok.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>{"city": "Bergen"}<|tool_call_end|><|tool_calls_section_end|>',
    expected: {
      content: "Ok.",
      calls: [
        weather("Oslo", { id: "functions.get_weather:0" }),
        weather("Bergen", { id: "functions.get_weather:1" }),
      ],
    },
  },
  // glm
  {
    title: "keys and values",
    format: "glm45",
    output:
      '<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>tags</arg_key>\n<arg_value>["a"]</arg_value>\n</tool_call>',
    expected: { calls: [{ name: "get_weather", arguments: '{"city": "Oslo", "days": 2, "tags": ["a"]}' }] },
  },
  // harmony
  {
    title: "analysis, preamble, call",
    format: "openai",
    output:
      '<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary<|message|>One moment.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}',
    expected: { reasoning: "Need weather.", content: "One moment.", calls: [weather("Oslo")] },
  },
  {
    title: "recipient before the channel, then an answer",
    format: "openai",
    output:
      ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Oslo"}<|call|><|start|>assistant<|channel|>final<|message|>It rains < 3.<|return|>',
    expected: { content: "It rains < 3.", calls: [weather("Oslo")] },
  },
  // functiongemma
  {
    title: "escaped strings, numbers, lists",
    format: "functiongemma",
    output:
      '<start_function_call>call:get_weather{city:<escape>Oslo, "N"<escape>,days:3,tags:[<escape>a<escape>,<escape>b<escape>],place:{lat:59.9,ok:true}}<end_function_call>',
    expected: {
      calls: [
        {
          name: "get_weather",
          arguments:
            '{"city": "Oslo, \\"N\\"", "days": 3, "tags": ["a", "b"], "place": {"lat": 59.9, "ok": true}}',
        },
      ],
    },
  },
  {
    title: "texts in JSON's quotes",
    format: "functiongemma",
    output:
      'Well. <start_function_call>call:get_weather{city:<escape>Oslo<escape>,tags:["a\\"}", "\\u003cb"],place:{"x:y": 1, <escape>z<escape>:"w"}}<end_function_call>',
    expected: {
      content: "Well.",
      calls: [
        {
          name: "get_weather",
          arguments: '{"city": "Oslo", "tags": ["a\\"}", "\\u003cb"], "place": {"x:y": 1, "z": "w"}}',
        },
      ],
    },
  },
  {
    title: "a text in JSON's quotes that is not closed",
    format: "functiongemma",
    output: '<start_function_call>call:get_weather{city:"Oslo}<end_function_call>Then.',
    expected: {
      content: "Then.",
      calls: [
        weather("", {
          arguments: '{"city": "Oslo}',
          problem: "the arguments are not valid: a text is not closed",
        }),
      ],
    },
  },
];
