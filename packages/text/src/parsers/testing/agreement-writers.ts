/** A call as a test names it. */
export type NamedCall = readonly [name: string, args: Readonly<Record<string, unknown>>];

export type CallWriter = (calls: readonly NamedCall[]) => string;

const pretty = (value: unknown): string => JSON.stringify(value, null, 2);
const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const objects =
  (open: string, close: string, key = "arguments", separator = "\n"): CallWriter =>
  (calls) =>
    calls.map(([name, args]) => `${open}${pretty({ name, [key]: args })}${close}`).join(separator);

const array =
  (open: string, close: string, item = ([name, args]: NamedCall): unknown => ({ name, arguments: args })) =>
  (calls: readonly NamedCall[]): string =>
    `${open}${pretty(calls.map((call) => item(call)))}${close}`;

interface Brackets {
  readonly head: (name: string) => string;
  readonly foot: string;
  readonly before: (key: string, value: unknown) => string;
  readonly after: string;
}

const parameters =
  (open: string, close: string, { head, foot, before, after }: Brackets, separator = "\n"): CallWriter =>
  (calls) =>
    open +
    calls
      .map(([name, args]) => {
        const values = Object.entries(args).map(([key, value]) => before(key, value) + textOf(value) + after);
        return head(name) + values.join("") + foot;
      })
      .join(separator) +
    close;

const equalsSigns: Brackets = {
  head: (name) => `<function=${name}>\n`,
  foot: "</function>\n",
  before: (key) => `<parameter=${key}>\n`,
  after: "\n</parameter>\n",
};

const invoke = (prefix: string, mark = (_value: unknown): string => ""): Brackets => ({
  head: (name) => `<${prefix}invoke name="${name}">\n`,
  foot: `</${prefix}invoke>`,
  before: (key, value) => `<${prefix}parameter name="${key}"${mark(value)}>`,
  after: `</${prefix}parameter>\n`,
});

const pairs = (sep: string): Brackets => ({
  head: (name) => `<tool_call>${name}${sep}\n`,
  foot: "</tool_call>",
  before: (key) => `<arg_key>${key}</arg_key>\n<arg_value>`,
  after: "</arg_value>\n",
});

/** Each call in tags of its own. */
const eachIn =
  (open: string, close: string, brackets: Brackets): CallWriter =>
  (calls) =>
    calls.map((call) => parameters(open, close, brackets)([call])).join("\n");

function gemmaValue(value: unknown, quote: string): string {
  if (typeof value === "string") return quote + value + quote;
  if (Array.isArray(value)) return `[${value.map((item) => gemmaValue(item, quote)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${key}:${gemmaValue(member, quote)}`);
  return `{${members.join(",")}}`;
}

const gemma =
  (start: string, end: string, quote: string): CallWriter =>
  (calls) =>
    calls.map(([name, args]) => `${start}call:${name}${gemmaValue(args, quote)}${end}`).join("");

const words: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [null, "None"],
  [true, "True"],
  [false, "False"],
]);

const pythonic =
  (open: string, close: string, separator = ", "): CallWriter =>
  (calls) =>
    open +
    calls
      .map(([name, args]) => {
        const list = Object.entries(args).map(
          ([key, value]) => `${key}=${words.get(value) ?? JSON.stringify(value)}`,
        );
        return `${name}(${list.join(", ")})`;
      })
      .join(separator) +
    close;

const atem = (calls: readonly NamedCall[]): string =>
  parameters("<atem:function_calls>\n", "\n</atem:function_calls>", invoke("atem:"))(calls);
/** Messages to tools, and to the user around them. */
const muse: CallWriter = (calls) =>
  calls
    .map(([name, args]) => `<|start|>assistant to=${name}<|message|>${atem([[name, args]])}<|eom|>`)
    .join("");

const m3 = (name: string): string => `]<]minimax[>[<${name}>`;
const m3Element = (key: string, value: unknown): string => {
  let text = typeof value === "string" ? value : JSON.stringify(value);
  if (Array.isArray(value)) text = value.map((item) => m3Element("item", item)).join("");
  else if (typeof value === "object" && value !== null)
    text = Object.entries(value)
      .map(([name, member]) => m3Element(name, member))
      .join("");
  return m3(key) + text + m3(`/${key}`);
};

const k3Type = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value;

const plamo = (name: string, text = ""): string =>
  `<|plamo:begin_${name}:plamo|>${text}<|plamo:end_${name}:plamo|>`;

const bar = (name: string): string => `<\uff5c${name}\uff5c>`;
const deep = (name: string): string => bar(name.replaceAll("_", "\u2581"));
const dsml = "\uff5cDSML\uff5c";
const marked = (value: unknown): string => ` string="${typeof value === "string"}"`;

const deepseek =
  (call: (name: string, args: string) => string): CallWriter =>
  (calls) =>
    deep("tool_calls_begin") +
    calls
      .map(([name, args]) => `${deep("tool_call_begin")}${call(name, pretty(args))}${deep("tool_call_end")}`)
      .join("\n") +
    deep("tool_calls_end");

/** How each parser's models write calls. */
export const callWriters: Readonly<Record<string, CallWriter>> = {
  hermes: objects("<tool_call>\n", "\n</tool_call>"),
  qwen3_json: objects("<tool_call>\n", "\n</tool_call>"),
  ernie45: objects("<tool_call>\n", "\n</tool_call>"),
  longcat: objects("<longcat_tool_call>", "</longcat_tool_call>"),
  internlm: objects("<|action_start|><|plugin|>", "<|action_end|>", "parameters"),
  "granite-20b-fc": objects("<function_call> ", ""),
  granite4: objects("<tool_call>\n", "\n</tool_call>"),
  llama3_json: objects("", "", "parameters", "; "),
  gigachat3: objects("<|function_call|>", ""),
  granite: array("<|tool_call|> ", ""),
  phi4_mini_json: array("functools", ""),
  mistral: array("[TOOL_CALLS] ", ""),
  xlam: array("", ""),
  jamba: array("<tool_calls>", "</tool_calls>"),
  hunyuan_a13b: array("<tool_calls>", "</tool_calls>"),
  minimax: (calls) => `<tool_calls>\n${objects("", "")(calls)}\n</tool_calls>`,
  apertus: array("<|tools_prefix|>", "<|tools_suffix|>", ([name, args]) => ({ [name]: args })),
  cohere_command3: array("<|START_ACTION|>\n", "\n<|END_ACTION|>", ([name, args]) => ({
    tool_name: name,
    parameters: args,
  })),
  qwen3_coder: eachIn("<tool_call>\n", "</tool_call>", equalsSigns),
  qwen3_xml: eachIn("<tool_call>\n", "</tool_call>", equalsSigns),
  step3p5: eachIn("<tool_call>\n", "</tool_call>", equalsSigns),
  step5: eachIn("<tool_call>\n", "</tool_call>", equalsSigns),
  mimo: eachIn("<tool_call>\n", "</tool_call>", equalsSigns),
  seed_oss: eachIn("<seed:tool_call>\n", "</seed:tool_call>", equalsSigns),
  minicpm5: parameters("", "", {
    head: (name) => `<function name="${name}">`,
    foot: "</function>",
    before: (key) => `<param name="${key}">`,
    after: "</param>",
  }),
  dots: parameters("<dots_function_call>\n", "\n</dots_function_call>", invoke("")),
  muse,
  musespark1x: muse,
  muse_glimmer: muse,
  inkling: objects("<|content_invoke_tool_json|>", "<|end_message|>", "args", "<|message_model|>"),
  minimax_m3: (calls) =>
    m3("tool_call") +
    calls
      .map(
        ([name, args]) =>
          m3(`invoke name="${name}"`) +
          Object.entries(args)
            .map(([key, value]) => m3Element(key, value))
            .join("") +
          m3("/invoke"),
      )
      .join("\n") +
    m3("/tool_call"),
  kimi_k3: (calls) =>
    "<|open|>tools<|sep|>" +
    calls
      .map(([name, args], index) => {
        const list = Object.entries(args).map(
          ([key, value]) =>
            `<|open|>argument key="${key}" type="${k3Type(value)}"<|sep|>${textOf(value)}<|close|>argument<|sep|>`,
        );
        return `<|open|>call tool="${name}" index="${index + 1}"<|sep|>${list.join("")}<|close|>call<|sep|>`;
      })
      .join("") +
    "<|close|>tools<|sep|>",
  plamo3: (calls) =>
    plamo(
      "tool_requests",
      calls
        .map(([name, args]) =>
          plamo(
            "tool_request",
            plamo("tool_name", name) +
              plamo("tool_arguments", `<|plamo:constrain|>json<|plamo:msg|>${pretty(args)}`),
          ),
        )
        .join(""),
    ),
  k2_horizon: parameters("<ifm|tool_calls>", "</ifm|tool_calls>", {
    head: (name) => `<ifm|tool_call>${name}`,
    foot: "</ifm|tool_call>",
    before: (key) => `<ifm|arg_key>${key}</ifm|arg_key><ifm|arg_value>`,
    after: "</ifm|arg_value>",
  }),
  hy_v4: parameters("<tool_calls>", "</tool_calls>", pairs(""), ""),
  minimax_m2: parameters("<minimax:tool_call>\n", "\n</minimax:tool_call>", invoke("")),
  deepseek_v32: parameters(`<${dsml}function_calls>\n`, `\n</${dsml}function_calls>`, invoke(dsml, marked)),
  deepseek_v41: parameters(`<${dsml} calls>\n`, `\n</${dsml} calls>`, invoke(`${dsml} `, marked)),
  deepseek_v4: parameters(`<${dsml}tool_calls>\n`, `\n</${dsml}tool_calls>`, invoke(dsml, marked)),
  step3: parameters(
    bar("tool_calls_begin"),
    bar("tool_calls_end"),
    {
      ...invoke("steptml:"),
      head: (name) =>
        `${bar("tool_call_begin")}function${bar("tool_sep")}${name}\n<steptml:invoke name="${name}">`,
      foot: `</steptml:invoke>${bar("tool_call_end")}`,
    },
    bar("tool_sep"),
  ),
  glm45: parameters("", "", pairs("")),
  glm47: parameters("", "", pairs("")),
  ling3: parameters("", "", pairs("")),
  poolside_v1: parameters("", "", pairs("")),
  solar_open2: parameters("", "", {
    head: (name) => `<|tool_call:start|>${name}\n`,
    foot: "<|tool_call:end|>",
    before: (key) => `<|tool_arg:start|>${key}<|tool_arg:value|>`,
    after: "<|tool_arg:end|>\n",
  }),
  hy_v3: parameters("<tool_calls>\n", "\n</tool_calls>", pairs("<tool_sep>")),
  gemma4: gemma("<|tool_call>", "<tool_call|>", '<|"|>'),
  functiongemma: gemma("<start_function_call>", "<end_function_call>", "<escape>"),
  pythonic: pythonic("[", "]"),
  llama4_pythonic: pythonic("<|python_start|>[", "]<|python_end|>"),
  lfm2: pythonic("<|tool_call_start|>[", "]<|tool_call_end|>"),
  olmo3: pythonic("<function_calls>", "</function_calls>", "\n"),
  deepseek_v3: deepseek((name, args) => `function${deep("tool_sep")}${name}\n\`\`\`json\n${args}\n\`\`\``),
  deepseek_v31: deepseek((name, args) => name + deep("tool_sep") + args),
  kimi_k2: (calls) =>
    "<|tool_calls_section_begin|>" +
    calls
      .map(
        ([name, args], index) =>
          `<|tool_call_begin|>functions.${name}:${index}<|tool_call_argument_begin|>${pretty(args)}<|tool_call_end|>`,
      )
      .join("") +
    "<|tool_calls_section_end|>",
};
