import { asObjects, asRecord, asString, createSseDecoder, type JsonFields } from "@octavo/protocol";

export function contentOf(answer: unknown): unknown {
  return asRecord(asObjects(asRecord(answer)["choices"])[0]?.["message"])["content"];
}

export function errorOf(answer: unknown): JsonFields {
  return asRecord(asRecord(answer)["error"]);
}

export interface ReadStream {
  readonly text: string;
  /** Whether it ended in `[DONE]`. */
  readonly isDone: boolean;
  /** Message of its error event. */
  readonly error: string | undefined;
}

export async function readStream(response: Response): Promise<ReadStream> {
  const events = await readEvents(response);
  return {
    text: events.values.map((value) => deltaContent(value)).join(""),
    isDone: events.isDone,
    error: asString(asRecord(events.values.at(-1)?.["octavo"])["error_code"]),
  };
}

export function deltaContent(value: JsonFields): string {
  const choice = asObjects(value["choices"])[0];
  return asString(asRecord(choice?.["delta"])["content"]) ?? asString(choice?.["text"]) ?? "";
}

export async function readEvents(
  response: Response,
): Promise<{ readonly values: readonly JsonFields[]; readonly isDone: boolean }> {
  const events = createSseDecoder().push(await response.text());
  return {
    values: events.filter(({ data }) => data !== "[DONE]").map(({ data }) => asRecord(JSON.parse(data))),
    isDone: events.at(-1)?.data === "[DONE]",
  };
}
