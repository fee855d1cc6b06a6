import type { TestRandom } from "../../../testing/random.js";
import type { JsonObject } from "../../grammar.js";
import { machineSubjects } from "./machine-subjects.js";
import { officeSubjects } from "./office-subjects.js";
import { SchemaWriter } from "./schema-writer.js";

const subjects = Object.entries({ ...officeSubjects, ...machineSubjects });

/**
 * The `index`-th of a sequence of schemas as people send them, drawn from `random`: subjects come in turn, their shape
 * and the dialect of JSON schema by chance. The same seed gives the same sequence everywhere.
 */
export function realWorldSchema(random: TestRandom, index: number): JsonObject {
  const write = new SchemaWriter(random);
  const [name, subject] = subjects[index % subjects.length]!;
  return write.document(name, subject(write));
}
