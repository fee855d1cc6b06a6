import type { Usage } from "@octavo/engine";
import type { ChatDelta, ChatFinishReason } from "@octavo/protocol";
import type { Service } from "../service.js";
import { type ChatJob, finishReason } from "./chat-job.js";
import { completedReason, requireUsage } from "./run.js";

export interface ChatEnd {
  readonly finishReason: ChatFinishReason;
  readonly stopReason: string | number | null;
  readonly usage: Usage;
  readonly reasoningTokens: number | undefined;
}

/** The deltas of a chat's first sequence as they come, then how it ended. Throws when it ended before it was complete. */
export async function* chatTurn(
  service: Service,
  job: ChatJob,
  signal: AbortSignal,
): AsyncGenerator<readonly ChatDelta[], ChatEnd> {
  const { engine } = service.model;
  const reader = job.createReader();
  let reason: ChatFinishReason = "stop";
  let stopReason: string | number | null = null;
  let usage: Usage | undefined;
  for await (const event of job.events) {
    if (event.kind === "done") usage = event.usage;
    if (event.kind !== "delta") continue;
    for (const delta of event.deltas) {
      const plain: ChatDelta[] = delta.text === "" ? [] : [{ content: delta.text }];
      const deltas: ChatDelta[] = reader === undefined ? plain : [...reader.push(delta.text, delta.tokens)];
      if (delta.finishReason !== undefined) {
        const completed = completedReason(engine, delta.finishReason, signal);
        if (reader !== undefined) deltas.push(...reader.finish());
        reason = finishReason(completed, reader);
        stopReason = delta.stopReason ?? null;
      }
      if (deltas.length > 0) yield deltas;
    }
  }
  return {
    finishReason: reason,
    stopReason,
    usage: requireUsage(engine, usage, signal),
    reasoningTokens: reader?.reasoningTokens,
  };
}
