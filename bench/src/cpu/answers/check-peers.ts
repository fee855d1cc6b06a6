import type { Peers } from "../contenders/find-peers.js";
import { llamaServer } from "../contenders/llama-cpp.js";
import { openvinoAnswer } from "../contenders/python-peers.js";
import type { ModelFile } from "../models/model-file.js";
import { checkPeerAnswer, nodeLlamaCppAnswer } from "./check-answers.js";
import { llamaServerAnswer } from "./llama-server-answer.js";

/** Octavo's greedy answers on a tiny file against those of every peer that is here. Throws `engine_failed` where they differ. */
export async function checkPeers(peers: Peers, model: ModelFile, threads: number): Promise<void> {
  if (peers.native.some(({ name }) => name === "node-llama-cpp")) {
    await checkPeerAnswer(model.path, await nodeLlamaCppAnswer(model.path));
  }
  if (peers.openvinoPython !== undefined) {
    await checkPeerAnswer(model.path, await openvinoAnswer(peers.openvinoPython, model, threads));
  }
  if (peers.serverFolder !== undefined) {
    const job = {
      kind: "server",
      clients: 1,
      requests: 1,
      requestsPerSecond: 1,
      sharedTokens: 0,
      inputTokens: 64,
      outputTokens: 64,
    } as const;
    const server = llamaServer({ folder: peers.serverFolder, flags: [] }, job, { model, threads, env: {} });
    await checkPeerAnswer(model.path, await llamaServerAnswer(server, model.shape.vocabSize));
  }
}
