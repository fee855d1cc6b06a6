import { type AgreementRow, city, cutOff, keepsText, weatherJson } from "./agreement-case.js";

const invoke = (name: string, key: string, value: string): string =>
  `<invoke name="${name}"><parameter name="${key}">${value}</parameter></invoke>`;
const dots: readonly AgreementRow[] = [
  [
    "two in a section",
    `<dots_function_call>${invoke("get_weather", "city", "Oslo")}${invoke("convert", "count", "7")}</dots_function_call>`,
    [city("Oslo"), ["convert", { count: 7 }]],
  ],
  [
    "two sections",
    `See<dots_function_call>${invoke("get_weather", "city", "Oslo")}</dots_function_call><dots_function_call>${invoke("get_weather", "city", "Rome")}</dots_function_call>`,
    [city("Oslo"), city("Rome")],
    "See",
  ],
  [
    "no call, then one",
    `<dots_function_call>none</dots_function_call><dots_function_call>${invoke("get_weather", "city", "Oslo")}</dots_function_call>`,
    [city("Oslo")],
    "<dots_function_call>none</dots_function_call>",
    "a section without a call is content; vLLM drops it",
  ],
  ["a partial tag", "answer <dots_func", [], "answer <dots_func"],
  [
    "a JSON object",
    `<dots_function_call>${weatherJson("Oslo")}</dots_function_call>`,
    [],
    `<dots_function_call>${weatherJson("Oslo")}</dots_function_call>`,
    "only the markup that the template shows is read",
  ],
];

const param = (key: string, value: string): string => `<param name="${key}">${value}</param>`;
const minicpm5: readonly AgreementRow[] = [
  [
    "text around",
    `Before.\n<function name="get_weather">${param("city", "上海")}${param("date", "2024-06-27")}</function>\nAfter.\n`,
    [["get_weather", { city: "上海", date: "2024-06-27" }]],
    "Before.\nAfter.",
    keepsText,
  ],
  [
    "CDATA over lines",
    `<function name="edit">${param("text", "<![CDATA[<b>\n</param>]]>")}</function>`,
    [["edit", { text: "<b>\n</param>" }]],
  ],
  ["single quotes", `<function name='get_weather'>${param("city", "Oslo")}</function>`, [city("Oslo")]],
  [
    "values by the schema's types",
    `<function name="convert">${param("list", "[1, 2]")}${param("flag", "true")}</function>`,
    [["convert", { list: [1, 2], flag: true }]],
  ],
  ["no arguments", '<function name="refresh"></function>', [["refresh", {}]]],
  [
    "cut off",
    `<function name="get_weather">${param("city", "Oslo")}`,
    [["get_weather", "broken"]],
    "",
    cutOff,
  ],
  [
    "arguments in a wrapper",
    `<function name="get_weather">${param("arguments", '{"city": "Oslo"}')}</function>`,
    [["get_weather", { arguments: '{"city": "Oslo"}' }]],
    "",
    "wrappers are not guessed",
  ],
];

const ifm = (...calls: string[]): string =>
  `<ifm|tool_calls>${calls.map((call) => `<ifm|tool_call>${call}</ifm|tool_call>`).join("")}</ifm|tool_calls>`;
const ifmPair = (key: string, value: string, type = ""): string =>
  `<ifm|arg_key>${key}</ifm|arg_key>${type && `<ifm|arg_type>${type}</ifm|arg_type>`}<ifm|arg_value>${value}</ifm|arg_value>`;
const k2Horizon: readonly AgreementRow[] = [
  [
    "two, text around",
    `Before ${ifm(`convert${ifmPair("text", "123")}${ifmPair("count", "3")}`, "refresh")} after.`,
    [
      ["convert", { text: "123", count: 3 }],
      ["refresh", {}],
    ],
    "Before after.",
    "white space next to calls is dropped",
  ],
  [
    "types",
    ifm(`convert${ifmPair("text", "x", "string")}${ifmPair("count", "2", "integer")}`),
    [["convert", { text: "x", count: 2 }]],
  ],
  ["a JSON object", ifm(weatherJson("Oslo")), [city("Oslo")]],
  [
    "text in place of calls",
    "<ifm|tool_calls>junk</ifm|tool_calls>",
    [],
    "<ifm|tool_calls>junk</ifm|tool_calls>",
  ],
];

const m = "]<]minimax[>[";
const element = (key: string, ...inner: string[]): string => `${m}<${key}>${inner.join("")}${m}</${key}>`;
const m3 = (name: string, ...inner: string[]): string =>
  `${m}<invoke name="${name}">${inner.join("")}${m}</invoke>`;
const m3Section = (...calls: string[]): string => `${m}<tool_call>\n${calls.join("")}\n${m}</tool_call>`;
const minimaxM3: readonly AgreementRow[] = [
  [
    "nested",
    `I create it.\n${m3Section(
      m3(
        "order",
        element("note", "At the desk."),
        element(
          "items",
          element("item", element("sku", "a"), element("n", "2")),
          element("item", element("sku", "b")),
        ),
        element("twice", element("tag", "a"), element("tag", "b")),
      ),
    )}`,
    [
      [
        "order",
        {
          note: "At the desk.",
          items: { item: [{ sku: "a", n: "2" }, { sku: "b" }] },
          twice: { tag: ["a", "b"] },
        },
      ],
    ],
    "I create it.",
  ],
  [
    "lists, objects and values by the schema",
    m3Section(
      m3(
        "convert",
        element("list", element("item", "a"), element("item", "b")),
        element("map", element("k", "v")),
        element("count", "42"),
        element("maybe", "null"),
      ),
    ),
    [["convert", { list: ["a", "b"], map: { k: "v" }, count: 42, maybe: null }]],
  ],
  [
    "empty containers",
    m3Section(m3("convert", element("list"), element("map"))),
    [["convert", { list: [], map: {} }]],
  ],
  [
    "several",
    m3Section(m3("get_weather", element("city", "Oslo")), m3("get_weather", element("city", "Rome"))),
    [city("Oslo"), city("Rome")],
  ],
  [
    "leading zeros",
    m3Section(m3("convert", element("count", "018"))),
    [["convert", { count: "018" }]],
    "",
    "what is no JSON number stays text; vLLM makes it 18",
  ],
  ["not closed", m3Section(m3("get_weather", `${m}<city>Oslo`)), [["get_weather", "broken"]]],
];

const plamo = (name: string, text: string): string =>
  `<|plamo:begin_${name}:plamo|>${text}<|plamo:end_${name}:plamo|>`;
const plamoHead = (name: string): string =>
  `<|plamo:begin_tool_request:plamo|>${plamo("tool_name", name)}<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>`;
const plamoEnd = "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>";
const plamo3: readonly AgreementRow[] = [
  [
    "missing ends",
    `Before. <|plamo:begin_tool_requests:plamo|>${plamoHead("get_weather")}{"city":"東京"}`,
    [city("東京")],
    "Before.",
    "white space next to calls is dropped",
  ],
  [
    "two",
    plamo(
      "tool_requests",
      `${plamoHead("get_weather")}{"city":"Oslo"}${plamoEnd}${plamoHead("refresh")}{}${plamoEnd}`,
    ),
    [city("Oslo"), ["refresh", {}]],
  ],
  [
    "cut off in the name",
    "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>clo",
    [],
    "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>clo",
    "a name that is cut off is content; vLLM calls it",
  ],
];

const inklingCall = (name: string, args: string): string =>
  `<|content_invoke_tool_json|>{"name":"${name}","args":${args}}<|end_message|>`;
const inkling: readonly AgreementRow[] = [
  ["no block", "hello world", [], "hello world"],
  ["no block, ended", "hello world<|content_model_end_sampling|>", [], "hello world"],
  ["a text", "<|content_text|>hello world<|end_message|>", [], "hello world"],
  ["a name before its call", `get_weather${inklingCall("get_weather", '{"city":"Oslo"}')}`, [city("Oslo")]],
  [
    "two",
    `${inklingCall("refresh", "{}")}<|message_model|>${inklingCall("f", '{"x":[1,{"s":"a}b"}]}')}`,
    [
      ["refresh", {}],
      ["f", { x: [1, { s: "a}b" }] }],
    ],
  ],
  ["a call as text", "<|content_invoke_tool_text|>do it<|end_message|>", [], "do it"],
  ["an error", "<|content_tool_error|>boom<|end_message|>", [], "boom"],
  [
    "text behind",
    `${inklingCall("refresh", "{}")}<|message_model|><|content_text|>done<|end_message|>`,
    [["refresh", {}]],
    "done",
  ],
  ["markup in text", "<|content_text|>see <|content_text|>this<|end_message|>", [], "see this"],
  ["cut off", '<|content_invoke_tool_json|>{"name":"d","args":{"k":"v', [["d", "broken"]], "", cutOff],
];

const k3Argument = (key: string, type: string, value: string): string =>
  `<|open|>argument key="${key}" type="${type}"<|sep|>${value}<|close|>argument<|sep|>`;
const k3 = (attributes: string, ...inner: string[]): string =>
  `<|open|>tools<|sep|><|open|>call ${attributes}<|sep|>${inner.join("")}<|close|>call<|sep|><|close|>tools<|sep|>`;
const kimiK3: readonly AgreementRow[] = [
  [
    "types",
    k3(
      'tool="python" index="1"',
      k3Argument("code", "string", "print(1)\n"),
      k3Argument("opts", "object", '{"a":1}'),
    ),
    [["python", { code: "print(1)\n", opts: { a: 1 } }]],
  ],
  [
    "escapes in names",
    k3('tool="a&amp;b" index="1"', k3Argument("x&quot;", "number", "2.5")),
    [["a&b", { 'x"': 2.5 }]],
  ],
  [
    "a value that is not JSON",
    k3('tool="f" index="1"', k3Argument("x", "object", "{no")),
    [["f", { x: "{no" }]],
  ],
  ["no name", k3('index="1"'), [], `<|open|>call index="1"<|sep|><|close|>call<|sep|>`, "vLLM drops it"],
  [
    "cut off",
    `<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>${k3Argument("x", "string", "y")}`,
    [["f", "broken"]],
    "",
    cutOff,
  ],
];

const atem = (name: string, key: string, value: string): string =>
  `<atem:function_calls>\n<atem:invoke name="${name}">\n<atem:parameter name="${key}">${value}</atem:parameter>\n</atem:invoke>\n</atem:function_calls>`;
const muse: readonly AgreementRow[] = [
  [
    "a call, then an answer",
    ` to=get_weather<|message|>${atem("get_weather", "city", "Oslo")}<|eom|><|start|>assistant to=user<|message|>Rain.<|eot|>`,
    [city("Oslo")],
    "Rain.",
  ],
  [
    "an echo in an answer",
    ` to=user<|message|>As in ${atem("f", "x", "1")}<|eot|>`,
    [],
    `As in ${atem("f", "x", "1")}`,
  ],
  [
    "commentary",
    " to=commentary<|message|>One moment.<|eom|><|start|>assistant to=user<|message|> Done.<|eot|>",
    [],
    "One moment. Done.",
  ],
  [
    "to a developer",
    " to=developer<|message|>x<|eom|><|start|>assistant to=user<|message|>y<|eot|>",
    [],
    "y",
  ],
  ["without messages", atem("get_weather", "city", "Oslo"), [city("Oslo")]],
];

const hyV4: readonly AgreementRow[] = [
  [
    "two without separators",
    "<tool_calls><tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call><tool_call>refresh</tool_call></tool_calls>",
    [city("Oslo"), ["refresh", {}]],
  ],
];

/** Formats with blocks, channels and elements of their own, by parser. */
export const channelAgreement: Readonly<Record<string, readonly AgreementRow[]>> = {
  dots,
  minicpm5,
  k2_horizon: k2Horizon,
  minimax_m3: minimaxM3,
  plamo3,
  inkling,
  kimi_k3: kimiK3,
  muse,
  hy_v4: hyV4,
};
