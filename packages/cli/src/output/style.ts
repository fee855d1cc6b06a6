import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Whether escape sequences do something there; Emacs' shell and many logs of builds are terminals that call themselves dumb. */
export function isCapable(stream: { readonly isTTY?: boolean | undefined }): boolean {
  return stream.isTTY === true && process.env["TERM"] !== "dumb";
}

/** Colours for people: on a terminal that has them, unless NO_COLOR is set. */
export function styleFor(stream: { readonly isTTY?: boolean }) {
  const isStyled = isCapable(stream) && !process.env["NO_COLOR"];
  const styled =
    (format: Style) =>
    (text: string): string =>
      isStyled ? styleText(format, text, { validateStream: false }) : text;
  return {
    bold: styled("bold"),
    dim: styled("dim"),
    good: styled("green"),
    bad: styled("red"),
    warning: styled("yellow"),
  };
}

/** Styles for standard error. */
export const style = styleFor(process.stderr);
