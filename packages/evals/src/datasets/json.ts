import { basename } from "node:path";
import { isRecord } from "@octavo/protocol";
import { type ByteSource, fileSource } from "./byte-source.js";
import { CaseIds } from "./case-ids.js";
import { parseCase } from "./case-record.js";
import type { Dataset } from "./dataset.js";
import { readJsonArray } from "./json-array.js";
import { invalidFile, invalidRecord, quoted } from "./place.js";

/** One JSON array of cases as `parseCase` takes them. Memory: one piece of the file and one case. */
export function jsonDataset(file: string | ByteSource): Dataset {
  const source = typeof file === "string" ? fileSource(file) : file;
  return {
    name: basename(source.path),
    size: undefined,
    async *cases() {
      const ids = new CaseIds();
      let isEmpty = true;
      for await (const { value, place } of readJsonArray(source)) {
        isEmpty = false;
        if (!isRecord(value))
          throw invalidRecord(place, undefined, `must be an object, but is ${quoted(value)}`);
        yield parseCase(value, place, ids, () => JSON.stringify(value));
      }
      if (isEmpty) throw invalidFile(source.path, "holds no cases");
    },
  };
}
