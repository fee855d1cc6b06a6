import { OctavoError } from "@octavo/protocol/errors";

// Flags are checked before weights are read; the parsers themselves can wait until a model is there to use them.

/** Names of the tool formats in `registry.ts`. */
export const toolFormatNames: readonly string[] =
  `openai muse musespark1x muse_glimmer inkling functiongemma gemma4 deepseek_v32 deepseek_v41 deepseek_v4 step3
  deepseek_v3 deepseek_v31 kimi_k2 kimi_k3 k2_horizon plamo3 dots minimax_m3 minicpm5 hy_v3 hy_v4 glm45 glm47 ling3
  poolside_v1 solar_open2 seed_oss qwen3_coder qwen3_xml mimo step3p5 step5 minimax_m2 cohere_command3 cohere_command4
  apertus internlm internlm2 longcat gigachat3 lfm2 olmo3 mistral granite granite4 granite-20b-fc phi4_mini_json
  hunyuan_a13b jamba minimax hermes qwen3_json ernie45 llama4_pythonic llama3_json llama4_json pythonic xlam`.split(
    /\s+/,
  );

/** Names of vLLM's that are refused, and why. */
const refusedNames: Readonly<Record<string, string>> = {
  hf: "it reads the checkpoint's response_template, which is not supported",
  beam: "it reads the checkpoint's response_template, which is not supported",
  minicpmv: "MiniCPM-V's models take images, which are not supported",
};

/** Names in `reasoningFormats`, then those of tool formats that parse reasoning too. */
export const reasoningFormatNames: readonly string[] =
  `deepseek_r1 holo2 olmo3 step3 step3p5 step5 qwen3 deepseek_v3 deepseek_v4 deepseek_v41 glm45 glm47 kimi_k2 hy_v3 hy_v4
  ling3 mimo nemotron_v3 poolside_v1 minimax_m2 minimax_m2_append_think minimax_m3 ernie45 granite_thinking_parser
  hunyuan_a13b k2_horizon kimi_k3 plamo3 seed_oss solar_open2 cohere_command3 cohere_command4 gemma4 mistral granite
  openai_gptoss muse musespark1x muse_glimmer inkling`.split(/\s+/);

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
  const reason = Object.hasOwn(refusedNames, name) ? refusedNames[name] : undefined;
  const message =
    reason === undefined
      ? `${param}: there is no ${kind} ${JSON.stringify(asked)}; known are ${names.join(", ")}`
      : `${param}: the ${kind} ${JSON.stringify(asked)} of vLLM's cannot be used: ${reason}`;
  throw new OctavoError("invalid_option", message, { param });
}
