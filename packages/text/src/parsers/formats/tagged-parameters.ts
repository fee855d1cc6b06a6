import type { ToolFormat } from "../machine.js";
import {
  type ParameterTags,
  taggedParameterCalls,
  taggedParameterLayout,
} from "../shared/tagged-parameters.js";

function formatOf(name: string, tags: ParameterTags): ToolFormat {
  const { open, close, call } = tags;
  const ofCall = call === undefined ? [] : [call.start, call.end, call.separator];
  const ofFunction = [tags.functionStart.split(" ")[0] ?? "", tags.functionEnd];
  const markers = open === "" ? ofFunction : [open, close, ...ofCall];
  return { name, markers, machine: taggedParameterCalls(tags), layout: taggedParameterLayout(tags) };
}

const equalsSigns = {
  functionStart: "<function=",
  functionEnd: "</function>",
  parameterStart: "<parameter=",
  parameterEnd: "</parameter>",
  quote: "",
  trimsLineBreaks: true,
} as const;

/** `<tool_call><function=name><parameter=key>value</parameter>...</function></tool_call>`. Format: the chat template of Qwen/Qwen3-Coder. */
export const qwen3CoderFormat = formatOf("qwen3_coder", {
  open: "<tool_call>",
  close: "</tool_call>",
  ...equalsSigns,
});

/** As Qwen's, between tags of its own. Format: the chat template of ByteDance-Seed/Seed-OSS-36B-Instruct. */
export const seedOssFormat = formatOf("seed_oss", {
  open: "<seed:tool_call>",
  close: "</seed:tool_call>",
  ...equalsSigns,
});

/**
 * `<function name="name"><param name="key">value</param></function>`, values in CDATA at times. Format: vLLM's parser for
 * openbmb's MiniCPM 5.
 */
export const minicpm5Format = formatOf("minicpm5", {
  open: "",
  close: "",
  functionStart: "<function name=",
  functionEnd: "</function>",
  parameterStart: "<param name=",
  parameterEnd: "</param>",
  quote: '"',
  verbatim: { start: "<![CDATA[", end: "]]>" },
  trimsLineBreaks: false,
});

/** `<invoke name="name"><parameter name="key">value</parameter></invoke>` with a prefix before each tag's name. */
export function invokeTags(prefix: string): Omit<ParameterTags, "open" | "close"> {
  return {
    isSection: true,
    functionStart: `<${prefix}invoke name=`,
    functionEnd: `</${prefix}invoke>`,
    parameterStart: `<${prefix}parameter name=`,
    parameterEnd: `</${prefix}parameter>`,
    quote: '"',
    trimsLineBreaks: false,
  };
}

/** Format: the tool calling guide of MiniMaxAI/MiniMax-M2. */
export const minimaxM2Format = formatOf("minimax_m2", {
  open: "<minimax:tool_call>",
  close: "</minimax:tool_call>",
  ...invokeTags(""),
});

/** As MiniMax M2's, between tags of its own. Format: vLLM's parser for rednote-hilab's dots. */
export const dotsFormat = formatOf("dots", {
  open: "<dots_function_call>",
  close: "</dots_function_call>",
  ...invokeTags(""),
});

const dsml = "\uff5cDSML\uff5c";

/** Parameters say whether they are strings. Format: the encoding that comes with deepseek-ai/DeepSeek-V3.2. */
export const deepseekV32Format = formatOf("deepseek_v32", {
  open: `<${dsml}function_calls>`,
  close: `</${dsml}function_calls>`,
  ...invokeTags(dsml),
  marksStrings: true,
});

/** As V3.2's, between other tags. Format: the encoding that comes with DeepSeek V4. */
export const deepseekV4Format = formatOf("deepseek_v4", {
  open: `<${dsml}tool_calls>`,
  close: `</${dsml}tool_calls>`,
  ...invokeTags(dsml),
  marksStrings: true,
});

/** As V4's, with spaces in the tags. Format: the encoding that comes with DeepSeek V4.1. */
export const deepseekV41Format = formatOf("deepseek_v41", {
  open: `<${dsml} calls>`,
  close: `</${dsml} calls>`,
  ...invokeTags(`${dsml} `),
  marksStrings: true,
});

const special = (name: string): string => `<\uff5c${name}\uff5c>`;

/** Each call also between special tokens, with `function`, a separator and the name before it at times. Format: the chat template of stepfun-ai/step3. */
export const step3Format = formatOf("step3", {
  open: special("tool_calls_begin"),
  close: special("tool_calls_end"),
  call: {
    start: special("tool_call_begin"),
    end: special("tool_call_end"),
    separator: special("tool_sep"),
  },
  ...invokeTags("steptml:"),
});
