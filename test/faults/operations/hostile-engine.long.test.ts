/** Own service: its database fails. */
/**
 * Two services on a database that drops NOTIFY, fails statements with 40001, is reached through PgBouncer, and becomes
 * read-only for a while. Each with several seeds.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import {
  type Answer,
  bootstrap,
  type Caller,
  callerOf,
  clientToken,
  demand,
  login,
} from '../../support/agents/journey.js'
import { bootstrapped, signIn } from '../../support/identity/person.js'
import { openBrowser } from '../../support/pages/browser.js'
import { testWithProgram } from '../../support/service/programs.js'
import { until } from '../../support/service/watch.js'
import { freshDatabase } from '../../support/storage/database.js'
import { hostileEngine } from '../../support/storage/hostile-engine.js'
import { ownService } from '../../support/service/own-service.js'
import { freePort, type TestServiceOptions } from '../../support/service.js'

const SEEDS = [1, 2, 3, 4, 5]
const TOKENS = 1_000
const AT_ONCE = 20
const READ_ONLY_MS = 5_000

const serviceOf = async (t: ExecutionContext, options: TestServiceOptions) => {
  const running = await ownService(options)
  t.teardown(() => running.end())
  return running
}

for (const announce of ['notify', 'table'] as const)
  for (const seed of SEEDS)
    testWithProgram(
      'pgbouncer',
      `a hostile engine with announce = ${announce} and seed ${seed} loses and repeats nothing`,
      async (t) => {
        t.timeout(300_000)
        const db = await freshDatabase(t)
        const engine = await hostileEngine(db, announce, await freePort(), seed)
        t.teardown(() => engine.stop())
        const { environment } = engine
        const first = await serviceOf(t, { environment })
        const second = await serviceOf(t, { environment, peerOf: first })
        const https = [callerOf(first.baseUrl), callerOf(second.baseUrl)] as const
        const answers: Answer[] = []
        const seen = (answer: Answer) => {
          answers.push(answer)
          return answer
        }

        const browser = openBrowser(first)
        const person = await bootstrapped(first)
        const account = await browser.follow(await signIn(browser, person))
        t.true(account.html.includes(person.email))
        const space = await bootstrap(https[0])
        demand(await login(https[1], space), 200)

        const basic = Buffer.from(`${space.clientId}:${space.clientSecret}`).toString('base64')
        const asClient = (http: Caller, path: string, token: string) =>
          http.form(path, { token }, { authorization: `Basic ${basic}` })
        const tokens: string[] = []
        const issue = async (http: Caller) => {
          while (tokens.length < TOKENS) {
            const answer = seen(await clientToken(http, space))
            if (answer.status === 200) tokens.push(String(answer.body['access_token']))
          }
        }
        await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => issue(https[at % 2]!)))

        const kept: string[] = []
        const create = async (http: Caller) => {
          const key = randomUUID()
          const ask = () =>
            http.post(
              '/api/v1/applications',
              { name: key, redirect_uris: ['https://app.example/cb'] },
              { authorization: `Bearer ${space.accessToken}`, 'idempotency-key': key },
            )
          let answer = seen(await ask())
          while (answer.status === 503) {
            await sleep(20)
            answer = seen(await ask())
          }
          if (answer.status === 201) kept.push(key)
        }
        await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => create(https[at % 2]!)))

        const [revoked = ''] = tokens
        const isActive = async (http: Caller, token: string) =>
          seen(await asClient(http, '/oauth/introspect', token)).body['active'] === true
        t.true(await isActive(https[1], revoked))
        demand(await asClient(https[0], '/oauth/revoke', revoked), 200)
        await until('the other service refuses the token', async () => {
          return !(await isActive(https[1], revoked))
        })

        await engine.becomeReadOnly(true)
        const whileReadOnly = https.map((http) => create(http))
        await until('a write is refused', async () => answers.some(({ status }) => status === 503))
        await sleep(READ_ONLY_MS)
        await engine.becomeReadOnly(false)
        await Promise.all(whileReadOnly)
        await until('tokens are issued again', async () => {
          return seen(await clientToken(https[1], space)).status === 200
        })

        const others = answers.filter(({ status }) => ![200, 201, 503].includes(status))
        t.deepEqual(
          others.map(({ status, text }) => `${status} ${text}`),
          [],
        )
        t.true((await engine.failures()) > AT_ONCE / 10, `${await engine.failures()} failures`)
        t.is(kept.length, AT_ONCE + https.length)
        const list = demand(
          await https[0].call('/api/v1/applications?limit=100', {
            headers: { authorization: `Bearer ${space.accessToken}` },
          }),
          200,
        )
        for (const key of kept) t.is(list.text.split(key).length, 2, 'it exists once')
        t.false(await isActive(https[0], revoked))
        t.true(await isActive(https[0], tokens.at(-1)!))
      },
    )
