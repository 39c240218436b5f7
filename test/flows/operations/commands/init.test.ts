/** `svc init`: one command from a running service to values that work. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { program } from '../../../support/service/programs.js'
import { sharedService } from '../../../support/service.js'
import { trustOfPrograms } from '../../../support/service/trust.js'

const MAIN = new URL('../../../../runtime/main.js', import.meta.url).pathname
const running = await sharedService('plain', { transport: 'plain_http' })
const folder = mkdtempSync(join(tmpdir(), 'svc-init-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a program while the service runs in this process. */
async function ran(command: string, words: readonly string[]) {
  const child = spawn(command, words, {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...trustOfPrograms() },
  })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (text.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (text.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, ...text }
}
const init = (...words: readonly string[]) =>
  ran(process.execPath, [MAIN, 'init', '--url', running.baseUrl, ...words])

test.serial(
  'it prints address, administrator, test login, client and a curl, and all of it works',
  async (t) => {
    const first = await init('--json')
    t.is(first.code, 0, first.err)
    const made = JSON.parse(first.out) as Json
    t.is(made['issuer'], running.baseUrl)
    t.true(made['created'])
    t.is(statSync(join(folder, '.env.svc')).mode & 0o777, 0o600)
    if (program('curl') !== undefined) {
      const { out } = await ran('sh', ['-c', String(made['curl']).replace('curl', 'curl -s')])
      t.is((JSON.parse(out) as Json)['token_type'], 'Bearer')
    }
    t.is((await fetch(String(made['owner_invite_url']))).status, 200)
    const browser = openBrowser(running)
    const { pathname, search } = new URL(String(made['sign_in_url']))
    const { email, password } = made['test_user'] as Record<string, string>
    const signedIn = await browser.submit(await browser.get(pathname + search), {
      email: email!,
      password: password!,
    })
    t.is(signedIn.location, '/auth/account', signedIn.html)
  },
)

test.serial('a second run creates nothing and prints the same, also as text', async (t) => {
  const kept = readFileSync(join(folder, '.env.svc'), 'utf8')
  const again = await init()
  t.is(again.code, 0, again.err)
  const [, id = ''] = /^SVC_CLIENT_ID=(.+)$/m.exec(kept)!
  t.true(again.out.includes(`client id      ${id}\n`))
  t.is(readFileSync(join(folder, '.env.svc'), 'utf8'), kept)

  writeFileSync(join(folder, 'old.env'), kept.replace(id, '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e'))
  const outdated = await init('--write-env', 'old.env')
  t.is(outdated.code, 1)
  t.regex(outdated.err, /old\.env is of another deployment or outdated: the client got 401/)
})

test.serial('another tenant of the same folder has its own agent', async (t) => {
  const other = await init('--write-env', 'other.env', '--json', '--output', 'other.json')
  t.is(other.code, 0, other.err)
  t.is(other.out, '', 'the result is in the file')
  const made = JSON.parse(readFileSync(join(folder, 'other.json'), 'utf8')) as Json
  t.is(made['env_file'], join(folder, 'other.env'))
  t.is(made['agent_file'], join(folder, 'other.env.agent.json'))
  t.is(statSync(join(folder, 'other.env.agent.json')).mode & 0o777, 0o600)
})

test.serial('a file that cannot be written is refused before a tenant is created', async (t) => {
  const refused = await init('--write-env', 'nowhere/values.env', '--agent-file', 'unused.json')
  t.is(refused.code, 1)
  t.regex(refused.err, /--write-env: .*nowhere/)
  t.false(existsSync(join(folder, 'unused.json')))
})
