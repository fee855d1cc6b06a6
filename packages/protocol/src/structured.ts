import { z } from "zod";

/** Bounds of constraints; a compiler has its own for what they describe. */
const limits = {
  sourceLength: 256 * 1024,
  choices: 10_000,
  choiceLength: 65_536,
  structures: 4096,
  triggers: 256,
} as const;

/** A JSON schema as a value; vLLM also takes it as JSON in a string. */
const schemaOrText = z.union([z.string().max(1024 * 1024), z.looseObject({}), z.boolean()]);
const source = z.string().min(1).max(limits.sourceLength);

const structure = z.object({
  begin: z.string().min(1).max(limits.choiceLength),
  schema: z.union([z.looseObject({}), z.boolean()]).nullish(),
  end: z.string().max(limits.choiceLength),
});

/** Free text in which a trigger begins one of the structures, each with JSON between its begin and its end. */
export const structuralTag = z.object({
  structures: z.array(structure).min(1).max(limits.structures),
  triggers: z.array(z.string().min(1).max(limits.choiceLength)).min(1).max(limits.triggers),
});

/** `response_format`: what the answer must look like. */
const responseFormat = z
  .looseObject({ type: z.enum(["text", "json_object", "json_schema", "structural_tag"]) })
  .pipe(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("text") }),
      z.object({ type: z.literal("json_object") }),
      z.object({
        type: z.literal("json_schema"),
        json_schema: z.object({
          name: z.string().max(256).nullish(),
          description: z.string().nullish(),
          schema: z.union([z.looseObject({}), z.boolean()]),
          strict: z.boolean().nullish(),
        }),
      }),
      z.object({ type: z.literal("structural_tag"), ...structuralTag.shape }),
    ]),
  );

/** vLLM's `structured_outputs`; exactly one of the constraints is given. */
const structuredOutputs = z.object({
  json: schemaOrText.nullish(),
  regex: source.nullish(),
  choice: z.array(z.string().max(limits.choiceLength)).min(1).max(limits.choices).nullish(),
  grammar: source.nullish(),
  json_object: z.boolean().nullish(),
  /** The object, or its JSON in a string. */
  structural_tag: z.union([structuralTag, z.string().max(1024 * 1024)]).nullish(),
  disable_any_whitespace: z.boolean().nullish(),
  /** Objects never have more properties than their schema declares, unless it says so. */
  disable_additional_properties: z.boolean().nullish(),
  whitespace_pattern: z.string().min(1).max(1024).nullish(),
});

/** Constraints on the output, under all the names that clients use for them. */
export const constraintFields = {
  response_format: responseFormat.nullish(),
  structured_outputs: structuredOutputs.nullish(),
  guided_json: schemaOrText.nullish(),
  guided_regex: source.nullish(),
  guided_choice: z.array(z.string().max(limits.choiceLength)).min(1).max(limits.choices).nullish(),
  guided_grammar: source.nullish(),
  guided_whitespace_pattern: z.string().min(1).max(1024).nullish(),
} as const;

const constrained = z.object(constraintFields);

/** Fields that constrain the output. */
export type ConstraintFields = z.output<typeof constrained>;
export type StructuralTag = z.output<typeof structuralTag>;
