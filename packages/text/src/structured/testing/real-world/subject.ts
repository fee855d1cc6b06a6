import type { JsonObject } from "../../grammar.js";
import type { SchemaWriter } from "./schema-writer.js";

/** What a schema is about: the same subject gives other schemas whenever it is written. */
export type Subject = (write: SchemaWriter) => JsonObject;
