import { parentPort, workerData } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol/errors";
import { compileChatTemplate } from "./compile-chat-template.js";
import type { RenderReply, RenderTask } from "./render-in-worker.js";

const { source, input, tokens, maxWork, maxOutputLength } = workerData as RenderTask;

const send = (reply: RenderReply): void => parentPort?.postMessage(reply, []);

let reply: RenderReply;
try {
  const text = compileChatTemplate(source, tokens).render(input, maxWork);
  if (text.length > maxOutputLength) {
    throw new OctavoError(
      "template_error",
      `The template writes ${text.length} characters; at most ${maxOutputLength} are accepted.`,
    );
  }
  reply = { text };
} catch (thrown) {
  const { code, message } = OctavoError.from(thrown);
  reply = { failure: { code, message } };
}
send(reply);
