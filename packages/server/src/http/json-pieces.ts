import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { PacedWriter } from "./paced-writer.js";
import type { RequestContext } from "./request-context.js";
import { sendText } from "./respond.js";

/** Longer answers are sent in pieces of about this length, in UTF-16 units. */
const pieceLength = 64 * 1024;
/** The event loop gets a turn after this many pieces, however short. */
const piecesPerTurn = 4096;

/**
 * Sends JSON text produced piece by piece. A long answer yields to the event loop between pieces and waits for slow
 * clients, so that it neither blocks other requests nor is held in memory whole.
 */
export async function sendJsonPieces(
  context: RequestContext,
  pieces: Iterable<string>,
  stallTimeoutMs: number,
): Promise<void> {
  const { response, signal } = context;
  let writer: PacedWriter | undefined;
  let text = "";
  let numPieces = 0;
  for (const piece of pieces) {
    text += piece;
    numPieces += 1;
    if (text.length < pieceLength) {
      if (numPieces % piecesPerTurn === 0) await eventLoopTurn();
      continue;
    }
    if (writer === undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      writer = new PacedWriter(response, signal, stallTimeoutMs);
    }
    await writer.write(text);
    text = "";
    await eventLoopTurn();
  }
  if (writer === undefined) {
    sendText(response, 200, "application/json", text);
    return;
  }
  await writer.ready();
  response.end(text);
}

/** The JSON of `{...head, ...lists, ...tail}`, one list item at a time. `head` must not be empty. */
export function* jsonWithLists(
  head: object,
  lists: Readonly<Record<string, Iterable<unknown>>>,
  tail: object = {},
): Iterable<string> {
  yield JSON.stringify(head).slice(0, -1);
  for (const [key, items] of Object.entries(lists)) {
    yield `,${JSON.stringify(key)}:[`;
    let separator = "";
    for (const item of items) {
      yield separator + JSON.stringify(item);
      separator = ",";
    }
    yield "]";
  }
  const rest = JSON.stringify(tail).slice(1);
  yield rest === "}" ? rest : `,${rest}`;
}

/** The JSON of `{ [key]: text }`, one part of the text at a time. No part may end within a character. */
export function* jsonWithText(key: string, parts: Iterable<string>): Iterable<string> {
  yield `{${JSON.stringify(key)}:"`;
  for (const part of parts) yield JSON.stringify(part).slice(1, -1);
  yield '"}';
}

/** Items made lazily. */
export function* made<T>(makers: Iterable<() => T>): Iterable<T> {
  for (const make of makers) yield make();
}
