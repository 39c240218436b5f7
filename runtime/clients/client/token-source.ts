/**
 * Where a command gets its access token from. Never from an argument, which every user of the
 * machine can see.
 */
import { readFileSync } from 'node:fs'
import type { Environment } from '../../kernel/config/environment.js'
import { loginFile, storedLogin, tokenOfLogin } from './person-login.js'

/** The current token. A renewed one is noticed. */
export type TokenSource = () => Promise<string>

export type TokenOptions = {
  readonly tokenFile?: string | undefined
  /** Name of an environment variable. */
  readonly tokenEnv?: string | undefined
}

/**
 * Without a named token, the token of `svc login` at the service.
 * @throws when the token that is named, or the login, is missing now
 */
export async function tokenFrom(
  { tokenFile, tokenEnv, url }: TokenOptions & { readonly url: string },
  environment: Environment,
): Promise<TokenSource> {
  if (tokenFile !== undefined) {
    const read = () => present(readFileSync(tokenFile, 'utf8'), tokenFile)
    read()
    return async () => read()
  }
  if (tokenEnv === undefined) {
    const source = await loginSource(url, environment)
    if (source !== undefined) return source
    throw new Error(`name --token-file or --token-env, or run svc login --url ${url}`)
  }
  const token = present(environment[tokenEnv] ?? '', `$${tokenEnv}`)
  return async () => token
}

/** The tokens of `svc login` at the service. Undefined without one. */
export async function loginSource(
  url: string,
  environment: Environment,
): Promise<TokenSource | undefined> {
  const file = loginFile(environment)
  return (await storedLogin(file, url)) === undefined ? undefined : () => tokenOfLogin(file, url)
}

function present(text: string, where: string): string {
  const token = text.trim()
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`no token in ${where}`)
  return token
}
