/**
 * Text that UTF-8 can hold: halves of surrogate pairs, which JavaScript's strings may have and strict readers of JSON refuse, become
 * U+FFFD.
 */
export function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, "\ufffd");
}
