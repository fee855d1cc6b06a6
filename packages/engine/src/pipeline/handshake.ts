import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { OctavoError } from "@octavo/protocol/errors";

const nonceBytes = 32;
const proofBytes = 32;
const fewestKeyBytes = 16;
const timeoutMs = 10_000;

/** The secret that both ends of a stage's connection have: what the file holds, without spaces around it. Throws `invalid_option`. */
export function readStageKey(path: string): Buffer {
  const fail = (problem: string, cause?: unknown): OctavoError =>
    new OctavoError("invalid_option", `pipeline_key_file ${path}: ${problem}`, {
      param: "pipeline_key_file",
      cause,
    });
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw fail((cause as Error).message, cause);
  }
  const key = Buffer.from(text);
  if (key.length < fewestKeyBytes)
    throw fail(
      `expected at least ${fewestKeyBytes} characters, such as those of \`openssl rand -base64 32\``,
    );
  return key;
}

/**
 * Both ends show by HMAC-SHA-256 over two fresh nonces that they have the key, which never crosses the wire; the one that listens
 * reads nothing else before. What follows is neither encrypted nor signed.
 */
export async function admitByKey(socket: Socket, key: Buffer): Promise<void> {
  const own = randomBytes(nonceBytes);
  socket.write(own);
  const answer = await readExactly(socket, nonceBytes + proofBytes);
  const other = answer.subarray(0, nonceBytes);
  if (!timingSafeEqual(answer.subarray(nonceBytes), proofOf(key, "connects", own, other))) throw wrongKey();
  socket.write(proofOf(key, "listens", own, other));
}

/** The end that connects. Rejects with `engine_failed` where the other has another key, or none. */
export async function showKey(socket: Socket, key: Buffer): Promise<void> {
  const other = await readExactly(socket, nonceBytes);
  const own = randomBytes(nonceBytes);
  socket.write(Buffer.concat([own, proofOf(key, "connects", other, own)]));
  const proof = await readExactly(socket, proofBytes);
  if (!timingSafeEqual(proof, proofOf(key, "listens", other, own))) throw wrongKey();
}

/** `listening`: the nonce of the end that listens. */
function proofOf(key: Buffer, end: "connects" | "listens", listening: Buffer, connecting: Buffer): Buffer {
  return createHmac("sha256", key)
    .update(`octavo stage ${end}\n`)
    .update(listening)
    .update(connecting)
    .digest();
}

function wrongKey(): OctavoError {
  return new OctavoError("engine_failed", "it has another key (--pipeline-key-file)");
}

/** What comes behind stays in the socket. */
function readExactly(socket: Socket, length: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      socket.off("readable", look).off("close", fail).off("error", fail);
      act();
    };
    const look = (): void => {
      const found: unknown = socket.read(length);
      if (Buffer.isBuffer(found))
        settle(() => (found.length === length ? resolve(found) : reject(wrongKey())));
    };
    const fail = (): void => settle(() => reject(wrongKey()));
    const timer = setTimeout(fail, timeoutMs);
    socket.on("readable", look).once("close", fail).once("error", fail);
    look();
  });
}
