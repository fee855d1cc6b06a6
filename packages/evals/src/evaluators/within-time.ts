import { createContext, Script } from "node:vm";
import { OctavoError } from "@octavo/protocol";

const slot: { work: () => void } = { work: () => undefined };
const context = createContext(slot);
const script = new Script("work()");

/** How often work is begun again that was cut off without having had a processor. */
const maxAttempts = 8;

/**
 * Runs synchronous work that somebody else's pattern or schema decides, for at most so long: V8 interrupts it wherever it
 * is, inside a backtracking regular expression too, which nothing in the language itself can. Takes some 0.1 ms to set up.
 * V8's clock is that of the wall: work that was cut off because other processes had the machine, as the processor time
 * tells, is begun again, so it must be fit to be. Work is never nested.
 *
 * @throws OctavoError `deadline_exceeded` when the time is over; what the work throws
 */
export function withinTime<Result>(timeoutMs: number, what: string, work: () => Result): Result {
  for (let attempt = 1; ; attempt++) {
    const results: Result[] = [];
    slot.work = () => void results.push(work());
    const before = process.cpuUsage();
    try {
      script.runInContext(context, { timeout: timeoutMs });
      return results[0] as Result;
    } catch (thrown) {
      if (!isTimeout(thrown)) throw thrown;
      const { user, system } = process.cpuUsage(before);
      const wasStarved = (user + system) / 1000 < timeoutMs / 2;
      if (wasStarved && attempt < maxAttempts) continue;
      throw new OctavoError("deadline_exceeded", `${what} took longer than ${timeoutMs} ms`, {
        cause: thrown,
      });
    } finally {
      slot.work = () => undefined;
    }
  }
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
