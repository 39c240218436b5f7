/** docs/agents.md promises that its commands run as they stand. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { program } from '../support/programs.js'
import { testService } from '../support/service.js'

const PAGE = new URL('../../../docs/agents.md', import.meta.url)
const PROGRAMS = ['bash', 'curl', 'jq', 'openssl', 'basenc']
const TITLE = 'the commands of docs/agents.md take an agent from a key to a token'
const absent = PROGRAMS.filter((name) => program(name) === undefined)

if (absent.length === 0) test(TITLE, journey)
else test.skip(`${TITLE} (skipped: ${absent.join(', ')} not installed)`, () => undefined)

async function journey(t: ExecutionContext): Promise<void> {
  const running = await testService({
    environment: { SVC_CHALLENGE__POW_MIN_DURATION_SECS: '1' },
  })
  const folder = mkdtempSync(join(tmpdir(), 'svc-page-'))
  t.teardown(async () => {
    rmSync(folder, { recursive: true })
    await running.end()
  })
  const commands = [...readFileSync(PAGE, 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)]
  t.is(commands.length, 7)
  const script = commands.map(([, text]) => text).join('\n')
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    env: { PATH: process.env['PATH'], BASE: running.baseUrl },
  })
  t.is(stdout.trim(), 'users:read vault:list')
  t.regex(readFileSync(join(folder, '.env.local'), 'utf8'), /^SVC_CLIENT_SECRET=svcs_/m)
}
