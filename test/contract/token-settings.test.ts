/**
 * The token settings: the lifetimes of issued tokens with defaults and with both ends of each range. A process with a value
 * outside of the range does not start.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { apiOf, claimsOf, type Json } from '../support/api.js'
import { fixtureOf } from '../support/agents/delegation.js'
import { openBrowser } from '../support/pages/browser.js'
import { callerOf } from '../support/agents/journey.js'
import { authorized, CALLBACK, callbackOf, relyingParty } from '../support/oauth/relying-party.js'
import { sharedService, testService } from '../support/service.js'

type Row = readonly [
  setting: string,
  value: number | string,
  least: number | string,
  most: number | string,
]
/** Setting, default, and both ends of the range. */
const TABLE: readonly Row[] = [
  ['default_algorithm', 'ES256', 'ES256', 'EdDSA'],
  ['access_token_lifetime_human_secs', 900, 60, 86_400],
  ['access_token_lifetime_agent_secs', 300, 60, 86_400],
  ['refresh_token_lifetime_human_secs', 604_800, 3_600, 7_776_000],
  ['refresh_token_lifetime_agent_secs', 86_400, 3_600, 7_776_000],
  ['id_token_lifetime_secs', 300, 60, 3_600],
  ['key_rotation_days', 30, 1, 365],
]
const nameOf = (setting: string) => `SVC_JWT__${setting.toUpperCase()}`
const algorithmOf = (token: unknown) =>
  (JSON.parse(Buffer.from(String(token).split('.')[0]!, 'base64url').toString()) as Json)['alg']
const lifetimeOf = (claims: Json) => Number(claims['exp']) - Number(claims['iat'])

/** The observed values by setting. */
async function observed(environment: Record<string, string>): Promise<Json> {
  const isDefault = Object.keys(environment).length === 0
  const running = isDefault ? await sharedService('plain') : await testService({ environment })
  const api = apiOf(running)
  const browser = openBrowser(running)
  try {
    const here = await api.workspace()
    const web = await relyingParty(running, here, {
      grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
      idTokenSignedResponseAlg: 'ES256',
    })
    const { form } = callerOf(running.baseUrl)
    const client = { client_id: web.clientId, client_secret: web.secret }
    const ask = async (path: string, fields: Record<string, string>) =>
      (await form(path, { ...client, ...fields })).body
    const { url, verifier } = await web.journey()
    const code = callbackOf(await authorized(browser, fixtureOf(here), url)).searchParams.get(
      'code',
    )
    const human = await ask('/oauth/token', {
      grant_type: 'authorization_code',
      code: String(code),
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    })
    const login = await api.login(here.key, { agent_id: here.agentId, tenant_id: here.tenantId })
    const agent = login.body
    const service = await ask('/oauth/token', { grant_type: 'client_credentials' })
    const family = async (token: unknown) =>
      lifetimeOf(await ask('/oauth/introspect', { token: String(token) }))
    // `expires_in` matches the token.
    const access = ({ access_token, expires_in }: Json) => {
      const secs = lifetimeOf(claimsOf(access_token))
      if (secs !== expires_in) throw new Error(`${secs} is not ${String(expires_in)}`)
      return secs
    }
    const agentSecs = access(agent)
    if (access(service) !== agentSecs)
      throw new Error('service tokens live as long as tokens of agents')
    return {
      default_algorithm: algorithmOf(agent['access_token']),
      access_token_lifetime_human_secs: access(human),
      access_token_lifetime_agent_secs: agentSecs,
      refresh_token_lifetime_human_secs: await family(human['refresh_token']),
      refresh_token_lifetime_agent_secs: await family(agent['refresh_token']),
      id_token_lifetime_secs: lifetimeOf(claimsOf(human['id_token'])),
    }
  } finally {
    await running.end()
  }
}

/** Key rotation cannot be observed in a test. Its rules are tested in actors/oauth/signing-keys. */
const SEEN = TABLE.filter(([setting]) => setting !== 'key_rotation_days')

for (const [title, column] of [
  ['by default', 1],
  ['at the least', 2],
  ['at the most', 3],
] as const) {
  test.serial(`${title} tokens live as the table says`, async (t) => {
    t.timeout(60_000)
    const environment =
      column === 1
        ? {}
        : Object.fromEntries(TABLE.map((row) => [nameOf(row[0]), String(row[column])]))
    t.deepEqual(
      await observed(environment),
      Object.fromEntries(SEEN.map((row) => [row[0], row[column]])),
    )
  })
}

/** Starts the program. */
function served(environment: Record<string, string>): Promise<{ code: unknown; text: string }> {
  const cwd = mkdtempSync(join(tmpdir(), 'svc-settings-'))
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(process.cwd(), 'dist/runtime/main.js'), 'serve'],
      { cwd, env: { PATH: process.env['PATH'], ...environment }, timeout: 60_000 },
      (error, stdout, stderr) => {
        rmSync(cwd, { recursive: true, force: true })
        resolve({ code: error?.code ?? 0, text: stdout + stderr })
      },
    )
  })
}
const CONFIGURATION_REFUSED = 78

/** A refused start names every setting that is beyond its range: one start shows all of them. */
function startWith(valueOf: (row: Row) => number | string) {
  let start: ReturnType<typeof served> | undefined
  return () =>
    (start ??= served(
      Object.fromEntries(TABLE.map((row) => [nameOf(row[0]), String(valueOf(row))])),
    ))
}
const beyond = [
  startWith(([, , least]) => (typeof least === 'number' ? least - 1 : 'RS256')),
  startWith(([, , , most]) => (typeof most === 'number' ? most + 1 : 'none')),
]

for (const [setting, , least, most] of TABLE) {
  test.serial(`beyond the range of ${setting} nothing starts`, async (t) => {
    t.timeout(120_000)
    for (const start of beyond) {
      const { code, text } = await start()
      t.is(code, CONFIGURATION_REFUSED, text)
      const failure =
        text.split('\n\n').find((part) => part.startsWith(`  jwt.${setting} = `)) ?? ''
      t.true(failure.includes(nameOf(setting)), `it names what to change: ${text}`)
      if (typeof least === 'number') t.true(failure.includes(`${least} to ${most}`), text)
    }
  })
}

test.serial('refresh tokens live at least as long as access tokens', async (t) => {
  const kinds = ['human', 'agent'] as const
  const { code, text } = await served(
    Object.fromEntries(
      kinds.flatMap((kind) => [
        [nameOf(`access_token_lifetime_${kind}_secs`), '3601'],
        [nameOf(`refresh_token_lifetime_${kind}_secs`), '3600'],
      ]),
    ),
  )
  t.is(code, CONFIGURATION_REFUSED, text)
  for (const kind of kinds) t.true(text.includes(`jwt.refresh_token_lifetime_${kind}_secs`), text)
})
