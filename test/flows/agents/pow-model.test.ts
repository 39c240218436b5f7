/**
 * The state machine of a proof-of-work challenge (docs/reference/agents.md)
 * against two processes of one service: for any sequence of starts, completions, errors, early and
 * concurrent proofs, at either process, each response matches the states.
 */
import test from 'ava'
import * as fc from 'fast-check'
import { type AgentKey, createAgentKey } from '../../../runtime/clients/client/agent.js'
import type { Answer, Api, Json } from '../../support/api.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { sql } from '../../support/storage/sql.js'
import { twoServices } from '../../support/service/two-services.js'
import { IS_LONG } from '../../support/runs.js'

const FLOOR_SECS = 60
const INVALID_MAX = 3
const RACERS = 4
const AGENT = '/api/v1/agents/auth/register/pow'
const WORKSPACE = '/api/v1/agents/workspace/bootstrap/pow'
const two = await twoServices({
  SVC_CHALLENGE__POW_MIN_DURATION_SECS: String(FLOOR_SECS),
  SVC_CHALLENGE__POW_MAX_INVALID: String(INVALID_MAX),
  SVC_CHALLENGE__POW_TRICKLE_PER_MINUTE: '1000000',
})
const processes = [two.first, two.second]
const { body: metadata } = await two.first.get('/api/v1/agents/workspace/bootstrap')
const target = {
  issuer: String(metadata['issuer']),
  tenantId: String(metadata['control_plane_tenant_id']),
}

type Kind = 'agent' | 'workspace'
type Challenge = {
  readonly kind: Kind
  readonly key: AgentKey
  readonly id: string
  readonly token: string
  readonly nonces: { readonly valid: string; readonly invalid: string }
  state: 'issued' | 'consumed' | 'expired'
  /** True after the minimum duration. */
  ripe: boolean
  invalid: number
}
/** Agents use one key until it is registered: only one of its challenges succeeds. */
type Model = { readonly challenges: Challenge[]; readonly registered: Set<string>; key: AgentKey }
type Real = object

const met = new Map<string, number>()
const meet = (what: string) => void met.set(what, (met.get(what) ?? 0) + 1)

function equal(found: unknown, expected: unknown, of: unknown): void {
  if (found === expected) return
  throw new Error(`${String(found)} where ${String(expected)} is right: ${JSON.stringify(of)}`)
}

const MEANS = {
  consumed: [400, 'The challenge is consumed already.'],
  expired: [400, 'The challenge has expired.'],
  invalid: [400, 'The digest of the nonce has too few leading zero bits.'],
  known: [409, 'The key is already registered in this tenant.'],
} as const

function refused(answer: Answer, why: keyof typeof MEANS): void {
  const [status, detail] = MEANS[why]
  equal(answer.status, status, answer.body)
  equal(answer.body['detail'], detail, answer.body)
  meet(why)
}

class Start implements fc.AsyncCommand<Model, Real> {
  readonly kind: Kind
  readonly at: number

  constructor(kind: Kind, at: number) {
    this.kind = kind
    this.at = at
  }

  check(): boolean {
    return true
  }

  async run(model: Model): Promise<void> {
    const { challenges, registered } = model
    const key = this.kind === 'workspace' ? createAgentKey() : model.key
    const answer = await api(this.at).post(this.kind === 'agent' ? AGENT : WORKSPACE, undefined, {
      name: 'Model',
      ...key.registration(target),
    })
    if (registered.has(key.fingerprint)) {
      equal(answer.status, 409, answer.body)
      model.key = createAgentKey()
      meet('start of a known key')
      return
    }
    equal(answer.status, 200, answer.body)
    equal(answer.body['min_duration_seconds'], FLOOR_SECS, answer.body)
    const token = String(answer.body['challenge_token'])
    const work = { challengeToken: token, difficultyBits: Number(answer.body['difficulty_bits']) }
    challenges.push({
      kind: this.kind,
      key,
      id: String(answer.body['challenge_id']),
      token,
      nonces: { valid: nonceFor(work), invalid: nonceFor(work, 'invalid') },
      state: 'issued',
      ripe: false,
      invalid: 0,
    })
  }

  toString(): string {
    return `Start(${this.kind}, ${this.at})`
  }
}

const api = (at: number): Api => processes[at % processes.length]!

abstract class Step implements fc.AsyncCommand<Model, Real> {
  readonly pick: number
  readonly at: number

  constructor(pick: number, at: number) {
    this.pick = pick
    this.at = at
  }

  check({ challenges }: Readonly<Model>): boolean {
    return challenges.length > 0
  }

  async run(model: Model): Promise<void> {
    await this.on(model.challenges[this.pick % model.challenges.length]!, model)
  }

  abstract on(challenge: Challenge, model: Model): Promise<void>

  toString(): string {
    return `${this.constructor.name}(${this.pick}, ${this.at})`
  }
}

function complete(challenge: Challenge, at: number, more: Json = {}, on = challenge.kind) {
  const body = { challenge_id: challenge.id, nonce: challenge.nonces.valid }
  const workspace = {
    organization_name: 'Model',
    redirect_uris: [],
    issue_operator_invite: false,
    framework: 'generic',
  }
  return api(at).post(`${on === 'agent' ? AGENT : WORKSPACE}/complete`, undefined, {
    ...body,
    ...(on === 'agent' ? {} : workspace),
    ...more,
  })
}

/** The response to a valid proof, by state. */
function judge(challenge: Challenge, { registered }: Model, answer: Answer): void {
  if (challenge.state !== 'issued') refused(answer, challenge.state)
  else if (!challenge.ripe) {
    equal(answer.status, 425, answer.body)
    const secs = Number(answer.headers['retry-after'])
    equal(Number.isInteger(secs) && secs >= 1 && secs <= FLOOR_SECS, true, answer.headers)
    equal(answer.body['retry_after'], secs, answer.body)
    meet('too early')
  } else if (registered.has(challenge.key.fingerprint)) refused(answer, 'known')
  else {
    equal(answer.status, challenge.kind === 'agent' ? 200 : 201, answer.body)
    challenge.state = 'consumed'
    registered.add(challenge.key.fingerprint)
    meet(`registered ${challenge.kind}`)
  }
}

class Complete extends Step {
  async on(challenge: Challenge, model: Model): Promise<void> {
    judge(challenge, model, await complete(challenge, this.at))
  }
}

class CompleteWithToken extends Step {
  async on(challenge: Challenge, model: Model): Promise<void> {
    const answer = await complete(challenge, this.at, { challenge_token: challenge.token })
    judge(challenge, model, answer)
  }
}

/** One of several concurrent completions at both processes registers; the others find it consumed. */
class Race extends Step {
  async on(challenge: Challenge, model: Model): Promise<void> {
    const wins =
      challenge.state === 'issued' &&
      challenge.ripe &&
      !model.registered.has(challenge.key.fingerprint)
    const answers = await Promise.all(
      Array.from({ length: RACERS }, (_, racer) => complete(challenge, this.at + racer)),
    )
    const won = answers.findIndex(({ status }) => status === 200 || status === 201)
    if (wins) {
      equal(
        won >= 0,
        true,
        answers.map(({ status }) => status),
      )
      judge(challenge, model, answers[won]!)
      answers.splice(won, 1)
      meet('race')
    }
    for (const answer of answers) judge(challenge, model, answer)
  }
}

class CompleteWrongly extends Step {
  async on(challenge: Challenge): Promise<void> {
    const answer = await complete(challenge, this.at, { nonce: challenge.nonces.invalid })
    if (challenge.state !== 'issued') return refused(answer, challenge.state)
    refused(answer, 'invalid')
    challenge.invalid += 1
    if (challenge.invalid >= INVALID_MAX) challenge.state = 'expired'
  }
}

/** Rejected before the challenge is consumed or counts an invalid proof. */
class CompleteWithoutSense extends Step {
  async on(challenge: Challenge): Promise<void> {
    for (const nonce of [undefined, null, 7, '', '-1', '01', '1e3', '18446744073709551616']) {
      const { status, body } = await complete(challenge, this.at, { nonce })
      equal(status, 400, body)
      equal(JSON.stringify(body).includes('nonce'), true, body)
    }
    meet('nonce missing')
  }
}

/** A challenge is valid for its route and its token only. */
class CompleteElsewhere extends Step {
  async on(challenge: Challenge): Promise<void> {
    const other = challenge.kind === 'agent' ? 'workspace' : 'agent'
    for (const answer of [
      await complete(challenge, this.at, {}, other),
      await complete(challenge, this.at, { challenge_token: `${challenge.token}x` }),
    ]) {
      equal(answer.status, 400, answer.body)
      const detail = String(answer.body['detail'])
      equal(detail.startsWith('The challenge does not match'), true, answer.body)
    }
    meet('elsewhere')
  }
}

/** Moves the times of one challenge in the database, whose clock all processes share. */
async function age({ id }: Challenge, seconds: number): Promise<void> {
  await sql(
    two.first.at.db.database,
    `update pow_challenges set created_at = created_at - make_interval(secs => $2),
       expires_at = expires_at - make_interval(secs => $2) where id = $1`,
    [id, seconds],
  )
}

class Ripen extends Step {
  async on(_challenge: Challenge, { challenges }: Model): Promise<void> {
    for (const challenge of challenges.filter(({ ripe }) => !ripe)) {
      await age(challenge, FLOOR_SECS)
      challenge.ripe = true
    }
  }
}

/** Once for each challenge: one that expired more than an hour ago is deleted by the sweep. */
class Outlive extends Step {
  async on(challenge: Challenge): Promise<void> {
    if (challenge.state !== 'issued') return
    await age(challenge, 3_600)
    challenge.state = 'expired'
    challenge.ripe = true
  }
}

/** A script that meets every answer of `MUST_MEET`: what the random ones meet depends on their seed and on their time. */
const WRITTEN = [
  new Start('agent', 0),
  new Start('agent', 1),
  new CompleteWithoutSense(0, 0),
  new CompleteElsewhere(0, 1),
  new Complete(0, 0),
  new CompleteWrongly(0, 1),
  new Ripen(0, 0),
  new Complete(0, 0),
  new CompleteWithToken(0, 1),
  // The second challenge is of the same key.
  new Complete(1, 0),
  new Start('agent', 1),
  new Start('workspace', 0),
  new Ripen(2, 0),
  new Race(2, 0),
  new Start('workspace', 1),
  new Outlive(3, 0),
  new Complete(3, 1),
]
const MUST_MEET = [
  'registered agent',
  'registered workspace',
  'race',
  'too early',
  'consumed',
  'expired',
  'invalid',
  'known',
  'start of a known key',
  'nonce missing',
  'elsewhere',
]

test('every order of starts, completions, errors and waits matches the states', async (t) => {
  t.timeout(240_000)
  const at = fc.nat({ max: 1 })
  const step = fc.tuple(fc.nat({ max: 3 }), at)
  const kinds = [
    Complete,
    CompleteWithToken,
    Race,
    CompleteWrongly,
    CompleteWithoutSense,
    CompleteElsewhere,
    Ripen,
    Ripen,
    Ripen,
    Outlive,
  ]
  const commands = [
    fc
      .tuple(fc.constantFrom<Kind>('agent', 'agent', 'workspace'), at)
      .map(([kind, process]) => new Start(kind, process)),
    ...kinds.map((Of) => step.map(([pick, process]) => new Of(pick, process))),
  ]
  const setup = () => ({
    model: { challenges: [], registered: new Set<string>(), key: createAgentKey() },
    real: {},
  })
  await fc.asyncModelRun(setup, WRITTEN)
  t.deepEqual(
    MUST_MEET.filter((what) => !met.has(what)),
    [],
  )
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 30, size: 'max' }), async (script) => {
      await fc.asyncModelRun(setup, script)
    }),
    { numRuns: IS_LONG ? 200 : 15, interruptAfterTimeLimit: 120_000 },
  )
  t.log(Object.fromEntries(met))
})
