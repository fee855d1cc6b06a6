// A fake replica that waits for its arguments, as a standby process of `octavo serve` does.
import { text } from "node:stream/consumers";

const line = await text(process.stdin);
if (line !== "") {
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...(JSON.parse(line) as readonly string[]));
  await import("./fake-replica.js");
}
