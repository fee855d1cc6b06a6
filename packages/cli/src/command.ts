import { OctavoError } from "@octavo/protocol/errors";
import {
  defaultTextOf,
  type OptionRow,
  type OptionRows,
  type ResolvedOptions,
} from "@octavo/protocol/options";
import { Command, Help, InvalidArgumentError, Option } from "commander";
import { oppositeOf } from "./options/flag-names.js";
import { type Given, type OptionSources, valuesOf } from "./options/option-sources.js";

/** A command: arguments, options and action. */
export interface CommandSpec<Rows extends OptionRows = OptionRows> {
  /** Help by argument, which is written as commander has it: `<model>`, `[model]`. */
  readonly arguments?: Readonly<Record<string, string>>;
  readonly options: Rows;
  /** Where options come from beside flags. */
  readonly sources?: OptionSources;
  run(options: ResolvedOptions<Rows>, ...args: string[]): Promise<void>;
}

export function defineCommand<const Rows extends OptionRows>(spec: CommandSpec<Rows>): CommandSpec<Rows> {
  return spec;
}

/** A command's `run`, without the types of its options. */
export type CommandAction = (options: Readonly<Record<string, unknown>>, ...args: string[]) => Promise<void>;

/** Adds a spec's arguments, flags and action to `command`; `wrap` decorates the action. */
export function applySpec(
  command: Command,
  spec: CommandSpec,
  wrap: (action: CommandAction) => CommandAction = (action) => action,
): void {
  for (const [syntax, help] of Object.entries(spec.arguments ?? {})) command.argument(syntax, help);
  addFlags(command, spec);
  const action = wrap((options, ...args) => spec.run(options, ...args));
  command.action(async (...given: unknown[]) => {
    const args = given
      .slice(0, -2)
      .flat()
      .filter((arg) => typeof arg === "string");
    const { values, notes } = await readOptions(command, spec);
    for (const note of notes) process.stderr.write(`octavo: ${note}\n`);
    await action(values, ...args).catch((thrown: unknown) => {
      throw inFlags(thrown, spec.options);
    });
  });
}

/** Libraries name an option as code does, people typed a flag. */
function inFlags(thrown: unknown, rows: OptionRows): unknown {
  if (!(thrown instanceof OctavoError) || thrown.code !== "invalid_option") return thrown;
  const [named = ""] = /^\w+/.exec(thrown.message) ?? [];
  if (named !== thrown.param) return thrown;
  const key = named.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const [flag] = rows[key]?.flag?.replace("[no-]", "").split(" ") ?? [];
  if (flag === undefined) return thrown;
  const message = `${flag}${thrown.message.slice(named.length)}`;
  return new OctavoError(thrown.code, message, { param: thrown.param, cause: thrown });
}

/**
 * The options that a command line gives together with file and environment as they are now, for commands that read them again.
 * @throws OctavoError `invalid_option`
 */
export async function readAgain<Rows extends OptionRows>(
  spec: CommandSpec<Rows>,
  args: readonly string[],
): Promise<ResolvedOptions<Rows>> {
  return (await readOptions(parseApart(spec, args), spec)).values as ResolvedOptions<Rows>;
}

function addFlags(command: Command, { options, sources }: CommandSpec): void {
  if (command instanceof OctavoCommand) command.translate = sources?.translate;
  for (const row of Object.values(options)) for (const option of flagsOf(row)) command.addOption(option);
}

/** A command line that is not this process's; what is wrong in it is thrown. */
function parseApart(spec: CommandSpec, args: readonly string[]): OctavoCommand {
  const command = new OctavoCommand().exitOverride().allowExcessArguments();
  command.configureOutput({ outputError: () => undefined, writeErr: () => undefined });
  addFlags(command, spec);
  try {
    return command.parse(args, { from: "user" });
  } catch (thrown) {
    if (thrown instanceof OctavoError) throw thrown;
    throw new OctavoError("invalid_option", OctavoError.from(thrown).message, { cause: thrown });
  }
}

async function readOptions(
  command: Command,
  spec: CommandSpec,
): Promise<{ readonly values: Readonly<Record<string, unknown>>; readonly notes: readonly string[] }> {
  const { options: rows, sources } = spec;
  const given = givenBy(command, rows);
  const own = command instanceof OctavoCommand ? command.notes : [];
  return valuesOf(rows, given, sources, own, async (path, args) => {
    try {
      const file = parseApart(spec, args);
      return { given: givenBy(file, rows), notes: file.notes };
    } catch (thrown) {
      const { message } = OctavoError.from(thrown);
      throw new OctavoError("invalid_option", `${path}: ${message}`, { cause: thrown });
    }
  });
}

/** The values of the flags that were given. */
function givenBy(command: Command, rows: OptionRows): Given {
  return Object.fromEntries(
    Object.entries(rows).flatMap(([key, row]) =>
      flagsOf(row)
        .filter((option) => command.getOptionValueSource(option.attributeName()) === "cli")
        .slice(0, 1)
        .map((option) => {
          const value: unknown = command.getOptionValue(option.attributeName());
          return [
            key,
            row.turnsOff === true && option.long?.startsWith("--no-") !== true ? value !== true : value,
          ];
        }),
    ),
  );
}

const widestTerm = 30;

/** Flags have at most so many columns, or nothing is left for their help on a terminal of 80; that of longer flags stands below them. */
class FlagHelp extends Help {
  override padWidth(command: Command, helper: Help): number {
    return Math.min(widestTerm, super.padWidth(command, helper));
  }

  override formatItem(term: string, width: number, help: string, helper: Help): string {
    if (term.length <= width) return super.formatItem(term, width, help, helper);
    const alone = super.formatItem(term, width, "", helper);
    return `${alone.trimEnd()}\n${super.formatItem("", width, help, helper)}`;
  }
}

/** A commander command whose errors carry a code, as those of the libraries do, and which never takes a flag for the value of the one before it. */
export class OctavoCommand extends Command {
  /** Puts its arguments in terms of its flags. */
  translate: OptionSources["translate"] | undefined;
  /** What that left out. */
  notes: readonly string[] = [];

  constructor(name?: string) {
    super(name);
    this.configureOutput({
      outputError: (text, write) => write(`octavo: ${text.trimEnd()} [invalid_option]\n`),
    });
  }

  /** Ends with one line. */
  override error(message: string, options?: Parameters<Command["error"]>[1]): never {
    return super.error(this.#inOneLine(message), options);
  }

  /** Commander's errors, named by the flag and with what helps in the same line. */
  #inOneLine(message: string): string {
    const [problem = "", hint] = message.replace(/^error: /, "").split("\n");
    const [, flag, wrong] =
      /^option '(?:-\w, )?(\S+).*?' argument '.*' is invalid\. (.*)$/s.exec(problem) ?? [];
    if (flag !== undefined && wrong !== undefined) return `${flag}: ${wrong.replace(/\.$/, "")}`;
    const [, meant] = /^\(Did you mean (.+)\?\)$/.exec(hint ?? "") ?? [];
    if (meant !== undefined) return `${problem}; did you mean ${meant}?`;
    if (problem.startsWith("unknown")) return `${problem}; ${this.fullName()} --help lists the flags`;
    const [, most] = /^too many arguments .* Expected (\d+)/.exec(problem) ?? [];
    if (most !== undefined)
      return `${this.fullName()}: unexpected argument '${this.args[Number(most)]}'; ${this.fullName()} --help says what it takes`;
    const [, missing] = /^missing required argument '(.*)'$/.exec(problem) ?? [];
    const { description } = this.registeredArguments.find((argument) => argument.name() === missing) ?? {};
    const what = description === undefined ? "" : `: ${description}`;
    return problem.replace(/^(?:required|missing)/, (word) => `${this.fullName()}: ${word}`) + what;
  }

  /** With the commands above it. */
  fullName(): string {
    const above = this.parent instanceof OctavoCommand ? `${this.parent.fullName()} ` : "";
    return `${above}${this.name()}`;
  }

  override createHelp(): Help {
    return Object.assign(new FlagHelp(), this.configureHelp());
  }

  override createCommand(name?: string): OctavoCommand {
    return new OctavoCommand(name);
  }

  override parseOptions(written: string[]): ReturnType<Command["parseOptions"]> {
    const { args, notes } = this.translate?.(written) ?? { args: written, notes: [] };
    this.notes = notes;
    const end = args.indexOf("--");
    for (const [index, arg] of args.slice(0, end === -1 ? undefined : end).entries()) {
      const option = this.options.find(({ long, required }) => required && long === arg);
      const next = args[index + 1]?.split("=")[0];
      if (option !== undefined && this.options.some(({ long }) => long === next))
        this.error(`error: option '${option.flags}' argument missing`);
    }
    return super.parseOptions([...args]);
  }
}

/** An option's line in help: what it is, choices and default. */
export function helpOf(row: OptionRow): string {
  const { type, flag, help, environment = [], isRequired } = row;
  const isPlainSwitch = flag !== undefined && !/<|^--\[no-\]/.test(flag);
  const value = isPlainSwitch ? undefined : defaultTextOf(row);
  const notes = [
    ...(type.choices === undefined ? [] : [`one of ${type.choices.join(", ")}`]),
    ...(isRequired === undefined ? [] : ["required"]),
    ...(value === undefined ? [] : [`default: ${value}`]),
    ...(environment.length === 0 || value !== undefined ? [] : [`default: $${environment.join(" or $")}`]),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join("; ")})`;
}

function flagsOf(row: OptionRow): readonly Option[] {
  const { flag, aliases = [], group, isRequired = false } = row;
  if (flag === undefined) return [];
  const isSwitch = !flag.includes("<");
  const make = (flags: string, help: string): Option => {
    const option = new Option(flags, help).makeOptionMandatory(isRequired && flags === flag);
    if (!isSwitch) option.argParser((text: string, earlier: unknown) => parsed(row, text, earlier));
    return group === undefined ? option : option.helpGroup(`${group}:`);
  };
  const [name = flag] = flag.split(" ");
  return [
    make(flag.replace("[no-]", ""), helpOf(row)),
    ...aliases.map((alias) => make(flag.replace(name, alias), `another name of ${name}`)),
    ...(flag.includes("[no-]") ? [make(flag.replace("[no-]", "no-"), "turn it off")] : []),
    // other switches have an opposite too, for what a file or the environment turned on
    ...(isSwitch && !flag.includes("[no-]")
      ? [flag, ...aliases].map((written) => make(oppositeOf(written), "").hideHelp())
      : []),
  ];
}

/** Commander prefixes the message with the flag and the given text. */
function parsed({ type }: OptionRow, text: string, earlier: unknown): unknown {
  try {
    return type.parse(text, earlier);
  } catch (thrown) {
    throw new InvalidArgumentError(`${OctavoError.from(thrown).message}.`);
  }
}
