// The command `headlight`: the package in Node, for people and for programs. Exit codes: 0 done, 1 failed, 2 called wrongly,
// 130 interrupted; with --json every failure is {"error": {code, message, details}} on stdout and 1.
import process from 'node:process';
import { attend } from './attend.js';
import { inspect } from './attention.js';
import { generate } from './generate.js';
import { info, logits, tokenize } from './inspect.js';
import { lab } from './lab.js';
import { layout } from './layout.js';
import { asFailure, printJson } from './output.js';
import {
  type Call,
  type CommandName,
  helpText,
  isCommand,
  parseCall,
  UsageError,
} from './usage.js';

const FAILED = 1;
const CALLED_WRONGLY = 2;

const run: Record<CommandName, (call: Call, json: boolean) => Promise<void>> = {
  generate,
  logits,
  tokenize,
  info,
  inspect,
  attend,
  layout,
  lab,
};

/** `generate` into a file gives the text; the other commands give programs JSON without being asked. */
function wantsJson(args: readonly string[]): boolean {
  if (args.includes('--json')) return true;
  return isCommand(args[0]) && args[0] !== 'generate' && !process.stdout.isTTY;
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === 'help' || args.includes('--help') || args.includes('-h')) {
    const name = args.find(isCommand);
    process.stdout.write(helpText(name));
    return;
  }
  const json = wantsJson(args);
  try {
    const call = parseCall(args);
    await run[call.command](call, json);
  } catch (error) {
    const { code, message, details } = asFailure(error);
    const interrupted = process.exitCode !== undefined && code === 'Aborted';
    if (json) {
      printJson({ error: { code, message, details } });
      if (!interrupted) process.exitCode = FAILED;
      return;
    }
    process.stderr.write(`${code}: ${message}\n`);
    if (error instanceof UsageError)
      process.stderr.write("'headlight help' lists the commands and their flags.\n");
    if (!interrupted) process.exitCode = error instanceof UsageError ? CALLED_WRONGLY : FAILED;
  }
}

// `headlight ... | head` closes the pipe early, which is no failure of this program.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

await main(process.argv.slice(2));
