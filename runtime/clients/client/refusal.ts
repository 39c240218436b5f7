/** A service's refusal as an error that says what to do about it. */
import type { Answer, HttpClient, Request } from './http.js'

export type Members = Readonly<Record<string, unknown>>

/** A refusal: a problem document (RFC 9457) or an OAuth error (RFC 6749 section 5.2). */
export class ServiceRefusal extends Error {
  override readonly name = 'ServiceRefusal'
  readonly status: number
  /** The `error` code, such as `policy_denied`. `unknown` when the response has none. */
  readonly code: string
  /** The service's description of the error. */
  readonly detail: string
  /** What to do about it. Null when the detail says everything. */
  readonly hint: string | null
  /** For the operator of the service. Null when the response has none. */
  readonly requestId: string | null
  /** The Retry-After of the response in seconds. Null when it has none. */
  readonly retryAfterSecs: number | null
  readonly body: unknown

  constructor({ status, headers, body }: Answer, request: Pick<Request, 'method' | 'path'>) {
    const code = text(member(body, 'error')) ?? 'unknown'
    const detail =
      text(member(body, 'detail')) ??
      text(member(body, 'error_description')) ??
      text(member(body, 'title')) ??
      `${request.method} ${request.path} returned status ${status}`
    super(`${detail} (${status} ${code})`)
    this.status = status
    this.code = code
    this.detail = detail
    this.hint = hintFor(status, code)
    this.requestId = headers['x-request-id'] ?? null
    this.retryAfterSecs = secondsOf(headers['retry-after'])
    this.body = body
  }
}

/** The refusal in a response of `fetch`. */
export async function refusalOf(
  response: Response,
  request: Pick<Request, 'method' | 'path'>,
): Promise<ServiceRefusal> {
  const content = await response.text()
  const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '')
  const headers = Object.fromEntries(response.headers)
  const body: unknown = isJson ? JSON.parse(content) : content
  return new ServiceRefusal({ status: response.status, headers, body }, request)
}

/** A request that must have this response status. @throws ServiceRefusal for any other. */
export async function expectAnswer(
  http: HttpClient,
  status: number,
  request: Request,
): Promise<Members> {
  const answer = await http.request(request)
  if (answer.status !== status) throw new ServiceRefusal(answer, request)
  if (typeof answer.body !== 'object' || answer.body === null) {
    throw new ServiceRefusal({ ...answer, body: null }, request)
  }
  return answer.body as Members
}

/** A member of a response. Undefined when it is absent. */
export function member(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Members)[name] : undefined
}

/** A member that must be a string. @throws when it is not: the server is not an svc service. */
export function textMember(body: unknown, name: string): string {
  const value = text(member(body, name))
  if (value === undefined) throw new TypeError(`the response of the service has no ${name}`)
  return value
}

/** A member that must be a number. @throws when it is not. */
export function numberMember(body: unknown, name: string): number {
  const value = member(body, name)
  if (typeof value !== 'number') throw new TypeError(`the response of the service has no ${name}`)
  return value
}

/** A header in whole seconds. Null when it is absent or invalid. */
export function secondsOf(header: string | undefined): number | null {
  return header !== undefined && /^\d{1,6}$/.test(header) ? Number(header) : null
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** By `error` code, where the service's detail does not say what the caller can do. */
const HINTS: Readonly<Record<string, string>> = {
  policy_denied:
    "The tenant does not allow it. A user with tenant:manage may change the tenant's settings " +
    '(admit_agents, direct_agent_registration); you can create your own workspace without that.',
  conflict: 'The key is already registered in the tenant: log in with it.',
  rate_limited: 'Wait for the Retry-After time and repeat the request.',
  brute_force_locked: 'Wait for the Retry-After time and repeat the request.',
  invalid_grant:
    'The credential was used before, has expired or is invalid: the key may be revoked, the agent ' +
    'suspended, or the delegation ended. Log in again, or request a new delegation.',
  invalid_scope:
    'Request a smaller scope: svc agent login without --scope shows what the agent may have.',
  invalid_target: 'audience must be the issuer or the audience of an application of the tenant.',
  insufficient_scope: 'The token lacks the scope. Log in with the scope, or have it granted.',
  invalid_token:
    'The token is no longer valid: the agent, its key or the session was revoked. Log in again.',
  delegation_expired: 'The delegation has expired. Request a new one.',
  wallet_not_provisioned: 'An administrator with wallet:manage creates the wallet of the agent.',
  wallet_frozen: 'An administrator with wallet:manage may unfreeze it.',
  recipient_not_allowed: 'An administrator with wallet:manage may add it to the policy.',
  contract_not_allowed: 'An administrator with wallet:manage may add it to the policy.',
  access_denied: 'The user denied the request.',
  expired_token: 'The user did not decide in time. Request again.',
  service_unavailable:
    'The service or one of its dependencies is unavailable for a moment: try again.',
  too_early: 'The proof was sent before the minimum duration: repeat the same request.',
}

const HINTS_BY_STATUS: Readonly<Record<number, string>> = {
  403: 'This needs a direct token of an active agent with the scope, for the tenant in question.',
  404: 'It does not exist, or belongs to another tenant.',
  501: 'This deployment does not have the agent service.',
}

function hintFor(status: number, code: string): string | null {
  return HINTS[code] ?? HINTS_BY_STATUS[status] ?? null
}
