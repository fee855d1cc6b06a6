/** A request to a model and what is known about a right answer. Datasets read them, generators make them. */
export interface EvalCase {
  /** Unique within its dataset and stable between runs: runs are paired, resumed and cached by it. */
  readonly id: string;
  readonly messages: readonly CaseMessage[];
  readonly tools: readonly ToolDefinition[];
  /** What the answer must be grounded in. */
  readonly context: string | undefined;
  readonly expected: Expectation;
  readonly parameters: CaseParameters;
  readonly tenant: string | undefined;
  /**
   * Cases that share a conversation, a document or a template are not independent: intervals and tests resample whole
   * clusters. Undefined: the case is its own cluster.
   */
  readonly cluster: string | undefined;
  /** Sub-rubrics and slices, such as `json`, `tools`, `language:de`. */
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A message as `/v1/chat/completions` and `llm.chat` take it. */
export type CaseMessage = {
  readonly role: "system" | "developer" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly name?: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: "function";
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
};

/** A JSON schema, as parsed. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A function that a model may call, in OpenAI's form. */
export interface ToolDefinition {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: JsonSchema;
    readonly strict?: boolean;
  };
}

/** Each field that is present is a gold for the evaluators that read it; the others skip the case. */
export interface Expectation {
  /** Any of these is right; the first is the reference where one text is needed. */
  readonly outputs?: readonly string[];
  /** The answer must be JSON that this schema allows. */
  readonly schema?: JsonSchema;
  /** Empty: no tool may be called. */
  readonly toolCalls?: readonly ExpectedToolCall[];
  /** Calls may come in any order (BFCL's parallel cases). Default true. */
  readonly isOrderFree?: boolean;
}

/** A right call, as the Berkeley Function-Calling Leaderboard writes them. */
export interface ExpectedToolCall {
  readonly name: string;
  /** For each argument the values that are accepted; an accepted `""` makes the argument optional. */
  readonly arguments: Readonly<Record<string, readonly unknown[]>>;
  /** Arguments that are source text of another language, and of which type. */
  readonly sources?: Readonly<Record<string, SourceType>>;
}

/** A type of Java or JavaScript, as the Berkeley Function-Calling Leaderboard names it. */
export interface SourceType {
  readonly language: "java" | "javascript";
  readonly type: string;
  /** Type of a list's items. */
  readonly itemType?: string;
}

/** Request parameters of the case; the run decides undefined ones. */
export interface CaseParameters {
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly seed?: number;
  readonly toolChoice?: "none" | "auto" | "required";
  readonly responseFormat?: Readonly<Record<string, unknown>>;
  /** Anything else of the body, such as `chat_template_kwargs`. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
}
