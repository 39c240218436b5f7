/** `svc completion`: a script with which bash, zsh or fish completes commands and options. */
import { Argument, type Command } from 'commander'
import { output } from './output.js'

/** What may follow a command: a word of it, and what the help says of the word. */
type Offer = { readonly word: string; readonly does: string }
/** Offers by the path of a command: ` agent token`. */
type Offers = ReadonlyMap<string, readonly Offer[]>

const SCRIPTS = { bash, zsh, fish } as const

/** Adds `completion` to the program. */
export function completionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script with which a shell completes commands and options')
    .addArgument(new Argument('[shell]').choices(Object.keys(SCRIPTS)).default('bash'))
    .action(async (shell: keyof typeof SCRIPTS) => {
      // The program loads this module.
      const { svcProgram } = await import('./program.js')
      const found = new Map<string, readonly Offer[]>()
      collect(await svcProgram(''), '', found)
      output(SCRIPTS[shell](found))
    })
}

function collect(command: Command, path: string, found: Map<string, readonly Offer[]>): void {
  const help = command.createHelp()
  found.set(path, [
    ...help
      .visibleCommands(command)
      .map((each) => ({ word: each.name(), does: help.subcommandDescription(each) })),
    ...help
      .visibleOptions(command)
      .map((each) => ({ word: each.long ?? each.short ?? '', does: each.description })),
  ])
  for (const each of command.commands) collect(each, `${path} ${each.name()}`, found)
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
/** All paths except the empty one, the program. */
const pathsOf = (offers: Offers) =>
  [...offers.keys()].filter((path) => path !== '').map((path) => quoted(path))

/** Files are completed where no word of the script fits. */
function bash(offers: Offers): string {
  const words = [...offers].map(
    ([path, all]) => `    '${path}') offer='${all.map(({ word }) => word).join(' ')}' ;;`,
  )
  return `_svc() {
  local at='' offer='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
    ${pathsOf(offers).join(' | ')}) at="$at \${COMP_WORDS[i]}" ;;
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

/** With what the help says. A colon ends the word. */
function zsh(offers: Offers): string {
  const described = ({ word, does }: Offer) => quoted(`${word.replaceAll(':', '\\:')}:${does}`)
  const words = [...offers].map(
    ([path, all]) => `    '${path}') offer=(${all.map(described).join(' ')}) ;;`,
  )
  return `#compdef svc
_svc() {
  local at='' i
  local -a offer
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
    ${pathsOf(offers).join(' | ')}) at="$at \${words[i]}" ;;
    esac
  done
  case "$at" in
${words.join('\n')}
  esac
  _describe -o svc offer || _files
}
compdef _svc svc
`
}

/** With what the help says. */
function fish(offers: Offers): string {
  const fishQuoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = [...offers].flatMap(([path, all]) =>
    all.map(
      ({ word, does }) =>
        `complete -c svc -n '__svc_is "${path}"' ` +
        `${word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`} -d ${fishQuoted(does)}`,
    ),
  )
  return `function __svc_is
  set -l words (commandline -opc)
  set -e words[1]
  set -l at ''
  for word in $words
    if contains -- "$at $word" ${pathsOf(offers).join(' ')}
      set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`
}
