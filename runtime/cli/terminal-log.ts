/**
 * Log lines for people: where standard output is a terminal, a JSON line is written as coloured text. The
 * text is made in this process, so that a line that precedes a crash is not lost in a worker thread.
 */
import { prettyFactory } from 'pino-pretty'

export interface TerminalLog {
  write(line: string): void
  /** From now on lines stay JSON: a production log is read by programs, whatever it is written to. */
  keepJson(): void
}

export function terminalLog(out: { write(text: string): unknown }): TerminalLog {
  const pretty = prettyFactory({
    colorize: true,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'service',
    singleLine: true,
  })
  let isJson = false
  return {
    write: (line) => void out.write(isJson ? line : (pretty(withoutControls(line)) ?? '')),
    keepJson() {
      isJson = true
    },
  }
}

/**
 * Shows control characters of a JSON text as their escapes: a name with an escape sequence in it must not
 * move the cursor. Line feeds and tabs stay, for stack traces.
 */
function withoutControls(json: string): string {
  return json
    .replaceAll(/\\(?:(u00[01][0-9a-f]|[bfr])|.)/gi, (escape, control?: string) =>
      control === undefined ? escape : `\\\\${control}`,
    )
    .replaceAll(/[\u007f-\u009f]/g, '\ufffd')
}
