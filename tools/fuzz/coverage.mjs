// Which blocks of the compiled packages ran, as V8 counts them.
import { Session } from "node:inspector";

/** Counts blocks of scripts whose address matches `wanted`. */
export function openCoverage(wanted) {
  const session = new Session();
  session.connect();
  const post = (method, params) => {
    let result;
    session.post(method, params, (error, value) => {
      if (error) throw error;
      result = value;
    });
    return result;
  };
  post("Profiler.enable");
  post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const seen = new Set();
  const scripts = () => post("Profiler.takePreciseCoverage").result.filter(({ url }) => wanted.test(url));
  return {
    get size() {
      return seen.size;
    },
    /** Blocks that ran since the last call and, as far as V8 tells them apart, never before: by script, start and end. */
    takeNew() {
      const added = new Map();
      for (const { url, functions } of scripts())
        for (const { ranges } of functions)
          for (const { startOffset: start, endOffset: end, count } of ranges) {
            const key = `${url}:${start}:${end}`;
            if (count > 0 && !seen.has(key)) added.set(key, { url, start, end });
          }
      for (const key of added.keys()) seen.add(key);
      return added;
    },
    /** Which of these blocks ran since the last call. A block that ran as often as the one around it has no range of its own. */
    among(blocks) {
      const ranges = new Map(
        scripts().map(({ url, functions }) => [url, functions.flatMap((one) => one.ranges)]),
      );
      return [...blocks].filter(([, { url, start, end }]) => {
        let inner;
        for (const range of ranges.get(url) ?? []) {
          if (range.startOffset > start || range.endOffset < end) continue;
          if (
            inner === undefined ||
            range.endOffset - range.startOffset < inner.endOffset - inner.startOffset
          )
            inner = range;
        }
        return inner !== undefined && inner.count > 0;
      });
    },
    close() {
      post("Profiler.stopPreciseCoverage");
      session.disconnect();
    },
  };
}
