/** The options of commands that use a running service with a token. */
import { type Command, Option } from 'commander'
import type { TokenOptions } from '../clients/client/token-source.js'

/** What the help says of a command without a named token. */
export const OR_LOGIN = 'default: the login of svc login'

export type ServiceAccess = TokenOptions & { readonly url: string }

/** Adds the options. */
export function serviceAccess(command: Command): Command {
  return command
    .requiredOption('--url <url>', 'the service')
    .option(
      '--token-file <file>',
      'a file with an access token with vault:read; read again for every call',
    )
    .option('--token-env <name>', `or the environment variable with the token; ${OR_LOGIN}`)
}

/** Accepts the name that an option had before, which the help does not show. */
export function formerly(command: Command, before: string, now: string): Command {
  const is = (name: string) => new Option(`--${name} <value>`)
  const member = is(now).attributeName()
  return command
    .addOption(is(before).hideHelp())
    .on(`option:${before}`, (value: string) =>
      command.setOptionValueWithSource(member, value, 'cli'),
    )
}

/** @throws with a message when it is not the address of a service. */
export function checkAddress(option: string, text: string): void {
  if (/^https?:\/\/[^/]/.test(text) && URL.canParse(text)) return
  throw new Error(`${option} must be an address like https://auth.example.com, not ${text}`)
}

export function collected(value: string, before: readonly string[]): string[] {
  return [...before, value]
}
