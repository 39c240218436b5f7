/** The options of commands that use a running service with a token. */
import { type Command, Option } from 'commander'
import { onlyOrigin } from '../clients/client/person-login.js'
import type { TokenOptions } from '../clients/client/token-source.js'
import { readEnvironment } from '../kernel/config/environment.js'

export type ServiceAccess = TokenOptions & { readonly url: string }

/** `--url`, which the only `svc login` answers too. */
export function serviceOption(): Option {
  const option = new Option('--url <url>', 'the service').makeOptionMandatory()
  const origin = onlyOrigin(readEnvironment())
  return origin === undefined ? option : option.default(origin)
}

/** A token that is named may be of another service than the login. Ends the process. */
export function refuseForeignToken(command: Command): void {
  if (command.getOptionValueSource('url') !== 'default') return
  const named = ['tokenFile', 'tokenEnv', 'clientId'].some((name) => command.getOptionValue(name))
  if (named) command.error('error: name the service of the token with --url')
}

/**
 * Adds the options.
 * @param scope what a token needs, if that is not obvious.
 */
export function serviceAccess(command: Command, scope = ''): Command {
  return command
    .addOption(serviceOption())
    .option('--token-file <file>', `a file with an access token${scope}; read again for every call`)
    .option(
      '--token-env <name>',
      'or the environment variable with the token; default: the login of svc login',
    )
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
