import type { IncomingMessage, ServerResponse } from "node:http";

/** What is dropped of a body that is not read, and how long it may take. */
const lingerBytes = 128 * 2 ** 20;
const lingerMs = 2000;

/**
 * Ends an answer that was written while its client still sends a body that nobody will read. The rest of the body is drained first,
 * within bounds: closing at once would reset the connection and lose the answer.
 */
export function drainThenEnd(request: IncomingMessage, response: ServerResponse): void {
  let dropped = 0;
  const finish = (): void => {
    clearTimeout(timer);
    request.off("data", drop).off("end", finish).off("error", finish);
    response.end();
  };
  const drop = (chunk: Buffer): void => {
    dropped += chunk.length;
    if (dropped > lingerBytes) finish();
  };
  const timer = setTimeout(finish, lingerMs);
  request.on("data", drop).on("end", finish).on("error", finish).resume();
}
