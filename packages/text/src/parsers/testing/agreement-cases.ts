import {
  type AgreementCase,
  type AgreementRow,
  city,
  cutOff,
  keepsBroken,
  keepsText,
} from "./agreement-case.js";
import { channelAgreement } from "./agreement-channels.js";
import { jsonAgreement } from "./agreement-json.js";
import type { NamedCall } from "./agreement-writers.js";
import { reasoningAgreement } from "./reasoning-agreement.js";

const more = "f(name='Ann', age=37, place={'city': 'Oslo'}, role=None, ok=True, also=['a', 'b'])";
const moreCall: NamedCall = [
  "f",
  { name: "Ann", age: 37, place: { city: "Oslo" }, role: null, ok: true, also: ["a", "b"] },
];
const oslo = "get_weather(city='Oslo')";
/** The same for every pythonic format; `separator` stands between calls. */
const pythonic = (open: string, close: string, separator: string): readonly AgreementRow[] => [
  ["values of many types", open + more + close, [moreCall]],
  ["JSON's words", `${open}f(a=null, b=true, c=false)${close}`, [["f", { a: null, b: true, c: false }]]],
  ["empty values", `${open}f(a={}, b=[])${close}`, [["f", { a: {}, b: [] }]]],
  ["escapes", `${open}f(a='Ann\\'s', b='\\"x\\"')${close}`, [["f", { a: "Ann's", b: '"x"' }]]],
  ["two calls", open + oslo + separator + more + close, [city("Oslo"), moreCall]],
  [
    "no space between",
    `${open}g()${separator.trim() || separator}${oslo}${close}`,
    [["g", {}], city("Oslo")],
  ],
  [
    "a value that is none",
    `${open}${oslo}${separator}bad(x=b'z')${close}`,
    [city("Oslo"), ["bad", "broken"]],
    "",
    keepsBroken,
  ],
];

const lfm2: readonly AgreementRow[] = [
  [
    "text behind",
    `<|tool_call_start|>[${oslo}]<|tool_call_end|>\nWait.`,
    [city("Oslo")],
    "\nWait.",
    "white space behind calls is kept",
  ],
  [
    "dotted names",
    "<|tool_call_start|>[shop.order(items=[{'name': 'x', 'n': 2}])]<|tool_call_end|>",
    [["shop.order", { items: [{ name: "x", n: 2 }] }]],
  ],
  [
    "brackets in a string",
    "<|tool_call_start|>[run(command='grep \"]\" log')]<|tool_call_end|>",
    [["run", { command: 'grep "]" log' }]],
  ],
  [
    "line breaks in a string",
    "<|tool_call_start|>[run(command='a\nb')]<|tool_call_end|>",
    [["run", { command: "a\nb" }]],
  ],
  [
    "a NUL in a string",
    "<|tool_call_start|>[run(command='a\0b')]<|tool_call_end|>",
    [["run", { command: "a\0b" }]],
  ],
  [
    "leading zeros",
    "<|tool_call_start|>[set(month=07, day=05)]<|tool_call_end|>",
    [["set", { month: 7, day: 5 }]],
  ],
  ["white space before the bracket", `<|tool_call_start|> [${oslo}]<|tool_call_end|>`, [city("Oslo")]],
  [
    "a set",
    "<|tool_call_start|>[tag(all={'a', 'b'})]<|tool_call_end|>",
    [["tag", "broken"]],
    "",
    "sets are not read",
  ],
  [
    "quotes in a string",
    "<|tool_call_start|>[run(command='sed '1p' x')]<|tool_call_end|>",
    [["run", "broken"]],
    "",
    "unescaped quotes are not guessed",
  ],
];

const invoke = (name: string, key: string, value: string): string =>
  `<invoke name="${name}"><parameter name="${key}">${value}</parameter></invoke>`;
const minimaxM2: readonly AgreementRow[] = [
  [
    "text before",
    `Let me see. <minimax:tool_call>${invoke("get_weather", "city", "Oslo")}</minimax:tool_call>`,
    [city("Oslo")],
    "Let me see.",
  ],
  [
    "two in a section",
    `<minimax:tool_call>${invoke("a", "x", "1")}${invoke("b", "y", "2")}</minimax:tool_call>`,
    [
      ["a", { x: "1" }],
      ["b", { y: "2" }],
    ],
  ],
  [
    "null where it may be",
    `<minimax:tool_call>${invoke("convert", "maybe", "null")}</minimax:tool_call>`,
    [["convert", { maybe: null }]],
  ],
  [
    "an object or null",
    `<minimax:tool_call>${invoke("convert", "choice", '{"k": 1}')}</minimax:tool_call>`,
    [["convert", { choice: { k: 1 } }]],
  ],
  [
    "white space in text",
    `<minimax:tool_call>${invoke("edit", "text", "  a\n  b\n")}</minimax:tool_call>`,
    [["edit", { text: "  a\n  b\n" }]],
  ],
  ["outside a section", invoke("a", "x", "1"), [], invoke("a", "x", "1")],
];

const dsml = "\uff5cDSML\uff5c";
const deepseek = (name: string, key: string, mark: boolean, value: string): string =>
  `<${dsml}function_calls>\n<${dsml}invoke name="${name}">\n<${dsml}parameter name="${key}" string="${mark}">${value}</${dsml}parameter>\n</${dsml}invoke>\n</${dsml}function_calls>`;
const deepseekV32: readonly AgreementRow[] = [
  [
    "text before",
    `Sure! ${deepseek("get_weather", "city", true, "Oslo")}`,
    [city("Oslo")],
    "Sure!",
    "white space next to calls is dropped",
  ],
  ["a string by the schema's type", deepseek("convert", "count", true, "42"), [["convert", { count: 42 }]]],
  ["a value by the schema's type", deepseek("convert", "flag", false, "true"), [["convert", { flag: true }]]],
  [
    "an object by a composed schema",
    deepseek("convert", "choice", false, '{"for": 2}'),
    [["convert", { choice: { for: 2 } }]],
  ],
  [
    "a string of an object",
    deepseek("convert", "choice", true, '{"for": 2}'),
    [["convert", { choice: { for: 2 } }]],
  ],
  ["a number", deepseek("convert", "ratio", false, "3.5"), [["convert", { ratio: 3.5 }]]],
  [
    "arguments in a wrapper",
    deepseek("get_weather", "arguments", false, '{"city":"Oslo"}'),
    [["get_weather", { arguments: { city: "Oslo" } }]],
    "",
    "wrappers are not guessed",
  ],
];

const bar = (name: string): string => `<\uff5c${name.replaceAll("_", "\u2581")}\uff5c>`;
const section = (text: string): string => bar("tool_calls_begin") + text + bar("tool_calls_end");
const v31 = (name: string, args: string): string =>
  bar("tool_call_begin") + name + bar("tool_sep") + args + bar("tool_call_end");
const deepseekV31: readonly AgreementRow[] = [
  [
    "text around",
    `before${section(v31("a", '{"x":1}') + v31("b", '{"y":2}'))} after`,
    [
      ["a", { x: 1 }],
      ["b", { y: 2 }],
    ],
    "before after",
    keepsText,
  ],
  ["cut off", `Wait.${bar("tool_calls_begin")}get_weather`, [], `Wait.${bar("tool_calls_begin")}get_weather`],
  ["no call in the section", section(`a${bar("tool_sep")}{}`), [], section(`a${bar("tool_sep")}{}`)],
];

const step3: readonly AgreementRow[] = ["    if x:", "return 1\n", "hello\u00a0"].map((text) => [
  `white space in ${JSON.stringify(text)}`,
  `<\uff5ctool_calls_begin\uff5c><\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c>edit\n<steptml:invoke name="edit"><steptml:parameter name="text">${text}</steptml:parameter></steptml:invoke><\uff5ctool_call_end\uff5c><\uff5ctool_calls_end\uff5c>`,
  [["edit", { text }]],
]);

const kimi = (id: string, args: string): string =>
  `<|tool_call_begin|>${id} <|tool_call_argument_begin|>${args} <|tool_call_end|>`;
const kimiSection = (...calls: string[]): string =>
  `<|tool_calls_section_begin|>${calls.join("")}<|tool_calls_section_end|>`;
const kimiK2: readonly AgreementRow[] = [
  [
    "text before",
    `Wait. ${kimiSection(kimi("functions.get_weather:0", '{"city": "Oslo"}'))}`,
    [city("Oslo")],
    "Wait.",
  ],
  ["no prefix", kimiSection(kimi("get_weather:0", '{"city": "Oslo"}')), [city("Oslo")]],
  [
    "angle brackets",
    kimiSection(kimi("functions.f:0", '{"html": "<b>x</b>"}')),
    [["f", { html: "<b>x</b>" }]],
  ],
  [
    "invalid JSON, then another",
    kimiSection(
      kimi("functions.bad:0", '{"city": "Oslo"'),
      kimi("functions.get_weather:1", '{"city": "Rome"}'),
    ),
    [["bad", "broken"], city("Rome")],
  ],
  [
    "no counter",
    kimiSection(kimi("functions.get_weather", "{}")),
    [["get_weather", {}]],
    "",
    "an id without its counter names a tool too; vLLM skips the call",
  ],
];

const pair = (key: string, value: string): string =>
  `    <arg_key>${key}</arg_key>\n    <arg_value>${value}</arg_value>\n`;
const glm45: readonly AgreementRow[] = [
  [
    "indented",
    `<tool_call>get_weather\n${pair("city", "Oslo")}${pair("date", "2025-08-01")}    </tool_call>`,
    [["get_weather", { city: "Oslo", date: "2025-08-01" }]],
  ],
  [
    "two",
    `<tool_call>get_weather\n${pair("city", "Oslo")}</tool_call>\n    <tool_call>get_weather\n${pair("city", "Rome")}</tool_call>`,
    [city("Oslo"), city("Rome")],
  ],
  ["no arguments", "<tool_call>refresh\n</tool_call>", [["refresh", {}]]],
  [
    "no line break",
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>",
    [city("Oslo")],
  ],
  [
    "white space in text",
    "<tool_call>edit\n<arg_key>text</arg_key>\n<arg_value>  x\n</arg_value>\n</tool_call>",
    [["edit", { text: "  x\n" }]],
  ],
  [
    "white space around a number",
    "<tool_call>convert<arg_key>count</arg_key><arg_value> 420 </arg_value></tool_call>",
    [["convert", { count: 420 }]],
  ],
  ["cut off", `<tool_call>get_weather\n${pair("city", "Oslo")}`, [["get_weather", "broken"]], "", cutOff],
  ["no name", "<tool_call>   </tool_call>", [], "<tool_call>   </tool_call>"],
  [
    "space in the name",
    "<tool_call>  get weather  <arg_key>city</arg_key><arg_value>x</arg_value></tool_call>",
    [],
    "<tool_call>  get weather  <arg_key>city</arg_key><arg_value>x</arg_value></tool_call>",
    "tools' names have no spaces",
  ],
];

const gemma4: readonly AgreementRow[] = [
  [
    "a comma in a text",
    '<|tool_call>call:f{place:<|"|>Oslo, Norway<|"|>}<tool_call|>',
    [["f", { place: "Oslo, Norway" }]],
  ],
  [
    "nested",
    '<|tool_call>call:f{a:{b:<|"|>c<|"|>},d:[<|"|>e]f<|"|>,2]}<tool_call|>',
    [["f", { a: { b: "c" }, d: ["e]f", 2] }]],
  ],
  [
    "keys in quotes",
    '<|tool_call>call:f{a:{<|"|>3<|"|>:<|"|>x<|"|>}}<tool_call|>',
    [["f", { a: { "3": "x" } }]],
  ],
  [
    "other names",
    "<|tool_call>call:get-it{}<tool_call|><|tool_call>call:a.b{}<tool_call|>",
    [
      ["get-it", {}],
      ["a.b", {}],
    ],
  ],
  ["cut off", '<|tool_call>call:f{a:<|"|>Lon', [["f", "broken"]], "", cutOff],
];

const table: Readonly<Record<string, readonly AgreementRow[]>> = {
  ...jsonAgreement,
  ...channelAgreement,
  pythonic: pythonic("[", "]", ", "),
  llama4_pythonic: pythonic("<|python_start|>[", "]<|python_end|>", ", "),
  olmo3: pythonic("<function_calls>", "</function_calls>", "\n"),
  lfm2: [...pythonic("<|tool_call_start|>[", "]<|tool_call_end|>", ", "), ...lfm2],
  minimax_m2: minimaxM2,
  deepseek_v32: deepseekV32,
  deepseek_v31: deepseekV31,
  step3,
  kimi_k2: kimiK2,
  glm45,
  gemma4,
};

export const agreementCases: readonly AgreementCase[] = [
  ...Object.entries(table).flatMap(([parser, rows]) =>
    rows.map(([title, output, calls, content = "", differs]) => ({
      title,
      parser,
      output,
      calls,
      content,
      ...(differs === undefined ? {} : { differs }),
    })),
  ),
  ...reasoningAgreement,
];
