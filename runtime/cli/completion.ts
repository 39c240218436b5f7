/** `svc completion`: a script with which bash completes commands and options. */
import type { Command } from 'commander'
import { output } from './output.js'

/** Adds `completion` to the program. */
export function completionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script with which bash completes commands and options')
    .action(async () => {
      // The program loads this module.
      const { svcProgram } = await import('./program.js')
      output(completionScript(await svcProgram('')))
    })
}

/** Files are completed where no word of the script fits. */
function completionScript(program: Command): string {
  const found = new Map<string, readonly string[]>()
  collect(program, '', found)
  const paths = [...found.keys()].filter((path) => path !== '')
  const words = [...found].map(([path, all]) => `    '${path}') offer='${all.join(' ')}' ;;`)
  return `_svc() {
  local at='' offer='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
    ${paths.map((path) => `'${path}'`).join(' | ')}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$offer" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _svc svc
`
}

/** The words that may follow a command, by its path: ` agent token`. */
function collect(command: Command, path: string, found: Map<string, readonly string[]>): void {
  const help = command.createHelp()
  const options = help.visibleOptions(command).map(({ long, short }) => long ?? short ?? '')
  const names = help.visibleCommands(command).map((each) => each.name())
  found.set(path, [...names, ...options])
  for (const each of command.commands) collect(each, `${path} ${each.name()}`, found)
}
