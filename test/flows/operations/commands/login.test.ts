/** `svc login` as a person uses it: the device flow, and commands that use its token (docs/reference/commands.md). */
import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedService } from '../../../support/service.js'

const MAIN = new URL('../../../../runtime/main.js', import.meta.url).pathname
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const running = await sharedService('clients')
const person = await bootstrapped(running)
const { clientId } = await relyingParty(running, person, {
  clientType: 'public',
  grantTypes: [DEVICE_GRANT, 'refresh_token'],
  scopes: ['openid', 'email', 'offline_access'],
  name: 'svc',
})
const home = mkdtempSync(join(tmpdir(), 'svc-login-'))
const file = join(home, '.config', 'svc', 'logins.json')
test.after.always(() => rmSync(home, { recursive: true, force: true }))

function begun(...words: readonly string[]): ChildProcess {
  const { ca } = running
  const certificate = join(home, 'ca.pem')
  if (ca !== undefined) writeFileSync(certificate, ca)
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    ...(ca === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificate }),
  }
  return spawn(process.execPath, [MAIN, ...words], { env })
}
async function ended(child: ChildProcess) {
  const text = { out: '', err: '' }
  child.stdout!.on('data', (chunk: Buffer) => (text.out += chunk.toString()))
  child.stderr!.on('data', (chunk: Buffer) => (text.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, ...text }
}
const svc = (...words: readonly string[]) => ended(begun(...words))

/** Starts the command, and decides at the address that it prints. */
async function signIn(action: 'approve' | 'deny', ...words: readonly string[]) {
  const child = begun('login', '--url', running.baseUrl, ...words)
  const end = ended(child)
  const path = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stderr!.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      const found = /^or open \S+?(\/oauth\/device\/verify\?user_code=\S+)$/m.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.on('close', () => reject(new Error(said)))
  })
  const browser = openBrowser(running)

  const login = await browser.follow(await browser.get(path))
  const asked = await browser.follow(await browser.submit(login, person))
  await browser.submit(asked, { action })

  return end
}
const stored = () =>
  existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as { logins: Record<string, unknown>[] }).logins
    : []
const me = () => svc('api', 'call', 'getUserinfo', '--url', running.baseUrl)

test.serial('a person signs in, and commands use and renew the token', async (t) => {
  t.timeout(120_000)
  const bare = await me()
  t.is(bare.code, 22, 'without a login no token is sent')
  const unnamed = await svc('login', '--url', running.baseUrl)
  t.is(unnamed.code, 1)
  t.regex(unnamed.err, /name --client-id/)

  const done = await signIn('approve', '--client-id', clientId, '--json')
  t.is(done.code, 0, done.err)
  t.like(JSON.parse(done.out) as Json, {
    origin: new URL(running.baseUrl).origin,
    client_id: clientId,
    renewed: true,
    file,
  })
  t.is(statSync(file).mode & 0o777, 0o600)
  t.is(statSync(join(home, '.config', 'svc')).mode & 0o777, 0o700)
  t.notRegex(done.out + done.err, /eyJ/, 'no token is printed')

  const first = await me()
  t.is(first.code, 0, first.err)
  t.is((JSON.parse(first.out) as Json)['email'], person.email)

  const unnamedUrl = await svc('api', 'call', 'getUserinfo')
  t.is(unnamedUrl.code, 0, unnamedUrl.err)
  t.regex(unnamedUrl.err, /\(from svc login\)/, 'the only login names the service')
  const foreign = await svc('api', 'call', 'getUserinfo', '--token-env', 'HOME')
  t.regex(foreign.err, /name the service of the token with --url/)

  const [before] = stored()
  writeFileSync(file, JSON.stringify({ version: 1, logins: [{ ...before, expires_at: 0 }] }))
  const [one, two] = await Promise.all([me(), me()])
  t.deepEqual([one.code, two.code], [0, 0], 'concurrent commands renew it once')
  const [after] = stored()
  t.not(after!['access_token'], before!['access_token'])
  t.not(after!['refresh_token'], before!['refresh_token'])
  t.is(statSync(file).mode & 0o777, 0o600)

  const elsewhere = await svc('webhooks', 'recover', '--url', 'http://127.0.0.1:9', '--since', '1h')
  t.is(elsewhere.code, 1)
  t.regex(elsewhere.err, /svc login --url http:\/\/127\.0\.0\.1:9/, 'a login is for one service')
  chmodSync(file, 0o644)
  const open = await me()
  t.is(open.code, 1)
  t.regex(open.err, /other users can read it/)
  chmodSync(file, 0o600)

  const out = await svc('logout', '--url', running.baseUrl, '--json')
  t.is(out.code, 0, out.err)
  t.like(JSON.parse(out.out) as Json, { revoked: true })
  t.deepEqual(stored(), [])
  const used = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: clientId,
      refresh_token: String(after!['refresh_token']),
    }),
  })
  t.like(await used.json(), { error: 'invalid_grant' })
  t.is((await me()).code, 22)
  t.is((await svc('logout', '--url', running.baseUrl)).code, 1)
})

test.serial(
  'who denies is not signed in, and an ended login says how to begin again',
  async (t) => {
    t.timeout(120_000)
    const denied = await signIn('deny', '--client-id', clientId)
    t.is(denied.code, 1)
    t.regex(denied.err, /access_denied/)
    t.deepEqual(stored(), [])

    t.is((await signIn('approve', '--client-id', clientId)).code, 0)
    const [login] = stored()
    const dead = { ...login, expires_at: 0, refresh_token: 'unknown' }
    writeFileSync(file, JSON.stringify({ version: 1, logins: [dead] }))
    const over = await me()
    t.is(over.code, 1)
    t.regex(over.err, /has ended: run svc login --url/)
    t.deepEqual(stored(), [])
  },
)

test('a mistyped command and option get a suggestion', async (t) => {
  t.regex((await svc('logn')).err, /Did you mean login\?/)
  t.regex(
    (await svc('login', '--url', 'http://x', '--clientid', 'x')).err,
    /Did you mean --client-id\?/,
  )
  t.regex((await svc('api', 'cal')).err, /Did you mean call\?/)
})
