/** The requests of `svc apply`: refused ones throw, throttled ones are sent again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, HttpClient, Request } from '../../clients/client/http.js'
import type { Kind, Members } from './kinds.js'

const ATTEMPTS = 5
const WAIT_SECS_MAX = 60

/** Access tokens: of the tenant, and of an operator of its organization. */
export type Tokens = { readonly tenant: string; readonly control: string }

/** The service answered with a status from 400. */
export class Refused extends Error {
  readonly status: number
  constructor(status: number, text: string) {
    super(text)
    this.status = status
  }
}

/** @throws Refused, or when the service cannot be reached. */
export type Caller = (
  method: Request['method'],
  path: string,
  json?: unknown,
) => Promise<Pick<Answer, 'body' | 'headers'>>

/** Calls with the token that a kind needs. */
export function callerFor(client: HttpClient, { control = false }: Kind, tokens: Tokens): Caller {
  const token = control ? tokens.control : tokens.tenant
  return async (method, path, json) => {
    for (let attempt = 1; ; attempt += 1) {
      const { status, headers, body } = await client.request({ method, path, json, token })
      if (status < 400) return { headers, body }
      const waitSecs = Number(headers['retry-after'])
      // 429 has no effect (RFC 6585 section 4), so every method may be repeated.
      if (status !== 429 || attempt === ATTEMPTS || !(waitSecs <= WAIT_SECS_MAX))
        throw new Refused(status, `${method} ${path} answered ${status}: ${reasonIn(body)}`)
      await sleep(waitSecs * 1000)
    }
  }
}

function reasonIn(body: unknown): string {
  const { detail, title, error, errors } = (
    typeof body === 'object' && body !== null ? body : {}
  ) as Members
  const places = Array.isArray(errors)
    ? (errors as readonly Members[]).map(
        (each) => ` ${String(each['pointer'])}: ${String(each['detail'])}`,
      )
    : []
  return [String(detail ?? title ?? error ?? 'no reason given'), ...places].join(';')
}
