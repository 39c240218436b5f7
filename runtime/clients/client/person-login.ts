/**
 * The sign-in of a person for commands (RFC 8628): the person approves in a browser, the tokens are kept in a file of
 * the user, and renewed when they expire. A token is sent only to the origin that issued it.
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEVICE_CODE } from '../../../actors/domain/oauth/grant-types.js'
import type { Environment } from '../../kernel/config/environment.js'
import { type Clock, systemClock } from '../../kernel/clock.js'
import { nextWait } from './delegation.js'
import { type HttpClient, httpClient, type Request } from './http.js'
import { holdingOwnFile, readOwnFile, writeOwnFile } from './own-file.js'
import {
  expectAnswer,
  type Members,
  numberMember,
  secondsOf,
  ServiceRefusal,
  textMember,
} from './refusal.js'

const VERSION = 1
const TOKEN = '/oauth/token'
/** A token is renewed this long before it expires. */
const FRESH_FOR_SECS = 30

export type StoredLogin = {
  /** The origin of the service. */
  readonly origin: string
  readonly client_id: string
  readonly scope: string
  readonly access_token: string
  /** Unix seconds. */
  readonly expires_at: number
  /** Null if the application gets none: the login ends with the access token. */
  readonly refresh_token: string | null
}

/** The file of the logins: in `svc` of the user's configuration folder (XDG base directories). */
export function loginFile(environment: Environment): string {
  const named = environment['XDG_CONFIG_HOME']
  const home = environment['HOME'] ?? homedir()
  const folder = named !== undefined && isAbsolute(named) ? named : join(home, '.config')
  return join(folder, 'svc', 'logins.json')
}

/** The login at a service. Undefined without a login. */
export async function storedLogin(file: string, url: string): Promise<StoredLogin | undefined> {
  const { origin } = new URL(url)
  return (await readLogins(file)).find((login) => login.origin === origin)
}

/** The service of the only login, for commands that name none. Undefined without a login, or with several. */
export function onlyOrigin(environment: Environment): string | undefined {
  try {
    const text = readFileSync(loginFile(environment), 'utf8')
    const { logins } = JSON.parse(text) as { readonly logins: readonly StoredLogin[] }
    return logins.length === 1 ? logins[0]!.origin : undefined
  } catch {
    // The command that takes the token reports the file.
    return undefined
  }
}

export type DeviceRequest = {
  readonly deviceCode: string
  readonly userCode: string
  readonly verificationUri: string
  /** The same with the code filled in. */
  readonly verificationUriComplete: string
  readonly expiresInSecs: number
  readonly intervalSecs: number
}

/** @throws ServiceRefusal: `invalid_client`, `unauthorized_client`, `invalid_scope`. */
export async function askForLogin(
  http: HttpClient,
  clientId: string,
  scope: string | undefined,
): Promise<DeviceRequest> {
  const form = { client_id: clientId, ...(scope === undefined ? {} : { scope }) }
  const body = await expectAnswer(http, 200, { method: 'POST', path: '/oauth/device/code', form })
  return {
    deviceCode: textMember(body, 'device_code'),
    userCode: textMember(body, 'user_code'),
    verificationUri: textMember(body, 'verification_uri'),
    verificationUriComplete: textMember(body, 'verification_uri_complete'),
    expiresInSecs: numberMember(body, 'expires_in'),
    intervalSecs: numberMember(body, 'interval'),
  }
}

/**
 * Polls until the person has decided, and stores the login.
 * @throws ServiceRefusal: `access_denied`, `expired_token`; the signal's reason.
 */
export async function awaitLogin(
  {
    http,
    clientId,
    request,
    file,
  }: {
    readonly http: HttpClient
    readonly clientId: string
    readonly request: DeviceRequest
    readonly file: string
  },
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<StoredLogin> {
  const deadlineMs = clock.monotonicMs() + request.expiresInSecs * 1000
  const form = { grant_type: DEVICE_CODE, client_id: clientId, device_code: request.deviceCode }
  const poll: Request = { method: 'POST', path: TOKEN, form }
  let intervalSecs = request.intervalSecs
  for (;;) {
    await sleep(intervalSecs * 1000, undefined, { signal })
    const answer = await http.request(poll)
    if (answer.status === 200) {
      const login = loginOf(http, clientId, answer.body as Members, clock)
      await holdingOwnFile(file, () => keep(file, login))
      return login
    }
    const waitSecs = nextWait(answer, intervalSecs)
    if (waitSecs === null || clock.monotonicMs() >= deadlineMs)
      throw new ServiceRefusal(answer, poll)
    intervalSecs = waitSecs
  }
}

/**
 * The access token of a login, renewed if it expires soon. The next refresh token is stored before it is used.
 * @throws when there is no login at the service, or it has ended.
 */
export async function tokenOfLogin(
  file: string,
  url: string,
  clock: Clock = systemClock,
): Promise<string> {
  const found = await storedLogin(file, url)
  if (found !== undefined && lasts(found, clock)) return found.access_token
  return holdingOwnFile(file, async () => {
    // Another process may have renewed it.
    const login = await storedLogin(file, url)
    if (login === undefined) throw new Error(`no login at ${new URL(url).origin}`)
    if (lasts(login, clock)) return login.access_token
    const { client_id: clientId, refresh_token: refreshToken } = login
    if (refreshToken === null) throw await ended(file, login)
    const http = httpClient(login.origin)
    try {
      const form = {
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: refreshToken,
      }
      const body = await expectAnswer(http, 200, { method: 'POST', path: TOKEN, form })
      const renewed = loginOf(http, clientId, body, clock)
      await keep(file, { ...renewed, refresh_token: renewed.refresh_token ?? refreshToken })
      return renewed.access_token
    } catch (error) {
      const isOver = error instanceof ServiceRefusal && error.code === 'invalid_grant'
      throw isOver ? await ended(file, login) : error
    } finally {
      await http.close()
    }
  })
}

/**
 * Removes the login at a service and revokes its tokens.
 * @returns undefined if no login was stored; otherwise whether the service has revoked the tokens.
 */
export async function endLogin(
  file: string,
  url: string,
): Promise<{ readonly revoked: boolean } | undefined> {
  return holdingOwnFile(file, async () => {
    const login = await storedLogin(file, url)
    if (login === undefined) return undefined
    const http = httpClient(login.origin)
    try {
      // All tokens of a family end with any of them (RFC 7009 section 2.1).
      const token = login.refresh_token ?? login.access_token
      const form = { client_id: login.client_id, token }
      const answer = await http.request({ method: 'POST', path: '/oauth/revoke', form })
      return { revoked: answer.status === 200 }
    } catch {
      // The file is cleared also without the service.
      return { revoked: false }
    } finally {
      await http.close()
      await forget(file, login)
    }
  })
}

async function ended(file: string, login: StoredLogin): Promise<Error> {
  await forget(file, login)
  return new Error(`the login at ${login.origin} has ended: run svc login --url ${login.origin}`)
}

function loginOf(http: HttpClient, clientId: string, body: Members, clock: Clock): StoredLogin {
  const refresh = body['refresh_token']
  return {
    origin: new URL(http.baseUrl).origin,
    client_id: clientId,
    scope: typeof body['scope'] === 'string' ? body['scope'] : '',
    access_token: textMember(body, 'access_token'),
    expires_at: clock.nowSecs() + (secondsOf(String(body['expires_in'])) ?? 0),
    refresh_token: typeof refresh === 'string' ? refresh : null,
  }
}

const lasts = ({ expires_at: expiresAt }: StoredLogin, clock: Clock) =>
  expiresAt - clock.nowSecs() > FRESH_FOR_SECS

async function readLogins(file: string): Promise<readonly StoredLogin[]> {
  const text = await readOwnFile(file, 'tokens')
  if (text === undefined) return []
  let read: { version?: unknown; logins?: unknown } | null
  try {
    read = JSON.parse(text) as typeof read
  } catch {
    throw new Error(`${file} is not JSON`)
  }
  if (read?.version !== VERSION || !Array.isArray(read.logins))
    throw new Error(`${file} is not a file of svc login`)
  return read.logins as StoredLogin[]
}

async function keep(file: string, login: StoredLogin): Promise<void> {
  const others = (await readLogins(file)).filter(({ origin }) => origin !== login.origin)
  await write(file, [login, ...others])
}

async function forget(file: string, { origin }: StoredLogin): Promise<void> {
  await write(
    file,
    (await readLogins(file)).filter((login) => login.origin !== origin),
  )
}

function write(file: string, logins: readonly StoredLogin[]): Promise<void> {
  return writeOwnFile(file, `${JSON.stringify({ version: VERSION, logins }, null, 2)}\n`)
}
