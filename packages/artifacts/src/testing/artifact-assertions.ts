import assert from "node:assert/strict";
import { OctavoError, type ErrorCode } from "@octavo/protocol/errors";

/** The one way in which reading an artifact may fail. */
export function assertArtifactError(error: unknown, context: string): asserts error is OctavoError {
  assert.ok(error instanceof OctavoError, `${context}: not an OctavoError but ${String(error)}`);
  assert.match(error.code, /^artifact_/, `${context}: ${error.message}`);
  assert.ok(error.message.length < 2000, `${context}: the message repeats too much of the file`);
}

export function assertRefused(read: () => unknown, code: ErrorCode, message: RegExp): void {
  assert.throws(read, (error: unknown) => {
    assertArtifactError(error, "refused");
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
}

export async function assertRejected(
  read: Promise<unknown>,
  code: ErrorCode,
  message: RegExp,
): Promise<void> {
  await assert.rejects(read, (error: unknown) => {
    assertArtifactError(error, "refused");
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
}
