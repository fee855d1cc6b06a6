/** What is answered at once where it can be: a promise costs a call more than most checks do. */
export type MaybePromise<Value> = Value | Promise<Value>;
