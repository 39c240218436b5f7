/**
 * Chooses the vault credential for a host: the one named on the command line, else the only listed one
 * that allows the host.
 */
import { normalizeHostname } from '../../../actors/domain/hostnames.js'
import { isUuid } from '../../../actors/domain/ids.js'
import { ANY_AUTH_SCHEME, readAuthScheme } from '../../../actors/domain/vault/egress.js'
import type { HttpClient } from '../client/http.js'
import type { TokenSource } from '../client/token-source.js'
import type { Clock } from '../../kernel/clock.js'

/** Minimum time between two reads of the list for unknown hosts. */
const RELOAD_MS = 10_000
const PAGE_ROWS = 100
const PAGES_MAX = 20
const USED_BY_EGRESS = new Set(['api_key', 'custom', 'ssh_key'])

export type ChosenCredential = {
  readonly id: string
  /** The header or parameter of this scheme is removed from the child's request. */
  readonly authScheme: string
}

type Choice =
  | { readonly tag: 'chosen'; readonly credential: ChosenCredential }
  | { readonly tag: 'none' }
  /** Several credentials match; the command line must name one. */
  | { readonly tag: 'ambiguous'; readonly ids: readonly string[] }

export interface CredentialChoice {
  of(host: string): Promise<Choice>
  /** Hosts with a known credential. */
  hosts(): readonly string[]
}

type Listed = {
  readonly id: string
  readonly credential_type: string
  readonly auth_scheme: string
  readonly allowed_hosts: readonly string[]
  readonly status: string
  readonly created_at: string
}

type Named = {
  readonly host: string
  readonly id: string
  readonly authScheme: string | null
}

/** Parses `api.example.com=<uuid>` or `api.example.com=<uuid>,header:x-api-key`. @throws if invalid. */
export function parseNamed(text: string): Named {
  const found = /^([^=]+)=([^,]+)(?:,(.+))?$/.exec(text)
  const host = found === null ? null : normalizeHostname(found[1]!)
  const id = found?.[2]?.toLowerCase() ?? ''
  const authScheme = found?.[3] ?? null
  if (host === null || !isUuid(id)) {
    throw new Error(`--credential must be host=id or host=id,scheme, not ${JSON.stringify(text)}`)
  }
  if (authScheme !== null && readAuthScheme(authScheme) === null) {
    throw new Error(`the scheme must be ${ANY_AUTH_SCHEME}, not ${authScheme}`)
  }
  return { host, id, authScheme }
}

type ChoiceNeeds = {
  readonly client: HttpClient
  readonly token: TokenSource
  readonly named: readonly Named[]
  readonly clock: Clock
}

/**
 * Reads the list of credentials. @throws when the token is rejected, or when it may not read the list and
 * no credential is named.
 */
export async function chooseCredentials(needs: ChoiceNeeds): Promise<CredentialChoice> {
  const { client, token, named, clock } = needs
  let listed: readonly Listed[] = []
  let readMs = -Infinity

  async function read(): Promise<void> {
    readMs = clock.monotonicMs()
    const found = await listOf(client, await token())
    if (typeof found !== 'string') listed = found
    else if (named.length === 0) {
      throw new Error(
        `${found}\nThe list of credentials needs a delegated token with vault:list. ` +
          'With another token, name the credentials: --credential api.example.com=<id>',
      )
    }
  }
  await read()

  const usable = () =>
    listed.filter(
      ({ credential_type: type, status }) => status === 'active' && USED_BY_EGRESS.has(type),
    )

  function known(host: string): Choice {
    const explicit = named.find((entry) => entry.host === host)
    if (explicit !== undefined) {
      const { id } = explicit
      const scheme = explicit.authScheme ?? listed.find((entry) => entry.id === id)?.auth_scheme
      return { tag: 'chosen', credential: { id, authScheme: scheme ?? 'bearer' } }
    }
    const fitting = usable().filter(({ allowed_hosts: hosts }) => hosts.includes(host))
    if (fitting.length > 1) return { tag: 'ambiguous', ids: fitting.map(({ id }) => id) }
    const [only] = fitting
    if (only === undefined) return { tag: 'none' }
    return { tag: 'chosen', credential: { id: only.id, authScheme: only.auth_scheme } }
  }

  return {
    async of(host) {
      const choice = known(host)
      if (choice.tag !== 'none' || clock.monotonicMs() - readMs < RELOAD_MS) return choice
      // While the service is unavailable, the known list stays in use.
      await read().catch(() => undefined)
      return known(host)
    },
    hosts: () => [
      ...new Set([
        ...named.map(({ host }) => host),
        ...usable().flatMap(({ allowed_hosts: hosts }) => hosts),
      ]),
    ],
  }
}

/** The whole list, or the reason why a valid token may not read it. */
async function listOf(client: HttpClient, token: string): Promise<readonly Listed[] | string> {
  const rows: Listed[] = []
  let path: string | undefined = `/api/v1/vault/credentials?limit=${PAGE_ROWS}`
  for (let page = 0; page < PAGES_MAX && path !== undefined; page += 1) {
    const { status, body, headers } = await client.request({ method: 'GET', path, token })
    if (status === 403) return `${client.baseUrl} refused the list: ${reasonOf(body)}`
    if (status !== 200 || !Array.isArray(body)) {
      throw new Error(`${client.baseUrl} answered ${status} to the list: ${reasonOf(body)}`)
    }
    rows.push(...(body as Listed[]))
    // RFC 8288
    const next = /<([^>]+)>;\s*rel="?next"?/.exec(headers['link'] ?? '')?.[1]
    // Only the path and query of the link: the token must not be sent to another origin.
    const url = next === undefined ? undefined : new URL(next, client.baseUrl)
    path = url && url.pathname + url.search
  }
  return rows
}

function reasonOf(body: unknown): string {
  const { detail, title } = (body ?? {}) as Readonly<Record<string, unknown>>
  return String(detail ?? title ?? 'no reason given')
}
