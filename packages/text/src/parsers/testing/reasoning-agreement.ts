import type { AgreementCase } from "./agreement-case.js";

type Row = readonly [output: string, thought: string, content: string, differs?: string];

const trims = "white space around reasoning is dropped";
const waits =
  "without a start tag in prompt or answer, text is content: models that do not reason are read too";

/** Parsers whose answers begin inside reasoning. */
const open = (start: string, end: string): readonly Row[] => [
  [`Hm${end}Hello`, "Hm", "Hello"],
  [`Hm${end}`, "Hm", ""],
  ["Hm", "Hm", ""],
  [`One\nTwo${end}Hello\nyou`, "One\nTwo", "Hello\nyou"],
  [`${end}Hello`, "", "Hello"],
  [`${start}Hm${end}Hello`, "Hm", "Hello"],
  [`${start}Hm`, "Hm", ""],
  [`${start}One\nTwo${end}Hello`, "One\nTwo", "Hello"],
  ["", "", ""],
  [`\n${start}Hm${end}\nHello`, "Hm", "Hello", trims],
];

/** Parsers that read a start tag. */
const tagged = (start: string, end: string): readonly Row[] => [
  [`${start}Hm${end}Hello`, "Hm", "Hello"],
  [`${start}Hm${end}`, "Hm", ""],
  [`${start}One\nTwo${end}Hello\nyou`, "One\nTwo", "Hello\nyou"],
  [`${start}${end}Hello`, "", "Hello"],
  [`${start}${end}`, "", ""],
  [`${start}Hm`, "Hm", ""],
  ["Hello", "", "Hello"],
];

const table: Readonly<Record<string, readonly Row[]>> = {
  deepseek_r1: open("<think>", "</think>"),
  step3: open("<think>", "</think>"),
  step3p5: [
    ...open("<think>", "</think>"),
    ["<think>Hm\n</think>\nHello", "Hm", "Hello"],
    [
      "before<think>still",
      "before<think>still",
      "",
      "text before the start tag is reasoning: the answer begins in it",
    ],
  ],
  olmo3: [...open("<think>", "</think>"), ["<think>\n Look!\n</think>\n\nHello", "Look!", "Hello", trims]],
  ernie45: [
    ...open("<think>", "</think>"),
    ["Hm</think>\n\n<response>\nHello\n</response>\n", "Hm", "Hello\n"],
  ],
  minimax_m2: [
    ...open("<think>", "</think>"),
    ["```js\nx\n```</think>1+1=2", "```js\nx\n```", "1+1=2"],
    ["Hm</think>A</think>B", "Hm", "AB"],
  ],
  seed_oss: open("<seed:think>", "</seed:think>"),
  glm45: tagged("<think>", "</think>"),
  solar_open2: tagged("<|think:start|>", "<|think:end|>"),
  deepseek_v3: tagged("<think>", "</think>"),
  granite_thinking_parser: [
    ...tagged("<think>", "</think>"),
    ["<think>Hm</think><response>\nHello\n</response>", "Hm", "Hello"],
  ],
  mistral: tagged("[THINK]", "[/THINK]"),
  granite: tagged("Here is my thought process:", "Here is my response:"),
  qwen3: [...tagged("<think>", "</think>"), ["Hm</think>Hello", "", "Hm</think>Hello", waits]],
  kimi_k2: [...tagged("<think>", "</think>"), ["Hm", "", "Hm", waits]],
  hunyuan_a13b: [
    ...tagged("<think>\n", "\n</think>\n<answer>\n"),
    ["<think>\nHm!\n</think>\n<answer>\nHello\n</answer>", "Hm!", "Hello"],
  ],
  gemma4: [
    ...tagged("<|channel>", "<channel|>"),
    ["<|channel>thought\nOne\nTwo<channel|>Hello", "One\nTwo", "Hello"],
    ["<|channel>thought\n<channel|>", "", ""],
    ["<|channel>thousands<channel|>Done", "thousands", "Done"],
    [
      "Before\n<|channel>Hm<channel|>\nHello",
      "",
      "Before\n<|channel>Hm<channel|>\nHello",
      "reasoning is read where the answer begins",
    ],
  ],
  hy_v4: tagged("<think>", "</think>"),
  minimax_m3: [...tagged("<mm:think>", "</mm:think>"), ["XXX</mm:think>YYY", "", "XXX</mm:think>YYY"]],
  minimax_m2_append_think: [
    ["Hm</think>Hello", "", "<think>Hm</think>Hello"],
    ["Hm", "", "<think>Hm"],
  ],
  k2_horizon: [
    ...open("<ifm|think>", "</ifm|think>"),
    ["<ifm|think_fast>Hm</ifm|think_fast>Hello", "Hm", "Hello"],
  ],
  plamo3: [
    ...open("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    ["Hm<|plamo:end_think:plamo|>A<|plamo:end_think:plamo|>B", "Hm", "AB"],
  ],
  kimi_k3: [
    ...tagged("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    [
      "<|open|>think<|sep|>Hm<|close|>think<|sep|><|open|>response<|sep|>Hello<|close|>response<|sep|><|close|>message<|sep|>",
      "Hm",
      "Hello",
    ],
    ["Hello<|close|>response<|sep|>", "", "Hello"],
  ],
  cohere_command3: [
    ["<|START_THINKING|> Hm<|END_THINKING|>\n<|START_RESPONSE|>Hello<|END_RESPONSE|>", "Hm", "Hello"],
    ["<|START_THINKING|>Hm<|END_THINKING|>", "Hm", ""],
    [
      "<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>a <co>b</co: 0:[1]><|END_RESPONSE|>",
      "Hm",
      "a <co>b</co: 0:[1]>",
      "citations stay in the text",
    ],
  ],
};

const tool =
  "<tool_call>\n<function=edit>\n<parameter=path>\n/etc/hosts\n</parameter>\n</function>\n</tool_call>";
const edited = {
  parser: "qwen3_coder",
  reasoning: "qwen3",
  calls: [["edit", { path: "/etc/hosts" }]],
} as const;
const kimiCall =
  "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>";

export const reasoningAgreement: readonly AgreementCase[] = [
  ...Object.entries(table).flatMap(([reasoning, rows]) =>
    rows.map(([output, thought, content, differs]) => ({
      title: JSON.stringify(output),
      parser: "",
      reasoning,
      output,
      thought,
      content,
      ...(differs === undefined ? {} : { differs }),
    })),
  ),
  {
    title: "in the prompt",
    parser: "",
    reasoning: "qwen3",
    prompt: "open",
    output: "Hm</think>Hello",
    thought: "Hm",
    content: "Hello",
  },
  {
    title: "cut off, in the prompt",
    parser: "",
    reasoning: "qwen3",
    prompt: "open",
    output: "Hm",
    thought: "Hm",
  },
  { title: "off", ...edited, prompt: "closed", output: `I look.\n\n${tool}`, content: "I look." },
  { title: "ended by a call", ...edited, prompt: "open", output: `I look.\n\n${tool}`, thought: "I look." },
  { title: "begun and ended by a call", ...edited, output: `<think>I look.\n\n${tool}`, thought: "I look." },
  {
    title: "ended by a section",
    parser: "kimi_k2",
    reasoning: "kimi_k2",
    prompt: "open",
    output: `Hm${kimiCall}`,
    thought: "Hm",
    calls: [["f", {}]],
  },
  {
    title: "reasoning, then calls",
    parser: "cohere_command3",
    reasoning: "cohere_command3",
    output:
      '<|START_THINKING|> Hm<|END_THINKING|><|START_ACTION|>\n[\n    {"tool_call_id": "0", "tool_name": "a", "parameters": {"x": 1}},\n    {"tool_call_id": "1", "tool_name": "b", "parameters": {}}\n]\n<|END_ACTION|>',
    thought: "Hm",
    calls: [
      ["a", { x: 1 }],
      ["b", {}],
    ],
  },
  {
    title: "reasoning, text and a call in blocks",
    parser: "inkling",
    output:
      '<|content_thinking|>Hm.<|end_message|><|message_model|><|content_text|>So.<|end_message|><|message_model|><|content_invoke_tool_json|>{"name":"f","args":{}}<|end_message|>',
    thought: "Hm.",
    content: "So.",
    calls: [["f", {}]],
  },
  {
    title: "reasoning ended by a call's block",
    parser: "inkling",
    output: '<|content_thinking|>Hm<|content_invoke_tool_json|>{"name":"f","args":{}}<|end_message|>',
    thought: "Hm",
    calls: [["f", {}]],
  },
  {
    title: "a call behind reasoning that is not ended",
    parser: "muse",
    output:
      ' to=self<|message|>As in <atem:invoke name="x"> to=f<|message|><atem:function_calls><atem:invoke name="f"></atem:invoke></atem:function_calls><|eom|>',
    thought: 'As in <atem:invoke name="x">',
    calls: [["f", {}]],
  },
  {
    title: "a message to nobody",
    parser: "muse",
    output: "<|message|>Hm<|eom|><|start|>assistant to=user<|message|>Yes<|eot|>",
    thought: "Hm",
    content: "Yes",
  },
  {
    title: "a message to nobody",
    parser: "muse_glimmer",
    output: " to=self<|message|>Hm<|eom|><|start|>assistant<|message|>Yes<|eot|>",
    thought: "Hm",
    content: "Yes",
  },
  {
    title: "a call behind reasoning",
    parser: "xlam",
    reasoning: "qwen3",
    output: '<think>Hm</think>[{"name": "a", "arguments": {"x": 1}}]',
    thought: "Hm",
    calls: [["a", { x: 1 }]],
  },
  {
    title: "reasoning that speaks of calls",
    parser: "seed_oss",
    reasoning: "seed_oss",
    output:
      "<seed:think>As <seed:cot_budget_reflect>131 used</seed:cot_budget_reflect>\nso.</seed:think>\n<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo, NO</parameter>\n</function>\n</seed:tool_call>",
    thought: "As <seed:cot_budget_reflect>131 used</seed:cot_budget_reflect>\nso.",
    calls: [["get_weather", { city: "Oslo, NO" }]],
  },
];
