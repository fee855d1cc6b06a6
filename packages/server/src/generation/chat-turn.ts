import type { Usage } from "@octavo/engine";
import type { ChatDelta, ChatFinishReason } from "@octavo/protocol";
import type { Service } from "../service.js";
import { type ChatJob, finishReason, readDelta } from "./chat-job.js";
import { type GenerationReader, readGeneration } from "./run.js";

export interface ChatEnd {
  readonly finishReason: ChatFinishReason;
  readonly stopReason: string | number | null;
  readonly usage: Usage;
  readonly reasoningTokens: number | undefined;
}

/** Reads the first sequence of a chat: its deltas as they come, then how it ended. */
export async function readChat(
  service: Service,
  job: ChatJob,
  signal: AbortSignal,
  onDelta: (delta: ChatDelta) => void,
  flush?: () => Promise<void>,
): Promise<ChatEnd> {
  const reader = job.createReader();
  let reason: ChatFinishReason = "stop";
  let stopReason: string | number | null = null;
  const generation: GenerationReader = {
    onDelta: (delta, finish) => {
      for (const part of readDelta(reader, delta, finish !== undefined)) onDelta(part);
      if (finish === undefined) return;
      reason = finishReason(finish, reader);
      stopReason = delta.stopReason ?? null;
    },
    ...(flush && { flush }),
  };
  const { usage } = await readGeneration(service.model.engine, job.events, signal, generation);
  return { finishReason: reason, stopReason, usage, reasoningTokens: reader?.reasoningTokens };
}
