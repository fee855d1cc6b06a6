/** Where a tokenizer is built from. */
export type TokenizerSource =
  | { readonly kind: "tokenizer.json"; readonly json: unknown; readonly config: TokenizerFileConfig }
  | {
      readonly kind: "gguf";
      /** Under GGUF's keys; arrays of numbers are typed arrays (see GgufMetadata). */
      readonly metadata: ReadonlyMap<string, unknown>;
      readonly config: TokenizerFileConfig;
    };

/**
 * The parts of tokenizer_config.json that have an effect. `add_bos_token` and `add_eos_token` have none beside a tokenizer.json, whose
 * post-processor says what is added: transformers 5 drops them.
 */
export interface TokenizerFileConfig {
  readonly bosToken: string | undefined;
  readonly eosToken: string | undefined;
  readonly unkToken: string | undefined;
  readonly padToken: string | undefined;
  /** Default template, and named ones (`tool_use`, `rag`). */
  readonly chatTemplate: string | undefined;
  readonly namedChatTemplates: ReadonlyMap<string, string>;
}
