import { parentPort, workerData } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol/errors";
import type { EncodeReply, EncodeTextTask } from "./encode-worker-client.js";
import type { TokenizerSpecification } from "./specification.js";
import { TextTokenizer } from "./text-tokenizer.js";

const port = parentPort;
if (port === null)
  throw new OctavoError("internal_error", "The tokenizer's worker must run in a worker thread.");

const tokenizer = new TextTokenizer(workerData as TokenizerSpecification);

port.on("message", (task: EncodeTextTask) => {
  let reply: EncodeReply;
  try {
    reply = {
      taskId: task.taskId,
      ids: tokenizer.encodeUpTo(task.maxTokens, task.text, { addSpecialTokens: task.addSpecialTokens }),
    };
  } catch (thrown) {
    const { code, message } = OctavoError.from(thrown);
    reply = { taskId: task.taskId, failure: { code, message } };
  }
  port.postMessage(reply, "ids" in reply ? [reply.ids.buffer as ArrayBuffer] : []);
});
