import { styleText } from "node:util";

/** Colours for people: on a terminal, unless NO_COLOR is set. */
const isStyled = process.stderr.isTTY && !process.env["NO_COLOR"];

type Style = Parameters<typeof styleText>[0];

function styled(format: Style): (text: string) => string {
  return (text) => (isStyled ? styleText(format, text) : text);
}

export const style = {
  bold: styled("bold"),
  dim: styled("dim"),
  good: styled("green"),
  bad: styled("red"),
  warning: styled("yellow"),
};
