/**
 * Where a command gets its access token from. Never from an argument, which every user of the
 * machine can see.
 */
import { readFileSync } from 'node:fs'
import type { Environment } from '../kernel/config/environment.js'

/** The current token. A renewed one is noticed. */
export type TokenSource = () => Promise<string>

export type TokenOptions = {
  readonly tokenFile?: string | undefined
  /** Name of an environment variable. */
  readonly tokenEnv?: string | undefined
}

/** @throws when neither is given, or when the token is missing now */
export function tokenFrom(
  { tokenFile, tokenEnv }: TokenOptions,
  environment: Environment,
): TokenSource {
  if (tokenFile !== undefined) {
    const read = () => present(readFileSync(tokenFile, 'utf8'), tokenFile)
    read()
    return async () => read()
  }
  if (tokenEnv === undefined) throw new Error('name --token-file or --token-env')
  const token = present(environment[tokenEnv] ?? '', `$${tokenEnv}`)
  return async () => token
}

function present(text: string, where: string): string {
  const token = text.trim()
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`no token in ${where}`)
  return token
}
