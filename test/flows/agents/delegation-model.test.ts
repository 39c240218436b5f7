/**
 * The state machine of a delegation against the running service: for any sequence of actions of
 * agents, people and owners, each response matches the states of docs/reference/agents.md.
 */
import test from 'ava'
import * as fc from 'fast-check'
import { type Api, apiOf, claimsOf } from '../../support/api.js'
import {
  type Asked,
  ask,
  fixtureOf,
  newFixture,
  ownToken,
  type Person,
  poll,
  present,
} from '../../support/agents/delegation.js'
import { sharedService } from '../../support/service.js'
import { IS_LONG } from '../../support/runs.js'

const api = apiOf(await sharedService('plain'))
const workspace = await api.workspace()
const people = [
  await present(api, fixtureOf(workspace)),
  await present(api, await newFixture(api, workspace)),
]
const tokens = await Promise.all(people.map((person) => ownToken(api, workspace, person)))

/** A request and its outcome. */
type Request = {
  readonly asked: Asked
  state: 'pending' | 'approved' | 'denied' | 'consumed'
  by: number
  interval: number
  polled: boolean
  ended: boolean
  delegationId: string
  access: string
  refresh: string
}
type Model = { requests: { state: string }[] }
type Real = { readonly api: Api; readonly requests: Request[] }

/** Every response is checked against the same record; the model only remembers that one exists. */
abstract class Step implements fc.AsyncCommand<Model, Real> {
  readonly pick: number
  readonly who: number

  constructor(pick: number, who: number) {
    this.pick = pick
    this.who = who
  }

  check(model: Model): boolean {
    return model.requests.length > 0
  }

  async run(_model: Model, { requests }: Real): Promise<void> {
    await this.on(requests[this.pick % requests.length]!)
  }

  abstract on(request: Request): Promise<void>

  toString(): string {
    return `${this.constructor.name}(${this.pick}, ${this.who})`
  }
}

class Ask implements fc.AsyncCommand<Model, Real> {
  check(): boolean {
    return true
  }

  async run(model: Model, { requests }: Real): Promise<void> {
    const asked = await ask(api, workspace.token, { scope: 'openid vault:list users:manage' })
    const none = { delegationId: '', access: '', refresh: '' }
    const state = 'pending' as const
    requests.push({ asked, state, by: -1, interval: 5, polled: false, ended: false, ...none })
    model.requests.push({ state })
  }

  toString(): string {
    return 'Ask'
  }
}

class Poll extends Step {
  async on(request: Request): Promise<void> {
    const { status, body, headers } = await poll(api, workspace.token, request.asked)
    const error = body['error']
    const interval = Number(headers['retry-interval'])
    meet(`poll ${String(error ?? 'granted')}`)
    if (request.state === 'approved' && !request.ended) {
      equal(status, 200)
      equal(body['scope'], 'openid vault:list')
      request.access = String(body['access_token'])
      request.refresh = String(body['refresh_token'])
      equal(claimsOf(request.access)['delegation_id'], request.delegationId)
      request.state = 'consumed'
      return
    }
    equal(status, 400)
    if (request.state === 'consumed') equal(error, 'invalid_grant')
    else if (request.state !== 'pending') equal(error, 'access_denied')
    else if (error === 'slow_down') {
      equal(request.polled, true)
      request.interval += 5
      equal(interval, request.interval)
    } else {
      equal(error, 'authorization_pending')
      equal(interval, request.interval)
    }
    request.polled = true
  }
}

abstract class Decide extends Step {
  abstract readonly answer: 'approve' | 'deny'

  async on(request: Request): Promise<void> {
    const { browser } = people[this.who] as Person
    const path = `/device/delegation/${request.asked.userCode}`
    const page = await browser.get(path)
    if (request.state !== 'pending') {
      meet(`page ${page.status}`)
      equal(page.status, request.by === this.who ? 200 : 410)
      return
    }
    equal(page.status, 200)
    equal((await browser.submit(page, {}, `${path}/${this.answer}`)).status, 303)
    request.by = this.who
    request.state = this.answer === 'approve' ? 'approved' : 'denied'
    if (this.answer === 'deny') return
    const { rows } = await api.list('/api/v1/delegations', tokens[this.who]!)
    request.delegationId = String(rows[0]!['id'])
  }
}

class Approve extends Decide {
  readonly answer = 'approve'
}

class Deny extends Decide {
  readonly answer = 'deny'
}

class Revoke extends Step {
  async on(request: Request): Promise<void> {
    if (request.delegationId === '') return
    const path = `/api/v1/delegations/${request.delegationId}/revoke`
    const { status, body } = await api.post(path, tokens[this.who]!)
    if (request.by !== this.who) {
      equal(status, 404)
      return
    }
    equal(status, 200)
    equal(body['status'], 'revoked')
    request.ended = true
  }
}

class Use extends Step {
  async on(request: Request): Promise<void> {
    if (request.access === '') return
    const { status } = await api.get('/api/v1/vault/credentials', request.access)
    meet(`use ${status}`)
    equal(status, request.ended ? 401 : 200)
  }
}

class Refresh extends Step {
  async on(request: Request): Promise<void> {
    if (request.refresh === '') return
    const { status, body } = await api.form('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: workspace.agentId,
      refresh_token: request.refresh,
    })
    meet(`refresh ${status}`)
    equal(status, request.ended ? 400 : 200)
    if (request.ended) {
      equal(body['error'], 'invalid_grant')
      return
    }
    request.access = String(body['access_token'])
    request.refresh = String(body['refresh_token'])
  }
}

class Read extends Step {
  async on(request: Request): Promise<void> {
    if (request.delegationId === '') return
    const path = `/api/v1/delegations/${request.delegationId}`
    const { status, body } = await api.get(path, tokens[this.who]!)
    equal(status, request.by === this.who ? 200 : 404)
    if (status === 200) equal(body['status'], request.ended ? 'revoked' : 'active')
  }
}

/** The responses that occurred: a model run without them proves nothing. */
const met = new Map<string, number>()
const meet = (what: string) => met.set(what, (met.get(what) ?? 0) + 1)

function equal(found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${String(found)} where ${String(expected)} is right`)
}

/** A fixed sequence with every response of `MUST_MEET`, because the random ones depend on their seed. */
const WRITTEN = [
  new Ask(),
  new Poll(0, 0),
  new Poll(0, 0),
  new Approve(0, 0),
  new Approve(0, 0),
  new Approve(0, 1),
  new Poll(0, 0),
  new Use(0, 0),
  new Refresh(0, 0),
  new Use(0, 0),
  new Poll(0, 0),
  new Revoke(0, 1),
  new Revoke(0, 0),
  new Read(0, 0),
  new Use(0, 0),
  new Refresh(0, 0),
  new Ask(),
  new Deny(1, 1),
  new Poll(1, 1),
]
/** The responses that must occur. */
const MUST_MEET = [
  'poll granted',
  'poll authorization_pending',
  'poll slow_down',
  'poll access_denied',
  'poll invalid_grant',
  'use 200',
  'use 401',
  'refresh 200',
  'refresh 400',
  'page 200',
  'page 410',
]

test('every order of requesting, deciding, polling, using and revoking matches the states', async (t) => {
  t.timeout(300_000)
  const step = fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 1 }))
  const commands = [
    fc.constant(new Ask()),
    ...[Poll, Approve, Deny, Revoke, Use, Refresh, Read, Poll, Approve, Revoke, Use].map((Kind) =>
      step.map(([pick, who]) => new Kind(pick, who)),
    ),
  ]
  const setup = () => ({ model: { requests: [] }, real: { api, requests: [] } })
  await fc.asyncModelRun(setup, WRITTEN)
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 24, size: 'max' }), async (script) => {
      await fc.asyncModelRun(setup, script)
    }),
    { numRuns: IS_LONG ? 150 : 15, interruptAfterTimeLimit: 60_000 },
  )
  t.log(Object.fromEntries(met))
  t.deepEqual(
    MUST_MEET.filter((what) => !met.has(what)),
    [],
  )
})
