/** The body of a refusal, in vLLM's shape. */
export interface ErrorAnswer {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: number;
  };
}
