/** Shared parts of the tour's steps: requests with an expected status, printed in short form. */
import type { AgentKey } from '../../clients/client/agent.js'
import type { Answer, HttpClient, Request } from '../../clients/client/http.js'
import { solve } from '../../clients/client/solver.js'
import { systemClock } from '../../kernel/clock.js'

/** Longer values are cut to this many characters. Secrets are always cut. */
const SHOWN_CHARACTERS = 44
const SECRET_CHARACTERS = 8
const SECRET_MEMBERS =
  /(token|code|verifier|secret|password|private_key|snippet|env_block|signature|proof|payload|url)$/
const AGENT_NAME = 'tour agent'

/** A step with an unexpected result, described for the user of the tour. */
export class TourStopped extends Error {}

type Members = Readonly<Record<string, unknown>>

/** The state that the steps share. */
export interface Journey {
  readonly http: HttpClient
  readonly say: (line: string) => void
  readonly key: AgentKey
  readonly facts: Record<string, string>
}

/** A title, and what the step does. */
export type Step = readonly [title: string, run: (journey: Journey) => Promise<void>]

/** Starts a registration with the key of the journey. */
export async function start(journey: Journey, path: string, tenantFact: string): Promise<void> {
  const target = { issuer: fact(journey, 'issuer'), tenantId: fact(journey, tenantFact) }
  const tenant = tenantFact === 'tenant' ? { tenant_id: target.tenantId } : {}
  const { body } = await expect(journey, 200, {
    method: 'POST',
    path,
    json: { name: AGENT_NAME, ...journey.key.registration(target), ...tenant },
  })
  keep(journey, body, {
    challenge: 'challenge_id',
    challengeToken: 'challenge_token',
    bits: 'difficulty_bits',
    floorSecs: 'min_duration_seconds',
  })
  journey.facts['startedMs'] = String(systemClock.monotonicMs())
}

/** Solves the proof of work of a registration and completes it, waiting as the service asks. */
export async function complete(journey: Journey, path: string, status: number, rest: Members) {
  const started = systemClock.monotonicMs()
  const nonce = await solve({
    challengeToken: fact(journey, 'challengeToken'),
    difficultyBits: Number(fact(journey, 'bits')),
  })
  const ms = Math.round(systemClock.monotonicMs() - started)
  journey.say(`   solved ${fact(journey, 'bits')} bits in ${ms} ms: nonce ${nonce}`)
  journey.facts['nonce'] = nonce
  const json = { challenge_id: fact(journey, 'challenge'), nonce, ...rest }
  const request: Request = { method: 'POST', path, json }
  for (;;) {
    const answer = await journey.http.request(request)
    show(journey, request, answer)
    if (answer.status === status) return answer
    if (answer.status !== 425) throw new TourStopped(`expected ${status}, got ${answer.status}`)
    const waitSecs = Number(answer.headers['retry-after'])
    journey.say(`   too early: waiting ${waitSecs} s, as the response says`)
    await new Promise((resolve) => setTimeout(resolve, waitSecs * 1000))
  }
}

/** Challenge and verify. The tokens become facts. */
export async function logIn(journey: Journey, agentFact: string): Promise<void> {
  const challenge = await expect(journey, 200, {
    method: 'POST',
    path: '/api/v1/agents/auth/challenge',
    json: { agent_id: fact(journey, agentFact) },
  })
  const { body } = await expect(journey, 200, {
    method: 'POST',
    path: '/api/v1/agents/auth/verify',
    json: {
      challenge_id: member(challenge.body, 'challenge_id'),
      signature: journey.key.signChallenge(String(member(challenge.body, 'payload'))),
    },
  })
  keep(journey, body, { token: 'access_token', refreshToken: 'refresh_token' })
}

/** A request that must have this response status. */
export async function expect(journey: Journey, status: number, request: Request): Promise<Answer> {
  const answer = await journey.http.request(request)
  show(journey, request, answer)
  if (answer.status === status) return answer
  throw new TourStopped(
    `${request.method} ${request.path}: expected ${status}, got ${answer.status} ` +
      `(request ${answer.headers['x-request-id'] ?? 'without id'})`,
  )
}

function show({ say }: Journey, request: Request, { status, body }: Answer): void {
  const sent = request.json ?? request.form
  say(`   ${request.method} ${request.path}${sent === undefined ? '' : ` ${short(sent)}`}`)
  say(`   ${status} ${typeof body === 'string' ? short({ body }) : short(body)}`)
}

/** One line of JSON: long values cut, secrets cut shorter, nested objects summarised. */
export function short(value: unknown): string {
  const entries = Object.entries(value as Members).map(([name, held]) => {
    if (Array.isArray(held)) return `${name}: [${held.length}]`
    if (typeof held === 'object' && held !== null) return `${name}: {...}`
    const text = String(held).replaceAll('\n', '\\n')
    const limit = SECRET_MEMBERS.test(name) ? SECRET_CHARACTERS : SHOWN_CHARACTERS
    return `${name}: ${text.length > limit ? `${text.slice(0, limit)}...` : text}`
  })
  return `{ ${entries.join(', ')} }`
}

/** Stores members of a response as facts. */
export function keep(
  journey: Journey,
  body: unknown,
  names: Readonly<Record<string, string>>,
): void {
  for (const [name, path] of Object.entries(names)) {
    const value = member(body, path)
    if (value === undefined) throw new TourStopped(`the answer has no ${path}`)
    journey.facts[name] = String(value)
  }
}

/** A fact from an earlier step. */
export function fact({ facts }: Journey, name: string): string {
  const value = facts[name]
  if (value === undefined) throw new TourStopped(`no earlier step has set: ${name}`)
  return value
}

/** A member of a response. Undefined when it is absent. */
export function member(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Members)[name] : undefined
}

/** RFC 6749 section 2.3.1: both halves are form-encoded before they are joined. */
export function basic(journey: Journey): string {
  const half = (name: string) => encodeURIComponent(fact(journey, name))
  return `Basic ${Buffer.from(`${half('clientId')}:${half('clientSecret')}`).toString('base64')}`
}
