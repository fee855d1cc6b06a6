import { OctavoError } from "@octavo/protocol/errors";

// Flags are checked before weights are read; the parsers themselves can wait until a model is there to use them.

/** Of the formats in `registry.ts`. */
export const toolFormatNames: readonly string[] =
  `openai functiongemma gemma4 deepseek_v32 deepseek_v41 deepseek_v4 step3 deepseek_v3 deepseek_v31 kimi_k2 hy_v3 glm45 glm47 ling3
  poolside_v1 solar_open2 seed_oss qwen3_coder qwen3_xml mimo step3p5 minimax_m2 cohere_command3 cohere_command4 apertus internlm
  internlm2 longcat gigachat3 lfm2 olmo3 mistral granite granite4 granite-20b-fc phi4_mini_json hunyuan_a13b jamba minimax hermes
  qwen3_json ernie45 llama4_pythonic llama3_json llama4_json pythonic xlam`.split(/\s+/);

/** Name of the reasoning parser for harmony's channels; the tool format does its work. */
export const harmonyReasoning = "openai_gptoss";

/** Of `reasoningFormats`, then harmony's. */
export const reasoningFormatNames: readonly string[] =
  `deepseek_r1 holo2 olmo3 step3 step3p5 step5 qwen3 deepseek_v3 deepseek_v4 deepseek_v41 glm45 glm47 kimi_k2 hy_v3 ling3 mimo
  nemotron_v3 poolside_v1 minimax_m2 ernie45 granite_thinking_parser hunyuan_a13b seed_oss solar_open2 cohere_command3 cohere_command4
  gemma4 mistral granite ${harmonyReasoning}`.split(/\s+/);

/** `auto` detects the format from the chat template; `none` leaves the output unparsed. */
export interface FormatNames {
  readonly toolCallParser: string;
  readonly reasoningParser: string;
}

/** Name of the tool format that `gpt_oss` and `harmony` stand for too. */
export function toolFormatName(asked: string): string {
  return asked === "gpt_oss" || asked === "harmony" ? "openai" : asked;
}

/** Throws `invalid_option` for a name that is not known. */
export function checkFormatNames({ toolCallParser, reasoningParser }: FormatNames): void {
  check(
    "toolCallParser",
    "tool call parser",
    toolCallParser,
    toolFormatName(toolCallParser),
    toolFormatNames,
  );
  check("reasoningParser", "reasoning parser", reasoningParser, reasoningParser, reasoningFormatNames);
}

function check(param: string, kind: string, asked: string, name: string, known: readonly string[]): void {
  const names = ["auto", "none", ...known];
  if (names.includes(name)) return;
  const message = `${param}: there is no ${kind} ${JSON.stringify(asked)}; known are ${names.join(", ")}`;
  throw new OctavoError("invalid_option", message, { param });
}
