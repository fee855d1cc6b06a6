import type { GenerationEvent, SamplingParams, Usage } from "@octavo/engine";
import type { CompletionRequest, UsageInfo } from "@octavo/protocol";
import { wireUsage } from "../account/usage.js";
import type { Service } from "../service.js";
import { CompletionLogprobsBuilder } from "./logprobs.js";

/** One prompt of the request, queued in the engine as a request of its own. */
export interface PromptJob {
  readonly promptTokens: Int32Array;
  /** Text for `echo`; empty without it. */
  readonly echoText: string;
  readonly params: SamplingParams;
  readonly events: AsyncIterable<GenerationEvent>;
  /** Index of this prompt's first choice. */
  readonly firstIndex: number;
}

export interface CompletionJob {
  readonly id: string;
  readonly requestId: string;
  readonly created: number;
  readonly model: string;
  readonly request: CompletionRequest;
  readonly prompts: readonly PromptJob[];
  /** `echo` with `max_tokens` 0: the one token that the engine must sample is not returned. */
  readonly promptOnly: boolean;
}

export function completionUsage({ promptOnly }: CompletionJob, usage: Usage): UsageInfo {
  return wireUsage(promptOnly ? { ...usage, completionTokens: 0 } : usage);
}

export function logprobsBuilder(
  service: Service,
  job: CompletionJob,
  prompt: PromptJob,
): CompletionLogprobsBuilder {
  return new CompletionLogprobsBuilder(
    service.model.tokenizer,
    service.tokenTexts,
    job.request.return_tokens_as_token_ids === true,
    {
      skipSpecialTokens: prompt.params.skipSpecialTokens,
      ...(job.request.echo === true ? {} : { promptTokens: prompt.promptTokens }),
    },
  );
}
