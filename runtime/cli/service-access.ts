/** The options of commands that use a running service with a token. */
import type { Command } from 'commander'
import type { TokenOptions } from '../client/token-source.js'

export type ServiceAccess = TokenOptions & { readonly url: string }

/** Adds them. */
export function serviceAccess(command: Command): Command {
  return command
    .requiredOption('--url <url>', 'the service')
    .option('--token-file <file>', 'an access token with vault:read; read again for every call')
    .option('--token-env <name>', 'or the variable that holds it')
}

export function collected(value: string, before: readonly string[]): string[] {
  return [...before, value]
}
