import { createContext, Script } from "node:vm";
import { OctavoError } from "@octavo/protocol";

const slot: { work: () => void } = { work: () => undefined };
const context = createContext(slot);
const script = new Script("work()");

/**
 * Runs synchronous work that somebody else's pattern or schema decides, for at most so long: V8 interrupts it wherever it
 * is, inside a backtracking regular expression too, which nothing in the language itself can. Takes some 0.1 ms to set up.
 * Work is never nested.
 *
 * @throws OctavoError `deadline_exceeded` when the time is over; what the work throws
 */
export function withinTime<Result>(timeoutMs: number, what: string, work: () => Result): Result {
  const results: Result[] = [];
  slot.work = () => void results.push(work());
  try {
    script.runInContext(context, { timeout: timeoutMs });
  } catch (thrown) {
    if (isTimeout(thrown)) {
      throw new OctavoError("deadline_exceeded", `${what} took longer than ${timeoutMs} ms`, {
        cause: thrown,
      });
    }
    throw thrown;
  } finally {
    slot.work = () => undefined;
  }
  return results[0] as Result;
}

/** Such an error is of the context's own realm: no `instanceof` holds. */
function isTimeout(thrown: unknown): boolean {
  return (
    typeof thrown === "object" &&
    thrown !== null &&
    "code" in thrown &&
    thrown.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
